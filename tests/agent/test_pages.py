#!/usr/bin/env python3
"""Watched pages: every store to a watched word is counted, once, whatever instruction or system call makes it; no
other is; and the target does not notice."""
import os
import re
import sys

from rig import Rig, Tap
from test_watch import Seen

BLOCK, AT = 1111, 64
AFTER_FREE = 1
FENCE = 1 << 5
KERNEL = 1 << 5


def watch(offset=AT, size=8, flags=0, block=BLOCK, low=0):
    return f'watch={block},{offset},{size},{flags},0,{low}'


class Paging:
    def __init__(self, rig, tap):
        self.rig = rig
        self.tap = tap

    def run(self, program, mode, *plan):
        """The same end and output as without the agent; returns what each process left, the first one first."""
        command = [os.path.join(os.path.dirname(self.rig.guest), program), mode]
        plain = self.rig.plain(command)
        seen, trial = self.rig.observed(command, 'ids', ['pages', *plan])
        self.tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                       f'{program} {mode}: ends and prints the same', f'{plain}\n{seen}')
        logs = [Seen(self.rig.dump(path, '--watch')) for path in self.rig.logs(trial)]
        self.tap.check(logs and all(log.row('mode') == 3 and log.row('trouble') == 0 for log in logs),
                       f'{program} {mode}: on watched pages', '\n'.join(map(str, logs)))
        self.tap.check(not any(log.changed for log in logs), f'{program} {mode}: nobody from outside',
                       '\n'.join(map(str, logs)))
        self.said = dict(re.findall(r'^(\w+) (\S+)$', plain.stdout.decode(), re.M))
        return sorted(logs, key=lambda log: (int(log.header['ppid']) != os.getpid(), log.header['forked'] != '1'))

    def equal(self, got, wanted, name, seen=''):
        self.tap.check(got == wanted, name, f'{got}, not {wanted}\n{seen}')


def stores(p):
    for mode in 'threads', 'integers', 'sixteen', 'vectors', 'strings', 'straddling', 'handlers', 'small-stack', 'steps-itself', 'wild':
        log, = p.run('paged', mode, watch())
        p.equal(log.row('hits'), int(p.said['count']), mode + ': every write, once', log)
        p.equal(log.row('objects'), log.row('armed'), mode + ': all of them', log)
        if mode == 'threads':
            p.equal(log.row('armed'), 1000, 'threads: a thousand objects', log)
            p.equal(sum(int(w['count']) for w in log.writers), log.row('hits'), 'threads: writers add up', log)
            # Old and new value belong together, however many threads write.
            p.equal({int(h['new']) - int(h['old']) for h in log.hits} - {1}, set(), 'threads: each hit is one step', log)


def blocked(p):
    """Whatever is blocked at the moment, in whatever thread: from then on calls are told, and nobody dies of it. Where
    threads race, a run with a selector for all died 7 times in 10: all of 30 come through by luck once in 10^15."""
    for mode, times in ('blocked-before', 1), ('masked-before', 1), ('handler-first', 1), ('others-busy', 30), ('other-first', 30):
        for i in range(times):
            log, *others = p.run('paged', mode, watch())
            p.equal(log.row('hits'), 1, f'{mode} {i}: the write', log)


def engines(p):
    """What the kernel fills later cannot be watched; the target must not notice."""
    for mode, hits in ('engines', 1), ('engines-first', 0):
        log, child = p.run('paged', mode, watch())
        p.equal((log.row('hits'), log.row('yielded')), (hits, 3), mode + ': opened for the kernel', log)
        p.equal((child.row('hits'), child.row('yielded')), (0, 3), mode + ': and for its child', child)


def calls(p):
    log, = p.run('paged', 'calls', watch())
    p.equal(log.row('hits'), int(p.said['count']), 'calls: every write of the kernel, once', log)
    p.equal({int(h['flags'], 16) & KERNEL for h in log.hits}, {KERNEL}, 'calls: told as such', log)
    log, = p.run('paged', 'waits', watch())
    p.equal(log.row('hits'), int(p.said['count']), 'waits: the call and the store meanwhile', log)


def lives(p):
    logs = p.run('paged', 'forks', watch())
    p.equal([log.row('hits') for log in logs][:2], [int(p.said['count']), 100], 'forks: each its own',
            '\n'.join(map(str, logs)))
    logs = p.run('paged', 'forks-limited', watch())
    p.equal([log.row('hits') for log in logs if log.header['forked'] == '0'], [1], 'forks-limited: fork needs no file of ours', logs[0])
    log, = p.run('paged', 'resizes', watch())
    p.equal(log.row('hits'), int(p.said['atleast']) + 1, 'resizes: followed, and back again', log)
    p.equal(len({o['address'] for o in log.objects}) > 60, True, 'resizes: addresses are not used again at once', log)
    log, = p.run('writes', 'after-free', watch(16, 8, AFTER_FREE, 4208))
    p.equal((log.row('hits'), len(log.objects)), (30, 1), 'after-free: watched on', log)
    log, = p.run('writes', 'after-free', watch(16, 8, 0, 4208))
    p.equal(log.row('hits'), 10, 'after-free: else only while it lives', log)
    log, = p.run('writes', 'policy', watch(16, 8, 0, 4208))
    p.equal((log.row('armed'), log.row('hits')), (10, 10), 'policy: there is no need for one', log)


