#!/usr/bin/env python3
"""Each library exports what its map says, and imports only what imports.txt allows: a new
import is a new thing that the agent does inside somebody else's process."""
import os
import re
import subprocess
import sys

from rig import Tap


def symbols(library, kind):
    done = subprocess.run(['nm', '-D', kind, library], stdout=subprocess.PIPE, text=True, check=True)
    return {line.split()[-1].split('@')[0] for line in done.stdout.splitlines()}


def wanted(name):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '../../src/agent', name)) as file:
        text = re.sub(r'#.*', '', file.read())
    return set(re.findall(r'(\w+);', text.split('local:')[0]))


def check(tap, library, exports):
    here = os.path.dirname(os.path.abspath(__file__))
    exported = symbols(library, '--defined-only')
    tap.check(exported == wanted(exports), 'exports are those of ' + exports, exported ^ wanted(exports))
    with open(os.path.join(here, 'imports.txt')) as file:
        allowed = {line.split('#')[0].strip() for line in file} - {''}
    imported = symbols(library, '--undefined-only')
    tap.check(imported <= allowed, 'imports are those of imports.txt', imported - allowed)
    tap.check(not (imported & {'malloc', 'calloc', 'realloc', 'free', 'printf', 'fopen'}),
              'no allocation and no stdio of its own')
    flags = subprocess.run(['readelf', '-d', library], stdout=subprocess.PIPE, text=True).stdout
    tap.check('INITFIRST' in flags and 'NOW' in flags, 'first constructor, no lazy binding', flags)


def main():
    tap, library = Tap(), sys.argv[1]
    check(tap, library, 'exports.map')
    check(tap, library.replace('-agent.so', '-agent-crash.so'), 'exports-crash.map')
    tap.check(wanted('exports-crash.map') < wanted('exports.map'), 'the crash observer has fewer hooks, and none of its own')
    return tap.end()


sys.exit(main())
