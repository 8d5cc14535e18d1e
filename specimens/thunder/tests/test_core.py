import pytest

import thunder
from framework import DTYPES, NVFUSER, OPS, TORCH, close, instantiate, make_tensor


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_roundtrip(dtype):
    tensor = thunder.Tensor([1.0, 2.5, -3.0, 0.0], (2, 2), dtype)
    assert tensor.shape == (2, 2)
    assert tensor.dtype == dtype
    assert tensor.tolist() == [1.0, 2.5, -3.0, 0.0]


def test_float32_rounds():
    assert thunder.Tensor([0.1], (1,), "float32").tolist() != [0.1]
    assert thunder.Tensor([0.1], (1,), "float64").tolist() == [0.1]


@pytest.mark.parametrize("values, shape, dtype", [
    ([1.0], (2,), "float64"),
    ([1.0], (1, 1, 1, 1), "float64"),
    ([1.0], (1,), "bfloat16"),
])
def test_tensor_rejects(values, shape, dtype):
    with pytest.raises(ValueError):
        thunder.Tensor(values, shape, dtype)


def test_operations_have_samples():
    assert set(OPS) <= set(thunder.operations())


def test_unknown_executor():
    with pytest.raises(LookupError):
        thunder.executor("tpu")


@instantiate(ops=("add", "outer"), executors=(TORCH,))
def test_trace_is_reused(op, executor, dtype):
    """The same shapes do not record again, other values give other results."""
    function = thunder.jit(lambda *args: (thunder.apply(op.name, *args),), executor.name)
    first = function(*op.sample(dtype))
    other = tuple(make_tensor(shape, dtype, 50) for shape in op.shapes)
    second = function(*other)
    assert function.recordings == 1
    assert first[0].tolist() != second[0].tolist()
    assert close(second[0].tolist(), op.reference(*[t.tolist() for t in other]), dtype)


@instantiate(ops=("outer",), executors=(NVFUSER,), dtypes=(thunder.float32,))
def test_batching(op, executor, dtype):
    """A batch gives what its rows give one by one; only nvfuser batches, and only float32."""
    batch = 4
    residual = make_tensor((3, 3), dtype)
    args = tuple(make_tensor((batch,) + shape, dtype, 7 * i) for i, shape in enumerate(op.shapes))
    function = op.function(executor)
    out = function(residual, *args)[0]
    assert out.shape == (batch, 6, 5)
    gradients = function.vjp((residual,) + args, (out, residual, residual))
    assert function.trace.batched
    for n in range(batch):
        rows = [t.tolist()[n * t.shape[1]:(n + 1) * t.shape[1]] for t in args]
        row = out.tolist()[n * 30:(n + 1) * 30]
        assert close(row, op.reference(*rows), dtype)
        for t, wanted in zip(gradients[1:], op.gradient(row, *rows)):
            assert close(t.tolist()[n * t.shape[1]:(n + 1) * t.shape[1]], wanted, dtype)


@instantiate(ops=("dot",), executors=(NVFUSER,))
def test_rules_are_kept(op, executor, dtype):
    op.function(executor)(make_tensor((2, 2), dtype), *op.sample(dtype))
    assert f"{op.name}:{dtype}" in thunder.executor(executor.name).rules()


def test_wrong_operand_count():
    trace = thunder.Trace(thunder.executor("torch"))
    name = trace.input(make_tensor((2,), "float64"))
    with pytest.raises(TypeError):
        trace.apply("add", name)
    with pytest.raises(LookupError):
        trace.apply("neg", "t7")
