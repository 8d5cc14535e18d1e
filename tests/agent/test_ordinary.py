#!/usr/bin/env python3
"""Ordinary programs under every observer, as root and as somebody else: the same output, exit status and files as without,
and what it costs in CPU time. ONLY='sed perl' takes only these programs, OBSERVERS='ids heap' only these observers."""
import hashlib
import os
import shutil
import statistics
import subprocess
import sys

from rig import Rig, Tap

NOBODY = 65534
PY = '/usr/bin/python3'
EVERY_BLOCK = 'watch=1073741824,0,8,0,0,1'
OBSERVERS = {
    'crash': ('crash', []),
    'ids': ('ids', ['no_python']),
    'ids, objects of Python': ('ids', []),
    'growth': ('ids', ['growth']),
    'heap': ('heap', ['sampled', 'no_python']),
    'heap, every block': ('heap', []),
    'heap, objects of Python': ('heap', ['python']),
    'registers': ('ids', ['watch=104,8,8,0,0,0']),
    'pages': ('ids', ['pages', 'watch=104,8,8,0,0,0']),
    'pages, every block': ('ids', ['pages', EVERY_BLOCK]),
}
# What takes minutes, or is known to be told otherwise, and why.
TOO_SLOW = {'pages, every block': {'java', 'javac', 'gcc', 'g++', 'make', 'gdb', 'node', 'cmake', 'python3 threads', 'python3 json',
                                   'openssl', 'xz', 'ruby', 'git', 'perl', 'sqlite3'}}

TEXT = ''.join(f'{i * 7919 % 1009} line {i} of {i % 13} some text\n' for i in range(4000))
C_SOURCE = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *a[99]; for (int i = 0; i < 99; i++) a[i] = malloc(i + 1); ' \
           'for (int i = 0; i < 99; i++) free(a[i]); puts("done"); return 3; }\n'
CXX_SOURCE = '#include <iostream>\n#include <map>\n#include <string>\nint main() { std::map<int, std::string> m; for (int i = 0; i < 999; i++) ' \
             'm[i] = std::string(i % 50, 65); std::cout << m.size() << m[49] << std::endl; return 4; }\n'
JAVA_SOURCE = 'public class A { int v; public static void main(String[] a) { long s = 0; for (int i = 0; i < 3000; i++) { A x = i % 2 == 0 ? ' \
              'null : new A(); try { s += x.v; } catch (NullPointerException e) { s++; } } System.out.println(s); System.exit(5); } }\n'
THREADS_SOURCE = '#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\nstatic void *f(void *a) { for (int i = 0; i < 3000; i++) ' \
                 '{ char *p = calloc(1, i % 300 + 1); p[0] = 1; free(p); } return a; }\nint main(void) { pthread_t t; for (int i = 0; i < 60; i++) ' \
                 '{ pthread_create(&t, 0, f, 0); pthread_join(t, 0); } puts("joined"); return 0; }\n'
MAKEFILE = 'all: a b c\na b c:\n\t@for i in 1 2 3 4 5; do echo $@ $$i | tr 1-5 v-z; done > $@.txt\n\t@cat $@.txt\n'

