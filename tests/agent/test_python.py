#!/usr/bin/env python3
"""Objects of CPython, followed because the plan asks for it: the same objects at the same places, and what is told of
them is true."""
import os
import shutil
import subprocess
import sys

from rig import Rig, Tap

PYTHON = '/usr/bin/python3'
# Ends with a register that points where it says.
START = '''
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
api = ctypes.PyDLL(None)
api.PyObject_Malloc.restype = api.PyMem_Malloc.restype = api.PyObject_Realloc.restype = ctypes.c_void_p
api.PyObject_Realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
api.PyObject_Free.argtypes = api.PyMem_Free.argtypes = [ctypes.c_void_p]
warm = [bytes(n % 500) for n in range(3000)]
del warm
def die(address):
    print(address, flush=True)
    libc.memcpy(None, address, 8)
'''
LAYOUT = START + '''
import random
random.seed(7)
blocks, first, seen = {}, {}, []
for i in range(60000):
    at = random.randrange(700)
    if at in blocks and random.random() < 0.6:
        api.PyObject_Free(blocks.pop(at))
        continue
    size = random.choice((random.randrange(1, 60), random.randrange(1, 700)))
    if at in blocks:
        blocks[at] = api.PyObject_Realloc(blocks[at], size)
    else:
        blocks[at] = api.PyObject_Malloc(size)
    pool = blocks[at] >> 14
    seen.append((first.setdefault(pool, len(first)), blocks[at] & 16383))
many = [bytes(n % 300) for n in range(30000)]
seen += [(first.setdefault(id(b) >> 14, len(first)), id(b) & 16383) for b in many if sys.getsizeof(b) <= 512]
del many[::3]
seen += [sys.getallocatedblocks()]
many += [str(n) for n in range(30000)]
seen += [(first.setdefault(id(b) >> 14, len(first)), id(b) & 16383) for b in many]
print(hash(tuple(seen)), len(seen), len(first), sys.getallocatedblocks())
'''
REUSE = START + '''
import bisect
old = [bytes(100) for n in range(40000)]
places = sorted(id(b) for b in old)
old = old[::3000]
kept = {id(b) for b in old}
new = [bytes(250) for n in range(30000)]
for b in new:
    k = bisect.bisect_left(places, id(b) + 16)
    if k < len(places) and places[k] < id(b) + 250 and places[k] not in kept:
        die(places[k])
'''
CRASHES = {  # name: (script, offset of the pointer, fields of the block that it is told to point to)
    'live': ('x = bytes(100); die(id(x))', 0, {'state': 'live', 'size': '133', 'api': '4', 'relation': '1'}),
    'inside': ('x = bytes(100); die(id(x) + 50)', 50, {'state': 'live', 'size': '133', 'api': '4', 'relation': '1'}),
    'whole': ('x = bytes(512 - 33); die(id(x) + 511)', 511, {'state': 'live', 'size': '512', 'relation': '1'}),
    'small': ('x = api.PyMem_Malloc(1); die(x)', 0, {'state': 'live', 'size': '1', 'api': '5'}),
    'large': ('x = bytes(5000); die(id(x) + 99)', 99, {'state': 'live', 'size': '5033', 'api': '4'}),
    'freed': ('x = bytes(400); a = id(x); del x; die(a)', 0, {'state': 'freed', 'size': '433', 'api': '4'}),
    'resized': ('x = api.PyObject_Realloc(api.PyObject_Malloc(300), 310); die(x)', 0, {'state': 'live', 'size': '310'}),
    'cleared': ('api.PyObject_Calloc.restype = ctypes.c_void_p; x = api.PyObject_Calloc(3, 30); die(x)', 0,
                {'state': 'live', 'size': '90'}),
}


def script(rig, text):
    path = os.path.join(rig.folder, 'script.py')
    with open(path, 'w') as out:
        out.write(text)
    return [PYTHON, path]


def died(rig, text, plan=()):
    """(what it printed, blocks told of it, all records)"""
    seen, trial = rig.observed(script(rig, START + text if START not in text else text), 'ids', plan)
    records = rig.records(trial)
    crashes = [r['seq'] for r in records if r.type == 'CRASH']
    told = int(seen.stdout.split()[-1]) if seen.stdout.split() else 0
    return told, [r for r in records if r.type == 'BLOCK' and r['owner'] in crashes], records


