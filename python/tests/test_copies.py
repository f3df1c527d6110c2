"""copy and pickle: of tensors, operations, layers and compiled functions."""
import concurrent.futures
import copy
import gc
import multiprocessing
import pickle
import sys

import numpy as np
import pytest

import tenon
from tenon import nn

DTYPES = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
          "bool"]
COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy,
          "pickle": lambda x: pickle.loads(pickle.dumps(x))}
# what a process of its own can find by name
double = tenon.op("double_of_tests(x[i..]) -> o { o[i..] = x[i..] * 2 }")


@tenon.compile
def twice(x):
    return x * 2


def triple(x):
    return x * 3


@pytest.fixture(params=COPIES)
def copied(request):
    return COPIES[request.param]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_elements(copied, dtype, shape):
    x = tenon.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2, dtype=dtype)
    y = copied(x)
    assert (y.dtype, y.shape, y.tolist()) == (dtype, shape, x.tolist())
    x.fill_(1)
    assert shape == (0, 2) or x.tolist() != y.tolist() or shape == ()
    y.fill_(0)
    assert shape != () or (x.item(), y.item()) == (1, 0)


def test_bits_of_bf16(copied):
    x = tenon.tensor([1.0, -2.5, 3e38, float("inf"), 1e-40]).astype("bf16")
    assert copied(x).tolist() == x.tolist()
    assert np.isnan(copied(tenon.tensor(float("nan"), dtype="f16")).item())


def test_views_get_memory_of_their_own(copied):
    x = tenon.tensor(np.arange(12, dtype="float32").reshape(3, 4))
    view = x.T[1:, ::-2]
    want = view.tolist()
    y = copied(view)
    y += 100
    x.fill_(7)
    assert (y - 100).tolist() == want and x.max().item() == 7


def test_pending_values(copied):
    x = tenon.tensor([1.0, 2.0])
    y = copied(x * 3 + 1)
    assert y.tolist() == [4, 7]
    with pytest.raises(IndexError):
        copied(tenon.ops.take(x, tenon.tensor([5]))).tolist()
    assert copied(x).tolist() == [1, 2]  # an error before leaves nothing


def test_what_is_trained_stays_so(copied):
    w = tenon.parameter([1.0, 2.0], "w")
    (w * w).sum().backward()
    v = copied(w)
    assert v.name == "w" and v.grad is None
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3, 3] and w.grad.tolist() == [2, 4]
    opt = tenon.Optimizer("sgd", [v], lr=1.0)
    opt.step()
    assert v.tolist() == [-2, -1] and w.tolist() == [1, 2]
    x = copied(tenon.tensor(2.0).requires_grad_())
    assert x.name is None and tenon.grad(x * x, x).item() == 4


