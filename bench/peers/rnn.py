#!/usr/bin/env python3
"""rnn.py [--steps N,N..] [--hidden N] [--rounds N] TENON: recurrences of many steps.

Writes an LSTM and a GRU of each number of steps (batch 1, input half as wide as
the state) to a temporary folder, compares outputs with ONNX Runtime's, and
prints a Markdown table: compilation with an empty cache and from a full one,
one inference, and the memory of the process. All times are processor time of
one thread, user and system, the least of the rounds, ours and ONNX Runtime's in
turn: so they can be compared on a machine that does other things, too. Memory
of ONNX Runtime is what a process has more than one that only imports it.

`cold` and `warm`: a process that loads the model, compiles it and runs it once,
less one inference. The script fails if an output differs by more than 1e-5.
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


def write(path, op, steps, hidden):
    """The model, and its input beside it."""
    r = np.random.default_rng(0)
    n = GATES[op]

    def draw(*shape):
        return (r.standard_normal(shape) / shape[-1] ** .5).astype(np.float32)

    tensors = [numpy_helper.from_array(x, name) for name, x in (
        ("W", draw(1, n * hidden, hidden // 2)),
        ("R", draw(1, n * hidden, hidden)), ("B", draw(1, 2 * n * hidden)))]
    graph = helper.make_graph(
        [helper.make_node(op, ["X", "W", "R", "B"], ["Y"],
                          hidden_size=hidden)], "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT,
                                       [steps, 1, hidden // 2])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)], tensors)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    onnx.save(model, path)
    np.save(path + ".npy", draw(steps, 1, hidden // 2))


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


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", default="50,500,2000")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("tenon")
    a = p.parse_args()
    print("| net | cold ms | warm ms | load ms, ORT | run ms | run ms, ORT | "
          "ratio | MB | MB, ORT |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for op in GATES:
            for steps in map(int, a.steps.split(",")):
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
                    sys.exit("%s, %d steps: outputs differ by %g" % (
                        op, steps, off))
                x, y = least(x), least(y)
                print("| %s %d | %.0f | %.1f | %.1f | %.2f | %.2f | %.2f | "
                      "%.0f | %.0f |" % (
                          op, steps, 1e3 * x[0], 1e3 * x[1], 1e3 * y[0],
                          1e3 * x[2], 1e3 * y[1], x[2] / max(y[1], 1e-9), x[3],
                          y[2]), flush=True)


if __name__ == "__main__":
    main()
