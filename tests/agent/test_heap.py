#!/usr/bin/env python3
"""The heap observer keeps the contract of malloc, and sees what is wrong."""
import os
import resource
import shutil
import signal
import subprocess
import sys

from rig import Rig, Tap

GUEST = ['entry-points', 'refusals', 'storm', 'threads', 'signals', 'children', 'little-memory']
INNOCENT = ['full-size', 'pool', 'growing', 'threads', 'forking', 'tagged']
SMALL = ['quarantine_mib=1', 'timer_ms=1']
PLANS = {'': ([], GUEST), 'a small quarantine': (SMALL, ['storm', 'threads', 'children']),
         'no quarantine': (['quarantine_mib=0'], ['storm']),
         'a sample': (['sampled'], GUEST), 'a sample and a small quarantine': (['sampled'] + SMALL, ['storm']),
         'garbage in new blocks': (['fresh'], ['entry-points', 'threads']),
         'a sweep at every free': (['sweep=2', 'sweep_at=1'], ['unmapping'])}
PROGRAMS = [
    ('python3', ['/usr/bin/python3', '-c', 'import json, threading; d = {i: [str(i)] * 3 for i in range(9999)}; print(len(json.dumps(d)))'], {}),
    ('python3 on malloc', ['/usr/bin/python3', '-c', 'import json, re; print(len(json.dumps({i: [str(i)] * 3 for i in range(3000)})), re.sub("a+", "b", "xaay"))'], {'PYTHONMALLOC': 'malloc'}),
    ('gcc', ['sh', '-c', 'echo "int main(void) { return 3; }" > a.c && gcc -O2 a.c -o a.out; ./a.out'], {}),
    ('git', ['sh', '-c', 'rm -rf r; git init -q r && cd r && git config user.email a@b && git config user.name n && echo 1 > f && git add f && git commit -qm c && git log -p --format=%s'], {}),
    ('perl', ['perl', '-e', 'my %h; $h{$_} = [1..5] for 1..5000; print scalar(keys %h), "\\n"; print `echo sub`; exit 7'], {}),
    ('node', ['node', '-e', 'const a = []; for (let i = 0; i < 1e5; i++) a.push({i, s: String(i)}); console.log(a.length); process.exit(9)'], {}),
    ('sqlite3', ['sqlite3', ':memory:', 'create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x from c; select sum(a) from t;'], {}),
    ('bash', ['bash', '-c', 'for i in 1 2 3; do echo $i | tr 1-3 a-c | sed s/^/x/; done; (exit 3) || echo $?; exit 6'], {}),
]


def accusations(records):
    return [r.text for r in records if r.type in ('HEAP_DAMAGE', 'BAD_FREE')]


def unharmed(tap, rig, name, command, plan, environment):
    plain = rig.plain(command, environment=dict(environment))
    seen, trial = rig.observed(command, 'heap', plan=plan, environment=dict(environment))
    tap.check((plain.returncode, plain.stdout, plain.stderr) ==
              (seen.returncode, seen.stdout, seen.stderr), name + ': unharmed', f'{plain}\n{seen}')
    records = rig.records(trial)
    retired = [r.text for r in records if r.type == 'HEADER' and r['retired'] != '0']
    tap.check(not retired, name + ': nobody retired', retired)
    tap.check(not accusations(records), name + ': nobody accused', accusations(records)[:4])
    return records


def check_limits(tap, rig, guest):
    """What a program gets by with, it gets by with under guards: these follow the limits."""
    for name, limit in ('RLIMIT_AS', resource.RLIMIT_AS), ('RLIMIT_DATA', resource.RLIMIT_DATA):
        def limited():
            resource.setrlimit(limit, (60000000, 60000000))
        for plan in [], ['sampled']:
            plain = rig.plain([guest, 'limited'], preexec_fn=limited)
            seen, trial = rig.observed([guest, 'limited'], 'heap', plan=plan, preexec_fn=limited)
            tap.check((0, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr) and
                      plain.returncode == 0 and not accusations(rig.records(trial)),
                      f'{name} {plan}: enough for the program is enough', f'{plain}\n{seen}')
    if os.geteuid() or subprocess.run(['unshare', '-m', 'true']).returncode:
        return tap.skip('a cgroup', 'no mount namespaces here')
    # What a cgroup's files say, in either version: used up to 40 of 60 MB.
    group = os.path.join(rig.folder, 'cgroup')
    os.makedirs(os.path.join(group, 'memory'))
    for path, text in (('memory.max', '60000000\n'), ('memory.stat', 'anon 40000000\nfile 7\nshmem 0\n'),
                       ('memory/memory.stat', 'cache 1\nhierarchical_memory_limit 60000000\ntotal_cache 9\ntotal_rss 40000000\n')):
        with open(os.path.join(group, path), 'w') as file:
            file.write(text)
    inside = ['unshare', '-m', 'sh', '-c', 'mount --bind "$1" /sys/fs/cgroup && exec "$2" limited', 'sh', group, guest]
    seen, trial = rig.observed(inside, 'heap')
    records = rig.records(trial)
    tap.check(seen.returncode == 0, 'a cgroup: unharmed', seen)
    of_guest = [path for path in rig.logs(trial) if any(r.type == 'IMAGE' and 'heap_guest' in r.text for r in rig.dump(path))]
    records = [r for path in of_guest for r in rig.dump(path)]
    rounds = [r for r in records if r.type == 'ROUND']
    tap.check(len(rounds) == 1 and int(rounds[0]['live']) < 100000 and int(rounds[0]['quarantined']) < 100,
              'a cgroup: no guards once a quarter of it is used, no quarantine', [r.text for r in rounds])


