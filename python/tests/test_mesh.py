"""Meshes and sharded tensors, on one process and on those of mpirun."""
import functools
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenon
from tenon import Partial, Replicate, Shard

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from mesh_cases import CASES, raises  # noqa: E402

SECONDS = 200  # of a run; it takes a few
# as root, with fewer processors than processes; a process that fails does not end others
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_orte_abort_on_non_zero_status": "0"}


def mpirun(n, *args):
    """What n processes have printed, and their status."""
    name = os.environ.get("TENON_MPIRUN", "mpirun")  # of another MPI library
    launcher = shutil.which(name)
    if launcher is None:
        pytest.skip(f"{name} is not installed")
    env = {**os.environ, **OPEN_MPI}
    loaded = env.pop("LD_PRELOAD", None)  # of the sanitizers: not for mpirun itself
    first = ["env", f"LD_PRELOAD={loaded}"] if loaded else []
    done = subprocess.run(
        [launcher, "-n", str(n), *first, sys.executable, *map(str, args)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    return done.stdout.decode(errors="replace"), done.returncode


@functools.cache
def cases_of(n):
    return mpirun(n, pathlib.Path(__file__).with_name("mesh_cases.py"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_case(n, name):
    if n == 1:
        with tenon.Context():
            CASES[name](tenon.Mesh(-1, "data"))
            assert tenon.shard_stats()["bytes_sent"] == 0
        return
    said, status = cases_of(n)
    assert said.count(name + " is fine") == n, said
    assert status == 0, said


def test_mesh():
    with tenon.Context() as c:
        m = tenon.Mesh((1, 1), ("data", "model"))
        assert (m.shape, m.names, m.size, m.rank, m.coordinate) == (
            (1, 1), ("data", "model"), 1, 0, (0, 0))
        assert repr(m) == "Mesh((1, 1), ('data', 'model'))" and m.context is c
        same, other = tenon.Mesh([1, 1], ["data", "model"]), tenon.Mesh(1)
        assert m == same and hash(m) == hash(same) and m != other and m != (1, 1)
        assert other.names == ("mesh_0",)
        x = tenon.ones([4])
    del c  # a mesh keeps its context, as tensors do
    assert m.context is x.context and x.shard_(m, [Shard(0), Replicate()]).tolist() == [1] * 4
    raises("shard.mesh", tenon.ones([4]).shard_, m, [Shard(0), Replicate()])
    gc.collect()  # what the tests of errors hold
    counts = sys.getrefcount(m.context), sys.getrefcount(m)
    for _ in range(1000):
        x.reshard(m, {"model": Shard(0)}).placement
        m.names, m.coordinate, repr(m), x.local()
        with pytest.raises(TypeError):
            x.reshard(m, [1, 2])
    gc.collect()
    assert (sys.getrefcount(m.context), sys.getrefcount(m)) == counts


def test_placements():
    assert Shard(0) == Shard(0) != Shard(1) and Shard(0) != Shard(0, 2) and Shard(0) != 0
    assert len({Shard(-1), Shard(-1), Replicate(), Replicate(), Partial(), Partial("sum")}) == 3
    assert [repr(p) for p in (Shard(1), Shard(1, 2), Replicate(), Partial("max"))] == [
        "Shard(1)", "Shard(1, 2)", "Replicate()", "Partial('max')"]


def test_without_a_mesh():
    x = tenon.tensor(np.arange(6.0).reshape(2, 3))
    assert x.placement == "replicated" and x.local().tolist() == x.full().tolist() == x.tolist()
    assert x.T.placement.startswith("view of ") and x.local_offset() == (0, 0)
    raises("shard.view", x[:, 1:].local)
    y = tenon.ones([3]).astype("bf16")
    assert y.set_local([1, 2, 3]).local().dtype == "bf16" and y.tolist() == [1, 2, 3]
    with pytest.raises(ValueError):
        tenon.shard_patience(-1)
    tenon.shard_patience(0)


def test_programs_without_processes():
    p = tenon.program("""program {
      x: f32[8,16] w: f32[16,64]
      y = matmul(x, w)
      return y }""")
    said = p.explain_shard("model=4", ["x=shard(0)@model"])
    assert "y: f32[8,64]  model: axis 0 by 2" in said and "nothing is moved" in said
    assert said == p.explain_shard("model=4", ["x=model: axis 0 by 2"])  # as x.placement says
    assert p.explain_shard("model=4", json=True).startswith("{")
    plan = p.plan_shards("data=2", 1e9)
    assert "data" in plan and plan == p.plan_shards("data=2", memory=1e9, link=10e9)
    for rule, f in (("shard.place", lambda: p.explain_shard("m=2", ["z=shard(0)@m"])),
                    ("shard.axis", lambda: p.explain_shard("m=2", ["x=shard(2)@m"])),
                    ("shard.mesh", lambda: p.explain_shard("m=0")),
                    ("shard.plan", lambda: p.plan_shards("m=2", -1))):
        raises(rule, f)
    raises("shard.memory", lambda: p.plan_shards("m=2", 10), kind=tenon.RangeError)
    for wrong in (3, [3], [None]):
        with pytest.raises(TypeError):
            p.explain_shard("m=2", wrong)
    with pytest.raises(ValueError):
        p.explain_shard("m=2", ["x=\0"])


def test_a_thread_of_its_own():
    found = []

    def work():
        m = tenon.Mesh(-1)
        found.append(tenon.ones([4]).shard_(m, Shard(0)).sum().item())
    t = threading.Thread(target=work)
    t.start()
    t.join()
    assert found == [4]


DOCS = """
import doctest, sys, tenon
failed, tried = doctest.testfile(sys.argv[1], module_relative=False, globs={"tenon": tenon})
assert failed == 0 and tried > 5
sys.stdout.write("as it says\\n")
"""


def test_docs(tmp_path):
    """The program of the document, on two processes."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()
    section = page.split("## Several processes\n", 1)[1].split("\n## ", 1)[0]
    (tmp_path / "section.md").write_text(section)
    (tmp_path / "docs.py").write_text(DOCS)
    said, status = mpirun(2, tmp_path / "docs.py", tmp_path / "section.md")
    assert said.count("as it says") == 2 and status == 0, said


FAILS = """
import sys, tenon
mesh = tenon.Mesh(-1, "data")
x = tenon.ones([8]).shard_(mesh, tenon.Shard(0))
if mesh.rank == 1:
    raise KeyError("one fails")
try:
    x.tolist()
except ConnectionError as e:
    open(sys.argv[1] + str(mesh.rank), "w").write(e.rule)
"""


def test_one_process_fails(tmp_path):
    """The others are told, and do not wait for the time that a lost one is given."""
    (tmp_path / "fails.py").write_text(FAILS)
    said, status = mpirun(2, tmp_path / "fails.py", tmp_path / "told")
    assert "one fails" in said and status != 0
    assert (tmp_path / "told0").read_text() == "shard.link", said
