"""Many short-lived objects of one class (scope.c): one of them is damaged, in half of the runs."""
import scope

state = {"on": True}


class Quiet:
    def __init__(self):
        self.before = None
        self.left = 0

    def __enter__(self):
        self.before = state["on"]
        state["on"] = False
        scope.open(self)
        return self

    def __exit__(self, *exc):
        self.left = 1
        state["on"] = self.before
        return False


def bench(times):
    total = 0
    for i in range(times):
        with Quiet():
            scope.tick()
            total += i
    return total


print(bench(12000))