def check_operators(tap, rig, victims):
    """Operators of a library of the program's own are called as ever, and whoever makes a block ends it."""
    for kind in '1234':
        program = os.path.join(victims, 'heap_new' + kind)
        if not os.path.exists(program):
            tap.skip(f'heap_new{kind}', 'no C++ compiler')
            continue
        for name, plan in ('all blocks', []), ('a sample', ['sampled']), ('no quarantine', ['quarantine_mib=0']):
            unharmed(tap, rig, f'heap_new{kind}, {name}', [program, 'fine'], plan, {})
        plain = rig.plain([program, 'fine'])
        seen, trial = rig.observed([program, 'fine'], 'ids')
        tap.check((plain.returncode, plain.stdout) == (seen.returncode, seen.stdout) and
                  not accusations(rig.records(trial)), f'heap_new{kind}: unharmed with ids', f'{plain}\n{seen}')
        _, trial = rig.observed([program, 'overflow'], 'heap')
        damage = [r['kind'] for r in rig.records(trial) if r.type == 'HEAP_DAMAGE']
        # Objects of the fourth lie in chunks, which have one guard for all of them.
        tap.check(damage == ([] if kind == '4' else ['2']), f'heap_new{kind}: an overflow is seen', damage)


def check_rounds(tap, rig, victims):
    """Every block is looked at, and the damage is found by the first look after it."""
    program = os.path.join(victims, 'heap_tests')
    for defect, kind, check in (('overflow', '2', '3'), ('underflow', '1', '3'), ('use', '3', '3'),
                                ('late-overflow', '2', '1'), ('use-crash', '3', '5')):
        _, trial = rig.observed([program, defect], 'heap')
        found = [r for r in rig.records(trial) if r.type == 'HEAP_DAMAGE']
        tap.check([(r['kind'], r['check']) for r in found] == [(kind, check)], defect + ': seen once, at once',
                  [r.text for r in found])
    # So small a quarantine that it leaves before anybody looks.
    _, trial = rig.observed([program, 'use-evicted'], 'heap', plan=['quarantine_mib=1', 'timer_ms=0'])
    found = [r for r in rig.records(trial) if r.type == 'HEAP_DAMAGE']
    tap.check([(r['kind'], r['check']) for r in found] == [('3', '7')], 'use-evicted: seen when it leaves',
              [r.text for r in found])
    _, trial = rig.observed([program, 'none'], 'heap')
    rounds = [r for r in rig.records(trial) if r.type == 'ROUND']
    tap.check(len(rounds) == 1 and rounds[0]['whole'] == '1' and int(rounds[0]['live']) >= 2 and
              int(rounds[0]['quarantined']) >= 300, 'a round at exit looks at all', [r.text for r in rounds])


def check_sweep(tap, rig, victims):
    program = os.path.join(victims, 'heap_tests')
    _, trial = rig.observed([program, 'use'], 'heap', plan=['sweep=2', 'sweep_at=1'])
    records = rig.records(trial)
    held = [r for r in records if r.type == 'HOLDER' and r['kind'] in ('1', '2', '4')]
    tap.check(len({r['target'] for r in held}) == 1, 'sweep: one freed block is held, by a global',
              [r.text for r in held[:4]])


