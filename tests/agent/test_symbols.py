#!/usr/bin/env python3
"""The library exports what exports.map says, and imports only what imports.txt allows: a new
import is a new thing that the agent does inside somebody else's process."""
import os
import re
import subprocess
import sys

from rig import Tap


def symbols(library, kind):
    done = subprocess.run(['nm', '-D', kind, library], stdout=subprocess.PIPE, text=True, check=True)
    return {line.split()[-1].split('@')[0] for line in done.stdout.splitlines()}


def main():
    tap, library = Tap(), sys.argv[1]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '../../src/agent/exports.map')) as file:
        text = re.sub(r'#.*', '', file.read())
    wanted = set(re.findall(r'(\w+);', text.split('local:')[0]))
    exported = symbols(library, '--defined-only')
    tap.check(exported == wanted, 'exports are those of exports.map', exported ^ wanted)
    with open(os.path.join(here, 'imports.txt')) as file:
        allowed = {line.split('#')[0].strip() for line in file} - {''}
    imported = symbols(library, '--undefined-only')
    tap.check(imported <= allowed, 'imports are those of imports.txt', imported - allowed)
    tap.check(not (imported & {'malloc', 'calloc', 'realloc', 'free', 'printf', 'fopen'}),
              'no allocation and no stdio of its own')
    flags = subprocess.run(['readelf', '-d', library], stdout=subprocess.PIPE, text=True).stdout
    tap.check('INITFIRST' in flags and 'NOW' in flags, 'first constructor, no lazy binding', flags)
    return tap.end()


sys.exit(main())
