"""Labels on a shelf (shelf.c). Half of the runs call the function that is wrong: its name is the argument."""
import random
import sys

import shelf


class Label:
    def __init__(self, n):
        self.text = "label" * n
        self.n = n

    def size(self):
        return len(self.text) + self.n


def fill():
    for i in range(8):
        shelf.put(i, Label(i + 1))


def look(function):
    for _ in range(2):
        function(3)


def churn():
    """Gives the places of what was freed to others, of the same size."""
    return [bytearray(b"\x17" * 56) for _ in range(200)] + [bytes([33 + i % 9]) * 20 for i in range(200)]


fill()
look(getattr(shelf, sys.argv[1] if random.random() < 0.5 else "touch" if "touch" in sys.argv[1] else "peek"))
kept = churn()
print(shelf.total())
