#!/usr/bin/env python3
"""Hooks on functions: the program computes, prints and ends as without them, whatever the shape of the
hooked functions and however they are left, and the agent sees every call, with its arguments and results."""
import glob
import os
import random
import shlex
import subprocess
import sys
import tempfile

from rig import Rig, Tap

HOOKED_API = '6'
PLACED, WAITING = '1', '6'


class Hooked:
    def __init__(self, rig, tap, build):
        self.rig, self.tap, self.build = rig, tap, os.path.abspath(build)
        # Its name is part of what plan_hooks takes apart at spaces, which the build's folder may have.
        self.plugin = rig.preloadable(os.path.join(self.build, 'hooked_plugin.so'))

    def plan(self, program, specs):
        """Returns (plan file, lines that plan_hooks printed)."""
        path = tempfile.mktemp(dir=self.rig.folder)
        done = subprocess.run([os.path.join(self.build, 'plan_hooks'), path, program, *specs],
                              stdout=subprocess.PIPE, text=True)
        return path, done.stdout.splitlines()

    def run(self, program, arguments, specs):
        """Runs it with and without; (records per image, plain result, planned lines)."""
        name = f'{os.path.basename(program)} {arguments[0]}'
        plan, lines = self.plan(program, specs)
        errors = [line for line in lines if line.startswith('error')]
        self.tap.check(not errors, name + ': all can be hooked', errors)
        plain = self.rig.plain([program, *arguments])
        trial = tempfile.mkdtemp(dir=self.rig.folder)
        os.rename(plan, os.path.join(trial, 'plan'))
        seen = self.rig._run([program, *arguments], dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=self.rig.agent),
                             {})
        self.tap.check((plain.returncode, plain.stdout, plain.stderr) ==
                       (seen.returncode, seen.stdout, seen.stderr), name + ': ends and prints the same',
                       f'{plain}\n{seen}\n' + '\n'.join(lines))
        images = [self.rig.dump(path, '--rings') for path in self.rig.logs(trial)]
        bad = [r.text for records in images for r in records if r.type == 'HOOK' and r['state'] not in (PLACED, WAITING) or
               r.type == 'HEADER' and r['retired'] != '0']
        self.tap.check(not bad, name + ': every hook was placed', bad)
        return images, plain, lines

    def objects(self, records):
        """In the order of their ids: the history has them as they ended."""
        lives = [r for r in records if r.type == 'LIFE' and r['api'] == HOOKED_API and r['op'] == 'free']
        return [(int(r['size']), int(r['addr'], 16)) for r in sorted(lives, key=lambda r: int(r['id']))]

    def same(self, name, images, expected):
        seen = self.objects(images[0])
        wrong = [pair for pair in zip(seen, expected) if pair[0] != pair[1]][:5]
        self.tap.check(seen == expected, f'{name}: every call is seen, {len(expected)} in all',
                       (len(seen), len(expected), wrong))


def threads(hooked, program):
    images, _, _ = hooked.run(program, ['threads'], ['alloc=pool_get(size@0) free=pool_put(ptr@0)'])
    records = images[0]
    lives = [r for r in records if r.type == 'LIFE' and r['api'] == HOOKED_API]
    lanes = {r['lane'] for r in lives}
    wrong = 0
    for lane in lanes:
        last = 0
        for r in (r for r in lives if r['lane'] == lane):
            # One object at a time: each that ends is younger than the one before.
            if r['op'] != 'free' or int(r['id']) <= last or r['size'] != '48':
                wrong += 1
            last = int(r['id'])
    header = next(r for r in records if r.type == 'HEADER')
    ids = int(header['next_id'])
    # A thread that starts when another has ended takes over its lane and its ring.
    hooked.tap.check(1 <= len(lanes) <= 8 and not wrong and len(lives) > len(lanes) * 4000 and
                     1000000 <= ids < 1050000 and
                     header['drops'].split(',')[4:6] == ['0', '0'],
                     f'{os.path.basename(program)} threads: 1,000,000 objects, each with an id, none lost',
                     (len(lanes), wrong, len(lives), header.text))


def leaving(hooked, program):
    name = os.path.basename(program)
    images, _, _ = hooked.run(program, ['throw'], ['alloc=through(size@1) free=gone(ptr@0)'])
    hooked.same(name + ' throw', images,
                [(1000 + i, 0x100000 + i * 64) for i in range(1, 1001) if i % 5 == 0 or i % 3])
    images, _, _ = hooked.run(program, ['longjmp'], ['alloc=jumps(size@0) free=gone(ptr@0)'])
    hooked.same(name + ' longjmp', images, [(i, 0x200000 + i * 64) for i in range(2, 1001, 2)])
    images, _, _ = hooked.run(program, ['recursion'], ['alloc=deep(size@0) free=gone(ptr@0)'])
    hooked.same(name + ' recursion', images, [(n, 0x300000 + n * 64) for _ in range(100) for n in range(1, 41)])


