"""A small tracing tensor library: record a function once per set of shapes, run it
forward and backward on a chosen executor."""

from _thunder import Executor, Tensor, Trace, executor, operations

float32 = "float32"
float64 = "float64"

__all__ = ["Executor", "Function", "Proxy", "Tensor", "executor", "float32", "float64", "jit",
           "operations"]


def _add_exactly(x, y):
    """Sums in double precision and rounds once: adding in float32 drifts with many branches."""
    total = [p + q for p, q in zip(x.tolist(), y.tolist())]
    return Tensor(total, x.shape, x.dtype)


nvfuser = Executor("nvfuser", _add_exactly)
torch = Executor("torch", _add_exactly)


class Proxy:
    """Stands for a tensor while a function is traced."""

    def __init__(self, trace, name):
        self.trace = trace
        self.name = name

    def __add__(self, other):
        return apply("add", self, other)

    def __sub__(self, other):
        return apply("sub", self, other)

    def __mul__(self, other):
        return apply("mul", self, other)

    def __neg__(self):
        return apply("neg", self)


def apply(op, *proxies):
    trace = proxies[0].trace
    return Proxy(trace, trace.apply(op, *[p.name for p in proxies]))


class Function:
    """A traced function. Keeps the trace for the shapes it was last called with."""

    def __init__(self, fn, where):
        self.fn = fn
        self.executor = where
        self.trace = None
        self.recordings = 0

    def _record(self, args):
        trace = Trace(self.executor)
        outputs = self.fn(*[Proxy(trace, trace.input(arg)) for arg in args])
        trace.returns(*[out.name for out in outputs])
        self.recordings += 1
        return trace

    def _specialise(self, args):
        if self.trace is not None and self.trace.matches(args):
            self.trace.replay(args)
        else:
            self.trace = self._record(args)
        return self.trace

    def __call__(self, *args):
        return self._specialise(args).results()

    def vjp(self, args, cotangents):
        """Gradients of all args for the given cotangents of the outputs."""
        return self._specialise(args).backward(cotangents)


def jit(fn, where="nvfuser"):
    """fn takes proxies and returns a tuple of proxies."""
    return Function(fn, executor(where))
