"""What all processes of a mesh do, each in a process of its own or one alone.

    mpirun -n 4 python3 mesh_cases.py    says "NAME is fine" for each case and process

Each case gets a mesh "data" of all processes. What is expected comes from a context that
knows no other process.
"""
import copy
import os
import pickle
import sys
import tempfile

import numpy as np
import pytest

import tenon
from tenon import Partial, Replicate, Shard

ROWS = np.arange(15, dtype="float32").reshape(5, 3)


def raises(rule, f, *args, kind=tenon.InvalidError):
    with pytest.raises(kind) as e:
        f(*args)
    assert e.value.rule == rule and e.value.file.endswith(".py") and e.value.line > 0


def rows_on(mesh):
    return tenon.tensor(ROWS).shard_(mesh, [Shard(0)])


def part(mesh):
    """The range of the five rows that this process has, and the longest of all."""
    block = -(-5 // mesh.size)
    return slice(min(5, mesh.rank * block), min(5, (mesh.rank + 1) * block)), block


def train(place):
    """Losses and weights of a few steps of a small net."""
    rng = np.random.default_rng(3)
    w = [tenon.parameter(rng.standard_normal(s).astype("f4"), n)
         for s, n in (((6, 8), "up"), ((8, 2), "down"))]
    opt = tenon.Optimizer("adamw", w, lr=0.05)
    x, y = (tenon.tensor(rng.standard_normal((10, n)).astype("f4")) for n in (6, 2))
    place(x, y, *w)

    @tenon.compile
    def step(x, y):
        loss = ((tenon.tanh(x @ w[0]) @ w[1] - y) ** 2).mean()
        loss.backward()
        opt.step()
        return loss
    losses = [step(x, y).item() for _ in range(6)]
    assert step.n_recorded == 1 and losses[-1] < losses[0]
    return losses, [p.tolist() for p in w]


def case_uneven_rows(mesh):
    x, (mine, block) = rows_on(mesh), part(mesh)
    here = x.local()
    assert here.shape == ROWS[mine].shape and here.tolist() == ROWS[mine].tolist()
    assert x.local_offset() == (mine.start, 0) or here.shape[0] == 0
    assert x.placement == ("replicated" if mesh.size == 1
                           else f"data: axis 0 by {block} of 5")
    assert x.shape == (5, 3) and x.tolist() == ROWS.tolist()
    assert x.full().placement == "replicated"
    assert x.full().tolist() == ROWS.tolist()
    assert x.full().local().shape == (5, 3)
    assert np.asarray(x).tolist() == ROWS.tolist()
    if mesh.size > 1:  # a copy
        np.asarray(x)[0] = 7
        assert x.tolist() == ROWS.tolist()


def case_placements_follow(mesh):
    x = rows_on(mesh)
    y = x.exp() * 2
    assert y.placement == x.placement
    assert (x.T + 1).placement == x.placement.replace("axis 0", "axis 1")
    assert x.sum(axis=0).placement == "replicated"
    assert x.sum(axis=0).tolist() == ROWS.sum(axis=0).tolist()
    x += 1
    assert x.placement == y.placement and x.tolist() == (ROWS + 1).tolist()


def case_views_in_another_placement(mesh):
    x = rows_on(mesh)
    columns = x.reshard(mesh, {"data": Shard(-1)})
    assert columns.tolist() == ROWS.tolist()
    before = tenon.shard_stats()
    columns += 1
    assert x.tolist() == (ROWS + 1).tolist()
    assert x.placement == rows_on(mesh).placement and x.local().tolist() == (
        ROWS[part(mesh)[0]] + 1).tolist()
    assert columns.copy().local().shape == (5, len(np.arange(3)[
        mesh.rank * -(-3 // mesh.size):(mesh.rank + 1) * -(-3 // mesh.size)]))
    after = tenon.shard_stats()
    assert after["write_backs"] >= before["write_backs"] and after["reads"] >= 1
    assert (after["bytes_sent"] > 0) == (mesh.size > 1)
    if mesh.size > 1:
        tenon.shard_strict(True)
        y = x.reshard(mesh, [Replicate()])
        raises("shard.strict", y.tolist)
        tenon.shard_strict(False)
        assert y.tolist() == x.tolist()


def case_each_process_writes_its_part(mesh):
    x, (mine, _) = tenon.zeros([5, 3]).shard_(mesh, Shard(0)), part(mesh)
    assert x.set_local(ROWS[mine]) is x
    assert x.tolist() == ROWS.tolist() and x.sum().item() == ROWS.sum()
    n = x.local().shape[0]
    raises("python.local", x.set_local, np.zeros((n + 1, 3), "f4"))
    raises("python.local", x.set_local, np.zeros((n,), "f4"))
    assert x.tolist() == ROWS.tolist()


def case_local_parts_are_of_another_context(mesh):
    x = rows_on(mesh)
    here = x.local()
    assert here.context is not x.context and here.context is rows_on(mesh).local().context
    assert (here * 2).tolist() == (ROWS[part(mesh)[0]] * 2).tolist()
    with pytest.raises(tenon.Error):
        x + here
    here.fill_(9)
    assert x.tolist() == ROWS.tolist()


def case_parts_of_sums(mesh):
    x = tenon.tensor(ROWS).shard_(mesh, Partial())
    assert "sum" in x.placement or mesh.size == 1
    assert x.tolist() == ROWS.tolist() and (x + 1).tolist() == (ROWS + 1).tolist()
    assert tenon.tensor(ROWS).shard_(mesh, Partial("max")).tolist() == ROWS.tolist()


def case_training(mesh):
    with tenon.Context():
        losses, weights = train(lambda *tensors: None)

    def by_rows(x, y, *w):
        x.shard_(mesh, Shard(0))
        y.shard_(mesh, Shard(0))

    def by_columns(x, y, up, down):
        up.shard_(mesh, Shard(1))
        down.shard_(mesh, Shard(0))

    for place in (by_rows, by_columns):
        got, w = train(place)
        assert got == pytest.approx(losses, rel=1e-4)
        for a, b in zip(w, weights):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def case_bytes_of_the_first(mesh):
    mine = bytearray([mesh.rank, 7, 2 * mesh.rank])
    assert mesh.broadcast(mine) is None and mine == bytearray([0, 7, 0])
    array = np.full((2, 3), mesh.rank + 1.5)
    mesh.broadcast(array)
    assert (array == 1.5).all()
    mesh.broadcast(bytearray())
    for wrong in (b"read only", [1, 2], array[:, 1]):
        with pytest.raises((TypeError, BufferError, ValueError)):
            mesh.broadcast(wrong)
    if mesh.size > 1:  # nothing is sent, and what comes next is as before
        raises("shard.differ", mesh.broadcast, bytearray(3 + mesh.rank))
        mesh.broadcast(mine)
        assert mine == bytearray([0, 7, 0])


def case_moves_are_measured(mesh):
    t = tenon.measure_move(mesh, (64, 32), Shard(0), {"data": Replicate()}, repeat=3)
    assert t.bytes_sent == t.bytes_least == 64 * 32 * 4 * (mesh.size - 1)
    assert t.name == ("nothing" if mesh.size == 1 else "all-gather") and t.mpi_seconds >= 0
    assert (t.seconds > 0) == (mesh.size > 1)
    if mesh.size > 1:
        raises("shard.op", tenon.measure_move, mesh, (8, 8), Replicate(), Partial())
    raises("shard.shape", tenon.measure_move, mesh, (0, 8), Shard(0), Shard(1))
    for wrong in ((8,), (8, 1.5), None):
        with pytest.raises((TypeError, ValueError)):
            tenon.measure_move(mesh, wrong, Shard(0), Shard(1))


def case_two_axes(mesh):
    two = tenon.Mesh((2 if mesh.size % 2 == 0 else 1, -1), ("a", "b"))
    assert two.size == mesh.size and two.rank == mesh.rank == (
        two.coordinate[0] * two.shape[1] + two.coordinate[1])
    x = tenon.tensor(np.ones((4, 4), "f4")).shard_(two, {"b": Shard(1), "a": Shard(0)})
    assert x.local().shape == (4 // two.shape[0], 4 // two.shape[1])
    y = tenon.tensor(np.arange(8.0)).shard_(two, [Shard(0), Shard(0)])
    assert y.local().shape == (8 // mesh.size,)
    assert y.local_offset() == (8 // mesh.size * mesh.rank,)
    assert (x @ x).sum().item() == 64 and y.sum().item() == 28


def case_copies_and_pickles(mesh):
    x = rows_on(mesh)
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert y.placement == x.placement and y.tolist() == ROWS.tolist()
    y = pickle.loads(pickle.dumps(x))  # what all have together, on each
    assert y.placement == "replicated" and y.tolist() == ROWS.tolist()
    with pytest.raises(TypeError):
        pickle.dumps(mesh)


def case_compiled_functions(mesh):
    x = rows_on(mesh)

    def columns(x):
        y = x * 2
        return y.shard_(mesh, Shard(1)), x.reshard(mesh, Shard(1)) + 1, x.full() * 3

    f = tenon.compile(columns)
    for _ in range(2):
        for y, want in zip(f(x), (ROWS * 2, ROWS + 1, ROWS * 3)):
            assert y.tolist() == want.tolist()
    y, _, whole = f(x)
    assert whole.placement == "replicated" and (mesh.size == 1 or "axis 1" in y.placement)
    for look in (lambda x: x.placement, lambda x: x.local(), lambda x: x.local_offset()):
        raises("compile.read", tenon.compile(lambda x: (look(x), x * 2)[1]), x)

    def double(x):
        return tenon.while_loop(lambda i: i.sum() < 200, lambda i: i * 2, x).tolist()
    if mesh.size > 1:
        raises("shard.region", double, x)
    else:
        assert double(x) == (ROWS * 2).tolist()
    assert double(x.full()) == (ROWS * 2).tolist()


def case_gradients(mesh):
    x = rows_on(mesh).requires_grad_()
    (x.reshard(mesh, Shard(1)).sin().sum() + (x.full() * 2).sum()).backward()
    np.testing.assert_allclose(x.grad.tolist(), np.cos(ROWS) + 2, rtol=1e-5, atol=1e-6)


def case_files_and_parameters(mesh):
    w = tenon.parameter(ROWS, "w").shard_(mesh, Shard(0))
    lies = w.placement
    path = os.path.join(tempfile.gettempdir(), f"tenon_mesh_{os.getppid()}_{mesh.size}.safetensors")
    tenon.save_safetensors(path, {"w": w})
    w.fill_(0)
    tenon.load_safetensors(path, {"w": w})
    assert w.tolist() == ROWS.tolist() and w.placement == lies and w.name == "w"
    other = copy.copy(w)
    assert other.placement == "replicated" and other.name == "w"
    assert other.tolist() == ROWS.tolist()
    if mesh.rank == 0:
        os.unlink(path)
    keys = tenon.uniform(tenon.random_key(), shape=[5, 3])
    tenon.agree("random numbers", str(keys.tolist()))


def case_bad_placements(mesh):
    x = tenon.tensor(ROWS)
    raises("shard.axis", x.shard_, mesh, [Shard(2)])
    raises("shard.block", x.shard_, mesh, [Shard(0, 4 // mesh.size)])
    raises("shard.block", x.shard_, mesh, [Shard(0, -1)])
    raises("shard.op", x.shard_, mesh, [Partial("mean")])
    if mesh.size > 1:  # along an axis of one process a part is the whole
        raises("shard.op", x.reshard, mesh, [Partial()])
    raises("shard.view", x[1:].shard_, mesh, [Shard(0)])
    raises("shard.inside", tenon.compile(lambda t: t.shard_(mesh, Shard(0))), x)
    for wrong in ([], [Shard(0), Shard(1)], {"model": Shard(0)}):
        with pytest.raises(ValueError):
            x.shard_(mesh, wrong)
    for wrong in (0, [0], [None], "data", Shard):
        with pytest.raises(TypeError):
            x.shard_(mesh, wrong)
    with pytest.raises(TypeError):
        x.shard_("data", [Shard(0)])
    for wrong in (lambda: Shard("0"), lambda: Shard(0, 1.5), lambda: Partial(3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(OverflowError):
        x.shard_(mesh, Shard(2 ** 40))
    with tenon.Context():
        raises("shard.mesh", tenon.tensor(ROWS).shard_, mesh, [Shard(0)])
    assert x.shard_(mesh, [Shard(0)]).tolist() == ROWS.tolist()
    if mesh.size > 1:
        raises("shard.conflict", x.shard_, mesh, [Shard(1)])


def case_bad_meshes(mesh):
    n = mesh.size
    for shape, names in (((n + 1,), None), ((n, 1), ("a", "a")), ((), None), ((-1, -1), None),
                         ((0,), None), ((1,) * 7, None), (n, ("a", "b")), (n, ()), (n, "a b")):
        raises("shard.mesh", tenon.Mesh, shape, names)
    for shape, names in (("data", None), (1.5, None), (n, 3), (n, (3,)), (n, (b"a",))):
        with pytest.raises(TypeError):
            tenon.Mesh(shape, names)
    with pytest.raises(ValueError):
        tenon.Mesh(n, "a\0b")
    assert tenon.Mesh(n, "data") == mesh


def case_what_all_say(mesh):
    tenon.agree("the seed", "5")
    if mesh.size > 1:
        raises("shard.differ", tenon.agree, "the rate", f"0.{mesh.rank}")
    tenon.shard_debug(True)
    assert rows_on(mesh).sum().item() == ROWS.sum()
    tenon.shard_debug(False)


CASES = {name[5:]: f for name, f in list(globals().items()) if name.startswith("case_")}

if __name__ == "__main__":
    everybody = tenon.Mesh(-1, "data")
    for name, f in CASES.items():
        f(everybody)
        sys.stdout.write(f"{name} is fine\n")  # one write: lines of all stay whole
        sys.stdout.flush()