def passing(hooked, program):
    name = os.path.basename(program)
    images, _, _ = hooked.run(program, ['passing'], [
        'alloc=any_number(size@0) free=gone(ptr@0)', 'alloc=nine(size@5)', 'alloc=returns_mixed(size@0)', 'ret:returns_large',
        'arg1:returns_large', 'ret:returns_double', 'arg0:returns_double', 'ret:returns_long_double',
        'arg0:returns_vector', 'ret:returns_vector', 'ret:any_number', 'arg0:nine'])
    seen = sorted(hooked.objects(images[0]))
    expected = sorted([(i, 0x400000 + int((0.5 + 3 + 1.25 + i) * 16) * 16) for i in range(300)] +
                      [(6, 0x500000 + 64 * (i + 2 * 2 + 9 + 16 + 25 + 36 + 49 + 64 + 81)) for i in range(300)] +
                      [(i, 0x600000 + i * 64) for i in range(300)])
    hooked.tap.check(seen == expected, f'{name} passing: arguments and results are what they were',
                     (len(seen), len(expected), [p for p in zip(seen, expected) if p[0] != p[1]][:5]))


def shapes(hooked, program):
    name = os.path.basename(program)
    images, _, lines = hooked.run(program, ['shapes'], [
        'alloc=red_zone(size@0) free=gone(ptr@0)', 'alloc=one_field(size=8)', 'alloc=cases(size@0)',
        'alloc=branches(size@1)',
        'alloc=tail(size@0)', 'alloc=calls_first(size@0)', 'ret:red_zone', 'arg0:one_field', 'ret:one_field'])
    seen = hooked.objects(images[0])

    def within(low, high):
        return [pair for pair in seen if low <= pair[1] < high]
    hooked.tap.check(within(0x7000000, 0x8000000) == [(i, 0x7000000 + i * 66 * 64) for i in range(600)],
                     f'{name} shapes: a function with a red zone', within(0x7000000, 0x8000000)[:10])
    hooked.tap.check(within(0xb00000, 0xc00000) == [(8, 0xb00000 + i * 64) for i in range(600)],
                     f'{name} shapes: a function of two instructions', len(within(0xb00000, 0xc00000)))
    hooked.tap.check(len([p for p in seen if 0x900000 <= p[1] < 0x960000]) == 600,
                     f'{name} shapes: every exit of a function with a table of jumps',
                     len([p for p in seen if 0x900000 <= p[1] < 0x960000]))
    hooked.tap.check(within(0xa00000, 0xb00000) == [(i, 0xa00000 + (i + 1) * 64) for i in range(600)
                                                    if (i + 1) % 100 != 99],
                     f'{name} shapes: a function that ends in a jump to another one, exceptions in between',
                     within(0xa00000, 0xb00000)[:5])
    hooked.tap.check(within(0xe00000, 0xf00000) == [(i, 0xe00000 + i * 64) for i in range(600)
                                                    if (i + 1) % 100 != 99 and i % 100 != 99],
                     f'{name} shapes: a function that begins with a call, exceptions in between',
                     within(0xe00000, 0xf00000)[:5])
    return lines


def signals(hooked, program):
    images, _, lines = hooked.run(program, ['signals'], ['alloc=one_field(size=8) free=gone(ptr@0)'])
    hooked.tap.check(any('form=trap' in line for line in lines), 'signals: by breakpoints', lines)
    hooked.same(os.path.basename(program) + ' signals, all of them blocked', images,
                [(8, 0xb00000)] * 11 + [(8, 0xb00040)] * 10)


def late(hooked, program):
    images, _, lines = hooked.run(program, ['late', hooked.plugin], 
                                 [f'alloc={hooked.plugin}!plugin_get(size@0) free=gone(ptr@0)'])
    hooked.tap.check(any(' loader ' in line for line in lines), 'late: the loader is asked to tell', lines)
    hooked.same(os.path.basename(program) + ' late: from its constructor on, each time it is loaded', images,
                [(size, 0xd00000 + size * 64) for round in range(3) for size in (77, round + 1, round + 2)])


