"""Labels that are lent to an extension (shelf.c). Half of the runs call the function that is wrong, which is the argument."""
import random
import sys

import shelf


class Label:
    def __init__(self, n):
        self.text = "label" * n

    def size(self):
        return len(self.text)


labels = [Label(i + 1) for i in range(8)]


def lend(function):
    function(labels[3])


def let_go():
    del labels[3]


if random.random() < 0.5:
    lend(getattr(shelf, sys.argv[1]))
if sys.argv[1] == "hang_uncounted":
    let_go()
# Others get the place of what was freed.
kept = [bytearray(b"\x17" * 56) for _ in range(200)] + [bytes([33 + i % 9]) * 20 for i in range(200)]
hanging = shelf.hanging()
if hanging:
    labels.append(hanging)
print(sum(label.size() for label in labels))
