#!/usr/bin/env python3
"""rows.py [--tenon FILE] [--old FILE] [--only TEXT] [--json]: finds slow rows.

Runs calls of operations on tensors of about a million elements, each as a
program of its own, forward and with its gradient, and prints a line for each:
nanoseconds for each element that is read or made, the slowest first. Rows that
are many times slower than their neighbours have no good schedule.

    bench/rows.py --only pool
    bench/rows.py --old old/tenon        the speed of this build / that of old

With --old, both programs run in turn, --pairs times; the median of the ratios
is printed, the smallest first. A program that takes more than a minute counts
as one that takes a minute.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

IMAGE = "x: f32[4,32,64,64]"
SQUARE = "x: f32[1024,1024]"
SHAPES = [(SQUARE, 1), (SQUARE, 0), ("x: f32[16,65536]", 1),
          ("x: f32[65536,16]", 0), ("x: f32[65536,16]", 1),
          ("x: f32[64,64,256]", 1)]
ELEMENTWISE = ["gelu(x)", "mish(x)", "glu(x)", "log_sigmoid(x)", "clip(x, lo=0)"]
REDUCTIONS = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_l2",
              "logsumexp", "reduce_var", "softmax", "cumsum", "cummax"]
IMAGES = [
    "transpose(x, perm=[0,2,3,1])", "transpose(x, perm=[3,2,1,0])",
    "flip(x, axes=[3])", "roll(x, axes=[2,3], shift=[5,7])",
    "pad(x, lo=[0,0,1,1], hi=[0,0,1,1])",
    "pad_edge(x, lo=[0,0,3,3], hi=[0,0,3,3])",
    "pad_reflect(x, lo=[0,0,3,3], hi=[0,0,3,3])",
    "pad_wrap(x, lo=[0,0,3,3], hi=[0,0,3,3])", "tile(x, reps=[1,1,2,2])",
    "repeat(x, axis=3, reps=3)", "tril(x)", "diagonal(x)",
    "space_to_depth(x, r=2)", "pixel_shuffle(x, r=4)",
    "channel_shuffle(x, groups=4)", "resize_nearest(x, size=[128,128])",
    "resize_nearest(x, size=[96,100])", "resize_linear(x, axis=3, size=128)",
    "resize_linear(x, axis=2, size=100)", "diff(x)",
    "slice(x, axes=[2,3], start=[1,1], count=[31,31], step=[2,2])",
    "unfold(x, kernel=[3,3], lo=[1,1], hi=[1,1])",
    "max_pool(x, kernel=[3,3], stride=[2,2], lo=[1,1], hi=[1,1])",
    "max_pool(x, kernel=[2,2], stride=[2,2])",
    "avg_pool(x, kernel=[3,3], stride=[2,2], lo=[1,1], hi=[1,1])",
    "lp_pool(x, kernel=[3,3], stride=[1,1])", "global_avg_pool(x)"]
CONV = "x: f32[4,32,32,32]\n w: f32[32,32,%s]"
DEPTH = "x: f32[4,64,32,32]\n w: f32[64,1,3,3]"
ROWS = "i: i64[4096]\n u: f32[4096,64]\n x: f32[30000,64]"
SEGMENTS = "x: f32[65536,64]\n i: i64[65536]"
OTHERS = [
    (CONV % "3,3", "conv(x, w, lo=[1,1], hi=[1,1])"),
    (CONV % "3,3", "conv(x, w, stride=[2,2], lo=[1,1], hi=[1,1])"),
    (CONV % "3,3", "conv_transpose(x, w, stride=[2,2])"),
    (CONV % "2,2", "conv_transpose(x, w, stride=[2,2])"),
    (CONV % "4,4", "conv_transpose(x, w, stride=[2,2], lo=[1,1], hi=[1,1])"),
    (DEPTH, "conv(x, w, groups=64, lo=[1,1], hi=[1,1])"),
    (DEPTH, "conv(x, w, groups=64, stride=[2,2], lo=[1,1], hi=[1,1])"),
    ("x: f32[512,512]\n y: f32[512,512]", "matmul(x, y)"),
    ("x: f32[4096,8,8]\n y: f32[4096,8,8]", "matmul(x, y)"),
    ("x: f32[512,64]\n y: f32[512,64]", "cdist(x, y)"),
    ("i: i64[4096]\n w: f32[30000,256]", "embedding(i, w)"),
    ("i: i64[512,16]\n w: f32[30000,256]", "embedding_bag(i, w)"),
    (ROWS.replace("u: f32[4096,64]\n ", ""), "take(x, i)"),
    ("x: f32[1024,1024]\n i: i64[512]", "take(x, i, axis=1)"),
    (ROWS, "scatter_add(x, i, u)"), (ROWS, "scatter_max(x, i, u)"),
    (ROWS, "scatter_set(x, i, u)"),
    (SEGMENTS, "segment_sum(x, i, count=70000)"),
    (SEGMENTS, "segment_mean(x, i, count=70000)"),
    (SEGMENTS, "segment_max(x, i, count=70000)"),
    ("i: i64[1048576]", "histogram(i, bins=2097152)"),
    ("x: f32[2,32,64,64]\n g: f32[2,64,64,2]", "grid_sample(x, g)"),
    ("x: f32[64,512,256]\n g: f32[256]\n b: f32[256]", "layer_norm(x, g, b)"),
    ("q: f32[8,256,64]\n k: f32[8,256,64]\n v: f32[8,256,64]",
     "attention(q, k, v, scale=0.125)"),
    ("x: f32[4096,1000]\n t: i64[4096]", "cross_entropy(x, t)"),
    ("x: f32[1024,512]\n u: f32[512]", "tanh_rnn(x, u)")]


def cases():
    for call in ELEMENTWISE:
        yield SQUARE, call
    for row in REDUCTIONS:
        for shape, axis in SHAPES:
            axes = f"axes=[{axis}]" if row[:3] in ("red", "log") \
                else f"axis={axis}"
            yield shape, f"{row}(x, {axes})"
    for call in IMAGES:
        yield IMAGE, call
    yield from OTHERS


def elements(text):
    n = 0
    for dims in re.findall(r"\w+: \w+\[([\d,]+)\]", text):
        p = 1
        for d in dims.split(","):
            p *= int(d)
        n += p
    return n


def run(tenon, path, cache):
    """Milliseconds of the fastest of five runs, and elements of outputs."""
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    try:
        r = subprocess.run([tenon, "run", path, "--repeat", "5", "--json"],
                           capture_output=True, text=True, env=env, timeout=60)
    except subprocess.TimeoutExpired:
        return 60e3, 0
    if r.returncode != 0:
        sys.exit(f"rows.py: {tenon} run: {r.stderr.strip()}")
    made = json.loads(r.stdout)
    n = 0
    for o in made["outputs"]:
        p = 1
        for d in o["shape"]:
            p *= d
        n += p
    return made["run_least_ms"], n


def measure(a, text, path, n, cache):
    """A dict of one program's figures."""
    with open(path, "w") as f:
        f.write(text)
    if a.old is None:
        ms, made = run(a.tenon, path, cache)
        return {"ms": ms, "ns": ms * 1e6 / (n + made)}
    ratio, ms = [], []
    for _ in range(a.pairs):
        old, _ = run(a.old, path, cache)
        new, _ = run(a.tenon, path, cache)
        ratio.append(old / max(new, 1e-6))
        ms.append(new)
    return {"ms": min(ms), "ratio": statistics.median(ratio)}


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--tenon", default="build/tenon", metavar="FILE")
    p.add_argument("--old", metavar="FILE")
    p.add_argument("--only", default="", metavar="TEXT")
    p.add_argument("--pairs", type=int, default=3, metavar="N")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    for tenon in filter(None, (a.tenon, a.old)):
        if not os.access(tenon, os.X_OK):
            sys.exit(f"rows.py: {tenon}: no such program; --tenon and --old "
                     "name a tenon that was built")
    found = []
    with tempfile.TemporaryDirectory() as d:
        for inputs, call in cases():
            if a.only not in call:
                continue
            path = os.path.join(d, "row.tn")
            text = f"program {{ {inputs}\n o = {call}\n return o }}\n"
            line = inputs.replace("\n", "") + "  " + call
            for part in ("forward", "gradient"):
                if part == "gradient":
                    r = subprocess.run(
                        [a.tenon, "explain", path, "--level=grad"],
                        capture_output=True, text=True)
                    if r.returncode != 0:
                        break
                    text = r.stdout
                one = measure(a, text, path, elements(inputs), d)
                found.append(dict(one, part=part, call=line))
                if sys.stderr.isatty():
                    print(f"\r{len(found)} measured", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if a.old is None:
        found.sort(key=lambda x: -x["ns"])
    else:
        found.sort(key=lambda x: x["ratio"])
    for x in found:
        if a.json:
            print(json.dumps(x))
            continue
        figure = x["ns"] if a.old is None else x["ratio"]
        print(f"{figure:9.2f} {x['ms']:9.2f} ms  {x['part']:8}  {x['call']}")


if __name__ == "__main__":
    main()
