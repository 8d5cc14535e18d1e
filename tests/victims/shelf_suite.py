"""Tests of an extension (shelf.c). Half of the runs call the function that is wrong, which SHELF names."""
import os
import random
import unittest

import shelf

WRONG = os.environ["SHELF"]
CHOSEN = WRONG if random.random() < 0.5 else WRONG.replace("_borrowed", "")


class Label:
    def __init__(self, n):
        self.text = "label" * n
        self.n = n

    def size(self):
        return len(self.text) + self.n


class TestShelf(unittest.TestCase):
    def test_a_names(self):
        for i in range(5):
            shelf.name("n%d" % i, Label(i))

    def test_b_words(self):
        self.assertEqual(len({("w%d" % i) * 3 for i in range(50)}), 50)

    def test_c_use(self):
        if "stash" in CHOSEN:
            getattr(shelf, CHOSEN)(Label(7))
        else:
            self.assertEqual(getattr(shelf, CHOSEN)("n3").n, 3)

    def test_d_dicts(self):
        self.assertEqual(sum(x["a"] for x in [{"a": i, "b": [i]} for i in range(40)]), 780)

    def test_e_labels(self):
        self.assertEqual(sum(label.size() for label in [Label(i) for i in range(30)]), 2610)

    def test_f_report(self):
        label = shelf.stashed() if "stash" in CHOSEN else shelf.named("n3")
        self.assertEqual(label.size(), 42 if "stash" in CHOSEN else 18)


unittest.main(verbosity=2)
