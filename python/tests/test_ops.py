"""Rows against NumPy, on three shapes and two dtypes; gradients against differences."""
import math

import numpy as np
import pytest

import tenon
from tenon import ops

SHAPES = [(7,), (3, 5), (2, 3, 4)]
DTYPES = ["float32", "float64"]


def draw(shape, dtype, lo=-2.0, hi=2.0, seed=0):
    x = np.random.default_rng(seed).uniform(lo, hi, shape)
    # away from kinks and ties: no two elements are equal, none is near 0
    return (np.where(np.abs(x) < 0.05, 0.3, x)).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


_erf = np.vectorize(math.erf)

# name: (NumPy's function, lo, hi)
UNARY = {
    "exp": (np.exp, -2, 2), "log": (np.log, 0.1, 4), "sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4), "tanh": (np.tanh, -2, 2),
    "erf": (_erf, -2, 2), "sin": (np.sin, -3, 3), "cos": (np.cos, -3, 3),
    "tan": (np.tan, -1, 1), "asin": (np.arcsin, -0.9, 0.9),
    "acos": (np.arccos, -0.9, 0.9), "atan": (np.arctan, -3, 3),
    "sinh": (np.sinh, -2, 2), "cosh": (np.cosh, -2, 2),
    "asinh": (np.arcsinh, -2, 2), "acosh": (np.arccosh, 1.1, 4),
    "atanh": (np.arctanh, -0.9, 0.9), "log1p": (np.log1p, -0.5, 3),
    "expm1": (np.expm1, -2, 2), "abs": (np.abs, -2, 2), "neg": (np.negative, -2, 2),
    "recip": (np.reciprocal, 0.2, 3), "square": (np.square, -2, 2),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -3, 3),
    "softplus": (lambda x: np.log1p(np.exp(x)), -3, 3),
    "relu": (lambda x: np.maximum(x, 0), -2, 2),
    "silu": (lambda x: x / (1 + np.exp(-x)), -3, 3),
    "gelu": (lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))), -3, 3),
    "softsign": (lambda x: x / (1 + np.abs(x)), -3, 3),
    "softmax": (softmax, -3, 3), "log_softmax": (lambda x: np.log(softmax(x)), -3, 3),
    "flatten": (lambda x: x.reshape(x.shape[0], -1), -2, 2),
    "identity": (lambda x: x, -2, 2), "copy": (np.copy, -2, 2),
    "flip": (lambda x: np.flip(x, 0), -2, 2), "diff": (lambda x: np.diff(x, axis=-1), -2, 2),
    "cumsum": (lambda x: np.cumsum(x, axis=-1), -2, 2),
    "cummax": (lambda x: np.maximum.accumulate(x, axis=-1), -2, 2),
    "cummin": (lambda x: np.minimum.accumulate(x, axis=-1), -2, 2),
    "reduce_sum": (np.sum, -2, 2), "reduce_mean": (np.mean, -2, 2),
    "reduce_max": (np.max, -2, 2), "reduce_min": (np.min, -2, 2),
    "reduce_prod": (np.prod, 0.5, 1.5), "reduce_var": (np.var, -2, 2),
    "reduce_std": (np.std, -2, 2),
    "reduce_l1": (lambda x: np.abs(x).sum(), -2, 2),
    "reduce_l2": (lambda x: np.sqrt((x * x).sum()), -2, 2),
    "reduce_sumsq": (lambda x: (x * x).sum(), -2, 2),
    "logsumexp": (lambda x: np.log(np.exp(x).sum()), -2, 2),
}
LAST = {"axis": -1}  # attributes of rows along one axis
ATTRS = dict.fromkeys(["cumsum", "cummax", "cummin", "diff", "softmax",
                       "log_softmax", "argsort", "argmax", "argmin"], LAST)
ATTRS["flip"] = {"axes": [0]}
# no slope, or none that is of use
STEPS = {
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "sign": np.sign, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "argmax": lambda x: np.argmax(x, -1), "argmin": lambda x: np.argmin(x, -1),
    "argsort": lambda x: np.argsort(x, -1, kind="stable"),
    "count_nonzero": np.count_nonzero,
}
BINARY = {
    "add": (np.add, -2, 2), "sub": (np.subtract, -2, 2), "mul": (np.multiply, -2, 2),
    "div": (np.divide, 0.3, 2), "pow": (np.power, 0.3, 2), "max": (np.maximum, -2, 2),
    "min": (np.minimum, -2, 2), "atan2": (np.arctan2, 0.3, 2),
    "fmod": (np.fmod, 0.3, 2), "mod": (np.mod, 0.3, 2),
    "logaddexp": (np.logaddexp, -2, 2),
    "squared_difference": (lambda x, y: (x - y) ** 2, -2, 2),
}
COMPARE = {"lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}


def close(got, want, dtype):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    rtol = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name, dtype):
    f, lo, hi = UNARY[name]
    for shape in SHAPES:
        x = draw(shape, dtype, lo, hi)
        close(getattr(ops, name)(x, **ATTRS.get(name, {})), f(x.astype("float64")), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(STEPS))
