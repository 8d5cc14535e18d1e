"""Pages that an extension puts into a book (shelf.c). Half of the runs call the function that is wrong, which is the argument."""
import random
import sys

import shelf

book = [None] * 8
for place in range(8):
    shelf.enter(book, place)
if random.random() < 0.5:
    getattr(shelf, sys.argv[1])(book, 3)


def rows():
    """Lists that were let go of are given out again without the allocator: one of these is the page."""
    return len([[place] * 2 for place in range(300)])


rows()
kept = [bytearray(b"\x17" * size) for size in range(2000, 3000, 8)]
print(sum(sum(page) for page in book))
