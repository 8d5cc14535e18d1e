#!/usr/bin/env python3
"""tools/check-includes complains about what it is there for, on a small tree that is made up here."""
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = sys.argv[1]
SOUND = {
    'agent/core/log.h': '',
    'agent/core/log.c': '#include "agent/core/log.h"\n#include "agent/arch/cpu.h"\n',
    'agent/arch/cpu.h': '',
    'agent/ids/blocks.h': '#include "agent/core/log.h"\n',
    'agent/ids/blocks_open.c': '#include "agent/ids/blocks.h"\n',
    'agent/guards/canary.h': '#include "agent/ids/blocks.h"\n',
    'agent/fence/fence.h': '',
    'agent/fence/fence_inside.h': '#include "agent/fence/fence.h"\n',
    'agent/fence/slots.c': '#include "agent/fence/fence_inside.h"\n',
    'agent/features.c': '#include "agent/guards/canary.h"\n#include "agent/fence/fence.h"\n',
}
# What is added to the sound tree, and what is to be said then; nothing: it is still sound.
TREES = [
    ('sound', {}, []),
    ('up', {'agent/core/log.c': '#include "agent/guards/canary.h"\n'},
     ['agent/core/log.c: agent/core may not include agent/guards']),
    ('beside', {'agent/guards/canary.c': '#include "agent/fence/fence.h"\n'},
     ['agent/guards/canary.c: agent/guards may not include agent/fence']),
    ('no rule', {'agent/elsewhere/a.c': '#include "agent/core/log.h"\n'}, ["no rule for the folder 'agent/elsewhere'"]),
    ('circle', {'agent/ids/history.h': '', 'agent/ids/history.c': '#include "agent/ids/blocks.h"\n',
                'agent/ids/blocks.c': '#include "agent/ids/history.h"\n'},
     ['2 modules include each other in a circle', 'agent/ids/blocks.c includes agent/ids/history.h',
      'agent/ids/history.c includes agent/ids/blocks.h']),
    ('circle by a part', {'agent/ids/history.h': '#include "agent/ids/blocks.h"\n',
                          'agent/ids/blocks_open.c': '#include "agent/ids/history.h"\n'},
     ['2 modules include each other in a circle']),
    ('parts of one', {'agent/fence/slots.c': '#include "agent/fence/fence.h"\n',
                      'agent/fence/fence.c': '#include "agent/fence/fence_inside.h"\n'}, []),
]


def complaints(added):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**SOUND, **added}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding='utf-8')
        done = subprocess.run([sys.executable, CHECK, folder], stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr


print(f'1..{len(TREES)}')
bad = 0
for number, (name, added, said) in enumerate(TREES, 1):
    code, text = complaints(added)
    good = code == (1 if said else 0) and bool(text) == bool(said) and all(words in text for words in said)
    bad += not good
    print(f'{"" if good else "not "}ok {number} - {name}')
    if not good:
        print('# ' + text.replace('\n', '\n# '))
sys.exit(bad > 0)
