"""Running a program with and without the agent, and reading what the agent wrote down."""
import glob
import os
import re
import shutil
import subprocess
import tempfile


class Rig:
    def __init__(self, agent, build):
        self.folder = tempfile.mkdtemp(prefix='redhand-agent-')
        self.agent = os.path.abspath(agent)
        self.redhand = os.path.join(os.path.dirname(os.path.dirname(self.agent)), 'redhand')
        # The loader takes LD_PRELOAD apart at these, which the build's folder may have.
        if re.search('[ :]', self.agent):
            os.chmod(self.folder, 0o711)  # other users' processes are observed, too
            os.symlink(os.path.dirname(self.agent), os.path.join(self.folder, 'agents'))
            self.agent = os.path.join(self.folder, 'agents', os.path.basename(agent))
        self.crash_agent = self.agent.replace('-agent.so', '-agent-crash.so')
        build = os.path.abspath(build)
        self.make_plan = os.path.join(build, 'make_plan')
        self.guest = os.path.join(build, 'guest')

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def preloadable(self, path):
        """A copy of a library of the build, where the loader can find it: it takes LD_PRELOAD apart at spaces."""
        return shutil.copy(path, self.folder)

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

    def logs(self, trial):
        return sorted(glob.glob(os.path.join(trial, 'events.*.rhl')))

    def dump(self, path, *options):
        """Header, records and damage; options of `redhand debug log` add to them."""
        done = subprocess.run([self.redhand, 'debug', 'log', *options, path], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, 'unreadable log ' + path
        return [Line(text) for text in done.stdout.splitlines()]

    def records(self, trial, *options):
        return [line for path in self.logs(trial) for line in self.dump(path, *options)]


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
