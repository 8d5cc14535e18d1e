#!/usr/bin/env python3
"""The guest contract: the target ends, answers and prints as without the agent, and the agent
knows what happened."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from rig import Rig, Tap

# mode: what the log must hold when the mode dies in a recorded crash
CRASHES = {
    'segv': signal.SIGSEGV, 'noncanonical': signal.SIGSEGV, 'ill': signal.SIGILL,
    'fpe': signal.SIGFPE, 'trap': signal.SIGTRAP, 'abort': signal.SIGABRT,
    'assert': signal.SIGABRT, 'double-free': signal.SIGABRT, 'sent': signal.SIGSEGV,
    'bus': signal.SIGBUS, 'overflow': signal.SIGSEGV, 'thread-overflow': signal.SIGSEGV,
    'thread-segv': signal.SIGSEGV, 'use-after-free': signal.SIGSEGV,
    'handler-reraises': signal.SIGSEGV, 'own-altstack': signal.SIGSEGV,
    'block-all': signal.SIGSEGV, 'ignored': signal.SIGSEGV, 'close-all': signal.SIGSEGV,
    'fork': signal.SIGSEGV, 'exec-empty-environment': signal.SIGSEGV,
    'no-descriptors': signal.SIGSEGV, 'no-files': signal.SIGSEGV, 'other-user': signal.SIGSEGV,
    'raw-mask': signal.SIGSEGV, 'raw-action': signal.SIGSEGV, 'handler-mask': signal.SIGSEGV,
    'alignment': signal.SIGBUS, 'first-thread-gone': signal.SIGSEGV,
    'abort-ignored': signal.SIGABRT, 'abort-handled': signal.SIGABRT, 'handler-crashes': signal.SIGSEGV,
    'two-pending': signal.SIGSEGV, 'exec-no-environment': signal.SIGSEGV,
    'older-names': signal.SIGSEGV, 'c11-overflow': signal.SIGSEGV, 'beyond-mapped': signal.SIGSEGV,
}
OTHERS = ['handler-mask-kept', 'handler-fixes', 'handler-jumps', 'overflow-with-handler', 'queries', 'block-and-wait',
          'killed', 'lock-all', 'fork-in-threads', 'vfork', 'signals-mid-hook', 'errno', 'many-threads',
          'all-entry-points', 'truncate', 'truncate-past', 'nowhere', 'no-file-size', 'handler-stack', 'memory-limit',
          'filter-refuses']


def crashes_of(records):
    # RESERVE is read before EVENTS: order of time is order of seq
    return sorted((r for r in records if r.type == 'CRASH'), key=lambda r: int(r['seq']))


def damage_of(records):
    return [r.text for r in records if r.type == 'DAMAGE' and
            (r['records'], r['headers'], r['ring'], r['rows']) != ('0', '0', '0', '0')]


def same_end(tap, rig, mode, observer):
    plain = rig.plain([rig.guest, mode])
    seen, trial = rig.observed([rig.guest, mode], observer)
    name = f'{mode} under {observer}'
    tap.check((plain.returncode, plain.stdout, plain.stderr) ==
              (seen.returncode, seen.stdout, seen.stderr), name + ': ends and prints the same',
              f'{plain}\n{seen}')
    records = rig.records(trial)
    damage = damage_of(records)
    tap.check(not damage, name + ': log is sound', damage)
    retired = [r.text for r in records if r.type == 'HEADER' and r['retired'] != '0']
    tap.check(not retired, name + ': agent did not retire', retired)
    return records, trial


def check_crash(tap, mode, observer, records):
    name = f'{mode} under {observer}'
    crashes = crashes_of(records)
    tap.check(crashes and int(crashes[0]['signo']) == CRASHES[mode], name + ': crash recorded',
              [c.text for c in crashes])
    if not crashes:
        return
    crash = crashes[0]
    done = [r for r in records if r.type == 'CRASH_DONE' and r['owner'] == crash['seq']]
    # How long it took is a matter of the benchmark: a busy disk is no fault of the agent's.
    tap.check(len(done) == 1, name + ': record is complete',
              [r.text for r in done])
    tap.check(crash.get('stack_missing') == '0' and int(crash['stack'].split('+')[1]) > 256,
              name + ': stack slice', crash.text)
    # Where nothing can be opened, modules that were recorded before stand in.
    tap.check(int(crash.get('maps', 0)) > 500 or mode == 'no-files' and any(r.type == 'MODULE' for r in records),
              name + ': maps', crash.text)
    if mode == 'assert':
        tap.check('moon is cheese' in crash.get('abort', ''), name + ': assertion text', crash.text)
    if mode == 'double-free':
        tap.check('double free' in crash.get('abort', ''), name + ': message of libc', crash.text)
    if mode == 'bus':
        tap.check((crash.get('file_size'), crash.get('mapped')) == ('4096', '16384'),
                  name + ': file shrank', crash.text)
    if mode.startswith('thread-'):
        tap.check(crash['thread'] == 'guest-worker', name + ': thread name', crash.text)
    if mode == 'segv':
        tap.check(crash['fault'] == '0' and int(crash['flags'], 16) & 1, name + ': null, final',
                  crash.text)
    if mode in ('sent', 'abort'):
        tap.check(int(crash['flags'], 16) & 4, name + ': was sent', crash.text)
    if mode == 'handler-reraises':
        tap.check(int(crash['flags'], 16) & 2 and len(crashes) == 2 and
                  any(c['follows'] == crash['seq'] for c in crashes),
                  name + ': forwarded, then final', [c.text for c in crashes])


def check_ids(tap, mode, rig, records, trial):
    if mode == 'use-after-free':
        blocks = [r for r in records if r.type == 'BLOCK' and r['via'] == '1']
        tap.check(any(b['state'] == 'freed' and b['size'] == '64' and b['free_context'] != '0'
                      for b in blocks), 'use-after-free: freed block behind a register',
                  [b.text for b in blocks])
        contexts = {r['context'] for r in records if r.type == 'CONTEXT'}
        tap.check(any(b['context'] in contexts and b['free_context'] in contexts for b in blocks),
                  'use-after-free: both contexts have stacks')
    if mode == 'double-free':
        bad = [r for r in records if r.type == 'BAD_FREE']
        tap.check(len(bad) == 1, 'double-free: second free recorded', [r.text for r in bad])
    if mode == 'killed':
        lives = [r for r in rig.records(trial, '--rings') if r.type == 'LIFE' and r['size'] == '24']
        tap.check(len(lives) == 100, 'killed: history survives SIGKILL', len(lives))
    if mode == 'fork':
        headers = [r for r in records if r.type == 'HEADER']
        tap.check(sorted(h['forked'] for h in headers) == ['0', '1'], 'fork: a log for each',
                  [h.text for h in headers])
    if mode == 'exec-empty-environment':
        headers = [r for r in records if r.type == 'HEADER']
        tap.check([h['image'] for h in headers] == ['0', '1'] and
                  len({h['pid'] for h in headers}) == 1, 'exec: two images of one process',
                  [h.text for h in headers])
    if mode == 'handler-jumps':
        header = [r for r in records if r.type == 'HEADER'][0]
        tap.check(int(header['forwarded']) == 1000, 'handler-jumps: every fault counted',
                  header.text)
    if mode == 'handler-fixes':
        handled = [r for r in records if r.type == 'CRASH_HANDLED']
        # Four whole records, and what the two slots for later ones hold.
        tap.check(len(handled) == 6, 'handler-fixes: marked as handled', len(handled))
    if mode == 'truncate':
        cuts = [r for r in records if r.type == 'TRUNCATION']
        tap.check([(c['how'], c['old'], c['new']) for c in cuts] ==
                  [('1', '10', '5'), ('2', '5', '3'), ('3', '3', '0'), ('3', '3', '0'),
                   ('3', '3', '0')], 'truncate: five cuts', [c.text for c in cuts])
        paths = [r for r in records if r.type == 'BLOB' and r['kind'] == '9' and
                 'guest-cut-' in r.get('text', '')]
        tap.check(len(paths) == 5, 'truncate: paths', len(paths))
    if mode == 'truncate-past':
        cuts = [(r['how'], r['old'], r['new']) for r in records if r.type == 'TRUNCATION']
        tap.check(cuts[:3] == [('1', '10', '9'), ('2', '9', '8'), ('3', '8', '0')] and
                  [c[1:] for c in cuts[3:]] == [('10', '0')] * 5, 'truncate-past: eight cuts', cuts)
    if mode == 'many-threads':
        header = [r for r in records if r.type == 'HEADER'][0]
        tap.check(header['threads'] == '2001' and header['drops'].split(',')[2] == '0',
                  'many-threads: all followed', header.text)


def check_trouble(tap, rig):
    """The agent's own trouble is never the target's."""
    trial = tempfile.mkdtemp(dir=rig.folder)
    with open(os.path.join(trial, 'plan'), 'w') as file:
        file.write('not a plan')
    environment = dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=rig.agent)
    done = subprocess.run([rig.guest, 'errno'], env=environment, stdout=subprocess.PIPE)
    headers = [r for r in rig.records(trial) if r.type == 'HEADER']
    tap.check(done.returncode == 0 and [h['retired'] for h in headers] == ['1'],
              'a bad plan: retired with its reason, target unharmed', [h.text for h in headers])
    environment['REDHAND_TRIAL'] = os.path.join(rig.folder, 'nowhere')
    done = subprocess.run([rig.guest, 'segv'], env=environment)
    tap.check(done.returncode == -signal.SIGSEGV, 'no folder: target ends as ever')
    done, trial = rig.observed(['sh', '-c', 'ulimit -v 300000; exec "$0" use-after-free', rig.guest],
                               'ids')
    tap.check(done.returncode == -signal.SIGSEGV and crashes_of(rig.records(trial)),
              'little address space: smaller tables, still a record', done)
    done, trial = rig.observed([rig.guest, 'free-inside'], 'ids')
    inside = [r['kind'] for r in rig.records(trial) if r.type == 'BAD_FREE']
    tap.check(done.returncode == 77 or (done.returncode, inside) == (-signal.SIGABRT, ['2']),
              'free-inside: not the free of the block', f'{done} {inside}')
    # A limit that nobody may raise: all of it is left to the target.
    program = ['setpriv', '--bounding-set=-sys_resource', 'sh', '-c', 'ulimit -v 150000; exec "$0" "$@"']
    if os.geteuid() != 0:
        program = program[2:]
    wish = [sys.executable, '-c', 'print(len(bytearray(90 << 20)))']
    plain, (seen, trial) = rig.plain(program + wish), rig.observed(program + wish, 'ids')
    reasons = [r.text.split('why=')[1].split()[0] for r in rig.records(trial) if r.type == 'UNOBSERVED']
    tap.check((plain.returncode, plain.stdout) == (seen.returncode, seen.stdout) == (0, b'94371840\n') and
              '10' in reasons, 'no address space to spare: the target has it all', f'{plain} {seen} {reasons}')
    done, trial = rig.observed(program + [rig.guest, 'segv'], 'ids')
    tap.check(done.returncode == -signal.SIGSEGV and len(crashes_of(rig.records(trial))) == 1,
              'no address space to spare: a crash is recorded', done)


def check_cut_logs(tap, rig):
    """Whoever cuts the agent's log loses what was in it, and nothing else."""
    for mode in ('cuts-logs', 'cuts-logs-behind', 'cuts-logs-crash'):
        for observer, plan in ('crash', []), ('ids', []), ('heap', []), ('ids', ['pages', 'watch=4208,16,8,0,0,0']):
            plain = rig.plain([rig.guest, mode])
            seen, _ = rig.observed([rig.guest, mode], observer, plan)
            tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                      f'{mode} under {observer} {plan}: unharmed', f'{plain}\n{seen}')


