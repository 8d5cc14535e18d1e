#!/usr/bin/env python3
"""A malloc inside the program: it computes, prints and ends as without us, every block is seen once, whoever of its
functions made it, and nobody is accused."""
import os
import subprocess
import sys
import tempfile

from rig import Rig, Tap

PLACED, WAITING = '1', '6'
MALLOC, NEW, NEW_ARRAY = '0', '2', '3'
FOREIGN_FREE = 6


class Own:
    def __init__(self, rig, tap, build):
        self.rig, self.tap, self.build = rig, tap, os.path.abspath(build)

    def run(self, program, *arguments, specs=('own',)):
        """Runs it with and without; (records of each image, lines about the plan)."""
        command = [os.path.join(os.environ['VICTIMS'], program), *arguments]
        name = ' '.join([program, *arguments])
        trial = tempfile.mkdtemp(dir=self.rig.folder)
        planned = subprocess.run([os.path.join(self.build, 'plan_hooks'), os.path.join(trial, 'plan'), command[0], *specs],
                                 stdout=subprocess.PIPE, text=True)
        self.tap.check(planned.returncode == 0, name + ': all can be replaced', planned.stdout)
        plain = self.rig.plain(command)
        seen = self.rig._run(command, dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=self.rig.agent), {})
        self.tap.check((plain.returncode, plain.stdout, plain.stderr) == (seen.returncode, seen.stdout, seen.stderr),
                       name + ': ends and prints the same', f'{plain}\n{seen}')
        images = [self.rig.dump(path, '--rings') for path in self.rig.logs(trial)]
        bad = [r.text for records in images for r in records if r.type == 'HOOK' and r['state'] not in (PLACED, WAITING) or
               r.type == 'HEADER' and r['retired'] != '0']
        self.tap.check(images and not bad, name + ': everything was placed', bad)
        return images, planned.stdout.splitlines()

    def innocent(self, name, images):
        said = [r.text for records in images for r in records if r.type in ('BAD_FREE', 'UNOBSERVED')]
        foreign = [r['drops'] for records in images for r in records if r.type == 'HEADER' and
                   int(r['drops'].split(',')[FOREIGN_FREE]) > 0]
        self.tap.check(not said and not foreign, name + ': nobody is accused, no block is unknown', (said, foreign))
        ids = [(at, r['id']) for at, records in enumerate(images) for r in records
               if r.type == 'LIFE' and r['op'] == 'free']
        self.tap.check(ids and len(ids) == len(set(ids)), name + ': each block has one life', len(ids))


def lives(records, api):
    return [r for r in records if r.type == 'LIFE' and r['op'] == 'free' and r['api'] == api]


def main():
    tap, rig = Tap(), Rig(sys.argv[1], sys.argv[2])
    own = Own(rig, tap, sys.argv[2])
    try:
        for program in ('own_malloc', 'own_malloc-fixed', 'own_malloc-cet'):
            images, lines = own.run(program, 'fine')
            own.innocent(program, images)
            tap.check(any('hook free' in line and ' keep' in line for line in lines) and
                      any('hook malloc' in line and ' keep' not in line for line in lines),
                      program + ': who calls free may count on registers, who calls malloc may not', lines)
        # Libc's malloc, whose address lies in the program.
        images, _ = own.run('own_malloc-libc', 'count', '1000', specs=())
        own.innocent('own_malloc-libc', images)
        tap.check(len([r for r in lives(images[0], MALLOC) if r['size'] == '40']) == 1000, 'own_malloc-libc: every block is seen')
        # A malloc that passes on to ours: its block is one, and lies behind its own word.
        images, _ = own.run('own_malloc-wrap', 'fine')
        own.innocent('own_malloc-wrap', images)
        images, _ = own.run('own_malloc-wrap', 'count', '1000')
        tap.check(len([r for r in lives(images[0], MALLOC) if r['size'] == '40']) == 1000 and
                  not [r for r in lives(images[0], MALLOC) if r['size'] == '56'], 'own_malloc-wrap: every block is seen once')
        images, _ = own.run('own_malloc', 'count', '1000')
        own.innocent('count', images)
        tap.check(len([r for r in lives(images[0], MALLOC) if r['size'] == '40']) == 1000, 'count: every block is seen')
        images, _ = own.run('own_malloc', 'child')
        own.innocent('child', images)
        tap.check(len(images) >= 3, 'child: a log for each image', len(images))
        own.run('own_malloc', 'stale')
        images, _ = own.run('own_malloc', 'twice')
        tap.check(any(r.type == 'BAD_FREE' for r in images[0]), 'twice: the second free is seen', len(images))
        # Another hook on the same entry runs first, one on its exits inside.
        images, _ = own.run('own_malloc', 'fine', specs=('own', 'arg0:malloc', 'ret:malloc'))
        own.innocent('with other hooks', images)
        if os.path.exists(os.path.join(os.environ['VICTIMS'], 'own_new')):
            for program in ('own_new', 'own_new-plain'):
                images, _ = own.run(program, 'fine')
                own.innocent(program, images)
                tap.check(lives(images[0], NEW) and lives(images[0], NEW_ARRAY), program + ': told as what new made')
            own.run('own_new', 'stale')
    finally:
        rig.close()
    return tap.end()


sys.exit(main())
