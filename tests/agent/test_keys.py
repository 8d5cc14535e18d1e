#!/usr/bin/env python3
"""Does a block's key name the same block in the next run? Address space randomisation on."""
import collections
import os
import shutil
import sys

from rig import Rig, Tap

PYTHON = 'import json; d = {i: [str(i)] * 3 for i in range(500)}; json.dumps(d)'
# program, least share of allocations whose (context, ordinal, size) is the same in both runs
PROGRAMS = [
    (['git', 'help', '-a'], 0.95),
    (['/usr/bin/python3', '-S', '-c', PYTHON], 0.95),
    (['sqlite3', ':memory:', 'create table t(a, b); insert into t values (1, 2); '
      'create index i on t(b); select count(*) from t;'], 0.95),
]


def keys_of_images(rig, command):
    """One Counter for each image's log, the longest first."""
    _, trial = rig.observed(command, 'ids', plan=['ring_records=262144', 'thread_slots=32'],
                            environment={'PYTHONHASHSEED': '0'})
    lists = [[tuple(line[name] for name in ('hash', 'lane', 'ordinal', 'size'))
              for line in rig.dump(path, '--keys') if line.type == 'KEY'] for path in rig.logs(trial)]
    return [collections.Counter(found) for found in sorted(lists, key=len, reverse=True)]


def keys(rig, command):
    return keys_of_images(rig, command)[0]


def ordinals_of_paths(lines):
    """How many stacks of a lane have a block of that number."""
    seen = collections.Counter()
    for stack, lane, ordinal in {key[:3] for key in lines.elements() if key[3] == '24'}:
        seen[int(lane), int(ordinal)] += 1
    return dict(seen)


def many_paths(rig, tap):
    """More stacks than the tables begin with room for: none gets lost, none becomes two. The second thread has the
    first one's lane, and goes on counting where that stopped; a child begins anew, in all lanes."""
    images = keys_of_images(rig, [os.path.join(os.path.dirname(rig.guest), 'paths'), '2'])
    wanted = {(0, ordinal): 4096 for ordinal in range(3)} | {(1, ordinal): 4096 for ordinal in range(6)}
    tap.check(ordinals_of_paths(images[0]) == wanted,
              'every one of 4096 stacks is one context, before and after the tables grew', ordinals_of_paths(images[0]))
    wanted = {(1, ordinal): 4096 for ordinal in range(3)}
    tap.check(len(images) == 2 and ordinals_of_paths(images[1]) == wanted,
              "a forked child's thread has contexts of its own, also in a lane that its parent used",
              [ordinals_of_paths(lines) for lines in images[1:]])


def left_on_the_stack(rig, tap):
    """Old return addresses on the stack are not taken for the way to a block: all blocks of a stack are of the size that
    its functions make of it."""
    sizes = collections.defaultdict(collections.Counter)
    for (stack, _, _, size), count in keys(rig, [os.path.join(os.path.dirname(rig.guest), 'stale')]).items():
        if 1000 <= int(size) < 1080:
            sizes[stack][size] += count
    wrong = sum(sum(seen.values()) - max(seen.values()) for seen in sizes.values())
    total = sum(sum(seen.values()) for seen in sizes.values())
    tap.check(total > 10000 and len(sizes) > 100 and wrong == 0,
              'what is left on the stack does not lead astray', f'{wrong} of {total} blocks, {len(sizes)} stacks')


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        many_paths(rig, tap)
        left_on_the_stack(rig, tap)
        for command, least in PROGRAMS:
            if not shutil.which(command[0]):
                tap.skip(command[0] + ': keys hold', 'not installed')
                continue
            first, second = keys(rig, command), keys(rig, command)
            total = sum(first.values())
            share = sum((first & second).values()) / max(total, 1)
            tap.check(total > 100 and share >= least,
                      f'{command[0]}: keys hold for {share:.4f} of {total} allocations')
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
