#!/usr/bin/env python3
"""Whose malloc is it? Programs that bring their own, libraries that go round the hooks, and
sanitizers: the same end and output, and nobody is accused of what he did not do."""
import glob
import os
import re
import shutil
import subprocess
import sys

from rig import Rig, Tap

PROGRAM = '''#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int shared;
static void *run(void *a) { for (int i = 0; i < 1000; i++) { shared++; free(malloc(50)); } return a; }
int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  char *p = malloc(100);
  strcpy(p, "hello");
  puts(p);
  for (int i = 0; i < 1000; i++) free(realloc(malloc(i + 1), 2 * i + 1));
  if (!strcmp(mode, "uaf")) { free(p); p[5] = 1; return 3; }
  if (!strcmp(mode, "over")) p[argc + 101] = 1;
  if (!strcmp(mode, "null")) *(volatile int *)0 = 1;
  if (!strcmp(mode, "race")) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(t + i, 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  }
  free(p);
  return 3;
}
'''


def bad_frees(records):
    return [r for r in records if r.type == 'BAD_FREE']


def drops(records, index):
    return sum(int(r['drops'].split(',')[index]) for r in records if r.type == 'HEADER')


class Compare:
    def __init__(self, rig, tap):
        self.rig, self.tap = rig, tap

    def run(self, command, name, preload=None, alike=lambda text: text, extra=None):
        """Plain, crash and ids; the records of the last."""
        plain = self.rig.plain(command, environment={'LD_PRELOAD': preload} if preload else {})
        records = []
        for observer in ('crash', 'ids'):
            environment = dict(extra or {})
            if preload:
                environment['LD_PRELOAD'] = self.rig.agent + ':' + preload
            seen, trial = self.rig.observed(command, observer, environment=environment)
            same = (plain.returncode, plain.stdout, alike(plain.stderr.decode())) == \
                   (seen.returncode, seen.stdout, alike(seen.stderr.decode()))
            self.tap.check(same, f'{name} under {observer}: ends and prints the same', f'{plain}\n{seen}')
            records = self.rig.records(trial)
            trouble = [r.text for r in records if r.type == 'HEADER' and r['retired'] != '0']
            self.tap.check(not trouble, f'{name} under {observer}: nobody retired', trouble)
        return plain, records


def accusations(compare, tap, build):
    lodger, own = os.path.join(build, 'lodger'), os.path.join(build, 'lodger_own')
    pool, late = compare.rig.preloadable(os.path.join(build, 'pool.so')), os.path.join(build, 'late.so')

    plain, records = compare.run([lodger, 'double-free'], 'a real double free')
    bad = bad_frees(records)
    tap.check(plain.returncode == -6 and [(b['kind'], b['evidence']) for b in bad] == [('1', '1')],
              'a real double free: recorded, and the allocator agrees', [b.text for b in bad])

    plain, records = compare.run([lodger, 'deepbind', late], 'RTLD_DEEPBIND')
    tap.check(plain.stdout == b'all given back\n' and not bad_frees(records) and drops(records, 6) == 0,
              'RTLD_DEEPBIND: what such a library allocates and frees is followed', bad_frees(records))
    plain = compare.rig.plain([lodger, 'deepbind', late])
    for how in ([], ['sampled=1']):
        seen, trial = compare.rig.observed([lodger, 'deepbind', late], 'heap', plan=how)
        records = compare.rig.records(trial)
        tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr) and
                  not bad_frees(records), f'RTLD_DEEPBIND: such a library frees blocks with guards {how}', seen)

    plain, records = compare.run([lodger, 'behind'], 'past the hooks')
    bad = bad_frees(records)
    tap.check(plain.stdout == b'all given back\n' and not [b for b in bad if b['evidence'] != '0'],
              'past the hooks: what was allocated there is not called a double free',
              [b.text for b in bad])
    tap.check(drops(records, 6) + len(bad) >= 25, 'past the hooks: and is counted', (drops(records, 6), len(bad)))

    plain, records = compare.run([lodger, 'pool'], 'an allocator in a library', preload=pool)
    bad = bad_frees(records)
    tap.check(plain.stdout == b'all given back\n' and not [b for b in bad if b['evidence'] != '0'],
              'an allocator in a library: blocks it hands out by another name are not called freed twice',
              [b.text for b in bad])
    tap.check(any(r.type == 'CONTEXT' for r in records), 'an allocator in a library: its blocks are followed')

    for mode in ('pool', 'fork-while-allocating', 'interrupted'):
        plain, records = compare.run([own, mode], f'an allocator in the program, {mode}')
        tap.check(plain.returncode == 0 and not bad_frees(records),
                  f'an allocator in the program, {mode}: no accusation', [b.text for b in bad_frees(records)])


