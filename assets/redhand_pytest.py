"""What redhand adds to a pytest run, with -p: the tests it wants, in its order, and word of each.

Not meant to be installed; redhand puts it beside each run. It speaks through the environment:
  REDHAND_LIST   write the tests that there are to this file, and run none
  REDHAND_TESTS  a file of lines "NUMBER<tab>ID": run exactly these, in this order
  REDHAND_MARKS  tell of each test there: "+ NUMBER" started, "= NUMBER" passed, "- NUMBER" failed
"""
import os

import pytest

_numbers = {}
_failed = set()
_marks = {"fd": None}


def _mark(sign, number):
    if "REDHAND_MARKS" not in os.environ:
        return
    line = f"{sign} {number}\n".encode()
    for _ in range(2):
        try:
            if _marks["fd"] is None:
                _marks["fd"] = os.open(os.environ["REDHAND_MARKS"], os.O_WRONLY | os.O_APPEND)
            os.write(_marks["fd"], line)
            return
        except OSError:
            _marks["fd"] = None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    option = config.option
    if hasattr(option, "maxfail"):
        option.maxfail = 0
    # One process: what matters is what ran before what.
    for name, value in (("dist", "no"), ("tx", []), ("numprocesses", None)):
        if hasattr(option, name):
            setattr(option, name, value)


def _argument(config, item):
    """How a command line in the directory of this run would name the test."""
    path = str(getattr(item, "path", None) or item.fspath)
    base = str(config.invocation_params.dir)
    name = os.path.relpath(path, base)
    return name, name + item.nodeid[len(item.nodeid.split("::", 1)[0]):]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    target = os.environ.get("REDHAND_LIST")
    if not target:
        return
    config = session.config
    with open(target, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(f"rootdir\t{config.rootpath}\n")
        if config.inipath:
            out.write(f"inifile\t{config.inipath}\n")
        for word in getattr(config.option, "file_or_dir", None) or []:
            out.write(f"positional\t{word}\n")
        listed = set()
        for item in session.items:
            if item.nodeid in listed:
                continue
            listed.add(item.nodeid)
            path, argument = _argument(config, item)
            out.write(f"test\t{path}\t{argument}\t{item.nodeid}\n")
        out.write("end\t\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    wanted = os.environ.get("REDHAND_TESTS")
    if not wanted:
        return
    found = {}
    for item in items:
        found.setdefault(item.nodeid, item)
    chosen = []
    with open(wanted, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines.read().split("\n"):
            number, _, nodeid = line.partition("\t")
            if not number:
                continue
            if nodeid not in found:
                pytest.exit(f"redhand: there is no test {nodeid}", returncode=125)
            _numbers[nodeid] = int(number)
            chosen.append(found[nodeid])
    deselected = [item for item in items if item.nodeid not in _numbers]
    items[:] = chosen
    if deselected:
        config.hook.pytest_deselected(items=deselected)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    number = _numbers.get(item.nodeid)
    if number is None:
        yield
        return
    _mark("+", number)
    yield
    _mark("-" if item.nodeid in _failed else "=", number)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if report.failed:
        _failed.add(report.nodeid)
