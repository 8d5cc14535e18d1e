import pytest

import thunder
from framework import TORCH, OPS, close, instantiate, make_tensor


@instantiate(executors=(TORCH,))
def test_core_vs_reference(op, executor, dtype):
    args = op.sample(dtype)
    out = op.function(executor)(make_tensor((2, 2), dtype), *args)[0]
    assert close(out.tolist(), op.reference(*[t.tolist() for t in args]), dtype)


@pytest.mark.parametrize("name", sorted(n for n in OPS if len(OPS[n].shapes) == 2 and n != "outer"))
def test_mismatched_operands(name):
    trace = thunder.Trace(thunder.executor("torch"))
    a = trace.input(make_tensor((2,), "float64"))
    b = trace.input(make_tensor((3,), "float64"))
    with pytest.raises(ValueError):
        trace.apply(name, a, b)


def test_outer_wants_vectors():
    trace = thunder.Trace(thunder.executor("torch"))
    a = trace.input(make_tensor((), "float64"))
    with pytest.raises(ValueError):
        trace.apply("outer", a, a)
