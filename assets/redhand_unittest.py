"""python -m redhand_unittest: as python -m unittest, with the tests redhand wants, in its order.

Not meant to be installed; redhand puts it beside each run. The environment is that of
redhand_pytest.py: REDHAND_LIST, REDHAND_TESTS, REDHAND_MARKS.
"""
import os
import sys
import unittest

_numbers = {}


def _flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flatten(test)
        else:
            yield test


def _mark(sign, test):
    number = _numbers.get(test.id())
    if number is None or "REDHAND_MARKS" not in os.environ:
        return
    fd = os.open(os.environ["REDHAND_MARKS"], os.O_WRONLY | os.O_APPEND)
    os.write(fd, f"{sign} {number}\n".encode())
    os.close(fd)


class _Result(unittest.TextTestResult):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.bad = set()

    def startTest(self, test):
        _mark("+", test)
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        _mark("-" if test.id() in self.bad else "=", test)

    def addError(self, test, err):
        self.bad.add(test.id())
        super().addError(test, err)

    def addFailure(self, test, err):
        self.bad.add(test.id())
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.bad.add(test.id())
        super().addSubTest(test, subtest, err)

    def addUnexpectedSuccess(self, test):
        self.bad.add(test.id())
        super().addUnexpectedSuccess(test)


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


class _Loader(unittest.TestLoader):
    """Notes where discovery lets modules be imported from: newer versions of Python forget it."""
    added = None

    def discover(self, *args, **options):
        before = list(sys.path)
        tests = super().discover(*args, **options)
        self.added = next((path for path in sys.path if path not in before), self.added)
        return tests


class _Program(unittest.TestProgram):
    def runTests(self):
        tests = list(_flatten(self.test))
        target = os.environ.get("REDHAND_LIST")
        if target:
            top = self.testLoader.added
            with open(target, "w", encoding="utf-8", errors="surrogateescape") as out:
                if top and os.path.realpath(top) != os.path.realpath("."):
                    out.write(f"path\t{os.path.relpath(top)}\n")
                # What could not be imported is no test; each name once, in order.
                for name in dict.fromkeys(test.id() for test in tests
                                          if type(test).__name__ != "_FailedTest"):
                    out.write(f"test\t{name}\n")
                out.write("end\t\n")
            sys.exit(0)
        found = {}
        for test in tests:
            found.setdefault(test.id(), test)
        chosen = unittest.TestSuite()
        with open(os.environ["REDHAND_TESTS"], encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines.read().split("\n"):
                number, _, name = line.partition("\t")
                if not number:
                    continue
                if name not in found:
                    print(f"redhand: there is no test {name}", file=sys.stderr)
                    sys.exit(125)
                _numbers[name] = int(number)
                chosen.addTest(found[name])
        self.test = chosen
        self.failfast = False
        self.testRunner = _Runner
        super().runTests()


if __name__ == "__main__":
    sys.argv[0] = os.path.basename(sys.executable) + " -m unittest"
    _Program(module=None, testLoader=_Loader())
