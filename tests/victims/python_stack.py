"""Dies with Python and native frames mixed; prints its Python stack first, innermost frame first, as
"function line", with "--" where the interpreter was entered anew from native code."""
import signal
import sys


def show(groups):
    frame = sys._getframe(1)
    for i, size in enumerate(groups):
        if i > 0:
            print("--")
        for _ in range(size):
            print(frame.f_code.co_qualname, frame.f_lineno)
            frame = frame.f_back
    sys.stdout.flush()


class Kläss:
    def leaf(self, x):
        show([3, 3, 1]); signal.raise_signal(signal.SIGSEGV)  # noqa: E702
        return x

    def method(self, x):
        return self.leaf(x) + 1


def key(x):
    return Kläss().method(x)


def nested():
    def consume():
        return (
            sorted([3],
                   key=key))
    return consume()


if __name__ == "__main__":
    if sys.argv[1:] == ["thread"]:
        import threading
        thread = threading.Thread(target=lambda: max([1], key=lambda _: nested()))
        thread.start()
        thread.join()
    max([1], key=lambda _: nested())
