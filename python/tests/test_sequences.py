"""What follows an error, an interrupt or a second call: everything goes on as before."""
import os
import signal
import threading
import time

import numpy as np
import pytest

import tenon


def trainer():
    w = tenon.parameter([1.0, 2.0], "w")
    opt = tenon.Optimizer("sgd", [w], lr=0.5)

    @tenon.compile
    def step(x, ids):
        loss = (w * tenon.ops.take(x, ids)).sum()
        loss.backward()
        opt.step()
        return loss
    return w, opt, step


def test_a_step_after_an_error():
    w, opt, step = trainer()
    x, good, bad = tenon.tensor([2.0, 4.0]), tenon.tensor([0, 1]), tenon.tensor([0, 9])
    assert step(x, good).item() == 10 and w.tolist() == [0, 0]
    for _ in range(2):
        with pytest.raises(IndexError):
            step(x, bad).item()
        assert w.tolist() == [0, 0] and opt.steps == 1  # a step is done or not
    assert step(x, good).item() == 0 and w.tolist() == [-1, -2] and opt.steps == 2
    with pytest.raises(ValueError):
        step(tenon.zeros([2, 2, 2]), good)
    assert step(x, good).item() == -10 and opt.steps == 3


def test_an_error_at_the_first_call():
    w, opt, step = trainer()
    x = tenon.tensor([2.0, 4.0])
    with pytest.raises(IndexError):
        step(x, tenon.tensor([0, 9])).item()
    assert w.tolist() == [1, 2] and opt.steps == 0 and w.grad is None
    assert step(x, tenon.tensor([0, 1])).item() == 10 and opt.steps == 1


def test_backward_twice():
    w = tenon.parameter([1.0, 2.0])
    loss = (w * w).sum()
    loss.backward(keep=True)
    loss.backward()
    assert w.grad.tolist() == [4, 8]
    with pytest.raises(tenon.InvalidError):
        loss.backward()
    assert w.grad.tolist() == [4, 8] and loss.item() == 5
    (w * 3).sum().backward()
    assert w.grad.tolist() == [7, 11]


def interrupted(f, after=0.03):
    """f(), with a Ctrl-C on the way; whether it came before f had ended."""
    def press():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    t = threading.Thread(target=press)
    # a shell starts what it runs in the background with this signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    came = False
    try:
        t.start()
        f()
        t.join()
        time.sleep(0.2)
    except KeyboardInterrupt:
        came = True
    finally:
        t.join()
        signal.signal(signal.SIGINT, before)
    return came


def test_a_compile_after_ctrl_c(tmp_path):
    def work(x):
        y = x
        for i in range(30):
            y = tenon.sin(y * 0.5 + i) + tenon.softmax(x * i, axis=0)
        return y

    with tenon.Context(cache_dir=str(tmp_path)):
        f, x = tenon.compile(work), tenon.ones([48])
        assert interrupted(lambda: f(x).eval())
        got = np.asarray(f(x))
        assert f(x + 1).shape == (48,)
        assert (x * 2).tolist() == [2] * 48
    with tenon.Context(interp=True):
        want = np.asarray(work(tenon.ones([48])))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_one_compiled_function_in_two_threads():
    """Each thread records it in its own context; neither sees the other's tensors."""
    @tenon.compile
    def f(x, n):
        return {"y": (x * n).sum(), "n": n}

    wrong = []

    def work(n):
        try:
            for i in range(20):
                x = tenon.tensor([float(i), 1.0])
                out = f(x, n)
                assert out["y"].item() == n * (i + 1) and out["n"] == n
        except BaseException as e:  # noqa: B902
            wrong.append(e)
    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.n_recorded >= 2


def test_contexts_that_have_ended():
    """A function goes on in a new context, wherever Python puts that in memory."""
    @tenon.compile
    def f(x):
        return x + 1
    for i in range(20):
        with tenon.Context(interp=True):
            assert f(tenon.tensor([float(i)])).tolist() == [i + 1]