def test_steps(name, dtype):
    for shape in SHAPES:
        x = draw(shape, dtype)
        got = np.asarray(getattr(ops, name)(x, **ATTRS.get(name, {})))
        np.testing.assert_array_equal(got, STEPS[name](x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary(name, dtype):
    f, lo, hi = BINARY[name]
    for shape in SHAPES:
        x, y = draw(shape, dtype, lo, hi), draw(shape[-1:], dtype, lo, hi, seed=1)
        close(getattr(ops, name)(x, y), f(x.astype("float64"), y.astype("float64")), dtype)


@pytest.mark.parametrize("name", sorted(COMPARE))
def test_compare(name):
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(-2, 3, shape).astype("float32")
        y = np.random.default_rng(1).integers(-2, 3, shape).astype("float32")
        got = np.asarray(getattr(ops, name)(x, y))
        assert got.dtype == bool
        np.testing.assert_array_equal(got, COMPARE[name](x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    for n in (1, 4, 9):
        x, y = draw((n, 3), dtype), draw((3, 5), dtype, seed=1)
        close(ops.matmul(x, y), x @ y, dtype)
        close(ops.outer(x[:, 0], y[0]), np.outer(x[:, 0], y[0]), dtype)
        close(ops.dot(x[:, 0], x[:, 1]), np.dot(x[:, 0], x[:, 1]), dtype)
        close(ops.kron(x, y), np.kron(x, y), dtype)
        close(tenon.einsum("ij,jk->ki", tenon.tensor(x), tenon.tensor(y)),
              np.einsum("ij,jk->ki", x, y), dtype)
        b = draw((2, n, 3), dtype)
        close(ops.matmul(b, y), b @ y, dtype)


def test_moves():
    x = draw((3, 4), "float32")
    cases = [
        (ops.reshape(x, [2, 6]), x.reshape(2, 6)),
        (ops.transpose(x, perm=[1, 0]), x.T),
        (ops.roll(x, axes=[1], shift=[1]), np.roll(x, 1, 1)),
        (ops.concat([x, x], axis=1), np.concatenate([x, x], 1)),
        (ops.stack([x, x], axis=0), np.stack([x, x])),
        (ops.tril(x), np.tril(x)), (ops.triu(x), np.triu(x)),
        (ops.tile(x, [2, 1]), np.tile(x, (2, 1))),
        (ops.broadcast_to(x, [2, 3, 4]), np.broadcast_to(x, (2, 3, 4))),
        (ops.pad(x, lo=[1, 0], hi=[0, 2]), np.pad(x, ((1, 0), (0, 2)))),
        (ops.take(x, [2, 0], axis=0), x[[2, 0]]),
        (ops.where(tenon.tensor(x) > 0, x, 0.0), np.where(x > 0, x, 0)),
        (ops.diagonal(x[:3, :3]), np.diagonal(x[:3, :3])),
        (ops.trace(x[:3, :3]), np.trace(x[:3, :3])),
        (ops.iota([3], dtype="i64"), np.arange(3)),
        (ops.eye(3, 4), np.eye(3, 4)),
        (ops.clip(x, lo=-0.5, hi=0.5), np.clip(x, -0.5, 0.5)),
        (ops.sort(x, axis=-1)[0], np.sort(x)), (ops.topk(x, count=2)[0], -np.sort(-x)[:, :2]),
        (ops.split(x, axis=1, parts=2)[1], x[:, 2:]), (ops.unbind(x)[2], x[2]),
        (ops.cross(x[:, :3], x[:, 1:]), np.cross(x[:, :3], x[:, 1:])),
    ]
    for got, want in cases:
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def slope(f, args, i, eps=1e-5):
    """The gradient of sum(f * weights) with respect to args[i], by differences."""
    weights = draw(np.shape(np.asarray(f(*args))), "float64", seed=9)
    g = np.zeros_like(args[i])
    for k in np.ndindex(g.shape):
        side = []
        for s in (eps, -eps):
            moved = [a.copy() for a in args]
            moved[i][k] += s
            side.append((np.asarray(f(*moved)) * weights).sum())
        g[k] = (side[0] - side[1]) / (2 * eps)
    return g, weights


@pytest.mark.parametrize("name", sorted(UNARY) + sorted(BINARY))
def test_gradients(name):
    row, attrs = getattr(ops, name), ATTRS.get(name, {})
    lo, hi = (UNARY.get(name) or BINARY[name])[1:]
    args = [draw((2, 3), "float64", lo, hi)]
    if name in BINARY:
        args.append(draw((2, 3), "float64", lo, hi, seed=5))
    for i in range(len(args)):
        want, weights = slope(lambda *a: row(*a, **attrs), args, i)
        tensors = [tenon.tensor(a).requires_grad_() for a in args]
        got = tenon.grad(row(*tensors, **attrs), tensors[i], tenon.tensor(weights))
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-6)


def test_every_row_is_there():
    assert len(ops.__all__) > 250
    for name in ops.__all__:
        row = getattr(ops, name)
        assert callable(row) and row.__doc__ and row.__text_signature__.startswith("(")


def test_rows_of_users():
    twice = tenon.op("py_twice(x[i..]) -> o { o[i..] = x[i..] * 2 }")
    x = tenon.tensor([1.0, 2.0]).requires_grad_()
    twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(tenon.InvalidError):
        tenon.op("py_wrong(x[i..]) -> o { o[i..] = y[i..] }")
