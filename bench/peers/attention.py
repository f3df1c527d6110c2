#!/usr/bin/env python3
"""attention.py [--rounds N] [--case TEXT] [--train] BUILD: beside PyTorch, two threads.

Attention of 16 heads of 64 with as many queries as keys: ours, and PyTorch's
scaled_dot_product_attention, in one process, in turn; and attention spelled as
products and a softmax, in which nothing may have an element for each score. A figure
is the median of the rounds in ms; ratio is the time of PyTorch divided by ours. The
script fails if a result is further from PyTorch's in f32 than its dtype explains.
--train: the result and the gradients of queries, keys and values.
BUILD is Tenon's build folder; its Python package is used. TENON_THREADS is the number
of threads of both.
"""
import argparse
import os
import statistics
import sys
import time

THREADS = int(os.environ.setdefault("TENON_THREADS", "2"))

import torch  # noqa: E402

HEADS, WIDTH, SCALE = 16, 64, 0.125
LENGTHS = (1024, 2048, 4096, 8192)
FORMS = (("f32", False), ("f32", True), ("bf16", False), ("bf16", True),
         ("spelled f32", False))
BOUND = {torch.float32: 2e-5, torch.bfloat16: 2e-2}


def ours(tenon, form, causal, qkv):
    """A function of no arguments that returns a tensor."""
    q, k, v = (tenon.from_dlpack(t) for t in qkv)

    @tenon.compile
    def fused(q, k, v):
        return tenon.ops.attention(q, k, v, causal=causal, scale=SCALE)

    @tenon.compile
    def spelled(q, k, v):
        s = (q @ tenon.ops.transpose(k, perm=[0, 1, 3, 2])) * SCALE
        return tenon.ops.softmax(s, axis=3) @ v

    f = spelled if form.startswith("spelled") else fused
    return lambda: torch.from_dlpack(f(q, k, v))


def theirs(causal, qkv):
    return lambda: torch.nn.functional.scaled_dot_product_attention(
        *qkv, is_causal=causal, scale=SCALE)


def our_step(tenon, causal, qkv, g):
    q, k, v, g = (tenon.from_dlpack(t) for t in (*qkv, g))

    @tenon.compile
    def step(q, k, v, g):
        at = [x.detach().requires_grad_() for x in (q, k, v)]
        o = tenon.ops.attention(*at, causal=causal, scale=SCALE)
        return [o, *tenon.grad(tenon.ops.reduce_sum(o * g, axes=[0, 1, 2, 3]), at)]

    return lambda: [torch.from_dlpack(t) for t in step(q, k, v, g)]


def their_step(causal, qkv, g):
    at = [t.detach().requires_grad_() for t in qkv]

    def step():
        with torch.enable_grad():
            o = theirs(causal, at)()
            return [o, *torch.autograd.grad(o, at, g)]

    return step


def far(x, y):
    """How far x is from y, beside the largest value of y."""
    x, y = x.detach().float(), y.detach().float()
    return ((x - y).abs().max() / y.abs().max().clamp(min=1)).item()


def measure_step(tenon, form, causal, keys, rounds):
    dtype = torch.float32 if form.endswith("f32") else torch.bfloat16
    qkvg = [torch.randn(1, HEADS, keys, WIDTH).to(dtype) for _ in range(4)]
    wide = [t.float() for t in qkvg]
    a, b = our_step(tenon, causal, qkvg[:3], qkvg[3]), their_step(causal, qkvg[:3], qkvg[3])
    for x, y in zip(a(), their_step(causal, wide[:3], wide[3])()):
        if not far(x, y) <= BOUND[dtype]:
            sys.exit(f"{form}, {keys} keys: {far(x, y):g} from PyTorch's result in f32, more "
                     f"than {BOUND[dtype]:g}")
    return medians((a, b), rounds)


def medians(fs, rounds):
    times = [[] for _ in fs]
    for _ in range(rounds):
        for f, own in zip(fs, times):
            began = time.perf_counter()
            f()
            own.append(1e3 * (time.perf_counter() - began))
    return [statistics.median(own) for own in times]


def measure(tenon, form, causal, keys, rounds):
    dtype = torch.float32 if form.endswith("f32") else torch.bfloat16
    qkv = [torch.randn(1, HEADS, keys, WIDTH).to(dtype) for _ in range(3)]
    a, b = ours(tenon, form, causal, qkv), theirs(causal, qkv)
    exact = theirs(causal, [t.float() for t in qkv])()
    far = (a().float() - exact).abs().max().item()
    if not far <= BOUND[dtype]:
        sys.exit(f"{form}, {keys} keys: {far:g} from PyTorch's result in f32, more than "
                 f"{BOUND[dtype]:g}")
    return medians((a, b), rounds)


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", metavar="BUILD")
    p.add_argument("--train", action="store_true", help="with the gradients")
    p.add_argument("--rounds", type=int, default=5, metavar="N")
    p.add_argument("--case", default="", metavar="TEXT",
                   help="only rows whose name has this text")
    o = p.parse_args()
    if o.rounds < 1:
        p.error("--rounds must be at least 1")
    sys.path.insert(0, os.path.join(o.build, "python"))
    import tenon
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    ratios = []
    for form, causal in FORMS:
        for keys in LENGTHS:
            name = f"{form}{', causal' if causal else ''}, {keys}"
            if o.case not in name or (o.train and form.startswith("spelled")):
                continue
            with torch.no_grad():
                a, b = (measure_step if o.train else measure)(
                    tenon, form, causal, keys, o.rounds)
            ratios.append(b / a)
            print(f"{name:24} {a:9.1f} {b:9.1f}   {b / a:.2f}", flush=True)
    if not ratios:
        p.error(f"no row has {o.case!r} in its name")
    print(f"geometric mean of {len(ratios)}: "
          f"{statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
