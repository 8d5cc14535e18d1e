#!/usr/bin/env python3
"""Processes, libraries and signals: the same end and output as without the agent, and the agent
knows what happened."""
import collections
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys

from rig import Rig, Tap

FINAL, FORWARDED, IN_HANDLER = 1, 2, 128


def crashes_of(records):
    return sorted((r for r in records if r.type == 'CRASH'), key=lambda r: int(r['seq']))


def complete(records, crash):
    return any(r.type == 'CRASH_DONE' and r['owner'] == crash['seq'] for r in records)


class Lodger:
    def __init__(self, rig, tap, build):
        self.rig, self.tap = rig, tap
        self.program = os.path.join(os.path.abspath(build), 'lodger')
        self.late = os.path.join(os.path.abspath(build), 'late.so')
        self.pool = rig.preloadable(os.path.join(os.path.abspath(build), 'pool.so'))

    def same(self, *arguments, observer='ids', name=None, preload=None, **options):
        """Runs a mode with and without; the records of each image's log, by image."""
        environment = {'LD_PRELOAD': preload} if preload else {}
        with_agent = {'LD_PRELOAD': self.rig.agent + ':' + preload} if preload else {}
        command = [self.program, *arguments]
        plain = self.rig.plain(command, environment=environment, **options)
        seen, trial = self.rig.observed(command, observer, environment=with_agent, **options)
        name = name or f'{arguments[0]} under {observer}'
        self.tap.check((plain.returncode, plain.stdout, plain.stderr) ==
                       (seen.returncode, seen.stdout, seen.stderr), name + ': ends and prints the same',
                       f'{plain}\n{seen}')
        images = [self.rig.dump(path, '--rings') for path in self.rig.logs(trial)]
        trouble = [r.text for records in images for r in records
                   if r.type == 'HEADER' and r['retired'] != '0' or r.type == 'DAMAGE' and
                   (r['records'], r['headers'], r['ring']) != ('0', '0', '0')]
        self.tap.check(not trouble, name + ': logs are sound, nobody retired', trouble)
        return images, plain


def processes(lodger, tap):
    for observer in ('crash', 'ids'):
        # A child that libc knows nothing of is left alone; its parent is observed as ever.
        images, plain = lodger.same('raw-clone', observer=observer)
        tap.check(plain.returncode == -signal.SIGSEGV and b'clone died of 11' in plain.stdout,
                  'raw-clone: both died', plain)
        crashes = [c for records in images for c in crashes_of(records)]
        tap.check(len(crashes) == 2 and len({c['tid'] for c in crashes}) == 2 and
                  all(complete(records, c) for records in images for c in crashes_of(records)),
                  f'raw-clone under {observer}: child and parent each have a crash in their own log',
                  [c.text for c in crashes])

        images, plain = lodger.same('spawn', observer=observer)
        tap.check(b'spawned died of 11' in plain.stdout and b'missing 2' in plain.stdout, 'spawn: as planned',
                  plain)
        crashes = [c for records in images for c in crashes_of(records)]
        tap.check(len(crashes) == 1, f'spawn under {observer}: the child with an empty environment is '
                  'observed', [c.text for c in crashes])

        images, plain = lodger.same('vfork', observer=observer)
        tap.check(plain.stdout == b'vfork died of 11\nvfork ended with 7\nvfork ended with 7\n',
                  'vfork: as planned', plain)
        crashes = [c for records in images for c in crashes_of(records)]
        tap.check(len(crashes) == 2 and len({c['tid'] for c in crashes}) == 2,
                  f'vfork under {observer}: child and parent each have a crash in their own log',
                  [c.text for c in crashes])

    images, plain = lodger.same('fork-while-allocating')
    tap.check(plain.stdout.startswith(b'0 of 40'), 'fork-while-allocating: as planned', plain)
    forked = [r for records in images for r in records if r.type == 'HEADER' and r['forked'] == '1']
    tap.check(len(forked) == 40, 'fork-while-allocating: a log for every child', len(forked))
    counts = [sum(r.type == 'LIFE' and r['op'] == 'free' for r in records) for records in images
              if any(r.type == 'HEADER' and r['forked'] == '1' for r in records)]
    # A child whose hooks were wiped by the fork in the middle of one would know less.
    tap.check(min(counts) >= 199, 'fork-while-allocating: every child knows its blocks', counts)


