"""Rows called in other ways than test_rows.py does: products of batches, lists, views."""
import numpy as np
import pytest

import tenon
from tenon import ops


def draw(shape, dtype, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def close(got, want, dtype):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    rtol = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
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


def test_rows_of_users():
    twice = tenon.op("py_twice(x[i..]) -> o { o[i..] = x[i..] * 2 }")
    x = tenon.tensor([1.0, 2.0]).requires_grad_()
    twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(tenon.InvalidError):
        tenon.op("py_wrong(x[i..]) -> o { o[i..] = y[i..] }")
