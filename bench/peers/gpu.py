#!/usr/bin/env python3
"""gpu.py TENON [--small] [--seconds N] [--sass DIR]: `tenon bench gpu` beside PyTorch.

Prints a Markdown table of all our cases, then one of the same beside PyTorch, on the
first GPU. A case that fails or hangs is named, and the others go on. PyTorch's time is the better one of eager and torch.compile (which writes its kernels in
Triton); attention is its best one (FlashAttention or cuDNN), products are
cuBLAS. `of copy` and `of cuBLAS` are what `tenon bench gpu` says. After N
seconds (240) no further case begins, and what is left out is listed.
In DIR there is then the machine code (SASS) of each case that misses its goal, by
nvdisasm or cuobjdump, of CUDA's toolkit.
CASE_SECONDS (60) is what one of our cases may take, with compiling.
PyTorch is measured where it can be imported and has a GPU (`pip install torch`
into any environment, outside of the repository); else only ours is.
"""
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROW_SECONDS, REPEAT = 0.02, 7
CASE_SECONDS = float(os.environ.get("CASE_SECONDS", "60"))


def cases(torch):
    """name -> (function, inputs); the sizes are those of src/bench/gpu.c."""
    f = torch.nn.functional if torch is not None else None
    half, brain = "float16", "bfloat16"

    def normal(*shape, dtype="float32", grad=False):
        return torch.randn(*shape, device="cuda", requires_grad=grad,
                           dtype=getattr(torch, dtype))

    def pick(n, below):
        return torch.randint(below, (n,), device="cuda")

    def step(q, k, v, dy):
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(y, (q, k, v), dy)

    def product(m, n, k, t):
        return (lambda x, y: x @ y,
                lambda: (normal(m, k, dtype=t), normal(k, n, dtype=t)))

    def by_tf32(x, y):
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return x @ y
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    def wide(n=8192, m=8192):
        return lambda: (normal(n, m),)

    heads = (4, 16, 4096, 128)
    return {
        "relu_ax_b_plus_y": (
            lambda x, y, a, b: torch.relu(x * a + b) + y,
            lambda: (normal(8192, 8192), normal(8192, 8192), normal(8192),
                     normal(8192))),
        "bias_gelu_bf16": (
            lambda x, b: f.gelu(x + b),
            lambda: (normal(8192, 8192, dtype=brain),
                     normal(8192, dtype=brain))),
        "softmax_1024": (lambda x: torch.softmax(x, 1), wide(65536, 1024)),
        "softmax_8192": (lambda x: torch.softmax(x, 1), wide()),
        "softmax_65536": (lambda x: torch.softmax(x, 1), wide(1024, 65536)),
        "layer_norm_residual": (
            lambda x, r, g, b: f.layer_norm(x + r, (1024,), g, b),
            lambda: (normal(65536, 1024), normal(65536, 1024), normal(1024),
                     normal(1024))),
        "sum_rows": (lambda x: x.sum(1), wide()),
        "sum_columns": (lambda x: x.sum(0), wide()),
        "transpose": (lambda x: (-x.t()).contiguous(), wide()),
        "cumsum": (lambda x: x.cumsum(1), wide()),
        "embedding": (lambda i, w: f.embedding(i, w),
                      lambda: (pick(65536, 32768), normal(32768, 1024))),
        # by atomic operations: the sums differ from run to run
        "scatter_add": (lambda i, x, u: x.index_add(0, i, u),
                        lambda: (pick(65536, 32768), normal(32768, 1024),
                                 normal(65536, 1024))),
        "product_bf16_4096": product(4096, 4096, 4096, brain),
        "product_bf16_8192": product(8192, 8192, 8192, brain),
        "product_bf16_gpt": product(16384, 3072, 768, brain),
        "product_f16_2048": product(2048, 2048, 2048, half),
        "product_f32_4096": product(4096, 4096, 4096, "float32"),
        "product_tf32_4096": (
            by_tf32, lambda: (normal(4096, 4096), normal(4096, 4096))),
        "product_gelu_bf16": (
            lambda x, y, b: f.gelu(x @ y + b),
            lambda: (normal(16384, 768, dtype=brain),
                     normal(768, 3072, dtype=brain),
                     normal(3072, dtype=brain))),
        "attention_bf16": (
            lambda q, k, v: f.scaled_dot_product_attention(
                q, k, v, is_causal=True),
            lambda: tuple(normal(*heads, dtype=brain) for _ in range(3))),
        "attention_step_bf16": (
            step,
            lambda: tuple(normal(*heads, dtype=brain, grad=i < 3)
                          for i in range(4))),
        "conv_3x3_f16": (
            lambda x, w: f.conv2d(x, w, padding=1),
            lambda: (normal(64, 256, 28, 28, dtype=half),
                     normal(256, 256, 3, 3, dtype=half))),
    }


def timed(torch, fn, inputs):
    """Median seconds of a call."""
    def calls(n):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            fn(*inputs)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / n

    calls(2)
    n = min(int(ROW_SECONDS / calls(2)) + 1, 10000)
    return statistics.median(calls(n) for _ in range(REPEAT))


def peer(torch, name):
    """Seconds of the better one of eager and compiled, and which it is."""
    fn, make = cases(torch)[name]
    inputs = make()
    best = timed(torch, fn, inputs), "eager"
    try:
        best = min(best, (timed(torch, torch.compile(fn), inputs), "compile"))
    except Exception as e:  # eager remains
        print("torch.compile of %s: %s" % (name, str(e).splitlines()[0]),
              file=sys.stderr)
    del inputs
    torch.cuda.empty_cache()
    return best


