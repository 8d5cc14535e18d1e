"""Running a program with and without the agent, and reading what the agent wrote down."""
import glob
import os
import re
import shutil
import subprocess
import tempfile


class Rig:
    def __init__(self, agent, build):
        self.agent = os.path.abspath(agent)
        self.crash_agent = self.agent.replace('-agent.so', '-agent-crash.so')
        build = os.path.abspath(build)
        self.dump_log = os.path.join(build, 'dump_log')
        self.make_plan = os.path.join(build, 'make_plan')
        self.guest = os.path.join(build, 'guest')
        self.folder = tempfile.mkdtemp(prefix='redhand-agent-')

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def plain(self, command, **options):
        return self._run(command, dict(os.environ), options)

    def observed(self, command, observer, plan=(), **options):
        """Returns (result, trial folder)."""
        trial = tempfile.mkdtemp(dir=self.folder)
        if observer:
            subprocess.run([self.make_plan, os.path.join(trial, 'plan'), observer, *plan], check=True)
        # As the tool chooses it.
        agent = self.crash_agent if observer == 'crash' and not plan else self.agent
        environment = dict(os.environ, REDHAND_TRIAL=trial, LD_PRELOAD=agent)
        return self._run(command, environment, options), trial

    def _run(self, command, environment, options):
        environment.update(options.pop('environment', {}))
        return subprocess.run(command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **options)

    def memory_of(self, command, symbol, count, environment=None):
        """Bytes of the agent's at a symbol, in a process that prints a line and then waits for one."""
        names = subprocess.run(['nm', self.agent], stdout=subprocess.PIPE, text=True, check=True).stdout
        offset = int(re.search(rf'^(\w+) \w {symbol}$', names, re.M)[1], 16)
        _, trial = self.observed(['/bin/true'], 'ids')
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=dict(os.environ, LD_PRELOAD=self.agent, REDHAND_TRIAL=trial, **(environment or {})))
        child.stdout.readline()
        with open(f'/proc/{child.pid}/maps') as maps:
            base = next(int(line.split('-')[0], 16) for line in maps if self.agent in line)
        with open(f'/proc/{child.pid}/mem', 'rb') as memory:
            memory.seek(base + offset)
            found = memory.read(count)
        child.communicate(b'x')
        return found

    def logs(self, trial):
        return sorted(glob.glob(os.path.join(trial, 'events.*.rhl')))

    def dump(self, path, mode='--all'):
        done = subprocess.run([self.dump_log, mode, path], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, 'unreadable log ' + path
        return [Line(text) for text in done.stdout.splitlines()]

    def records(self, trial, mode='--all'):
        return [line for path in self.logs(trial) for line in self.dump(path, mode)]


class Line:
    """TYPE name=value name="text" …"""

    def __init__(self, text):
        self.type, _, rest = text.partition(' ')
        self.text = text
        self.fields = {}
        for name, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|(\S*))', rest):
            self.fields[name] = quoted or bare

    def __getitem__(self, name):
        return self.fields[name]

    def get(self, name, default=None):
        return self.fields.get(name, default)


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, good, name, why=''):
        self.count += 1
        if not good:
            self.failed += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good and why:
            print('# ' + str(why).replace('\n', '\n# '), flush=True)

    def skip(self, name, why):
        self.count += 1
        print(f'ok {self.count} - {name} # SKIP {why}', flush=True)

    def end(self):
        print(f'1..{self.count}')
        return 1 if self.failed else 0