PROGRAMS = {  # name: command for the shell, in a folder that has the files of prepare()
    'true': 'true', 'echo': 'echo a b c', 'cat': 'cat text', 'ls': 'ls -l --time-style=+ | awk "{print \\$1, \\$9}"',
    'sed': "sed -e 's/line/LINE/g' -e 3,9d text > out && tail -3 out", 'grep': 'grep -c "of 7" text; grep -q nothing text',
    'awk': "awk '{n[$1] += NF} END {for (k in n) print k, n[k]}' text | sort | head -40", 'sort': 'sort -n text > sorted; cksum sorted',
    'sort, parallel': 'sort --parallel=4 -S 100K text text text | cksum', 'uniq': 'sort text | uniq -c | head -3', 'wc': 'wc text',
    'cut': 'cut -d" " -f2,4 text | head -5', 'tr': 'tr a-z A-Z < text | tail -2', 'dd': 'dd if=text of=copy bs=777 status=none; cmp text copy',
    'find': 'find . -type f | sort', 'xargs': 'seq 30 | xargs -n 4 -P 2 echo | sort', 'tar': 'tar cf t.tar text && tar xOf t.tar | cksum && rm t.tar',
    'gzip': 'gzip -nk text && cksum text.gz', 'xz': 'xz -k -T2 -1 text && xz -dc text.xz | cksum', 'bzip2': 'bzip2 -k text && cksum text.bz2',
    'diff': 'sed s/7/8/ text > other; diff text other | head -8; exit 2', 'patch': 'sed 5d text > n; diff -u text n > p; patch -s text p; cksum text',
    'bc': "echo 'scale=60; 4*a(1)' | bc -l", 'expr': 'expr 6 \\* 7', 'date': 'date -u -d @86400 +%F',
    'sh, many': 'for i in $(seq 40); do echo $i | tr 1-3 a-c; done; (exit 3) || echo $?; exit 6', 'bash': "bash -c 'a=(1 2 3); echo ${a[@]} $(echo sub); trap \"echo bye\" EXIT; exit 7'",
    'bash jobs': "bash -c 'for i in 1 2 3 4; do (sleep 0.0$i; exit $i) & done; wait -n; wait; echo all'", 'make': 'make -s -j2 | sort',
    'gcc': 'gcc -O2 a.c -o a.out && ./a.out', 'g++': 'g++ -O1 a.cc -o b.out && ./b.out', 'threads': 'gcc -O1 t.c -o t.out -pthread && ./t.out',
    'git': 'git init -q r && cd r && git config user.email a@b && git config user.name n && cp ../text . && git add . && '
           'GIT_AUTHOR_DATE="@1 +0000" GIT_COMMITTER_DATE="@1 +0000" git commit -qm c && git log --format=%H%s && rm -r .git',
    'perl': "perl -ne '$h{$1}++ if /(\\d+)$/ || /of (\\d+)/; END { print map {\"$_ $h{$_}\\n\"} sort keys %h; exit 7 }' text",
    'python3': PY + ' -c "pass"',
    'python3 json': PY + ' -c "import json, sys; print(len(json.dumps({i: [str(i)] * 3 for i in range(9999)}))); sys.exit(5)"',
    'python3 threads': PY + ' -c "import threading; r = []; t = [threading.Thread(target=lambda: r.append(sum(range(5000)))) for _ in range(16)]; '
                       '[x.start() for x in t]; [x.join() for x in t]; print(sum(r))"',
    'python3 children': PY + ' -c "import subprocess; print(subprocess.run([\'sh\', \'-c\', \'echo hi; exit 4\'], capture_output=True))"',
    'sqlite3': 'sqlite3 d.db "create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x '
               'from c; select sum(a) from t;"',
    'node': 'node -e "const a = []; for (let i = 0; i < 1e5; i++) a.push({i}); console.log(a.length); process.exit(9)"',
    'javac': 'javac A.java && cksum A.class', 'java': 'java -cp "$CLASSES" A', 'openssl': 'openssl dgst -sha256 text',
    'gdb': "gdb -q -batch -nx -ex 'print 6*7' 2>&1 | tail -1", 'cmake': 'cmake -E sha256sum text', 'ruby': 'ruby -e "puts (1..999).map(&:to_s).join.size; exit 8"',
}


def needed(name, command):
    word = name.split(',')[0].split()[0]
    return {'sh': 'sh', 'threads': 'gcc'}.get(word, word)


def prepare(folder, classes):
    os.makedirs(folder)
    for name, text in (('text', TEXT), ('a.c', C_SOURCE), ('a.cc', CXX_SOURCE), ('t.c', THREADS_SOURCE), ('A.java', JAVA_SOURCE), ('Makefile', MAKEFILE)):
        with open(os.path.join(folder, name), 'w') as file:
            file.write(text)
    return folder


def files_of(folder):
    """What is left: path, mode, content."""
    left = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, 'rb') as file:
                left[os.path.relpath(path, folder)] = (os.stat(path).st_mode, hashlib.sha256(file.read()).hexdigest())
    return left


