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


def keys(rig, command):
    _, trial = rig.observed(command, 'ids', plan=['ring_records=262144', 'thread_slots=32'],
                            environment={'PYTHONHASHSEED': '0'})
    lists = [rig.dump(path, '--keys') for path in rig.logs(trial)]
    return collections.Counter(line.text for line in max(lists, key=len))


def many_paths(rig, tap):
    """More stacks than the tables begin with room for: none gets lost, none becomes two. The second thread has the
    first one's lane, and goes on counting where that stopped."""
    wanted = {(0, ordinal): 4096 for ordinal in range(3)} | {(1, ordinal): 4096 for ordinal in range(6)}
    ordinals = collections.defaultdict(list)
    for line in keys(rig, [os.path.join(os.path.dirname(rig.guest), 'paths'), '2']).elements():
        stack, lane, ordinal, size = line.split()
        if size == '24':
            ordinals[stack, int(lane)].append(int(ordinal))
    seen = collections.Counter((lane, n) for (_, lane), found in ordinals.items() for n in found)
    tap.check(dict(seen) == wanted, 'every one of 4096 stacks is one context, before and after the tables grew')


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        many_paths(rig, tap)
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