def check_frequent_faults(tap, rig):
    """Faults by the thousand that the target's handler puts right cost little. With a stack copied for each they cost 50
    times as much as without us; it is 3 times now, in CPU time."""
    def cpu(run):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done
    plain = min(cpu(lambda: rig.plain([rig.guest, 'faults-often']))[0] for _ in range(3))
    seen, done = min((cpu(lambda: rig.observed([rig.guest, 'faults-often'], 'crash')[0]) for _ in range(3)), key=lambda one: one[0])
    tap.check(done.returncode == 0 and seen < 15 * plain, f'faults-often: {seen / plain:.1f} times the CPU time', done)


def check_sandbox(tap, rig):
    """Before a filter that would kill for what the agent does, it leaves, and says so."""
    for mode in ('filter-kills', 'filter-kills-crash', 'filter-traps-crash'):
        for observer in ('crash', 'ids'):
            plain = rig.plain([rig.guest, mode])
            seen, trial = rig.observed([rig.guest, mode], observer)
            headers = [r for r in rig.records(trial) if r.type == 'HEADER']
            tap.check(plain.returncode == seen.returncode and plain.returncode in (4, -signal.SIGSEGV) and
                      plain.stderr == seen.stderr == b'' and [h['retired'] for h in headers] == ['7'],
                      f'{mode} under {observer}: ends the same, retired with its reason',
                      f'{plain} {seen} {[h.text for h in headers]}')
    watch = 'watch=4208,16,8,0,0,0'
    every = 'watch=1073741824,0,8,0,0,1'
    plans = {'heap': ('heap', []), 'a sample': ('heap', ['sampled']), 'registers': ('ids', [watch]), 'pages': ('ids', ['pages', watch]),
             'every block on pages': ('ids', ['pages', every]), 'fences': ('fence', ['poison_ppm=0']),
             'fences by mappings': ('fence', ['poison_ppm=0', 'fence_flags=4'])}
    for mode in ('filter-kills', 'filter-kills-crash', 'filter-traps-crash', 'filter-uses', 'filter-child', 'filter-thread', 'filter-no-way-back', 'strict'):
        for name, (observer, plan) in plans.items():
            plain = rig.plain([rig.guest, mode])
            seen, trial = rig.observed([rig.guest, mode], observer, plan)
            headers = [r for r in rig.records(trial) if r.type == 'HEADER']
            retired = sorted(h['retired'] for h in headers)
            tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr) and
                      plain.returncode in (4, -signal.SIGSEGV) and
                      retired == (['0', '7'] if mode == 'filter-child' else ['0'] if mode == 'filter-no-way-back' and observer == 'heap' else ['7']),
                      f'{mode} with {name}: ends the same, retired with its reason', f'{plain} {seen} {[h.text for h in headers]}')
    # The next image is observed again. A traced process is left to its tracer where signals of ours would stop it.
    for mode, away in ('dispatch', '7'), ('traced', '8'):
        for name, (observer, plan) in dict(plans, crash=('crash', []), ids=('ids', [])).items():
            plain = rig.plain([rig.guest, mode])
            seen, trial = rig.observed([rig.guest, mode], observer, plan)
            retired = sorted(r['retired'] for r in rig.records(trial) if r.type == 'HEADER')
            leaves = mode == 'dispatch' or 'pages' in name or 'fences' in name
            wanted = [away] if leaves else []  # besides those who go on; crash makes no file where there is nothing to tell
            others = 0 if observer == 'crash' else 1 if leaves else 2
            tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr) and
                      plain.returncode == 4 and [r for r in retired if r != '0'] == wanted and len(retired) == len(wanted) + others,
                      f'{mode} with {name}: ends the same, and why it was left is told', f'{plain} {seen} {retired}')
    _, trial = rig.observed([rig.guest, 'filter-refuses'], 'crash')
    crashes = crashes_of(rig.records(trial))
    tap.check(len(crashes) == 1, 'filter-refuses: recorded', crashes)