def others(p):
    for mode, hits in ('one', 20000), ('threads-before', 20000), ('busy-lines', None), ('close-loop', 300), \
            ('close-range', 300), ('blocked', 300), ('own-trap', 100), ('limit-later', 300), ('line', 3), ('at-exit', 2):
        offset = 16 if hits != 20000 else 0
        log, = p.run('writes', mode, watch(offset, 8, 0, 4208))
        if hits:
            p.equal(log.row('hits'), hits, mode + ': every write, once', log)


def fences(p):
    """Who touches a block that was freed dies there; nobody else notices."""
    command = [os.path.join(os.path.dirname(p.rig.guest), 'paged'), 'reads-freed']
    seen, trial = p.rig.observed(command, 'ids', ['pages', watch(flags=FENCE)])
    p.equal((seen.returncode, seen.stdout), (0, b'child 11\n'), 'fences: the child died')
    lines = [line for line in p.rig.records(trial) if line.type in ('CRASH', 'BLOCK')]
    crash = [line for line in lines if line.type == 'CRASH']
    p.equal(len(crash), 1, 'fences: one crash')
    p.tap.check(any(line.type == 'BLOCK' and line['state'] == 'freed' and line['size'] == str(BLOCK) and
                    line['value'] == crash[0]['fault'] for line in lines), 'fences: at a freed block', f'{lines}')
    for command in ordinary():
        plain = p.rig.plain(command)
        seen, trial = p.rig.observed(command, 'ids', ['pages', watch(0, 8, FENCE, 1 << 30, 1)])
        p.tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                    f'{command[0]}: ends and prints the same with fences', f'{plain}\n{seen}'[:2000])
        fenced = sum(Seen(p.rig.dump(path, '--watch')).row('armed') or 0 for path in p.rig.logs(trial))
        p.tap.check(fenced > 10, f'{command[0]}: {fenced} blocks')


def ordinary():
    return [['ls', '-l', '/usr/bin'], ['sh', '-c', 'for i in 1 2; do echo $i | cat; done; exit 3'],
                [sys.executable, '-c', 'import json, threading\n'
                 't = threading.Thread(target=lambda: print(json.dumps([1, 2, {"a": None}])))\nt.start()\nt.join()']]


def everything(p):
    """All blocks of a program on watched pages: slow, and otherwise as ever."""
    for command in ordinary():
        plain = p.rig.plain(command)
        seen, trial = p.rig.observed(command, 'ids', ['pages', watch(0, 8, 0, 1 << 30, 1)])
        p.tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                    f'{command[0]}: ends and prints the same', f'{plain}\n{seen}'[:2000])
        hits = sum(Seen(p.rig.dump(path, '--watch')).row('hits') or 0 for path in p.rig.logs(trial))
        p.tap.check(hits > 100, f'{command[0]}: {hits} writes')


def let_go(p):
    """All blocks on watched pages, some of which must be writable by their own address: stacks, what has a protection
    key, what is written to through /proc/self/mem. Those are let go of, and said; the others are watched."""
    for mode, gone in ('stack-of-thread', 1), ('stack-of-coroutine', 1), ('stack-of-signals', 2), ('stack-of-clone', 1), \
            ('stack-of-flags', 1), ('keys', 1), ('own-memory', 2):
        log, *others = p.run('paged', mode, watch(0, 8, 0, 1 << 30, 1))
        p.tap.check(log.row('let_go') >= gone, f'{mode}: let go of', f'{log}')
        p.tap.check(log.row('armed') > log.row('let_go'), f'{mode}: others are watched', f'{log}')


def protected(p):
    """A page is closed by another thread while an instruction runs with it open. Of three runs two did not end."""
    for _ in range(3):
        p.run('paged', 'protected-meanwhile', watch(0, 8, 0, 1 << 30, 1))


def main():
    rig = Rig(sys.argv[1], sys.argv[2])
    tap = Tap()
    paging = Paging(rig, tap)
    for part in stores, blocked, calls, engines, lives, fences, others, everything, let_go, protected:
        part(paging)
    rig.close()
    return tap.end()


if __name__ == '__main__':
    sys.exit(main())