def surroundings(lodger, tap):
    for observer in ('crash', 'ids'):
        for mode, expected in (('close-range', signal.SIGSEGV), ('prctl', signal.SIGSEGV),
                               ('seccomp', signal.SIGSYS)):
            images, plain = lodger.same(mode, observer=observer)
            crashes = [c for records in images for c in crashes_of(records)]
            tap.check(plain.returncode == -expected and len(crashes) == 1 and
                      int(crashes[0]['signo']) == expected and complete(images[0], crashes[0]) and
                      int(crashes[0].get('maps', 0)) > 500, f'{mode} under {observer}: recorded in full',
                      [c.text for c in crashes])
            if mode == 'prctl':
                tap.check(crashes and crashes[0]['thread'] == 'renamed', 'prctl: its new name',
                          [c.text for c in crashes])
        images, plain = lodger.same('seccomp-handled', observer=observer)
        handled = [r for records in images for r in records if r.type == 'CRASH_HANDLED']
        tap.check(plain.stdout == b'asked for 1\n' and len(handled) == 1,
                  f'seccomp-handled under {observer}: the program\'s own handler had its say', plain)
        _, plain = lodger.same('masks', observer=observer)
        tap.check(plain.stdout.count(b'segv 0') == 4 and b'with a handler ended with 11' in plain.stdout,
                  'masks: as planned', plain)
        images, plain = lodger.same('handler-aborts', observer=observer)
        crashes = [c for records in images for c in crashes_of(records)]
        tap.check(plain.returncode == -signal.SIGABRT and len(crashes) == 2 and
                  int(crashes[0]['flags'], 16) & FORWARDED and
                  int(crashes[1]['flags'], 16) & (FINAL | IN_HANDLER) == FINAL | IN_HANDLER and
                  crashes[1]['follows'] == crashes[0]['seq'],
                  f'handler-aborts under {observer}: the abort names the fault that it came from',
                  [c.text for c in crashes])


def interrupted(lodger, tap):
    images, _ = lodger.same('interrupted', preload=lodger.pool)
    header = [r for r in images[0] if r.type == 'HEADER'][0]
    refused = int(header['drops'].split(',')[5])
    tap.check(refused > 0, f'interrupted: {refused} of 8000 calls came while in a hook, and were refused',
              header.text)
    lives = [r for r in images[0] if r.type == 'LIFE']
    # A block ends once, and no two have the same id.
    ids = collections.Counter(life['id'] for life in lives)
    wrong = sum(count > 1 for count in ids.values())
    keys = collections.Counter((life['context'], life['ordinal']) for life in lives)
    wrong += sum(count > 1 for count in keys.values())
    tap.check(len(lives) > 1000 and not wrong, 'interrupted: the history is sound', (len(lives), wrong))


def libraries(lodger, tap):
    images, _ = lodger.same('late', lodger.late)
    records = images[0]
    modules = [r for r in records if r.type == 'MODULE' and r['path'].endswith('/late.so')]
    contexts = {r['context']: r for r in records if r.type == 'CONTEXT'}

    def in_library(life):
        frames = contexts[life['context']]['pcs'].split(',')
        return any(low <= int(pc, 16) < high for pc in frames[:2] for low, high in
                   [[int(x, 16) for x in m['text'].split('-')] for m in modules])
    lives = [r for r in records if r.type == 'LIFE' and r['op'] == 'free' and
             r['size'] in ('4243', '777')]
    tap.check(modules and len(lives) == 21 and all(in_library(life) for life in lives),
              'late: blocks of a library that came later, went and came again are traced to it',
              [m.text for m in modules] + [life.text for life in lives])
    python = glob.glob('/usr/lib/x86_64-linux-gnu/libpython3.1[1234].so.1.0')
    if not python:
        tap.skip('late-python: the interpreter is found', 'libpython3 is not installed')
        return
    images, plain = lodger.same('late-python', python[0], observer='crash')
    frames = [int(r['frames']) for records in images for r in records if r.type == 'PYTHON']
    # inner, outer and the module
    tap.check(plain.returncode == -signal.SIGSEGV and frames == [3],
              'late-python: an interpreter that was loaded later is found at the crash', (plain, frames))


def unobserved(lodger, rig, tap):
    """Programs that cannot be preloaded into run as ever, and the record says why."""
    def child(path, why, name):
        for observer in ('crash', 'ids'):
            images, _ = lodger.same('exec', path, observer=observer, name=f'{name} child under {observer}')
            found = [(r['why'], p.get('text')) for records in images for r in records
                     if r.type == 'UNOBSERVED' for p in records
                     if p.type == 'BLOB' and p['owner'] == r['seq']]
            tap.check(found == [(why, path)], f'{name} child under {observer}: the reason is noted', found)

    source = os.path.join(rig.folder, 'still.c')
    with open(source, 'w', encoding='utf-8') as file:
        file.write('#include <stdio.h>\nint main(void) { puts("still here"); return 5; }\n')
    static = os.path.join(rig.folder, 'static')
    if subprocess.run(['gcc', '-static', source, '-o', static], check=False, stderr=subprocess.DEVNULL).returncode:
        tap.skip('static child', 'gcc -static does not work here')
    else:
        child(static, '1', 'static')
        images, plain = lodger.same('exec-search', static)
        found = [(r['why'], p.get('text')) for records in images for r in records if r.type == 'UNOBSERVED'
                 for p in records if p.type == 'BLOB' and p['owner'] == r['seq']]
        tap.check(plain.stdout.count(b'ended with 5') == 3 and [why for why, _ in found] == ['1'] * 3 and
                  [path for _, path in found].count(static) == 2,
                  'static child found along PATH, spawned, or given as a descriptor: noted', (plain, found))
        # Shells and Python start programs from a vfork child, which writes nothing itself.
        vforks = f'import subprocess, sys; sys.exit(subprocess.call(["{static}"], close_fds=False))'
        _, trial = rig.observed(['/usr/bin/python3', '-c', vforks], 'crash')
        notes = [r['why'] for r in rig.records(trial) if r.type == 'UNOBSERVED']
        tap.check(notes == ['1'], 'static child of a vfork child: noted', notes)
    foreign = os.path.join(rig.folder, 'foreign')
    with open(foreign, 'wb') as file:
        file.write(b'\x7fELF\x02\x02\x01' + bytes(9) + b'\x00\x02\x00\x16' + bytes(100))  # s390x
    os.chmod(foreign, 0o755)
    child(foreign, '3', 'foreign')
    if os.getuid():
        tap.skip('setuid child', 'needs root')
        return
    setuid = os.path.join(rig.folder, 'setuid')
    shutil.copy('/bin/true', setuid)
    os.chown(setuid, 65534, 65534)
    os.chmod(setuid, 0o4755)
    os.chmod(rig.folder, 0o755)
    child(setuid, '2', 'setuid')
    other_user(lodger, rig, tap)