def test_copies_of_what_is_computed_have_gradients():
    x = tenon.tensor([1.0, 2.0]).requires_grad_()
    copy.copy(x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_one_tensor_stays_one():
    w = tenon.parameter([1.0])
    for f in (copy.deepcopy, COPIES["pickle"]):
        a, b, c = f([w, w, w[:]])
        assert a is b and a is not w
        a += 1
        assert (b.tolist(), c.tolist(), w.tolist()) == ([2], [1], [1])


def test_layers(copied):
    net = nn.Sequential(nn.Linear(3, 4), tenon.tanh, double, nn.Dropout(0.0), nn.Linear(4, 2))
    x = tenon.ones([2, 3])
    other = copied(net)
    assert other(x).tolist() == net(x).tolist()
    if copied is not copy.copy:  # that copies the object of Python alone
        other.layers[0].weight.fill_(0)
        assert other(x).tolist() != net(x).tolist()
        assert list(other.named_parameters()) == list(net.named_parameters())
    tied = nn.Sequential(net.layers[0], net.layers[0])
    other = copied(tied)
    assert other.layers[0] is other.layers[1] and len(other.parameters()) == 2


def test_operations(copied):
    x = tenon.tensor([1.0, 2.0])
    assert copied(tenon.softmax)(x).tolist() == tenon.softmax(x).tolist()
    assert copied(double)(x).tolist() == [2, 4]
    same = tenon.op("double_of_tests(x[i..]) -> o { o[i..] = x[i..] * 2 }")
    assert same(x).tolist() == [2, 4]
    with pytest.raises(tenon.InvalidError):
        tenon.op("double_of_tests(x[i..]) -> o { o[i..] = x[i..] * 3 }")
    with pytest.raises(ValueError):
        tenon.op("double_of_tests\0")


def test_compiled(copied):
    assert copied(twice) is twice
    f = copied(tenon.compile(triple))
    assert f(tenon.tensor(2.0)).item() == 6


def test_in_a_recording():
    """Elements are not known there; a copy is an operation like others."""
    @tenon.compile
    def dumps(x):
        pickle.dumps(x)
        return x

    @tenon.compile
    def copies(x):
        y, z = copy.deepcopy(x), copy.copy(x)
        y += 1
        return y * z

    x = tenon.tensor([1.0, 2.0])
    for _ in range(2):
        with pytest.raises(tenon.InvalidError) as e:
            dumps(x)
        assert e.value.rule == "compile.read"
        assert copies(x).tolist() == [2, 6] and x.tolist() == [1, 2]
    pickle.dumps(x)


def test_what_cannot_be():
    ended = tenon.tensor([1.0])
    tenon.compile(lambda x: x + 1, donate=0)(ended)
    for f in COPIES.values():
        with pytest.raises(tenon.Error) as e:
            f(ended)
        assert e.value.rule in ("tensor.donated", "tensor.handle")
    w = tenon.parameter([1.0])
    for x in (tenon.current_context(), tenon.Optimizer("sgd", [w], lr=0.1),
              tenon.program("program {\n  x: f32[2]\n  return x\n}\n")):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(x)


@pytest.mark.parametrize("args", [
    ("f32", (2,), b"1234", 0, None), ("f32", (-1, -1), b"1234", 0, None),
    ("f32", (2 ** 40, 2 ** 40), b"", 0, None), ("none", (1,), b"1234", 0, None),
    ("f32", (1,) * 9, b"1234", 0, None), ("f32", (1.5,), b"1234", 0, None),
    ("i32", (1,), b"1234", 1, None), ("i32", (1,), "1234", 0, None)])
def test_pickles_that_lie(args):
    with pytest.raises((ValueError, TypeError)):
        tenon._tenon._unpickled(*args)
    assert tenon._tenon._unpickled("i32", (1,), b"\1\0\0\0", 77, None).tolist() == [1]


def test_contexts():
    """A copy stays in its context; a pickle is read into that of the reader."""
    x = tenon.tensor([1.0])
    data = pickle.dumps([x, double])
    with tenon.Context() as c:
        y, twice_as_much = pickle.loads(data)
        assert y.context is c and twice_as_much(y).tolist() == [2]
        assert copy.copy(x).context is x.context


def work(x):
    return double(x) + 1, str(x.dtype)


@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_processes(how):
    x = tenon.tensor([1.0, 2.0], dtype="bf16")
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context(how)) as pool:
        y, dtype = pool.submit(work, x).result(60)
    assert (y.tolist(), y.dtype, dtype) == ([3, 5], "bf16", "bf16")


def test_nothing_stays():
    """What stays is as much in each try; threads that end take or give some blocks once."""
    x, w = tenon.tensor([1.0, 2.0]), tenon.parameter([1.0])
    stats = tenon.current_context().stats
    more = []
    for n in (500, 500, 2000, 2000, 2000):
        gc.collect()
        before = sys.getallocatedblocks(), stats()["tensors"], sys.getrefcount(x)
        for _ in range(n):
            for y in (x, w):
                copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))
        gc.collect()
        more.append(sys.getallocatedblocks() - before[0])
        assert (stats()["tensors"], sys.getrefcount(x)) == before[1:]
    assert min(more[2:]) < 50