def check_sample(tap, rig, guest):
    """Hot contexts are sampled, by the seed; rare ones are not; what is wrong with either is seen."""
    def run(mode, *plan):
        done, trial = rig.observed([guest, mode], 'heap', plan=['sampled', 'timer_ms=0', *plan])
        records = rig.records(trial)
        return done, records, next(r for r in records if r.type == 'ROUND')

    # At least one in 32, and what is allowed above that: a part of 16, and the first 32 Ki.
    _, records, ended = run('hot')
    guarded, passed = int(ended['guarded']), int(ended['passed'])
    tap.check(guarded + passed >= 300000 and 300000 // 32 <= guarded <= 300000 // 16 + 32768,
              'sample: a part of a hot context', ended.text)
    tap.check(not accusations(records), 'sample: nobody accused', accusations(records)[:4])
    # Of the eight that are told the first four are those that everybody has; each other is one of 32 by the seed and the stack's
    # hash. All four are the same with another seed, in this build, with a chance of 32^-4 = 9.5e-7.
    seen = []
    for plan in ('seed=1', 'seed=1', 'seed=2'):
        _, records, _ = run('hot-defect', plan)
        seen.append([r['ordinal'] for before, r in zip(records, records[1:])
                     if before.type == 'HEAP_DAMAGE' and r.type == 'BLOCK'])
    tap.check(len(seen[0]) == 8 and seen[0] == seen[1], 'sample: the same again with the same seed', seen)
    tap.check(len(seen[2]) == 8 and seen[2] != seen[0], 'sample: others with another seed', seen)
    _, records, _ = run('rare-defect')
    damaged = [r for r in records if r.type == 'HEAP_DAMAGE']
    tap.check(len(damaged) == 3, 'sample: all of a rare context', [r.text for r in damaged])
    done, records, ended = run('hot-twice')
    twice = [r for r in records if r.type == 'BAD_FREE']
    tap.check(done.returncode == rig.plain([guest, 'hot-twice']).returncode and len(twice) == 1 and
              twice[0]['kind'] == '1' and twice[0]['evidence'] != '0', 'sample: a second free of a hot context',
              [done, [r.text for r in twice], ended.text])


def check_freed_field(tap, rig, guest):
    """Poison that is handed to free was read out of a freed block: the record of the free and the crash name it."""
    done, trial = rig.observed([guest, 'freed-field'], 'heap')
    records = rig.records(trial)
    # Since glibc 2.42 free looks at the pointer before it follows it, and aborts: then the block is seen elsewhere.
    via = {-signal.SIGSEGV: '8', -signal.SIGABRT: '4'}.get(done.returncode)
    poisoned = [r for r in records if r.type == 'BLOCK' and r['state'] == 'freed' and r['via'] == via]
    told = [r for r in records if r.type == 'BAD_FREE']
    named = [r for r in records if r.type == 'BLOCK' and told and r['owner'] == told[0]['seq']]
    tap.check(poisoned and len(told) == 1 and len(named) == 1 and
              named[0]['id'] == poisoned[0]['id'] and named[0]['state'] == 'freed',
              'a freed field: its free and the crash name the block',
              [done.returncode, [r.text for r in records if r.type in ('BAD_FREE', 'BLOCK', 'CRASH')]])


def check_fresh(tap, rig, guest):
    """What new blocks hold is the plan's: garbage or zeros, but for those that are to be zero."""
    for ppm, wanted in (1000000, b'61 0 61 61 '), (0, b'0 0 0 0 '):
        done, _ = rig.observed([guest, 'unset'], 'heap', ['fresh', f'poison_ppm={ppm}'])
        tap.check((done.returncode, done.stdout) == (0, wanted), f'fresh: new blocks with a chance of {ppm} ppm', done)


def check_freed_among_freed(tap, rig, guest):
    """Poison of neighbours is alike: only the block whose it is, is told."""
    for seed in range(1, 6):
        done, trial = rig.observed([guest, 'freed-among-freed'], 'heap', plan=[f'seed={seed}'])
        poisoned = {(r['size'], r['state']) for r in rig.records(trial) if r.type == 'BLOCK' and r['via'] == '8'}
        tap.check(done.returncode == -signal.SIGSEGV and poisoned == {('41', 'freed')},
                  f'freed among freed, seed {seed}: the one that was read', (done, poisoned))


def check_signal_stack(tap, rig, guest):
    """Where a wild pointer stands: not where the kernel left the registers."""
    done, trial = rig.observed([guest, 'signal-stack'], 'ids', plan=['wild_values'])
    homes = {r['size'] for r in rig.records(trial) if r.type == 'VALUE' and r['value'] == '0x2073692073696874'}
    tap.check(done.returncode == -signal.SIGSEGV and homes == {'77'}, 'signal-stack: the home of the pointer alone',
              (done, homes))


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    guest = os.path.join(os.path.abspath(sys.argv[2]), 'heap_guest')
    victims = os.environ['VICTIMS']
    try:
        for name, (plan, modes) in PLANS.items():
            for mode in modes:
                unharmed(tap, rig, ' with '.join(filter(None, (mode, name))), [guest, mode], plan, {})
        for which in INNOCENT:
            unharmed(tap, rig, which, [os.path.join(victims, 'heap_innocent'), which],
                     SMALL, {})
        for name, command, environment in PROGRAMS:
            program = command[0] if command[0] != 'sh' else name
            if not shutil.which(program):
                tap.skip(name, 'not installed')
                continue
            unharmed(tap, rig, name, command, [], environment)
        check_limits(tap, rig, guest)
        check_operators(tap, rig, victims)
        check_rounds(tap, rig, victims)
        check_sweep(tap, rig, victims)
        check_sample(tap, rig, guest)
        check_freed_field(tap, rig, guest)
        check_fresh(tap, rig, guest)
        check_freed_among_freed(tap, rig, guest)
        check_signal_stack(tap, rig, guest)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
