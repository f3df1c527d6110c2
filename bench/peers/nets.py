#!/usr/bin/env python3
"""nets.py TENON MODEL.onnx...: `tenon bench nets` beside ONNX Runtime.

Prints a Markdown table. ONNX Runtime is measured where it can be imported
(`pip install numpy onnx onnxruntime` into any environment), each net right
after ours, with as many threads as there are CPUs; medians.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import time

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as e:
    onnxruntime = None
    print("without ONNX Runtime: %s" % e, file=sys.stderr)

REPEAT = 15


def peer(path, batch):
    """Seconds until a session is ready, and of one inference."""
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
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = os.cpu_count()
    start = time.perf_counter()
    s = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"])
    ready = time.perf_counter() - start
    x = {port.name: numpy.random.rand(*shape).astype("float32")}
    times = []
    for i in range(REPEAT + 2):
        start = time.perf_counter()
        s.run(None, x)
        times.append(time.perf_counter() - start)
    return ready, statistics.median(times[2:])


def main():
    tenon, models = sys.argv[1], sys.argv[2:]
    ratios = {}
    print("| net | batch | cold ms | warm ms | run ms | MB "
          "| peer ready ms | peer run ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in models:
        for batch in (1, 4):
            out = subprocess.run(
                [tenon, "bench", "nets", path, "--json", "--batch",
                 str(batch), "--repeat", str(REPEAT)],
                capture_output=True, text=True)
            if out.returncode != 0:
                print("%s: %s" % (path, out.stderr), file=sys.stderr)
                continue
            r = json.loads(out.stdout)
            name = r["name"].replace("light_", "").replace(".onnx", "")
            row = "| %s | %d | %.0f | %.0f | %.2f | %.0f |" % (
                name, batch, r["cold_ms"], r["warm_ms"], r["run_ms"],
                r["memory_mb"])
            if onnxruntime is None:
                row += " | | |"
            else:
                ready, run = peer(path, batch)
                ratio = 1e3 * run / r["run_ms"]
                ratios.setdefault(batch, []).append(ratio)
                row += " %.0f | %.2f | %.2f |" % (1e3 * ready, 1e3 * run, ratio)
            print(row, flush=True)
    for batch, v in ratios.items():
        mean = math.exp(sum(map(math.log, v)) / len(v))
        print("geometric mean of the ratios, batch %d: %.2f" % (batch, mean))


main()
