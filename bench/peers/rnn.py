#!/usr/bin/env python3
"""rnn.py [--grad] [--steps N,N..] [--hidden N] [--rounds N] TENON: many steps.

Writes an LSTM and a GRU of each number of steps (batch 1, input half as wide as
the state) to a temporary folder, compares outputs with ONNX Runtime's, and
prints a Markdown table: compilation with an empty cache and from a full one,
one inference, and the memory of the process. All times are processor time of
one thread, user and system, the least of the rounds, ours and ONNX Runtime's in
turn: so they can be compared on a machine that does other things, too. Memory
of ONNX Runtime is what a process has more than one that only imports it.

`cold` and `warm`: a process that loads the model, compiles it and runs it once,
less one inference. The script fails if an output differs by more than 1e-5.

--grad: instead of an inference, the mean of the squares of the outputs and its
gradients by the input and all weights, beside PyTorch's LSTM and GRU with the same
numbers. The model is read by Tenon's Python package, which is that of the folder of
TENON. `cold` and `warm`: from the import to the first gradients (model, tensors,
compilation, one run), less a later run; `run`: the least of the later ones. Memory is
compared with a process that only imports. The script fails if a gradient is further
from that in f64 than 1e-4 of its largest element.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3}
STEPS = 40000  # in a process that is measured


def write(path, op, steps, hidden, grad=False):
    """The model, and its input beside it. grad: the weights are inputs, too, and
    all inputs are beside it as PATH.npz; a GRU is defined as PyTorch's."""
    r = np.random.default_rng(0)
    n = GATES[op]

    def draw(*shape):
        return (r.standard_normal(shape) / shape[-1] ** .5).astype(np.float32)

    def port(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weights = {"W": draw(1, n * hidden, hidden // 2),
               "R": draw(1, n * hidden, hidden), "B": draw(1, 2 * n * hidden)}
    x = draw(steps, 1, hidden // 2)
    more = {"linear_before_reset": 1} if grad and op == "GRU" else {}
    graph = helper.make_graph(
        [helper.make_node(op, ["X", "W", "R", "B"], ["Y"],
                          hidden_size=hidden, **more)], "g",
        [port("X", x.shape)] +
        [port(name, w.shape) for name, w in weights.items() if grad],
        [port("Y", None)],
        [] if grad else [numpy_helper.from_array(w, name)
                         for name, w in weights.items()])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    onnx.save(model, path)
    np.save(path + ".npy", x)
    if grad:
        np.savez(path + ".npz", X=x, **weights)


def most_held(pid):
    """MB that the process has held so far; None: it has ended."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def process(command, **env):
    """Seconds of processor time, MB. (ru_maxrss would count this process, of
    which that one is forked.)"""
    with open(os.devnull, "w", encoding="utf-8") as null:
        p = subprocess.Popen(command, stdout=null, stderr=null,
                             env=dict(os.environ, **env))
        mb = 0
        while True:
            pid, status, used = os.wait4(p.pid, os.WNOHANG)
            if pid != 0:
                break
            mb = max(mb, most_held(p.pid) or 0)
            time.sleep(0.001)
    if status != 0:
        sys.exit("failed: %s" % " ".join(command))
    return used.ru_utime + used.ru_stime, mb


def ours(tenon, path, out, more):
    """Seconds cold, warm, of an inference; MB."""
    run = [tenon, "run", path, "--input", "X=%s.npy" % path, "--output", out]
    with tempfile.TemporaryDirectory() as cache:
        env = {"XDG_CACHE_HOME": cache, "TENON_THREADS": "1"}
        cold, _ = process(run + ["--repeat", "1"], **env)
        warm, mb = process(run + ["--repeat", "1"], **env)
        many, _ = process(run + ["--repeat", str(1 + more)], **env)
    one = max(many - warm, 0) / more
    return cold - one, warm - one, one, mb


PEER = """
import sys, time, numpy, onnxruntime
path, n, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
x = numpy.load(path + ".npy")
if n > 0:
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = 1
    o.log_severity_level = 3
    s = onnxruntime.InferenceSession(path, o)
    for _ in range(n):
        y = s.run(None, {"X": x})[0]
    numpy.save(out, y)
"""


def theirs(path, out, more):
    """Seconds to load, of an inference; MB more than without a model."""
    def run(n):
        return process([sys.executable, "-c", PEER, path, str(n), out])

    none, few, many = run(0), run(1), run(1 + more)
    one = max(many[0] - few[0], 0) / more
    return few[0] - none[0] - one, one, few[1] - none[1]


def least(rows):
    return [min(x) for x in zip(*rows)]


# ---- gradients ----

OUR_GRAD = """
import sys, resource, numpy
sys.path.insert(0, sys.argv[1])
import tenon
path, n, out = sys.argv[2], int(sys.argv[3]), sys.argv[4]
took = []

def now(): # with that of the C compiler
    used = [resource.getrusage(who) for who in
            (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)

given = dict(numpy.load(path + ".npz"))
if n > 0:
    start = now()
    net = tenon.onnx.load(path)
    x = [tenon.tensor(given[k]).requires_grad_() for k in "XWRB"]

    @tenon.compile
    def gradients(*x):
        y = net(*x)[0]
        return tenon.grad((y * y).mean(), list(x))

    for _ in range(n):
        g = [numpy.asarray(a) for a in gradients(*x)]
        took.append(now() - start)
        start = now()
    numpy.savez(out, took=took, **dict(zip("XWRB", g)))
"""

PEER_GRAD = """
import sys, time, numpy, torch
op, path, n, out, kind = sys.argv[1:6]
now, took = time.process_time, []
torch.set_num_threads(1)
kind = getattr(torch, kind)
given = {k: torch.from_numpy(a).to(kind)
         for k, a in numpy.load(path + ".npz").items()}
hidden = given["R"].shape[2]
# PyTorch's order of gates, in those of ONNX: LSTM i f g o of i o f c, GRU r z n of z r h
order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}[op]

def gates(a):
    return a.view(len(order), hidden, -1)[order].reshape(a.shape)

def back(a):
    return a.view(len(order), hidden, -1)[numpy.argsort(order)].reshape(a.shape)

if int(n) > 0:
    net = getattr(torch.nn, op)(hidden // 2, hidden).to(kind)
    b = given["B"][0].chunk(2)
    parts = [gates(a) for a in (given["W"][0], given["R"][0], b[0], b[1])]
    with torch.no_grad():
        for p, a in zip(net.parameters(), parts):
            p.copy_(a)
    x = given["X"].requires_grad_()
    for _ in range(int(n)):
        start = now()
        loss = (net(x)[0] ** 2).mean()
        g = torch.autograd.grad(loss, [x, *net.parameters()])
        took.append(now() - start)
    w, r, b, c = (back(a) for a in g[1:])
    numpy.savez(out, took=took, X=g[0], W=w[None], R=r[None], B=torch.cat([b, c])[None])
"""


def our_grad(tenon, path, out, more):
    """Seconds cold, warm, of loss and gradients; MB that it needs more than a
    process that only imports."""
    python = os.path.join(os.path.dirname(os.path.abspath(tenon)), "python")

    def run(n):
        mb = process([sys.executable, "-c", OUR_GRAD, python, path, str(n),
                      out], **env)[1]
        return np.load(out)["took"] if n > 0 else None, mb

    with tempfile.TemporaryDirectory() as cache:
        env = {"XDG_CACHE_HOME": cache, "TENON_THREADS": "1"}
        none, cold, few, many = run(0), run(1), run(1), run(1 + more)
    one = min(many[0][1:])
    return (cold[0][0] - one, min(few[0][0], many[0][0]) - one, one,
            few[1] - none[1])


def their_grad(op, path, out, more):
    """Seconds of loss and gradients; MB more than a process that only imports."""
    def run(n, kind="float32"):
        mb = process([sys.executable, "-c", PEER_GRAD, op, path, str(n),
                      out, kind])[1]
        return np.load(out)["took"] if n > 0 else None, mb

    run(1, "float64")
    exact = dict(np.load(out))
    exact.pop("took")
    none, few, many = run(0), run(1), run(1 + more)
    return (min(many[0][1:]), few[1] - none[1]), exact


def gradients(op, steps, a, folder):
    """Prints the row of a table."""
    path = os.path.join(folder, "m.onnx")
    write(path, op, steps, a.hidden, grad=True)
    out, theirs_out = path + ".ours.npz", path + ".theirs.npz"
    x, y, more = [], [], max(STEPS // steps // 4, 2)
    for _ in range(a.rounds):
        x.append(our_grad(a.tenon, path, out, more))
        row, exact = their_grad(op, path, theirs_out, more)
        y.append(row)
    off = []
    for file in out, theirs_out:
        got = np.load(file)
        off.append(max(np.abs(got[k] - exact[k]).max() / np.abs(exact[k]).max()
                       for k in exact))
    if not off[0] < 1e-4:
        sys.exit("%s, %d steps: gradients differ by %g" % (op, steps, off[0]))
    x, y = least(x), least(y)
    print("| %s %d | %.0f | %.1f | %.1f | %.1f | %.2f | %.0f | %.0f | %.1e | "
          "%.1e |" % (op, steps, 1e3 * x[0], 1e3 * x[1], 1e3 * x[2],
                      1e3 * y[0], x[2] / max(y[0], 1e-9), x[3], y[1], *off),
          flush=True)


def inferences(op, steps, a, folder):
    """Prints the row of a table."""
    path = os.path.join(folder, "m.onnx")
    write(path, op, steps, a.hidden)
    x, y = [], []
    for _ in range(a.rounds):
        x.append(ours(a.tenon, path, folder, STEPS // steps))
        y.append(theirs(path, os.path.join(folder, "theirs.npy"),
                        STEPS // steps))
    off = np.abs(np.load(os.path.join(folder, "Y.npy")) - np.load(
        os.path.join(folder, "theirs.npy"))).max()
    if not off < 1e-5:
        sys.exit("%s, %d steps: outputs differ by %g" % (op, steps, off))
    x, y = least(x), least(y)
    print("| %s %d | %.0f | %.1f | %.1f | %.2f | %.2f | %.2f | %.0f | %.0f |" %
          (op, steps, 1e3 * x[0], 1e3 * x[1], 1e3 * y[0], 1e3 * x[2],
           1e3 * y[1], x[2] / max(y[1], 1e-9), x[3], y[2]), flush=True)


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--grad", action="store_true")
    p.add_argument("--steps", default="50,500,2000")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("tenon")
    a = p.parse_args()
    print("| net | cold ms | warm ms | run ms | run ms, PyTorch | ratio | MB | "
          "MB, PyTorch | off f64 | off f64, PyTorch |\n"
          "|---|---|---|---|---|---|---|---|---|---|" if a.grad else
          "| net | cold ms | warm ms | load ms, ORT | run ms | run ms, ORT | "
          "ratio | MB | MB, ORT |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for op in GATES:
            for steps in map(int, a.steps.split(",")):
                (gradients if a.grad else inferences)(op, steps, a, folder)


if __name__ == "__main__":
    main()
