"""What a verdict prints as commands, pasted into a shell: `repeat`, `prove fix`, `next`."""
import shlex

from harness import *

# `repeat` and `prove fix` run so often that 99 of 100 would show the failure; three in a row that
# show nothing come once in a million.
ATTEMPTS = 3
# The experiments of a hunt that a command would make again.
MADE_BY = {("heap",): {"guards"}, ("chase",): {"homes", "crowd", "copies"}}


def pasted(line):
    """In the folder of the hunt, with redhand on the PATH."""
    env = {**os.environ, "PATH": f"{os.path.dirname(REDHAND)}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", line], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=300, check=False)


def ran(case):
    """Each trial of the case; --fresh gives numbers out again."""
    return {(trial["trial"], trial["started"], trial["seconds"]) for trial in stored_trials(case)}


def fails(line, case):
    """It runs trials, and they show what the verdict is about."""
    results = []
    while len(results) < ATTEMPTS:
        before = ran(case)
        results.append(pasted(line))
        assert results[-1].returncode in (0, 1), (line, results[-1].returncode, results[-1].stderr)
        # A sentinel's trials are not the case's.
        assert "sentinel" in line or ran(case) - before, (line, "ran nothing", results[-1].stdout)
        if results[-1].returncode == 1:
            return
    raise AssertionError((line, [r.stdout for r in results]))


def commands_in(sentence):
    """Each command of redhand's in a sentence, up to where the sentence goes on."""
    for part in re.split(r"(?=\bredhand [a-z]+ )", sentence or "")[1:]:
        yield re.split(r"(?<=[^ ]): (?=[a-z])|; |, until", part)[0]


def made(doc, words):
    """Has the hunt made the experiment of this command?"""
    names = {choice["experiment"] for choice in doc["choices"] if choice["trials"]}
    if words[1] == "repro" and "ids" in words:
        return "ids" in names
    return "--sweep" not in words and bool(MADE_BY.get((words[1],), set()) & names)


def runs(line, doc):
    words = shlex.split(line)
    assert "CMD" not in words and "--" in words and not any("…" in word for word in words), line
    assert not made(doc, words), (line, "was made already", [c["experiment"] for c in doc["choices"]])
    result = pasted(line)
    assert result.returncode in (0, 1), (line, result.returncode, result.stderr)


def numbers(text):
    return " ".join(text.split())


def same_numbers(doc, case):
    """The counts that are told as text are those of both documents."""
    report = facts("report", case=case)
    for key in ("class", "firm", "caught", "watched", "trials", "sentence"):
        assert doc["verdict"][key] == report["verdict"][key], (key, doc["verdict"][key], report["verdict"][key])
    verdict, text = report["verdict"], numbers(redhand("report", "--case", case).stdout)
    for caught, watched in re.findall(r"caught in (\d+) of (\d+) (?:failing )?trials that could show it", text):
        assert (int(caught), int(watched)) == (verdict["caught"], verdict["watched"]), (text, verdict)
    for failed, trials in re.findall(r"fails in (\d+) of (\d+) trials", text):
        assert (int(failed), int(trials)) == (report["rate"]["failed"], report["rate"]["trials"]), (text, report["rate"])
    return report


def all_work(case, *program, status=1, options=(), env=None):
    """Hunts and does what the verdict says."""
    doc = document("hunt", "--case", case, "--framework", "none", *options, "--", *program, status=status, env=env)
    report = same_numbers(doc, case)
    told = [report["verdict"]["next"], *(other["tell_apart"] for other in report["verdict"]["alternatives"])]
    if status == 1:
        assert report["reproduce"], report["verdict"]
        fails(report["reproduce"], case)
        if report["prove_fix"]:
            fails(report["prove_fix"], case)
        elif report["verdict"]["class"] != "not-caught":
            raise AssertionError(("nothing proves a fix", report["verdict"]))
    for sentence in told:
        for line in commands_in(sentence):
            runs(line, doc)
    return report