def ours(command):
    """What `tenon bench gpu` says, or None."""
    try:
        r = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                           timeout=CASE_SECONDS)
        return json.loads(r.stdout) if r.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError, OSError) as e:
        print("%s: %s" % (" ".join(command), e), file=sys.stderr, flush=True)
        return None


def write_sass(tenon, name, folder):
    """The machine code of the case's kernels; what was left undone, or None."""
    tool = shutil.which("nvdisasm") or shutil.which("cuobjdump")
    if tool is None:
        return "neither nvdisasm nor cuobjdump is installed"
    how = [tool] if tool.endswith("nvdisasm") else [tool, "-sass"]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        # an empty cache gets what this case needs, and nothing else
        try:
            subprocess.run([tenon, "bench", "gpu", "--case", name, "--repeat", "1"],
                           stdout=subprocess.DEVNULL, timeout=CASE_SECONDS,
                           env=dict(os.environ, XDG_CACHE_HOME=cache))
        except subprocess.TimeoutExpired as e:
            return str(e)
        kept = sorted(os.path.join(at, f) for at, _, files in os.walk(cache)
                      for f in files if f.endswith(".gpu"))
        with open(os.path.join(folder, name + ".sass"), "wb") as out:
            for f in kept:
                r = subprocess.run(how + [f], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, timeout=CASE_SECONDS)
                if r.returncode != 0:
                    return r.stderr.decode(errors="replace").strip()
                out.write(r.stdout)
    return None if kept else "no machine code was kept"


def number(r, name, factor=1.0, form="%.2f"):
    return form % (r[name] * factor) if name in r else "-"


def load_torch(small):
    """PyTorch, or None, with the reason."""
    if small:
        return None, "extents are small"
    try:
        import torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        return (torch, "") if torch.cuda.is_available() else (None, "it has no GPU")
    except Exception as e:  # a library that it needs is missing, too
        return None, "it cannot be imported: %s" % e


def measure_ours(tenon, small, late, failed):
    """name -> what `tenon bench gpu` says, printed as a table."""
    print("| case | ms | GB/s | TFLOP/s | of copy or cuBLAS | goal |")
    print("|---" * 6 + "|", flush=True)
    out = {}
    for name in cases(None):
        if late():
            failed.append(name + " (no time)")
            continue
        r = ours([tenon, "bench", "gpu", "--json", "--case", name,
                  "--repeat", str(REPEAT)] + (["--small"] if small else []))
        if r is None:
            failed.append(name)
            continue
        out[name] = r
        print("| %s | %.4f | %s | %s | %s | %.2f |" % (
            name, 1e3 * r["seconds"], number(r, "bytes_per_s", 1e-9, "%.0f"),
            number(r, "flops_per_s", 1e-12, "%.1f"), number(r, "ratio"),
            r["target"]), flush=True)
    return out


def measure_peers(torch, rows, late, failed):
    """name -> PyTorch's time in those of ours, printed as a table."""
    print("\n| case | ms | PyTorch ms | ratio |\n" + "|---" * 4 + "|", flush=True)
    ratios = {}
    for name, r in rows.items():
        if late():
            failed.append(name + " of PyTorch (no time)")
            continue
        try:
            seconds, how = peer(torch, name)
        except Exception as e:  # its memory is full, a kernel is not there ..
            print("PyTorch, %s: %s" % (name, e), file=sys.stderr, flush=True)
            failed.append(name + " of PyTorch")
            continue
        ratios[name] = seconds / r["seconds"]
        print("| %s | %.4f | %.4f (%s) | %.2f |" % (
            name, 1e3 * r["seconds"], 1e3 * seconds, how, ratios[name]), flush=True)
    if ratios:
        print("\ngeometric mean of the ratios to PyTorch: %.2f" % math.exp(
            sum(map(math.log, ratios.values())) / len(ratios)))
    return ratios


def main():
    args = sys.argv[1:]
    small = "--small" in args
    if small:
        args.remove("--small")
    limit = 240.0
    if "--seconds" in args:
        i = args.index("--seconds")
        limit = float(args[i + 1])
        del args[i:i + 2]
    sass = None
    if "--sass" in args:
        i = args.index("--sass")
        sass = args[i + 1]
        del args[i:i + 2]
    if len(args) != 1:
        sys.exit(__doc__)
    began, failed, undone, ratios = time.monotonic(), [], [], {}

    def late():
        return time.monotonic() - began > limit

    rows = measure_ours(args[0], small, late, failed)
    torch, why = load_torch(small)
    if torch is None:
        print("\nPyTorch is not measured: " + why)
    else:
        ratios = measure_peers(torch, rows, late, undone)
    for what, which in (("failed", failed), ("not measured", undone)):
        if which:
            print("\n%s: %s" % (what, ", ".join(which)), flush=True)
    for name, r in rows.items() if sass is not None else ():
        if r.get("ratio", ratios.get(name, math.inf)) >= r["target"] or late():
            continue
        try:
            why = write_sass(args[0], name, sass)
        except (subprocess.TimeoutExpired, OSError) as e:
            why = str(e)
        print("\nmissed its goal: %s: %s" % (
            name, why or "its machine code is %s.sass" % name), flush=True)
    sys.exit(1 if failed else 0)


main()
