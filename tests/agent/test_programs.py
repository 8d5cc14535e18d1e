#!/usr/bin/env python3
"""Ordinary programs under `ids`: same output, same exit status."""
import os
import shutil
import subprocess
import sys
import time

from rig import Rig, Tap

C_SOURCE = '#include <stdio.h>\nint main(void) { for (int i = 0; i < 9; i++) printf("%d\\n", i * i); return 3; }\n'
CXX_SOURCE = '''#include <iostream>
#include <map>
#include <string>
struct alignas(64) wide { int x; };
int main() {
  std::map<int, std::string> m;
  for (int i = 0; i < 1000; i++) m[i] = std::string(i % 50, 'a');
  std::cout << m[49] << m.size() << std::endl;
  try { volatile long huge = 1L << 60; new char[huge]; } catch (std::bad_alloc &e) { std::cout << e.what() << std::endl; }
  wide *w = new wide[3]; delete[] w;
  return 4;
}
'''
THREADS = '''
import threading
r = []
def f(n): r.append(sum(len(str(i)) for i in range(n)))
ts = [threading.Thread(target=f, args=(5000,)) for _ in range(16)]
[t.start() for t in ts]; [t.join() for t in ts]; print(sum(r))
'''
CHILDREN = '''
import multiprocessing, subprocess
print(subprocess.run(["sh", "-c", "echo hi; exit 4"], capture_output=True))
if __name__ == "__main__":
    with multiprocessing.Pool(3) as p: print(p.map(abs, range(-5, 5)))
'''
PROGRAMS = [
    ('python3', ['/usr/bin/python3', '-c', 'import json, sys; d = {i: [str(i)] * 3 for i in range(9999)}; print(len(json.dumps(d))); sys.exit(5)']),
    ('python3 threads', ['/usr/bin/python3', '-c', THREADS]),
    ('python3 children', ['/usr/bin/python3', '-c', CHILDREN]),
    ('gcc', ['sh', '-c', 'gcc -O2 a.c -o a.out && ./a.out']),
    ('g++', ['sh', '-c', 'g++ -std=c++17 -O1 a.cc -o b.out && ./b.out']),
    ('git', ['sh', '-c', 'rm -rf clone; git clone -q repo clone && git -C clone log -p']),
    ('perl', ['perl', '-e', 'my %h; $h{$_} = [1..5] for 1..5000; print scalar(keys %h), "\\n"; print `echo sub`; exit 7']),
    ('node', ['node', '-e', 'const a = []; for (let i = 0; i < 1e5; i++) a.push({i, s: String(i)}); console.log(a.length); process.exit(9)']),
    ('sqlite3', ['sqlite3', ':memory:', 'create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x from c; select sum(a) from t;']),
    ('bash', ['bash', '-c', 'for i in 1 2 3; do echo $i | tr 1-3 a-c | sed s/^/x/; done; (exit 3) || echo $?; env -i /bin/echo clean; ulimit -n 64; exit 6']),
    ('xz', ['sh', '-c', 'head -c 1000000 "$(command -v git)" | xz -1 -T2 | md5sum']),
]


def prepare(rig):
    for name, text in (('a.c', C_SOURCE), ('a.cc', CXX_SOURCE)):
        with open(os.path.join(rig.folder, name), 'w') as file:
            file.write(text)
    subprocess.run('git init -q repo && cd repo && git config user.email a@b && '
                   'git config user.name n && for i in 1 2 3; do echo $i > f$i; git add .; '
                   'git commit -qm c$i; done', shell=True, cwd=rig.folder, check=True)


def redis(rig, tap):
    if not shutil.which('redis-server') or not shutil.which('redis-benchmark'):
        tap.skip('redis-server', 'not installed')
        return
    trial = os.path.join(rig.folder, 'redis')
    os.mkdir(trial)
    subprocess.run([rig.make_plan, trial + '/plan', 'ids'], check=True)
    socket = os.path.join(rig.folder, 's')
    server = subprocess.Popen(
        ['redis-server', '--port', '0', '--unixsocket', socket, '--save', '', '--dir', rig.folder],
        env=dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=rig.agent), stdout=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(socket) and time.monotonic() < deadline:
            time.sleep(0.05)
        bench = subprocess.run(['redis-benchmark', '-s', socket, '-n', '2000', '-q', '-t',
                                'set,get,lpush'], stdout=subprocess.PIPE, text=True, timeout=120)
        tap.check(bench.returncode == 0 and bench.stdout.count('requests per second') == 3,
                  'redis-server answers its benchmark', bench)
    finally:
        server.terminate()
        server.communicate(timeout=60)
    tap.check(server.returncode == 0, 'redis-server ends in order', server.returncode)


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    try:
        prepare(rig)
        for name, command in PROGRAMS:
            program = command[0] if command[0] != 'sh' else name
            if not shutil.which(program):
                tap.skip(name, 'not installed')
                continue
            plain, (seen, trial) = rig.plain(command), rig.observed(command, 'ids')
            tap.check((plain.returncode, plain.stdout, plain.stderr) ==
                      (seen.returncode, seen.stdout, seen.stderr), name + ': unharmed',
                      f'{plain}\n{seen}')
            headers = [r for r in rig.records(trial) if r.type == 'HEADER']
            tap.check(headers and all(h['retired'] == '0' for h in headers),
                      f'{name}: observed in {len(headers)} images', [h.text for h in headers])
        redis(rig, tap)
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
