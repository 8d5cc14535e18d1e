"""Dies with Python and native frames mixed; prints its Python stack first, innermost frame first, as
"function line", with "--" where the interpreter was entered anew from native code (not for "mixed").

    python_stack.py [thread | mixed]
"""
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


def show_all():
    frame = sys._getframe(1)
    while frame:
        print(frame.f_code.co_qualname, frame.f_lineno)
        frame = frame.f_back
    sys.stdout.flush()


class Maker:
    def __init__(self, n):
        if n:
            self.value = [Maker(n - 1) for _ in range(1)]
        else:
            show_all(); signal.raise_signal(signal.SIGSEGV)  # noqa: E702


def generator(n):
    if n:
        yield from generator(n - 1)
    else:
        yield Maker(2)


async def waits(n):
    if n:
        return await waits(n - 1)
    for item in generator(2):
        return item


async def starts():
    import asyncio
    return await asyncio.wait_for(waits(2), 10)


def mixed():
    import asyncio
    exec("\n\nlambda_ = lambda: asyncio.run(starts())\nlambda_()", {"asyncio": asyncio, "starts": starts})


if __name__ == "__main__":
    if sys.argv[1:] == ["mixed"]:
        for _ in range(20):  # long enough for the code to be specialised
            list(map(str, generator.__code__.co_varnames))
        mixed()
    if sys.argv[1:] == ["thread"]:
        import threading
        thread = threading.Thread(target=lambda: max([1], key=lambda _: nested()))
        thread.start()
        thread.join()
    max([1], key=lambda _: nested())
