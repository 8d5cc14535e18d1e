"""What the tests about workers share."""
from harness import *

# A node of its own for each worker, as a scheduler would name it; the shell's number is the worker's.
EXEC = "exec:echo $$ > worker-{slot}; SLURMD_NODENAME=n{slot} exec {worker}"


def fleet(*args, runner=EXEC, jobs=2, **options):
    """redhand in the background, with its trials on workers."""
    return subprocess.Popen([REDHAND, *map(str, args[:1]), "-j", str(jobs), "--runner", runner, *map(str, args[1:])],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def counted_once(trials, case="redhand-case"):
    """Every run of the one series has one result."""
    positions = sorted(trial["position"] for trial in stored_trials(case))
    assert positions == list(range(1, trials + 1)), (len(positions), trials)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def running(mark):
    """Processes whose command line has this word."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found
