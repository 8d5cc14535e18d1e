"""Instantiates test templates per operation, executor and dtype, and describes the operations.

A template `test_x(op, executor, dtype)` becomes functions such as
`test_x_outer_nvfuser_cuda_thunder.dtypes.float32` in the module that defines it.
"""

import functools
import math
import sys

import thunder

DTYPES = (thunder.float32, thunder.float64)


class Exec:
    def __init__(self, name, device):
        self.name = name
        self.device = device


NVFUSER = Exec("nvfuser", "cuda")
TORCH = Exec("torch", "cpu")


def make_tensor(shape, dtype, start=1):
    """Values between 0.5 and 1.5 that do not repeat soon."""
    values = [0.5 + ((start + i) * 37 % 101) / 101 for i in range(math.prod(shape))]
    return thunder.Tensor(values, shape, dtype)


def close(got, wanted, dtype):
    tolerance = 1e-4 if dtype == thunder.float32 else 1e-9
    return len(got) == len(wanted) and all(
        math.isclose(g, w, rel_tol=tolerance, abs_tol=tolerance) for g, w in zip(got, wanted))


class OpInfo:
    """An operation, the shapes it is tested with, and plain Python for result and gradient.

    reference(*lists) -> list, gradient(cotangent, *lists) -> a list per operand."""

    def __init__(self, name, shapes, reference, gradient):
        self.name = name
        self.shapes = shapes
        self.reference = reference
        self.gradient = gradient

    @functools.lru_cache(maxsize=None)
    def function(self, executor):
        """Traced once and shared by all test modules. The operation sits beside a residual
        that is used twice, as in a real network."""

        def program(residual, *args):
            return thunder.apply(self.name, *args), -residual, thunder.apply("exp", residual)

        return thunder.jit(program, executor.name)

    def sample(self, dtype):
        return tuple(make_tensor(shape, dtype, 3 * i + 1) for i, shape in enumerate(self.shapes))


def _outer(a, b):
    return [x * y for x in a for y in b]


def _outer_gradient(g, a, b):
    n = len(b)
    return ([sum(g[i * n + j] * b[j] for j in range(n)) for i in range(len(a))],
            [sum(g[i * n + j] * a[i] for i in range(len(a))) for j in range(n)])


OPS = {op.name: op for op in (
    OpInfo("add", [(4, 3), (4, 3)], lambda a, b: [x + y for x, y in zip(a, b)],
           lambda g, a, b: (g, g)),
    OpInfo("sub", [(4, 3), (4, 3)], lambda a, b: [x - y for x, y in zip(a, b)],
           lambda g, a, b: (g, [-x for x in g])),
    OpInfo("mul", [(4, 3), (4, 3)], lambda a, b: [x * y for x, y in zip(a, b)],
           lambda g, a, b: ([x * y for x, y in zip(g, b)], [x * y for x, y in zip(g, a)])),
    OpInfo("exp", [(5, 2)], lambda a: [math.exp(x) for x in a],
           lambda g, a: ([x * math.exp(y) for x, y in zip(g, a)],)),
    OpInfo("sum", [(3, 7)], lambda a: [sum(a)], lambda g, a: (g * len(a),)),
    OpInfo("dot", [(9,), (9,)], lambda a, b: [sum(x * y for x, y in zip(a, b))],
           lambda g, a, b: ([g[0] * x for x in b], [g[0] * x for x in a])),
    OpInfo("outer", [(6,), (5,)], _outer, _outer_gradient),
)}


def instantiate(ops=tuple(OPS), executors=(NVFUSER, TORCH), dtypes=DTYPES):
    """Decorator; puts one test per combination into the template's module."""

    def decorate(template):
        module = sys.modules[template.__module__]
        for op in ops:
            for executor in executors:
                for dtype in dtypes:
                    name = (f"{template.__name__}_{op}_{executor.name}_{executor.device}"
                            f"_thunder.dtypes.{dtype}")
                    setattr(module, name, _bind(template, name, OPS[op], executor, dtype))
        return None

    return decorate


def _bind(template, name, op, executor, dtype):
    def test():
        template(op, executor, dtype)

    test.__name__ = test.__qualname__ = name
    test.__module__ = template.__module__
    test.__doc__ = template.__doc__
    return test