def compiled(rig, name, *flags):
    source, program = os.path.join(rig.folder, 'program.c'), os.path.join(rig.folder, name)
    with open(source, 'w', encoding='utf-8') as file:
        file.write(PROGRAM)
    done = subprocess.run(['gcc', '-g', '-fno-builtin', source, '-o', program, *flags], check=False,
                          stderr=subprocess.DEVNULL)
    return program if done.returncode == 0 else None


def other_allocators(compare, rig, tap):
    plain = compiled(rig, 'plain')
    for name in ('jemalloc', 'tcmalloc_minimal'):
        found = glob.glob(f'/usr/lib/*/lib{name}.so.[0-9]')
        if not found:
            tap.skip(name, 'not installed')
            continue
        # The library itself, as there may be no development files for it.
        linked = compiled(rig, 'with-' + name, '-Wl,--no-as-needed', found[0])
        for how, command, preload in (('linked', linked, None), ('preloaded by the user', plain, found[0])):
            for mode in ('none', 'race', 'null'):
                _, records = compare.run([command, mode], f'{name}, {how}, {mode}', preload=preload)
                tap.check(not bad_frees(records), f'{name}, {how}, {mode}: no accusation',
                          [b.text for b in bad_frees(records)])
                tap.check(any(r.type == 'CONTEXT' for r in records), f'{name}, {how}, {mode}: blocks are followed')


def report(text):
    """A sanitizer's report without what differs between two runs, and without the one frame that a
    hook which passes through leaves in it."""
    lines = [line for line in text.splitlines() if 'libredhand-agent' not in line and '/agent/' not in line]
    text = '\n'.join(lines)
    text = re.sub(r'0x[0-9a-f]+|[0-9a-f]{12}', 'ADDRESS', text)
    # Behind main ASan goes on by frame pointers; how far that leads depends on where things lie (gcc 16).
    text = re.sub(r'(?m)^\s*#.*\(<unknown module>\)\s*\n', '', text)
    text = re.sub(r'(?m)^(\s*)#\d+', r'\1#', text)
    text = re.sub(r'(?m)^(=>|  )\S*ADDRESS:.*$', '', text)  # shadow bytes
    return re.sub(r'pid=\d+|==\d+==|T\d+|tid=\d+', '', text)


def emulator(rig, tap):
    """qemu-user pays for every page that is reserved: the program in it is left alone, and that is said."""
    if not shutil.which('qemu-x86_64'):
        tap.skip('qemu-user', 'not installed')
        return
    command = ['qemu-x86_64', compiled(rig, 'emulated')]
    plain = rig.plain(command)
    for observer in ('ids', 'heap'):
        seen, trial = rig.observed(command, observer)
        notes = [r['why'] for r in rig.records(trial) if r.type == 'UNOBSERVED']
        tap.check((plain.returncode, plain.stdout) == (seen.returncode, seen.stdout) and notes == ['8'],
                  f'qemu-user under {observer}: ends and prints the same', (plain, seen, notes))


def sanitizers(compare, rig, tap):
    # As the tool does it: what is there counts, too. Newer versions of Meson say how its tests are to end.
    link_order = {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'}
    for name in ('address', 'thread', 'undefined'):
        program = compiled(rig, 'with-' + name, '-fsanitize=' + name)
        if not program or subprocess.run([program, 'none'], check=False, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL).returncode != 3:
            tap.skip(f'-fsanitize={name}', 'does not work here')
            continue
        modes = {'address': ('none', 'uaf', 'over', 'null', 'race'), 'thread': ('none', 'uaf', 'null'),
                 'undefined': ('none', 'null')}[name]
        for mode in modes:
            plain, records = compare.run([program, mode], f'-fsanitize={name}, {mode}', alike=report,
                                         extra=link_order)
            if mode == 'uaf':
                tap.check(b'use-after-free' in plain.stderr, f'-fsanitize={name}, {mode}: as planned', plain)
            why = [r['why'] for r in records if r.type == 'UNOBSERVED']
            tap.check(why == ([] if name == 'undefined' else ['4']),
                      f'-fsanitize={name}, {mode}: ' +
                      ('observed' if name == 'undefined' else 'left to its sanitizer, with a note'), why)
        if name != 'undefined':
            child, records = compare.run(['sh', '-c', '"$0" null; echo $?', program], f'-fsanitize={name}, as a child',
                                         alike=report, extra=link_order)
            images = [r for r in records if r.type == 'HEADER']
            tap.check(len(images) >= 2, f'-fsanitize={name}, as a child: both have a log', (child, len(images)))


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    compare = Compare(rig, tap)
    try:
        accusations(compare, tap, os.path.abspath(sys.argv[2]))
        other_allocators(compare, rig, tap)
        sanitizers(compare, rig, tap)
        emulator(rig, tap)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
