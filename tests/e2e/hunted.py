"""The five specimens as a hunt is pointed at them, and what its document must say (their TRUTH.md)."""
from harness import *

PYTHON = "/usr/bin/python3"
FUSER = SPECIMENS / "fuser/fuser_tests"
FUSER_SEVEN = ["test_addcmul", "test_alias_output_to_input", "test_all_dim_var_mean",
               "test_allocation_domain_concretization", "test_allocation_domain_index_select",
               "test_arithmetic_ops", "test_issue1270"]
THUNDER_PAIR = ["tests/test_core.py::test_batching_outer_nvfuser_cuda_thunder.dtypes.float32",
                "tests/test_grad.py::test_vjp_correctness_outer_nvfuser_cuda_thunder.dtypes.float32"]


def functions(site):
    return [frame["function"] for frame in site["stack"]] if site else []


class Hunted:
    """One specimen: the command line of its hunt, the environment it needs, how the hunt exits."""
    status = 1
    env = {}

    def args(self):
        raise NotImplementedError

    def check(self, doc):
        raise NotImplementedError


class Fuser(Hunted):
    def args(self):
        return ["--framework", "none", "--", FUSER]

    def check(self, doc):
        verdict = doc["verdict"]
        assert verdict["class"] == "dangling-holder", verdict
        assert "ir_container_swap" in functions(verdict["writer"]), verdict
        assert "ir_container_destroy" in functions(verdict["freed_by"]), verdict
        # Two in which it was caught in the act are proof.
        assert verdict["firm"] and verdict["caught"] == verdict["watched"] >= 2, verdict


class FuserWithTests(Fuser):
    def args(self):
        Path("list").write_text(subprocess.run([FUSER, "--list"], capture_output=True, text=True, check=True).stdout,
                                encoding="utf-8")
        return ["--tests", "list", "--", FUSER, "{tests}"]

    def check(self, doc):
        super().check(doc)
        assert doc["tests"] == FUSER_SEVEN, doc["tests"]


class Segments(Hunted):
    status = 0

    def args(self):
        return ["--", SPECIMENS / "segments/segments_test"]

    def check(self, doc):
        assert doc["verdict"]["class"] == "leak-growth", doc["verdict"]
        # Three, and one that looks for who still points to the blocks.
        assert [c["trials"] for c in doc["choices"] if c["experiment"] == "growth"] == [4], doc["choices"]


class Presegment(Hunted):
    """`tests`: with the list made shorter, which half a minute goes into."""
    def __init__(self, tests=False):
        self.tests = tests
        self.env = {"XDG_CACHE_HOME": os.getcwd()}

    def args(self):
        return [*([] if self.tests else ["--framework", "none"]), "-j", "4", "--slot-env",
                "CUDA_VISIBLE_DEVICES={slot}", "--", SPECIMENS / "presegment/presegment_tests"]

    def check(self, doc):
        assert doc["verdict"]["class"] == "mapping-truncated", doc["verdict"]
        assert "log_store_in_place" in functions(doc["verdict"]["writer"]), doc["verdict"]


class Thunder(Hunted):
    env = {"PYTHONPATH": str(SPECIMENS / "thunder"), "PYTHONDONTWRITEBYTECODE": "1"}

    def __init__(self):
        if not (SPECIMENS / "thunder/_thunder.so").exists():
            raise Skip("thunder is not built: python3-dev is missing")
        if subprocess.run([PYTHON, "-c", "import pytest"], capture_output=True).returncode:
            raise Skip("there is no python3-pytest")

    def args(self):
        return ["--cwd", SOURCE / "specimens/thunder", "--", PYTHON, "-m", "pytest", "-p", "no:cacheprovider",
                "-k", "outer and float32"]

    def check(self, doc):
        verdict = doc["verdict"]
        assert verdict["class"] == "dangling-holder", verdict
        # Who gave the last reference back, from C into the Python code that let it happen.
        freed = verdict["freed_by"]
        assert freed["function"] == "trace_dealloc" and freed["file"].endswith("trace.c"), freed
        python = [f["function"] for f in freed["stack"] if f["kind"] == "python"]
        assert python[:2] == ["Function._specialise", "Function.vjp"], python
        assert "rule_new" in functions(verdict["victim"]["allocated"]), verdict["victim"]
        assert "executor_construct" in functions(verdict["holder"]["block"]["allocated"]), verdict["holder"]
        assert doc["tests"] == THUNDER_PAIR, (doc["tests"], doc["decisions"])


class Tagflip(Hunted):
    """Needs a quiet machine: its loop must be quick, or there is no defect to see."""
    EXIT = "NoGrad.__exit__ [tier 2]"
    # Class, who wrote, with which instruction.
    TRUTH = {
        "narrow": ("narrow-write", EXIT, "and byte ptr [rbx+0x18]"),
        "wide": ("wide-write", EXIT, "mov [rbx+0x14]"),
        "stale": ("write-after-free", EXIT, "and byte ptr [rcx+0x18]"),
        "cached": ("stale-cached-value", "type_cache_open", ""),
        "conflated": ("instance-conflation", None, None),
    }

    def __init__(self, variant="narrow"):
        self.variant = variant

    def args(self):
        return ["--", SPECIMENS / "tagflip/tagflip", "--variant", self.variant]

    def check(self, doc):
        verdict = doc["verdict"]
        wanted, writer, instruction = self.TRUTH[self.variant]
        said = {key: verdict[key] for key in ("class", "sentence", "doubts")}
        assert verdict["class"] == wanted, said
        if writer is None:
            # No write to the word: what failed is what the dictionary was made with.
            assert verdict["writer"] is None and "dict_new" in verdict["sentence"], said
            return
        assert functions(verdict["writer"])[0] == writer, (said, functions(verdict["writer"]))
        assert verdict["instruction"].startswith(instruction), (said, verdict["instruction"])
        # Where its allocator was only inferred, the verdict is not firm, and two are not enough.
        assert verdict["caught"] == verdict["watched"] >= (2 if verdict["firm"] else 3), said
