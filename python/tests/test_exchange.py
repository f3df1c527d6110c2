"""Memory that is shared with others; threads, forks, signals."""
import gc
import pathlib
import os
import signal
import threading
import time

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32",
                                   "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
def test_numpy_and_back(dtype):
    a = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    for make in (tenon.tensor, tenon.asarray):
        x = make(a)
        assert np.asarray(x).dtype == a.dtype
        np.testing.assert_array_equal(np.asarray(x), a)
        np.testing.assert_array_equal(np.asarray(make(a.T)), a.T)
        np.testing.assert_array_equal(np.asarray(make(a[:, ::-2])), a[:, ::-2])


def test_shared():
    a = np.zeros((2, 3), "float32")
    x = tenon.asarray(a)
    x += 2
    x.eval()
    assert a.tolist() == [[2] * 3] * 2
    a[0, 0] = 9
    assert x[0, 0].item() == 9
    y = tenon.tensor(a)
    y.fill_(1).eval()
    assert a[0, 0] == 9  # a copy
    view = np.asarray(x)
    view[1, 2] = 4
    assert x[1, 2].item() == 4
    del a
    gc.collect()
    assert x.sum().item() == 9 + 2 * 4 + 4


def test_buffers():
    x = tenon.tensor([[1.0, 2.0]])
    m = memoryview(x)
    assert (m.shape, m.strides, m.format, m.itemsize, m.readonly) == ((1, 2), (8, 4), "f", 4, False)
    del x
    gc.collect()
    assert m.tolist() == [[1.0, 2.0]]  # the memory lives on
    m.release()
    with pytest.raises(BufferError):
        memoryview(tenon.ones([2], dtype="bf16"))
    frozen = np.ones(3, "float32")
    frozen.flags.writeable = False
    x = tenon.asarray(frozen)
    x.fill_(2).eval()
    assert frozen.tolist() == [1, 1, 1]  # what cannot be written is copied
    assert tenon.asarray(bytearray(b"ab")).tolist() == [97, 98]
    with pytest.raises(ValueError):
        tenon.tensor(np.zeros(2, "complex64"))
    with pytest.raises(ValueError):
        tenon.tensor(np.zeros((1,) * 9, "float32"))


def test_dlpack():
    a = np.arange(4, dtype="float32")
    x = tenon.from_dlpack(a)
    x *= 2
    x.eval()
    assert a.tolist() == [0, 2, 4, 6]
    b = np.from_dlpack(x)
    x.fill_(5).eval()
    assert b.tolist() == [5] * 4
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__()
    del x, capsule  # taken by nobody
    gc.collect()
    with pytest.raises(AttributeError):
        tenon.from_dlpack(3)


def test_dlpack_on_a_gpu(monkeypatch):
    """The other library is told for which stream the elements must be ready."""
    fake = pathlib.Path(tenon.__file__).resolve().parents[2] / "tests/fake"
    if not (fake / "libfake_cuda.so").exists():
        pytest.skip("the driver of the tests was not built")
    monkeypatch.setenv("TENON_CUDA_DRIVER", str(fake / "libfake_cuda.so"))
    monkeypatch.setenv("TENON_NVRTC", str(fake / "libfake_nvrtc.so"))
    streams = []

    class Other:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, stream=None):
            streams.append(stream)
            return x.__dlpack__(stream=stream)

    with tenon.Context(device="cuda"):
        x = tenon.tensor([1.0, 2.0])
        assert x.__dlpack_device__() == (2, 0)
        y = tenon.from_dlpack(Other())
        y += 1
        y.eval()
        assert x.tolist() == [2, 3]
    assert len(streams) == 1 and isinstance(streams[0], int) and streams[0] > 2


def test_views_are_copied_out():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.asarray(x.T)
    assert a.tolist() == [[1, 3], [2, 4]]


def test_threads():
    """Each thread has a context; one context may be used by several in turn."""
    shared = tenon.tensor([1.0, 2.0])
    wrong, contexts = [], set()

    def work(k):
        try:
            contexts.add(id(tenon.current_context()))
            x = tenon.tensor([float(k), 1.0])
            for _ in range(30):
                assert (x * 2).tolist() == [2.0 * k, 2.0]
                assert (shared + 1).tolist() == [2, 3]
            barrier.wait()
        except BaseException as e:  # noqa: B902
            wrong.append(e)
            barrier.abort()
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(contexts) == 4


def test_dropped_by_another_thread():
    c = tenon.current_context()
    before = c.stats()["tensors"]
    box = [tenon.ones([10]) for _ in range(50)]
    t = threading.Thread(target=box.clear)
    t.start()
    t.join()
    gc.collect()
    assert c.stats()["tensors"] <= before


def test_contexts_do_not_meet():
    x = tenon.ones([2])
    with tenon.Context():
        y = tenon.ones([2])
    with pytest.raises(tenon.InvalidError):
        x + y
    assert x.tolist() == y.tolist() == [1, 1]
    c = tenon.Context(interp=True)
    with c:
        assert tenon.current_context() is c
        assert (tenon.ones([2]) + 1).tolist() == [2, 2]
        with pytest.raises(tenon.InvalidError):
            c.__enter__()
    assert tenon.current_context() is not c
    with pytest.raises(tenon.Error):
        tenon.Context(device="none")


def test_fork():
    x = tenon.tensor([1.0, 2.0])
    assert (x + 1).tolist() == [2, 3]
    pid = os.fork()
    if pid == 0:
        good = False
        try:
            good = (x * 3).tolist() == [3, 6] and (x + 1).tolist() == [2, 3]
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert (x * 3).tolist() == [3, 6]


def test_ctrl_c():
    """It ends what is computed with KeyboardInterrupt, and everything can be used on."""
    x = tenon.ones([64])
    y = x
    for i in range(40):
        y = tenon.sin(y * (1.5 + i)) + x
    pid = os.getpid()

    def press():
        time.sleep(0.05)
        os.kill(pid, signal.SIGINT)
    t = threading.Thread(target=press)
    # a shell starts what it runs in the background with this signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            t.start()
            y.eval()
            t.join()
            time.sleep(1)
        t.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert np.isfinite(np.asarray(y)).all()