def processes(hooked, program):
    images, _, _ = hooked.run(program, ['fork'], ['alloc=pool_get(size@0) free=pool_put(ptr@0)'])
    frees = [len([r for r in records if r.type == 'LIFE' and r['api'] == HOOKED_API and r['op'] == 'free'])
             for records in images]
    hooks = [len([r for r in records if r.type == 'HOOK']) for records in images]
    hooked.tap.check(sorted(frees) == [1, 2] and min(hooks) > 1 and hooks[0] == hooks[1],
                     'fork: parent and child each know their objects and hooks', (frees, hooks))
    # The plan is for this program: another one that is run in the trial keeps its code.
    plan, _ = hooked.plan(program, ['alloc=pool_get'])
    trial = tempfile.mkdtemp(dir=hooked.rig.folder)
    os.rename(plan, os.path.join(trial, 'plan'))
    done = hooked.rig._run(['/bin/sh', '-c', f'{shlex.quote(program)} fork; echo done'],
                           dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=hooked.rig.agent), {})
    states = [r['state'] for r in hooked.rig.records(trial) if r.type == 'HOOK']
    hooked.tap.check(done.stdout.endswith(b'done\n') and set(states) == {PLACED, WAITING},
                     'other programs of the trial are left alone', (done, states))


def many(hooked, seed):
    """Functions taken at random from a large program, entries and exits."""
    python = '/usr/bin/python3'
    if not os.path.exists(python):
        hooked.tap.skip('many functions of python3', 'it is not installed')
        return
    names = subprocess.run(['nm', '-D', '--defined-only', python], stdout=subprocess.PIPE, text=True).stdout
    names = sorted(line.split()[2].split('@')[0] for line in names.splitlines() if line.split()[1] == 'T')
    chosen = random.Random(seed).sample(names, min(40, len(names)))
    script = ("import json, re\nd = {str(i): [i, {'a': i * 1.5}] for i in range(200)}\ns = json.dumps(d)\n"
              "assert json.loads(s) == d\ndef g(n):\n  if n > 30: raise ValueError(n)\n  return g(n + 1)\n"
              "for i in range(20):\n  try: g(0)\n  except ValueError as e: last = str(e)\n"
              "print(last, len(re.findall('[0-9]+', s)), sorted(set(s)))")
    plan, lines = hooked.plan(python, [f'{what}:{name}' for name in chosen for what in ('arg0', 'ret')])
    plain = hooked.rig.plain([python, '-S', '-c', script])
    trial = tempfile.mkdtemp(dir=hooked.rig.folder)
    os.rename(plan, os.path.join(trial, 'plan'))
    seen = hooked.rig._run([python, '-S', '-c', script],
                           dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=hooked.rig.agent), {})
    placed = [r for r in hooked.rig.records(trial) if r.type == 'HOOK' and r['state'] == PLACED]
    count = len([line for line in lines if line.startswith('hook')])
    hooked.tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr) and
                     len(placed) == count > 20,
                     f'{count} places in 40 functions of python3, seed {seed}: it runs as ever',
                     f'{plain}\n{seen}\n{len(placed)}\n' + '\n'.join(chosen))


def other_build(hooked, program, other):
    """The plan was made for one build, and another one is run: nothing is patched."""
    plan, _ = hooked.plan(program, ['alloc=pool_get'])
    trial = tempfile.mkdtemp(dir=hooked.rig.folder)
    os.rename(plan, os.path.join(trial, 'plan'))
    done = hooked.rig._run([other, 'fork'], dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=hooked.rig.agent), {})
    states = [r['state'] for r in hooked.rig.records(trial) if r.type == 'HOOK']
    hooked.tap.check(done.returncode == 0 and PLACED not in states, 'another build of the program is left alone',
                     (done, states))


def main():
    tap, rig = Tap(), Rig(sys.argv[1], sys.argv[2])
    hooked = Hooked(rig, tap, sys.argv[2])
    programs = sorted(glob.glob(os.path.join(hooked.build, 'hooked-*')))
    try:
        forms = []
        for program in programs:
            leaving(hooked, program)
            passing(hooked, program)
            forms += shapes(hooked, program)
        tap.check(any('form=trap' in line for line in forms) and any('tail' in line for line in forms) and
                  any('pushes' in line for line in forms),
                  f'{len(programs)} builds: jumps, breakpoints, moved calls and tail calls were tried',
                  '\n'.join(forms))
        fast = os.path.join(hooked.build, 'hooked-gcc-O2')
        threads(hooked, fast)
        signals(hooked, fast)
        late(hooked, fast)
        processes(hooked, fast)
        many(hooked, int(os.environ.get('SEED', '20261115')))
        other_build(hooked, fast, os.path.join(hooked.build, 'hooked-gcc-O1-fixed'))
    finally:
        rig.close()
    return tap.end()


sys.exit(main())