def other_user(lodger, rig, tap):
    """Root's program goes on as somebody else, who must have logs; or it is said why not."""
    reach = f'test -r {rig.agent} -a -r {rig.crash_agent} -a -x {shlex.quote(lodger.program)}'
    if subprocess.run(['sh', '-c', reach], user=65534, check=False).returncode:
        tap.skip('another user', 'may not reach the build directory')
        return
    for observer in ('crash', 'ids'):
        images, plain = lodger.same('exec-other-user', lodger.program, observer=observer)
        lodgers = [r for records in images for r in records if r.type == 'IMAGE']
        notes = [r.text for records in images for r in records if r.type == 'UNOBSERVED']
        # Without a mode it complains and exits; under crash only what has something to tell leaves a log.
        tap.check(plain.returncode == 0 and not notes and (observer == 'crash' or len(lodgers) == 3),
                  f'another user under {observer}: what he starts has a log', (plain, notes, lodgers))
        # Root's program opens the way to the trial from the case on; what is above that is not its own to open.
        folder = rig.folder
        rig.folder = os.path.join(folder, f'kept-{observer}', 'case', 'trials')
        os.makedirs(rig.folder)
        os.chmod(os.path.join(folder, f'kept-{observer}'), 0o700)
        images, plain = lodger.same('exec-other-user', '/bin/true', observer=observer,
                                    name=f'another user who is kept out, under {observer}')
        notes = [r['why'] for records in images for r in records if r.type == 'UNOBSERVED']
        rig.folder = folder
        tap.check(notes == ['9'],
                  f'another user who is kept out, under {observer}: noted', notes)


def cores(lodger, rig, tap):
    with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
        pattern = file.read().strip()
    with open('/proc/sys/kernel/core_uses_pid', encoding='utf-8') as file:
        uses_pid = file.read().strip()
    if pattern != 'core' or uses_pid != '0':
        tap.skip('core files', f'core_pattern is {pattern}')
        return
    sizes = {}
    for observer in (None, 'crash', 'ids'):
        folder = os.path.join(rig.folder, 'core-' + str(observer))
        os.mkdir(folder)
        command = ['sh', '-c', f'cd {folder}; ulimit -c unlimited; exec "$0" crash', lodger.program]
        done = rig.observed(command, observer)[0] if observer else rig.plain(command)
        core = os.path.join(folder, 'core')
        if not os.path.exists(core):
            tap.check(False, f'core file under {observer}', done)
            return
        sizes[observer] = os.path.getsize(core)
    # The same program, and the agent's own data: no tables, no log.
    tap.check(all(sizes[None] <= sizes[o] <= sizes[None] + (8 << 20) for o in ('crash', 'ids')),
              'a core file as without, but for the agent\'s own few megabytes', sizes)


def speed(lodger, rig, tap):
    for observer in ('crash', 'ids'):
        # What it takes is the least of several: on busy cores somebody else's turn comes in between, more often than not.
        best, tries = 10 ** 9, 0
        while best >= 5000 and tries < 300:
            _, trial = rig.observed([lodger.program, 'crash'], observer)
            best = min([best] + [int(r['write_us']) for r in rig.records(trial) if r.type == 'CRASH_DONE'])
            tries += 1
        tap.check(best < 5000, f'a crash record under {observer} takes {best} µs, less than 5 ms', tries)


def plan_items(lodger, rig, tap):
    for observer in ('crash', 'ids'):
        done, trial = rig.observed([lodger.program, 'crash'], observer, plan=['item=77', 'item=4', 'item=78'])
        drops = [r['drops'].split(',')[8] for r in rig.records(trial) if r.type == 'HEADER']
        tap.check(done.returncode == -signal.SIGSEGV and drops == ['3'],
                  f'plan items that the agent does not know are counted under {observer}', drops)


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        lodger = Lodger(rig, tap, sys.argv[2])
        processes(lodger, tap)
        surroundings(lodger, tap)
        interrupted(lodger, tap)
        libraries(lodger, tap)
        unobserved(lodger, rig, tap)
        cores(lodger, rig, tap)
        speed(lodger, rig, tap)
        plan_items(lodger, rig, tap)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