def in_one_folder(rig, command, plan):
    """Always the same environment: even the name of a folder makes a difference to where objects lie."""
    trial = os.path.join(rig.folder, 'same')
    shutil.rmtree(trial, ignore_errors=True)
    os.mkdir(trial)
    subprocess.run([rig.make_plan, os.path.join(trial, 'plan'), 'ids', *plan], check=True)
    return rig.plain(['setarch', '-R'] + command,
                     environment={'PYTHONHASHSEED': '0', 'REDHAND_TRIAL': trial, 'LD_PRELOAD': rig.agent})


def fits(block, told, offset, fields):
    return (int(block['start'], 16) == told - offset and
            all(block.get(name) == value for name, value in fields.items()))


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    # With growth every object is seen the long way.
    runs = [in_one_folder(rig, script(rig, LAYOUT), plan) for plan in ((), (), ('growth',))]
    tap.check(len({r.stdout for r in runs}) == 1 and runs[0].returncode == 0 and runs[0].stdout,
              'objects lie where they would', [str(r)[-400:] for r in runs])
    for name, (text, offset, fields) in CRASHES.items():
        told, blocks, _ = died(rig, text)
        tap.check(any(fits(b, told, offset, fields) for b in blocks), f'{name}: what it points to',
                  [told] + [b.text for b in blocks])
    told, blocks, _ = died(rig, 'x = bytes(400); a = id(x); del x; die(a)')
    freed = next((b for b in blocks if int(b['start'], 16) == told), None)
    tap.check(freed and freed['context'] != '0' and freed['free_context'] != '0', 'freed: by whom', freed and freed.text)
    told, blocks, _ = died(rig, REUSE)
    here = [b for b in blocks if int(b['start'], 16) <= told < int(b['start'], 16) + int(b['size'])]
    tap.check([b for b in here if b['state'] == 'live' and b['size'] == '283'] and
              [b for b in here if b['state'] == 'freed' and b['size'] == '133' and int(b['start'], 16) == told],
              'a pool for another size: who has the place, and who had it', [told] + [b.text for b in blocks])
    # The parent's objects in a child, and the child's own.
    told, blocks, records = died(rig, '''
x = bytes(400)
if os.fork() == 0:
    die(id(x))
os.wait()
''')
    bases = [int(r['id_base']) for r in records if r.type == 'HEADER' and r['forked'] == '1']
    tap.check([b for b in blocks if int(b['start'], 16) == told and b['size'] == '433' and bases and
               int(b['id']) < bases[0]], 'fork: an object that came with it', [bases, told] + [b.text for b in blocks])
    told, blocks, records = died(rig, '''
if os.fork() == 0:
    x = bytes(400)
    die(id(x))
os.wait()
''')
    tap.check([b for b in blocks if int(b['start'], 16) == told and b['size'] == '433' and b['state'] == 'live' and
               b['context'] != '0' and int(b['id']) > bases[0]], 'fork: an object of the child',
              [told] + [b.text for b in blocks])
    _, _, records = died(rig, '''
x = [api.PyObject_Malloc(200) for n in range(50)]
api.PyObject_Free(x[20]); api.PyObject_Free(x[20])
print(x[20], flush=True)
os._exit(0)
''')
    bad = [r for r in records if r.type == 'BAD_FREE']
    tap.check(len(bad) == 1, 'freed twice', [r.text for r in records if r.type in ('BAD_FREE', 'HEADER')])
    # A list that leads nowhere: the interpreter dies of it, not the hook.
    seen, trial = rig.observed(script(rig, START + '''
x = [api.PyObject_Malloc(200) for n in range(50)]
api.PyObject_Free(x[20]); api.PyObject_Free(x[21])
ctypes.memmove(x[21], (0x123456789000).to_bytes(8, 'little'), 8)
print(0, flush=True)
while True:
    api.PyObject_Malloc(200)
'''), 'ids')
    records = rig.records(trial)
    crash = next((r for r in records if r.type == 'CRASH'), None)
    inside = [r for r in records if r.type == 'MODULE' and 'redhand' in r['path']]
    low, high = (int(end, 16) for end in inside[0]['text'].split('-'))
    tap.check(seen.returncode == -11 and crash and crash['fault'] == '0x123456789000' and
              not low <= int(crash['rip'], 16) < high, 'a list that leads nowhere', crash and crash.text[:300])
    rig.close()
    return tap.end()


sys.exit(main())
