"""For the tests of `watch --mode ptrace`: the victim, and a world in which perf is forbidden."""
import ctypes
import functools
import os
import re
import struct
import subprocess

from harness import *  # pylint: disable=wildcard-import,unused-wildcard-import

TRACED = str(VICTIMS / "traced")
NOBODY = 65534

# linux/seccomp.h, linux/filter.h, asm/unistd_64.h
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000
SYS_PERF_EVENT_OPEN, EPERM = 298, 1
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06


def forbid_perf():
    """From now on perf_event_open fails with EPERM, here and in all that is started from here."""
    program = b"".join(struct.pack("HBBI", *step) for step in [
        (LOAD_WORD, 0, 0, 0),
        (JUMP_EQUAL, 0, 1, SYS_PERF_EVENT_OPEN),
        (RETURN, 0, 0, SECCOMP_RET_ERRNO | EPERM),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ])
    steps = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header)):
        raise OSError(ctypes.get_errno(), "seccomp")


def as_nobody_without_perf():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    forbid_perf()


def without_perf(*args):
    """Runs redhand as an ordinary user to whom perf is forbidden."""
    if os.geteuid() == 0:
        os.chown(".", NOBODY, NOBODY)
    return subprocess.run([REDHAND, *map(str, args)], capture_output=True, text=True,
                          errors="replace", timeout=240, stdin=subprocess.DEVNULL,
                          preexec_fn=as_nobody_without_perf, check=False)


@functools.lru_cache(maxsize=None)
def finding(name):
    """What doctor says about the machine, by its id."""
    (found,) = [f for f in document("doctor")["checks"] if f["id"] == name]
    return found


def needs(name):
    if finding(name)["status"] == "no":
        raise Skip(finding(name)["found"])


def needs_ptrace():
    needs("watch-ptrace")


def watch(*args, on=("global:counter",), options=()):
    """The report of one trial of the victim, and how it ended: (exit status, name of the signal), its output."""
    named = [word for spec in on for word in ("--on", spec)]
    doc = document("watch", "-n", "1", "--keep", "all", "--timeout", "60s", "--mode", "ptrace",
                   *named, *options, "--", TRACED, *args)
    (trial,) = stored_trials()
    with open(f"redhand-case/trials/{trial['trial']}/stdout", encoding="utf-8") as file:
        return doc, (trial["exit"], trial["signal"]), file.read()


def signal_name(number):
    """As redhand has it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def plain(*args):
    """The same of a run that nobody watches."""
    result = subprocess.run([TRACED, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, timeout=60, check=False)
    end = (None, signal_name(-result.returncode)) if result.returncode < 0 else (result.returncode, None)
    return end, result.stdout
