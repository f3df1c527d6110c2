#!/usr/bin/env python3
"""few_rows.py [--rounds N] [--turned] [--size KxN] LIBTENON [LIBTENON ..]: few rows.

Products of 1 to 64 rows by matrices that are inputs of the program, in f32: those of
each library, and PyTorch's. --turned: the matrix is [n, k], as a linear layer has it.
In one process, one run each at a time, in another order in each round, so that all find
the caches alike; TENON_THREADS threads each. Prints the median of the rounds, and of
PyTorch's time to that of the last library. The results must agree.
"""
import argparse
import os
import random
import statistics
import time

import torch

from dots import NT, Tenon

SIZES = ("768x3072", "1024x4096", "4096x4096", "768x50304", "12288x4096", "4096x11008",
         "4096x12288")
ROWS = (1, 2, 4, 8, 16, 32, 64)


def program(m, n, k, turned):
    y = "%d,%d" % ((n, k) if turned else (k, n))
    return "%sprogram {\n x: f32[%d,%d]\n y: f32[%s]\n o = %s(x, y)\n return o\n}\n" % (
        NT if turned else "", m, k, y, "nt" if turned else "matmul")


def measure(calls, rounds):
    """The median of each call, in milliseconds."""
    times = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for i in random.sample(range(len(calls)), len(calls)):
            begin = time.perf_counter()
            calls[i]()
            times[i].append(time.perf_counter() - begin)
    return [statistics.median(t) * 1e3 for t in times]


def row(libraries, m, k, n, a):
    x, y = torch.randn(m, k), torch.randn(k, n)
    want = x @ y
    if a.turned:
        y = y.t().contiguous()
    calls = []
    for path in libraries:
        out = torch.empty(m, n)
        ours = Tenon(path, program(m, n, k, a.turned))
        ours.run(x, y, out)
        if (out - want).abs().max() > 1e-5 * k:
            raise SystemExit("few_rows: the results differ")
        calls.append(lambda ours=ours, out=out: ours.run(x, y, out))
    calls.append(lambda: torch.matmul(x, y.t() if a.turned else y))
    times = measure(calls, a.rounds)
    print("| %d x %d x %d | %s | %.2f |" % (
        m, k, n, " | ".join("%.2f" % t for t in times), times[-1] / times[-2]), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("libraries", nargs="+", metavar="LIBTENON")
    p.add_argument("--rounds", type=int, default=24)
    p.add_argument("--turned", action="store_true")
    p.add_argument("--size", action="append", help="KxN; may be given several times")
    a = p.parse_args()
    torch.set_num_threads(int(os.environ.get("TENON_THREADS", os.cpu_count() or 1)))
    for size in a.size or SIZES:
        k, n = (int(s) for s in size.split("x"))
        for m in ROWS:
            row(a.libraries, m, k, n, a)


if __name__ == "__main__":
    main()
