import math

import pytest

import thunder
from framework import close, instantiate, make_tensor


@instantiate()
def test_vjp_correctness(op, executor, dtype):
    """Gradients of the operation and of the residual beside it agree with plain Python."""
    residual = make_tensor((80, 80), dtype, 11)
    args = op.sample(dtype)
    lists = [t.tolist() for t in args]
    reference = op.reference(*lists)
    shape = {"sum": (), "dot": (), "outer": (6, 5)}.get(op.name, op.shapes[0])
    seed = thunder.Tensor(reference, shape, dtype)
    gradients = op.function(executor).vjp((residual,) + args, (seed, residual, residual))
    for got, wanted in zip(gradients[1:], op.gradient(seed.tolist(), *lists)):
        assert close(got.tolist(), wanted, dtype)
    wanted = [-x + x * math.exp(x) for x in residual.tolist()]
    assert close(gradients[0].tolist(), wanted, dtype)


def test_chain():
    function = thunder.jit(lambda x, y: (thunder.apply("sum", x * y + x),), "torch")
    x, y = make_tensor((3,), "float64"), make_tensor((3,), "float64", 9)
    dx, dy = function.vjp((x, y), (thunder.Tensor([1.0], (), "float64"),))
    assert close(dx.tolist(), [v + 1.0 for v in y.tolist()], "float64")
    assert close(dy.tolist(), x.tolist(), "float64")


def test_unused_input_has_no_gradient():
    function = thunder.jit(lambda x, y: (-x,), "torch")
    x = make_tensor((3,), "float64")
    assert function.vjp((x, x), (x,))[1] is None


def test_cotangent_must_fit():
    function = thunder.jit(lambda x: (-x,), "torch")
    x = make_tensor((3,), "float64")
    with pytest.raises(ValueError):
        function.vjp((x,), (make_tensor((2,), "float64"),))