class Matrix:
    def __init__(self, rig, tap, user):
        self.rig, self.tap, self.user = rig, tap, user
        self.who = 'as ' + ('user %d' % user if user is not None else 'uid %d' % os.geteuid())
        self.ratios = {}
        # Another user may not get to where it was built.
        self.agents = os.path.join(rig.folder, 'agents')
        os.makedirs(self.agents, exist_ok=True)
        for agent in rig.agent, rig.crash_agent:
            shutil.copy(agent, self.agents)
        self.count = 0
        self.classes = os.path.join(rig.folder, 'classes')

    def run(self, command, observer=None):
        self.count += 1
        place = os.path.join(self.rig.folder, 'run')  # always the same: programs print where they are
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        folder = prepare(os.path.join(place, 'here'), self.classes)
        environment = {'PATH': os.environ['PATH'], 'LC_ALL': 'C', 'HOME': folder, 'CLASSES': self.classes, 'PYTHONDONTWRITEBYTECODE': '1'}
        if observer:
            trial = os.path.join(place, 'trial')
            os.mkdir(trial)
            kind, plan = OBSERVERS[observer]
            subprocess.run([self.rig.make_plan, os.path.join(trial, 'plan'), kind, *plan], check=True)
            library = os.path.basename(self.rig.crash_agent if kind == 'crash' else self.rig.agent)
            environment.update(REDHAND_TRIAL=trial, LD_PRELOAD=os.path.join(self.agents, library))
        if self.user is not None:
            for root, folders, names in os.walk(place):
                for name in [root] + [os.path.join(root, n) for n in folders + names]:
                    os.chown(name, self.user, self.user)
        options = {} if self.user is None else {'user': self.user, 'group': self.user, 'extra_groups': []}
        child = subprocess.Popen(['sh', '-c', command], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=open(os.path.join(place, 'out'), 'wb'), stderr=open(os.path.join(place, 'err'), 'wb'), **options)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said = [open(os.path.join(place, name), 'rb').read() for name in ('out', 'err')]
        return {'status': child.returncode, 'stdout': said[0], 'stderr': said[1], 'files': files_of(folder)}, usage.ru_utime + usage.ru_stime

    def program(self, name, command, observers):
        plain, again = self.run(command), self.run(command)
        steady = [key for key in plain[0] if plain[0][key] == again[0][key]]
        for observer in observers:
            if name in TOO_SLOW.get(observer, ()):
                continue
            seen, cpu = self.run(command, observer)
            different = [key for key in steady if seen[key] != plain[0][key]]
            self.tap.check(not different and 'status' in steady, f'{self.who}: {name} under {observer}',
                           {key: (plain[0][key], seen[key]) for key in different})
            self.ratios.setdefault(observer, []).append((cpu / min(plain[1], again[1]), name))

    def tell(self):
        for observer, ratios in self.ratios.items():
            worst = ', '.join(f'{name} {ratio:.2f}' for ratio, name in sorted(ratios, reverse=True)[:4])
            print(f'# {self.who}, {observer}: CPU time {statistics.median(r for r, _ in ratios):.2f} times, median of {len(ratios)}; most: {worst}', flush=True)


def main():
    rig, tap = Rig(sys.argv[1], sys.argv[2]), Tap()
    wanted = os.environ.get('ONLY', '').split() or PROGRAMS
    observers = [o for o in OBSERVERS if not os.environ.get('OBSERVERS') or o.split(',')[0] in os.environ['OBSERVERS'].split()]
    os.chmod(rig.folder, 0o755)
    try:
        os.mkdir(os.path.join(rig.folder, 'classes'))
        if shutil.which('javac'):
            prepare(os.path.join(rig.folder, 'java'), '')
            subprocess.run(['javac', '-d', os.path.join(rig.folder, 'classes'), 'A.java'], cwd=os.path.join(rig.folder, 'java'), check=True)
        for user in [None, NOBODY] if os.geteuid() == 0 else [None]:
            matrix = Matrix(rig, tap, user)
            for name, command in PROGRAMS.items():
                if name not in wanted and name.split(',')[0] not in wanted:
                    continue
                if not shutil.which(needed(name, command)):
                    tap.skip(name, 'not installed')
                    continue
                matrix.program(name, command, observers)
            matrix.tell()
        return tap.end()
    finally:
        rig.close()


sys.exit(main())
