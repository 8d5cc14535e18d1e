#!/usr/bin/env python3
"""Where MALLOC_PERTURB_ has libc fill new and freed blocks, programs run as without the agent, and find what libc filled in.
Every other test runs without it."""
import os
import sys

from rig import Rig, Tap

FILL = '165'
MODES = ['entry-points', 'refusals', 'threads', 'children']


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    build = os.path.abspath(sys.argv[2])
    perturbed = {'MALLOC_PERTURB_': FILL}
    tap.check(os.environ.get('MALLOC_PERTURB_') == '0', 'without being asked for nothing is filled',
              os.environ.get('MALLOC_PERTURB_'))
    program = [os.path.join(build, 'perturbed')]
    plain = rig.plain(program, environment=dict(perturbed))
    tap.check(plain.returncode == 0 and plain.stdout != rig.plain(program).stdout, 'libc fills blocks by itself', plain)
    for observer in ('crash', 'ids'):
        seen, _ = rig.observed(program, observer, environment=dict(perturbed))
        tap.check((seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr),
                  f'under {observer} blocks hold the same', f'{plain}\n{seen}')
    # Guards and poison are redhand's own filling; the program must only end the same.
    for observer in ('ids', 'heap'):
        for mode in MODES:
            command = [os.path.join(build, 'heap_guest'), mode]
            plain = rig.plain(command, environment=dict(perturbed))
            seen, trial = rig.observed(command, observer, environment=dict(perturbed))
            tap.check((seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr),
                      f'{mode} under {observer}: unharmed', f'{plain}\n{seen}')
            accused = [r.text for r in rig.records(trial) if r.type in ('HEAP_DAMAGE', 'BAD_FREE')]
            tap.check(not accused, f'{mode} under {observer}: nobody accused', accused[:4])
    rig.close()
    return tap.end()


sys.exit(main())