def check_other_libc(tap, rig):
    """A program with musl's loader is started without the agent, which it could not load. Here it is
    called so, and is glibc's."""
    loader = b'/lib64/ld-linux-x86-64.so.2'
    with open(shutil.which('printenv'), 'rb') as file:
        program = file.read()
    if program.count(loader + b'\0') != 1:
        return tap.check(True, 'other libc: # SKIP no such loader in printenv')
    named = b'./ld-musl-x86_64.so.1'
    path = os.path.join(rig.folder, 'other-libc')
    with open(path, 'wb') as file:
        file.write(program.replace(loader + b'\0', named.ljust(len(loader) + 1, b'\0')))
    os.chmod(path, 0o755)
    os.symlink(loader, os.path.join(rig.folder, named.decode()))
    for observer in ('crash', 'ids'):
        # The one that is left is not there, and the loader says so: of ours it says nothing.
        seen, trial = rig.observed(['sh', '-c', 'LD_PRELOAD="$LD_PRELOAD:/theirs.so" ./other-libc LD_PRELOAD'],
                                   observer)
        notes = [r.text for r in rig.records(trial) if r.type == 'UNOBSERVED']
        tap.check(seen.stdout == b'/theirs.so\n' and len(notes) == 1 and 'why=5' in notes[0],
                  f'other libc under {observer}: runs without us, and that is told', f'{seen} {notes}')


