#!/usr/bin/env python3
"""Fences keep the contract of malloc, see every access out of bounds, and change nothing."""
import os
import shutil
import sys

from rig import Rig, Tap

BEHIND, BEFORE, FREED = '1', '2', '3'
WRITE, KERNEL = 1, 2
EXACT, FRONT, MAPPINGS, FILLED, EXACT_FILLED = (f'fence_flags={n}' for n in (1, 2, 4, 16, 17))
QUIET = ['poison_ppm=0']
BRIEF = ['fence_time_percent=60']  # as redhand has it: contexts that make many blocks take turns
GUEST = ['refusals', 'storm', 'threads', 'signals', 'children', 'little-memory']
INNOCENT = ['full-size', 'pool', 'growing', 'threads', 'forking', 'tagged']
# entry-points wants every block to be aligned as libc has it.
PLANS = {'': ([], GUEST), 'mappings': ([MAPPINGS], GUEST), 'front': ([FRONT], ['entry-points'] + GUEST),
         'one context in 128': (['fence_level=7', 'sampled'], GUEST),
         'little room': (['fence_memory_mib=1'], ['storm', 'threads', 'children'])}
PROGRAMS = [
    ('ls', ['ls', '-la', '/usr/bin'], {}),
    ('grep and sort', ['sh', '-c', 'grep -rl license /usr/share/doc/base-files | sort -R --random-source=/usr/bin/env | sort'], {}),
    ('tar and gzip', ['sh', '-c', 'tar cf - /usr/share/doc/base-files 2>/dev/null | gzip -n9 | gzip -d | tar tf -'], {}),
    ('python3', ['/usr/bin/python3', '-c', 'import json, threading; d = {i: [str(i)] * 3 for i in range(999)}; print(len(json.dumps(d)))'], {}),
    ('python3 on malloc', ['/usr/bin/python3', '-c', 'import json, re; print(len(json.dumps({i: [str(i)] * 3 for i in range(300)})), re.sub("a+", "b", "xaay"))'], {'PYTHONMALLOC': 'malloc'}),
    ('gcc', ['sh', '-c', 'echo "int main(void) { return 3; }" > a.c && gcc -O2 a.c -o a.out; ./a.out'], {}),
    ('git', ['sh', '-c', 'rm -rf r; git init -q r && cd r && git config user.email a@b && git config user.name n && echo 1 > f && git add f && git commit -qm c && git log -p --format=%s'], {}),
    ('perl', ['perl', '-e', 'my %h; $h{$_} = [1..5] for 1..500; print scalar(keys %h), "\\n"; print `echo sub`; exit 7'], {}),
    ('node', ['node', '-e', 'const a = []; for (let i = 0; i < 1e4; i++) a.push({i, s: String(i)}); console.log(a.length); process.exit(9)'], {}),
    ('sqlite3', ['sqlite3', ':memory:', 'create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 5000) insert into t select x from c; select sum(a) from t;'], {}),
    ('bash', ['bash', '-c', 'for i in 1 2 3; do echo $i | tr 1-3 a-c | sed s/^/x/; done; (exit 3) || echo $?; exit 6'], {}),
]
# What each mode of the victim does: side, how, offset; its block has 80 bytes.
ACCESSES = {
    'behind': [(BEHIND, 0, 80)], 'write-behind': [(BEHIND, WRITE, 80)], 'send-behind': [(BEHIND, KERNEL, 80)],
    'freed': [(FREED, 0, 40)], 'write-freed': [(FREED, WRITE, 40), (FREED, 0, 40)], 'often': [(FREED, 0, 40)],
    'left-open': [(FREED, 0, 40), (FREED, KERNEL, 40)],
    'copied': [(FREED, 0, 40)], 'send-freed': [(FREED, KERNEL, 40)], 'list-freed': [(FREED, KERNEL, 40)],
    'threads': [(FREED, 0, 40)], 'child': [(FREED, 0, 40)], 'resized': [(FREED, 0, 40)], 'innocent': [], 'many': [],
    'slack': [], 'before': [], 'moved': [(BEHIND, WRITE, 80), (FREED, 0, 40)], 'refresh': [(BEHIND, 0, 80)],
    # Calls that are made where the program makes them: the kernel reads what was freed, and says no EFAULT. It writes the results of polls there.
    'poll-freed': [(FREED, KERNEL | WRITE, 40)], 'select-freed': [(FREED, KERNEL | WRITE, 40)], 'mask-freed': [(FREED, KERNEL, 40)],
    'action-freed': [(FREED, KERNEL, 40)], 'wait-freed': [(FREED, KERNEL, 40)], 'exec-freed': [(FREED, KERNEL, 40)],
}


def accesses(records):
    return sorted((r['side'], int(r['flags']), int(r['offset'])) for r in records if r.type == 'FENCE_ACCESS')


def unharmed(tap, rig, name, command, plan, environment):
    plain = rig.plain(command, environment=dict(environment))
    seen, trial = rig.observed(command, 'fence', plan=QUIET + BRIEF + plan, environment=dict(environment))
    tap.check((plain.returncode, plain.stdout, plain.stderr) ==
              (seen.returncode, seen.stdout, seen.stderr), name + ': unharmed', f'{plain}\n{seen}')
    records = rig.records(trial)
    retired = [r.text for r in records if r.type == 'HEADER' and r['retired'] != '0']
    tap.check(not retired, name + ': nobody retired', retired)
    accused = [r.text for r in records if r.type in ('HEAP_DAMAGE', 'BAD_FREE', 'FENCE_ACCESS')]
    tap.check(not accused, name + ': nobody accused', accused[:4])
    return records


