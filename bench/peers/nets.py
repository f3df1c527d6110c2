#!/usr/bin/env python3
"""nets.py [--train] [OPTION]... TENON MODEL.onnx...: `tenon bench nets` and peers.

Prints Markdown tables and geometric means of the ratios: a peer's time over
ours. Peers are measured where they can be imported (`pip install numpy onnx
onnxruntime torch` into any environment, outside of the repository), each net
right after ours, with as many threads as there are CPUs; medians.

Without --train: inference, by ONNX Runtime and by PyTorch, eager; PyTorch's
net is compared with ONNX Runtime's first. With --train: a training step, by
PyTorch, eager and by torch.compile, each in a process of its own, with nothing
cached. `first`: the first step, with all that is compiled in it. MB: the most
that the process held. Losses of three steps from the same weights and data,
ours and PyTorch's, are compared first.
"""
import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

REPEAT = 15  # inferences
STEPS = 7
LIMIT = 600  # seconds of a process of PyTorch
READER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "onnx_torch.py")


def is_there(peer, *modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    for m in missing:
        print("without %s: no module %s" % (peer, m), file=sys.stderr)
    return not missing


def ours(*args):
    """What `tenon bench nets --json` prints; None: it failed."""
    r = subprocess.run(args, capture_output=True, text=True, check=False)
    if r.returncode != 0:
        print("%s: %s" % (args[3], r.stderr), file=sys.stderr)
        return None
    return json.loads(r.stdout)


def torch_peer(*args):
    """What onnx_torch.py prints, with an empty cache; None: it failed."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            r = subprocess.run(
                [sys.executable, READER, *map(str, args)], check=False,
                stdout=subprocess.PIPE, text=True, timeout=LIMIT,
                env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache))
        except subprocess.TimeoutExpired as e:
            print("PyTorch: %s" % e, file=sys.stderr)
            return None
    if r.returncode != 0:
        print("PyTorch: %s of %s failed" % (args[0], args[1]),
              file=sys.stderr)
        return None
    return json.loads(r.stdout)


def with_batch(path, batch):
    """The net with batches of that size, the name of its input, its shape."""
    import onnx

    model = onnx.load(path)
    known = {i.name for i in model.graph.initializer}
    port = [i for i in model.graph.input if i.name not in known][0]
    dims = port.type.tensor_type.shape.dim
    shape = [batch] + [d.dim_value for d in dims[1:]]
    dims[0].dim_value = batch
    for node in model.graph.node:  # a stored batch of 1 in Reshape
        for i in model.graph.initializer:
            if node.op_type == "Reshape" and node.input[1:] == [i.name]:
                v = onnx.numpy_helper.to_array(i).copy()
                if len(v) > 1 and v[0] == 1:
                    v[0] = batch
                    i.CopyFrom(onnx.numpy_helper.from_array(v, i.name))
    for o in model.graph.output:
        o.type.tensor_type.ClearField("shape")
    return model, port.name, shape


def onnx_peer(path, batch):
    """Seconds until a session is ready, and of one inference."""
    import numpy
    import onnxruntime

    model, name, shape = with_batch(path, batch)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = os.cpu_count()
    start = time.perf_counter()
    s = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"])
    ready = time.perf_counter() - start
    x = {name: numpy.random.rand(*shape).astype("float32")}
    times = []
    for _ in range(REPEAT + 2):
        start = time.perf_counter()
        s.run(None, x)
        times.append(time.perf_counter() - start)
    return ready, statistics.median(times[2:])


def head(*names):
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|", flush=True)


def means(ratios):
    """ratios: {(peer, batch): [ratio of each net]}"""
    print()
    for (peer, batch), v in ratios.items():
        mean = math.exp(sum(map(math.log, v)) / len(v))
        print("geometric mean of the ratios to %s, batch %d: %.2f" % (
            peer, batch, mean))


def name_of(r):
    return r["name"].replace("light_", "").replace(".onnx", "")


def infer(tenon, models, batches):
    has_onnx = is_there("ONNX Runtime", "numpy", "onnx", "onnxruntime")
    has_torch = is_there("PyTorch", "numpy", "onnx", "torch")
    ratios = {}
    head("net", "batch", "cold ms", "warm ms", "run ms", "MB",
         "peer ready ms", "peer run ms", "ratio", "PyTorch run ms", "ratio")
    for path, batch in ((p, b) for p in models for b in batches):
        r = ours(tenon, "bench", "nets", path, "--json", "--batch",
                 str(batch), "--repeat", str(REPEAT))
        if r is None:
            continue
        row = "| %s | %d | %.0f | %.0f | %.2f | %.0f |" % (
            name_of(r), batch, r["cold_ms"], r["warm_ms"], r["run_ms"],
            r["memory_mb"])
        if has_onnx:
            ready, run = onnx_peer(path, batch)
            ratio = 1e3 * run / r["run_ms"]
            ratios.setdefault(("ONNX Runtime", batch), []).append(ratio)
            row += " %.0f | %.2f | %.2f |" % (1e3 * ready, 1e3 * run, ratio)
        else:
            row += " - | - | - |"
        peer = torch_peer("infer", path, batch) if has_torch else None
        if peer is not None:
            ratio = 1e3 * peer["run"] / r["run_ms"]
            ratios.setdefault(("PyTorch", batch), []).append(ratio)
            row += " %.2f | %.2f |" % (1e3 * peer["run"], ratio)
        else:
            row += " - | - |"
        print(row, flush=True)
    means(ratios)


def same_losses(tenon, path, batch):
    """The same weights and data in ours and in PyTorch, or it is said."""
    with tempfile.TemporaryDirectory() as d:
        peer = torch_peer("losses", path, batch, d)
        if peer is None:
            return
        want = peer["losses"]
        r = subprocess.run(
            [tenon, "train", d + "/net.onnx", "--data", d, "--out",
             d + "/out.onnx", "--batch", str(batch), "--steps",
             str(len(want)), "--optimizer", "sgd_momentum", "--lr",
             str(peer["lr"]), "--json"], capture_output=True, text=True, check=False,
            env=dict(os.environ, XDG_CACHE_HOME=d))
    if r.returncode != 0:
        sys.exit("%s: %s" % (path, r.stderr))
    got = [json.loads(line)["loss"] for line in r.stdout.splitlines()]
    print("%s: losses of %d steps: ours %s, PyTorch %s" % (
        os.path.basename(path), len(want),
        " ".join("%.5f" % v for v in got),
        " ".join("%.5f" % v for v in want)), file=sys.stderr)
    # Gradients of a deep net in f32 are a percent apart, whoever rounds them:
    # so is how far the loss has moved.
    if not math.isclose(got[0], want[0], rel_tol=1e-4) or not all(
            math.isclose(a - got[0], b - want[0], rel_tol=0.05)
            for a, b in zip(got[1:], want[1:])):
        sys.exit("%s: the training steps are not the same" % path)


def step_row(tenon, path, batch, hows, rounds):
    """Medians of all rounds, each of ours and then each peer; None: none."""
    mine, peers = [], {how: [] for how in hows}
    for i in range(rounds):
        r = ours(tenon, "bench", "nets", path, "--train", "--json", "--batch",
                 str(batch), "--repeat", str(STEPS))
        if r is None:
            return None
        mine.append(r)
        for how in hows:
            if how == "compile" and i > 0:
                continue  # most of its time is the first step's
            m = torch_peer("train" if how == "eager" else how, path, batch)
            if m is not None:
                peers[how].append(m)
    return mine, peers


def train(tenon, models, batch, rounds, compiled, checked):
    hows = []
    if is_there("PyTorch", "numpy", "onnx", "torch"):
        hows = ["eager", "compile"] if compiled else ["eager"]
    ratios = {}
    if hows and checked:
        for path in models:
            same_losses(tenon, path, batch)
    head("net, a training step", "batch", "ours: step ms", "first ms", "MB",
         *(t for how in hows
           for t in ("%s: step ms" % how, "ratio", "first ms", "MB")))
    for path in models:
        both = step_row(tenon, path, batch, hows, rounds)
        if both is None:
            continue
        mine, peers = both
        step = statistics.median(r["step_ms"] for r in mine)
        row = "| %s | %d | %.1f | %.0f | %.0f |" % (
            name_of(mine[0]), batch, step,
            statistics.median(r["first_ms"] for r in mine),
            max(r["memory_mb"] for r in mine))
        for how in hows:
            m = peers[how]
            if not m:
                row += " - | - | - | - |"
                continue
            # MB as in ours: of 2^20 bytes
            peer = 1e3 * statistics.median(
                statistics.median(r["steps"]) for r in m)
            ratios.setdefault(
                ("PyTorch, " + how, batch), []).append(peer / step)
            row += " %.1f | %.2f | %.0f | %.0f |" % (
                peer, peer / step,
                1e3 * statistics.median(r["first"] for r in m),
                max(r["bytes"] for r in m) / 2**20)
        print(row, flush=True)
    means(ratios)


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tenon", metavar="TENON")
    p.add_argument("models", metavar="MODEL.onnx", nargs="+")
    p.add_argument("--train", action="store_true", help="a training step")
    p.add_argument("--batch", type=int,
                   help="this one alone (1 and 4; with --train: 4)")
    p.add_argument("--rounds", type=int, default=1,
                   help="with --train: ours and eager, one after the other, "
                        "so often; medians of the rounds")
    p.add_argument("--no-compile", action="store_true",
                   help="with --train: without torch.compile")
    p.add_argument("--no-check", action="store_true",
                   help="with --train: without the losses")
    o = p.parse_args()
    if o.train:
        train(o.tenon, o.models, o.batch or 4, o.rounds, not o.no_compile,
              not o.no_check)
    else:
        infer(o.tenon, o.models, [o.batch] if o.batch else [1, 4])


if __name__ == "__main__":
    main()
