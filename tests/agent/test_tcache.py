#!/usr/bin/env python3
"""libc's cache of freed blocks in the hook: the same blocks, and the same end where it was damaged."""
import os
import sys

from rig import Rig, Tap

ENDS = {  # what the guest does: (signal, a word of what libc says)
    'many': (0, ''), 'threads': (0, ''), 'sizes': (0, ''), 'full': (0, ''), 'head': (0, ''),
    'elsewhere': (0, ''), 'survives': (0, ''),
    'no-size': (6, 'invalid'), 'odd': (6, 'unaligned tcache chunk'), 'twice': (6, 'double free'),
    'nowhere': (11, ''), 'never': (11, ''),
}


def trusted(rig, guest, environment, how='wait'):
    """Does the hook use the cache by itself? Its log says so."""
    _, trial = rig.observed([guest, how], 'ids', environment=dict(environment))
    headers = [r for r in rig.records(trial) if r.type == 'HEADER']
    return [r['libc_cache'] for r in headers] == ['used'], [r.text for r in headers]


def module_of(records, crash):
    """Whose code the crash is in."""
    for record in records:
        if record.type == 'MODULE':
            low, high = (int(end, 16) for end in record['text'].split('-'))
            if low <= int(crash['rip'], 16) < high:
                return record['path']
    return None


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    guest = os.path.join(os.path.abspath(sys.argv[2]), 'cached')
    good, told = trusted(rig, guest, {})
    tap.check(good, 'after some calls the cache is trusted', told)
    good, told = trusted(rig, guest, {}, 'worker')
    tap.check(good, 'whichever thread makes them', told)
    for how, (signal, words) in ENDS.items():
        plain = rig.plain([guest, how])
        tap.check(plain.returncode == -signal and words in plain.stderr.decode(), f'{how}: ends as it should by itself',
                  plain)
        seen, trial = rig.observed([guest, how], 'ids')
        tap.check((seen.returncode, seen.stdout, seen.stderr) == (plain.returncode, plain.stdout, plain.stderr),
                  f'{how}: the same under ids', f'{str(plain)[:1000]}\n{str(seen)[:1000]}')
        if signal == 11:
            records = rig.records(trial)
            crashes = [r for r in records if r.type == 'CRASH']
            tap.check(len(crashes) == 1 and 'libc.so' in str(module_of(records, crashes[0])),
                      f'{how}: libc is where it dies', [c.text for c in crashes])
    tuned = {'GLIBC_TUNABLES': 'glibc.malloc.tcache_count=2'}
    plain = rig.plain([guest, 'full'], environment=dict(tuned))
    seen, _ = rig.observed([guest, 'full'], 'ids', environment=dict(tuned))
    tap.check(plain.stdout == seen.stdout and plain.stdout != rig.plain([guest, 'full']).stdout,
              'a cache of another size stays so', f'{str(plain)[:1000]}\n{str(seen)[:1000]}')
    tap.check(not trusted(rig, guest, tuned)[0], 'and is not trusted', trusted(rig, guest, tuned)[1])
    rig.close()
    return tap.end()


sys.exit(main())
