"""Loops whose rounds all read the same weights: kept copies of them are of the values that a
call is given, whatever came before it."""
import gc
import threading

import numpy as np
import pytest

import tenon
from tenon import ops


def recur(h, xs, w):
    def body(c, x):
        t = ops.tanh(ops.matmul(c, ops.transpose(w, perm=[1, 0])) + x)
        return t, None
    return tenon.scan(body, h, xs)[0]


def expected(h, xs, w):
    for x in xs:
        h = np.tanh(h @ w.T + x)
    return h


def drawn(n, k, seed):
    rng = np.random.default_rng(seed)
    return ((rng.standard_normal((k, k)) / k ** 0.5).astype("f4"),
            rng.standard_normal((1, k)).astype("f4"),
            rng.standard_normal((n, 1, k)).astype("f4"))


def check(y, h, xs, w):
    np.testing.assert_allclose(np.asarray(y), expected(h, xs, w), atol=1e-4)


@pytest.fixture(scope="module")
def compiled():
    return tenon.compile(recur)


# another size, and back
@pytest.mark.parametrize("k", [256, 128, 256, 64])
def test_weights_that_change_between_calls(compiled, k):
    w, h, xs = drawn(20, k, k)
    lent, state, inputs = (tenon.asarray(a) for a in (w, h, xs))
    check(compiled(state, inputs, lent), h, xs, w)
    w[:] = w[::-1].copy()  # by their owner
    check(compiled(state, inputs, lent), h, xs, w)
    own = tenon.tensor(w)
    check(compiled(state, inputs, own), h, xs, w)
    own[0] = tenon.zeros([k])
    w[0] = 0
    check(compiled(state, inputs, own), h, xs, w)
    with pytest.raises(tenon.Error):
        compiled(state, inputs, tenon.zeros([k, k + 1]))
    check(compiled(state, inputs, own), h, xs, w)
    del own, lent
    gc.collect()  # the next weights may have the same place in memory
    other = drawn(1, k, k + 1)[0]
    check(compiled(state, inputs, tenon.tensor(other)), h, xs, other)


def test_two_threads():
    errors = []

    def work(seed):
        try:
            with tenon.Context():
                f = tenon.compile(recur)
                for i in range(5):
                    w, h, xs = drawn(15, 256, 10 * seed + i)
                    check(f(tenon.tensor(h), tenon.tensor(xs), tenon.tensor(w)), h, xs, w)
        except BaseException as e:  # an assertion of a thread is lost otherwise
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_steps_of_the_weights_between_gradients():
    w, h, xs = drawn(20, 256, 3)
    weights = tenon.parameter(w)
    rng = np.random.default_rng(4)

    def loss(h, xs, w):
        return (expected(h, xs, w) ** 2).sum()

    for _ in range(3):
        y = recur(tenon.tensor(h), tenon.tensor(xs), weights)
        g = np.asarray(tenon.grad((y ** 2).sum(), [weights])[0])
        at = [a.astype("f8") for a in (h, xs, np.asarray(weights))]
        d = rng.standard_normal(w.shape)
        slope = (loss(at[0], at[1], at[2] + 1e-5 * d) -
                 loss(at[0], at[1], at[2] - 1e-5 * d)) / 2e-5
        assert (g * d).sum() == pytest.approx(slope, rel=1e-2, abs=1e-2)
        with tenon.no_grad():
            weights[:] = weights - 0.01 * tenon.tensor(g)
