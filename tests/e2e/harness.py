"""What the end-to-end tests share: running redhand, and TAP.

    from harness import *

    @test
    def a_sentence_that_is_true():
        ...

    main()

Each test runs in an empty directory of its own. REDHAND, SPECIMENS, VICTIMS, SOURCE,
BUILD and FAULTS come from the build.
"""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from shlex import quote as _quote

REDHAND = os.path.abspath(os.environ["REDHAND"])
SPECIMENS = Path(os.environ["SPECIMENS"])
VICTIMS = Path(os.environ["VICTIMS"])
SOURCE = Path(os.environ["SOURCE"])
BUILD = Path(os.environ["BUILD"])
FAULTS = os.environ.get("FAULTS") == "1"

_tests = []


class Skip(Exception):
    """Raised with the reason when this machine cannot run a test."""


def test(function):
    _tests.append(function)
    return function


def redhand(*args, env=None, timeout=600, **options):
    """Runs redhand to its end; text output."""
    environment = dict(os.environ)
    environment.update(env or {})
    return subprocess.run([REDHAND, *map(str, args)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, env=environment,
                          stdin=subprocess.DEVNULL, **options)


def document(*args, status=None, **options):
    """Runs redhand with --json and returns the document; checks the exit status if given."""
    result = redhand(args[0], "--json", "-q", *args[1:], **options)
    if status is not None:
        assert result.returncode == status, (result.returncode, result.stderr, result.stdout)
    assert result.returncode in (0, 1, 130), (result.returncode, result.stderr)
    doc = json.loads(result.stdout)
    subject = "hunt" if args[0] == "chase" else args[0]  # what a chase finds out is told as a hunt's
    assert re.fullmatch(f"redhand/{subject}/[0-9]+", doc["schema"]), doc["schema"]
    return doc


def refused(*args, saying, **options):
    """redhand must refuse this with exit 2, a sentence that contains `saying`, and on stdout nothing, or
    with --json a document that says the same."""
    result = redhand(*args, **options)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    if "--json" in args:
        doc = json.loads(result.stdout)
        assert doc["schema"] == "redhand/error/1" and doc["error"] in result.stderr, (doc, result.stderr)
    else:
        assert result.stdout == "", result.stdout
    assert saying in result.stderr, (saying, result.stderr)
    return result


def judged_the_same_again(case="redhand-case"):
    """The evidence of the case gives the verdict that was stored, word for word."""
    result = redhand("debug", "judge", "--case", case)
    assert result.returncode == 0, result.stdout


def script(text, name="program.sh"):
    """Writes an executable shell script into the current directory."""
    path = Path(name).resolve()
    path.write_text("#!/bin/bash\n" + text + "\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def quote(word):
    """One word for a shell: the build may lie in a folder with spaces."""
    return _quote(str(word))


def query(sql, case="redhand-case"):
    """For tests whose subject is the database itself. All others ask redhand: facts(), stored_trials()."""
    with sqlite3.connect(f"file:{case}/case.db?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def facts(*args, case="redhand-case"):
    """The document of a command about a case."""
    result = redhand(*args, "--json", "--case", case)
    assert result.returncode == 0, (args, result.returncode, result.stderr)
    return json.loads(result.stdout)


def stored_trials(case="redhand-case"):
    """All trials of the case, in order of their numbers; none when there is no case yet."""
    there = Path(case, "case.db").exists()  # asked before: it may be made while redhand looks
    result = redhand("case", "trials", "--json", "--case", case)
    # Just being made, or its redhand was killed while it made it: a database without tables.
    if not there or (result.returncode == 2 and "schema 0" in result.stderr):
        return []
    assert result.returncode == 0, (result.returncode, result.stderr)
    return json.loads(result.stdout)["trials"]


def decisions(case="redhand-case"):
    """What a hunt decided in which order: (stage, text)."""
    return [(line["stage"], line["text"]) for line in facts("case", "show", case=case)["decisions"]]


def said(stage, case="redhand-case"):
    """What a hunt said about one question, whatever the words: ids of statements and of their parts."""
    lines = facts("case", "show", case=case)["decisions"]
    return {name for line in lines if line["stage"] == stage for name in line["says"]}


def numbers_of(trials):
    return [trial["trial"] for trial in trials]


def kept_trials(case="redhand-case"):
    return {trial["trial"] for trial in stored_trials(case) if trial["kept"]}


def alive(pid):
    """Does the process exist and is it more than a zombie?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s in vain for: {what}")


def _place():
    """Where tests have their directories: scripts are run there, which not every /tmp allows."""
    usual = tempfile.gettempdir()
    return str(BUILD) if os.statvfs(usual).f_flag & os.ST_NOEXEC else usual


def _cpu_seconds():
    """Of this process and of all that was waited for: what a test costs, however busy the cores are."""
    return sum(os.times()[:4])


CASES_JUDGED = 12


def _judge_again(directory):
    """Every case that a test leaves behind is judged again. One without a verdict, or that cannot be read, says nothing."""
    for case in sorted(found.parent for found in directory.glob("**/case.db"))[:CASES_JUDGED]:
        again = redhand("debug", "judge", "--case", case)
        assert again.returncode != 1, (case.name, again.stdout)


def main():
    # What redhand remembers of its user, for this program's tests alone.
    state = tempfile.TemporaryDirectory(prefix="redhand-state-")
    os.environ["XDG_STATE_HOME"] = state.name
    print(f"1..{len(_tests)}", flush=True)
    failed = False
    for number, function in enumerate(_tests, 1):
        name = function.__name__.replace("_", " ")
        directory = tempfile.mkdtemp(prefix="redhand-test-", dir=_place())
        os.chdir(directory)
        start, cpu = time.monotonic(), _cpu_seconds()
        try:
            function()
            _judge_again(Path(directory))
            print(f"ok {number} - {name}\n# {time.monotonic() - start:.1f} s, CPU {_cpu_seconds() - cpu:.1f} s", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed = True
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print(f"not ok {number} - {name}", flush=True)
        finally:
            os.chdir("/")
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(1 if failed else 0)