JIT = '16'


def check_emitted(tap, rig):
    """Emitted code is kept when the plan asks, without the pages of zeros, up to its limit."""
    def pages(mode, *plan):
        done, trial = rig.observed([rig.guest, mode], 'ids', plan)
        records = rig.records(trial)
        tap.check(not damage_of(records), mode + ': log is sound', damage_of(records))
        return done, records, [r for r in records if r.type == 'BLOB' and r['kind'] == JIT]

    done, records, kept = pages('emitted', 'jit_code')
    tap.check(done.returncode == -signal.SIGSEGV and len(kept) == 2 and
              int(kept[1]['address'], 16) - int(kept[0]['address'], 16) == 8 << 20 and
              {k['owner'] for k in kept} == {crashes_of(records)[0]['seq']},
              'emitted: the pages that are used, of the crash', [k.text for k in kept])
    done, records, kept = pages('emitted-exit', 'jit_code')
    ends = [r['seq'] for r in records if r.type == 'EXIT']
    tap.check(done.returncode == 0 and len(kept) == 2 and {k['owner'] for k in kept} == set(ends[:1]),
              'emitted-exit: of the exit', [k.text for k in kept])
    done, _, kept = pages('emitted-much', 'jit_code')
    tap.check(done.returncode == -signal.SIGSEGV and len(kept) == 1024,
              'emitted-much: 4 MiB and no more', len(kept))
    _, _, kept = pages('emitted')
    tap.check(not kept, 'emitted: nothing unless the plan asks', len(kept))


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        for mode in list(CRASHES) + OTHERS:
            for observer in ('crash', 'ids'):
                records, trial = same_end(tap, rig, mode, observer)
                if mode in CRASHES:
                    check_crash(tap, mode, observer, records)
                if observer == 'ids':
                    check_ids(tap, mode, rig, records, trial)
        # Address space randomisation off: the heap must be the same, block by block.
        command = ['setarch', '-R', rig.guest, 'addresses']
        plain = rig.plain(command)
        for observer in ('crash', 'ids'):
            seen, _ = rig.observed(command, observer)
            tap.check(plain.returncode == 0 and plain.stdout.count(b'behind a thread') == 12 and
                      plain.stdout == seen.stdout, f'addresses: heap layout unchanged under {observer}',
                      [pair for pair in zip(plain.stdout.splitlines(), seen.stdout.splitlines()) if pair[0] != pair[1]][:9])
        check_trouble(tap, rig)
        check_sandbox(tap, rig)
        check_cut_logs(tap, rig)
        check_frequent_faults(tap, rig)
        check_other_libc(tap, rig)
        check_emitted(tap, rig)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
