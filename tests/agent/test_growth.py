#!/usr/bin/env python3
"""Growth checkpoints: before each line, with its offset in the output; and the series of live
blocks shows which context only ever grows."""
import os
import subprocess
import sys

from rig import Rig, Tap

LINES = '''#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static void *kept[100];
int main(void) {
  int n = 0;
  puts("one");
  kept[n++] = malloc(1000);
  printf("two %d\\n", n);
  kept[n++] = malloc(1000);
  fprintf(stdout, "three %s\\n", "x");
  kept[n++] = malloc(1000);
  fputs("fo", stdout); putchar('u'); putc('r', stdout); fputc('\\n', stdout);
  kept[n++] = malloc(1000);
  fwrite("five\\n", 1, 5, stdout);
  kept[n++] = malloc(1000);
  fflush(stdout);
  (void)!write(1, "six\\n", 4);
  kept[n++] = malloc(1000);
  struct iovec parts[2] = { { "sev", 3 }, { "en\\n", 3 } };
  (void)!writev(1, parts, 2);
  kept[n++] = malloc(1000);
  fprintf(stderr, "to stderr\\n");
  return 0;
}
'''


class Series:
    """The checkpoints of one image, each with the live blocks of every context at that moment."""

    def __init__(self, records):
        events = sorted((r for r in records if r.type in ('CHECKPOINT', 'GROWTH')), key=lambda r: int(r['seq']))
        self.points = []
        live = {}
        for record in events:
            if record.type == 'CHECKPOINT':
                self.points.append((record, {}))
                continue
            for part in record.text.split()[4:]:
                context, _, counts = part.partition(':')
                live[context] = tuple(map(int, counts.split('/')))
            assert record['owner'] == self.points[-1][0]['seq']
            self.points[-1][1].update(live)
        so_far = {}
        for _, counts in self.points:
            so_far.update(counts)
            counts.update(so_far)

    def counts(self, context):
        return [counts.get(context, (0, 0))[0] for _, counts in self.points]

    def contexts(self):
        return set().union(*(counts for _, counts in self.points))


def lines(rig, tap):
    source, program = os.path.join(rig.folder, 'lines.c'), os.path.join(rig.folder, 'lines')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(LINES)
    for flags in (['-O0'], ['-O2', '-D_FORTIFY_SOURCE=2', '-fno-builtin-malloc']):
        subprocess.run(['gcc', *flags, source, '-o', program], check=True)
        plain = rig.plain([program])
        seen, trial = rig.observed([program], 'ids', plan=['growth'])
        name = ' '.join(flags)
        tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                  name + ': prints the same', f'{plain}\n{seen}')
        series = Series(rig.records(trial))
        points = [p for p, _ in series.points if p['why'] == '1' and p['fd'] == '1']
        starts, at = [], 0
        for line in plain.stdout.splitlines(keepends=True):
            starts.append(at)
            at += len(line)
        tap.check([int(p['stream_bytes']) for p in points] == starts,
                  f'{name}: a checkpoint for every line, with its offset',
                  (starts, [p.text for p in points]))
        tap.check([p['text'] for p in points][:2] == ['one', 'two '], name + ': and how it begins',
                  [p.text for p in points])
        live = [sum(blocks for blocks, size in counts.values() if size == blocks * 1000)
                for point, counts in series.points if point in points]
        tap.check(live == [0, 1, 2, 3, 4, 5, 6], name + ': and what was alive then', live)
        errors = [p for p, _ in series.points if p['why'] == '1' and p['fd'] == '2']
        tap.check(len(errors) == 1 and series.points[-1][0]['why'] == '2',
                  name + ': a line on stderr, and the end', [p.text for p in errors])
        times = [(int(p['time']), int(p['realtime'])) for p, _ in series.points]
        tap.check(times == sorted(times), name + ': time stamps in order', times)


def function_names(rig, records, context):
    seen = next(r for r in records if r.type == 'CONTEXT' and r['context'] == context)
    module = next(r for r in records if r.type == 'MODULE' and r['path'].endswith('/segments_test'))
    bias = int(module['bias'], 16)
    addresses = [hex(int(pc, 16) - bias - 1) for pc in seen['pcs'].split(',')]
    done = subprocess.run(['addr2line', '-i', '-f', '-e', module['path'], *addresses], stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.splitlines()


def segments(rig, tap):
    program = os.path.join(os.environ['SPECIMENS'], 'segments', 'segments_test')
    if not os.path.exists(program):
        tap.skip('segments: the growing context', 'the specimen was not built')
        return
    command = [program, '--iterations', '3']
    seen, trial = rig.observed(command, 'ids', plan=['growth'])
    records = rig.records(trial)
    series = Series(records)
    text = seen.stdout.decode()
    # State at the start of each test: the checkpoint of its "RUN" line.
    offsets, at = [], 0
    for line in text.splitlines(keepends=True):
        if line.startswith('[ RUN'):
            offsets.append(at)
        at += len(line)
    at_offset = {int(p['stream_bytes']): i for i, (p, _) in enumerate(series.points) if p['why'] == '1'}
    tap.check(len(offsets) == 72 and all(o in at_offset for o in offsets),
              'segments: a checkpoint at the start of each of 72 tests', (offsets, sorted(at_offset)))
    tests = [at_offset[o] for o in offsets if o in at_offset]
    growing = {}
    for context in series.contexts():
        counts = [series.counts(context)[i] for i in tests]
        if counts == sorted(counts):
            growing[context] = counts[-1] - counts[24]
    first = max(growing, key=growing.get)
    names = function_names(rig, records, first)
    counts = [series.counts(first)[i] for i in tests]
    tap.check('segmentation_add_scalars' in names and counts[24] == 54 and counts[48] == 108,
              'segments: the context that grows most and never falls is that of the placeholder groups',
              (names, counts))
    others = sorted(growing.values())[:-1]
    tap.check(not others or max(others) < growing[first] / 5, 'segments: no other comes near', others[-5:])


def forked(rig, tap):
    script = ('import os\n'
              'kept = [bytearray(100000 + i) for i in range(5)]\n'
              'print("parent", flush=True)\n'
              'pid = os.fork()\n'
              'more = [bytearray(200000 + i) for i in range(5)]\n'
              'print("child" if not pid else "parent", flush=True)\n'
              'if pid: os.waitpid(pid, 0)\n')
    done, trial = rig.observed(['/usr/bin/python3', '-S', '-c', script], 'ids', plan=['growth'])
    images = [Series(rig.dump(path)) for path in rig.logs(trial)]
    # A line may be written in pieces, which have checkpoints of their own.
    texts = [[p['text'].split('\\')[0] for p, _ in image.points
              if p['why'] == '1' and not p['text'].startswith('\\')] for image in images]
    tap.check(done.returncode == 0 and sorted(texts) == [['child'], ['parent', 'parent']],
              'fork: each process has its own series', texts)


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        lines(rig, tap)
        segments(rig, tap)
        forked(rig, tap)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