def check_accesses(tap, rig, program, plan, called):
    """Each is told once, and the program goes on as without."""
    for mode, wanted in ACCESSES.items():
        plain = rig.plain([program, mode])
        seen, trial = rig.observed([program, mode], 'fence', plan=QUIET + plan)
        tap.check((plain.returncode, plain.stdout, plain.stderr.rstrip(b'\0')[:80]) ==
                  (seen.returncode, seen.stdout, seen.stderr.rstrip(b'\0')[:80]),
                  f'{mode}{called}: the program ends as without', f'{plain}\n{seen}')
        records = rig.records(trial)
        tap.check(accesses(records) == sorted(wanted), f'{mode}{called}: told', accesses(records))


def check_counts(tap, rig, program):
    _, trial = rig.observed([program, 'behind'], 'fence', plan=QUIET)
    count = [r['counts'] for r in rig.records(trial) if r.type == 'FENCE_COUNT']
    tap.check(count == ['1'], 'a read is counted once', count)
    # 100,000 reads: the page stays open after a while, and the program comes to its end.
    _, trial = rig.observed([program, 'often'], 'fence', plan=QUIET)
    records = rig.records(trial)
    count = [int(r['counts']) for r in records if r.type == 'FENCE_COUNT']
    left = [int(r['left_open']) for r in records if r.type == 'FENCE_END']
    tap.check(len(count) == 1 and 10 <= count[0] <= 1000 and left == [1], 'a page that is used over and over stays open',
              (count, left))


def check_places(tap, rig, program):
    _, trial = rig.observed([program, 'before'], 'fence', plan=QUIET + [FRONT])
    tap.check(accesses(rig.records(trial)) == [(BEFORE, 0, -1)], 'front: a read before the block is seen')
    for plan, wanted in (([], []), ([EXACT], [(BEHIND, WRITE, 77)])):
        _, trial = rig.observed([program, 'slack'], 'fence', plan=QUIET + plan)
        records = rig.records(trial)
        damage = [(r['kind'], r['offset'], r['length']) for r in records if r.type == 'HEAP_DAMAGE']
        tap.check(accesses(records) == wanted, f'a write of one byte behind a block of 77, {plan}', accesses(records))
        tap.check(damage == ([] if plan else [('2', '77', '1')]), f'…and what the slack says, {plan}', damage)


def check_filled(tap, rig, program):
    """Who writes back what he has read up to a zero comes to his store, and no further than a word."""
    for mode, plan, offset in (('refresh', FILLED, 80), ('refresh-odd', EXACT_FILLED, 77)):
        seen, trial = rig.observed([program, mode], 'fence', plan=QUIET + [plan])
        records = rig.records(trial)
        counts = [r['counts'] for r in records if r.type == 'FENCE_COUNT']
        found = accesses(records)
        tap.check(seen.returncode == 0 and set(found) == {(BEHIND, 0, offset), (BEHIND, WRITE, offset)}, f'{mode}: read and written', found)
        tap.check(len(counts) == 1 and sum(map(int, counts[0].split(','))) == 3 * 8 + 1, f'{mode}: over eight bytes', counts)
    for plan in (EXACT, EXACT_FILLED):
        _, trial = rig.observed([program, 'modify'], 'fence', plan=QUIET + [plan])
        tap.check(accesses(rig.records(trial)) == [(BEHIND, WRITE, 77)], f'one that modifies is a write, {plan}', accesses(rig.records(trial)))


def check_room(tap, rig, program):
    """Where not all fit, the rest have none, and it is said."""
    for plan in (['fence_memory_mib=8'], [MAPPINGS]):
        seen, trial = rig.observed([program, 'many'], 'fence', plan=QUIET + plan)
        ends = [r for r in rig.records(trial) if r.type == 'FENCE_END']
        tap.check(seen.returncode == 0 and len(ends) == 1 and int(ends[0]['passed']) > 0 and int(ends[0]['level']) > 0 and
                  int(ends[0]['fenced']) + int(ends[0]['passed']) >= 60000,
                  f'{plan}: more blocks than fit', [r.text for r in ends])


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    victims = os.environ['VICTIMS']
    program = os.path.join(victims, 'fence_reads')
    guest = os.path.join(os.path.abspath(sys.argv[2]), 'heap_guest')
    try:
        for called, (plan, modes) in PLANS.items():
            for mode in modes:
                unharmed(tap, rig, f'guest {mode}, {called or "all blocks"}', [guest, mode], plan, {})
        for mode in INNOCENT:
            unharmed(tap, rig, 'innocent ' + mode, [os.path.join(victims, 'heap_innocent'), mode], [], {})
        for name, command, environment in PROGRAMS:
            program_name = command[0] if command[0] != 'sh' else name.split()[0]
            if not shutil.which(program_name):
                tap.skip(name, 'not installed')
                continue
            unharmed(tap, rig, name, command, [], environment)
        check_accesses(tap, rig, program, [], '')
        check_accesses(tap, rig, program, [MAPPINGS], ', by mappings')
        check_counts(tap, rig, program)
        check_places(tap, rig, program)
        check_filled(tap, rig, program)
        check_room(tap, rig, program)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
