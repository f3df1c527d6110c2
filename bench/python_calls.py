#!/usr/bin/env python3
"""python_calls.py: what a call from Python costs.

    PYTHONPATH=build/python python3 bench/python_calls.py

Calls on tensors of four f32 elements that have been computed; they are recorded, not
run. Processor time of one thread, the least of fifteen runs of 5000 calls, in us; of a
compiled function with ten tensors the whole call. Exit status 1: one is over its limit.
"""
import sys
import time

import tenon

RUNS, CALLS = 15, 5000


def least(f):
    best = float("inf")
    for _ in range(RUNS):
        tenon.eval(f())  # what was recorded before is done
        start = time.thread_time_ns()
        for _ in range(CALLS):
            f()
        best = min(best, time.thread_time_ns() - start)
    return best / CALLS / 1e3


@tenon.compile
def ten(a, b, c, d, e, f, g, h, i, j):
    return a + b + c + d + e + f + g + h + i + j


def main():
    x, y = tenon.tensor([1.0, 2.0, 3.0, 4.0]), tenon.tensor([4.0, 3.0, 2.0, 1.0])
    tens = [tenon.tensor([float(i)] * 4) for i in range(10)]
    c = x > y
    tenon.eval(x, y, c, *tens)
    rows = tenon.ops
    over = 0
    print("| call | us | limit |\n|---|---|---|")
    for text, f, limit in (
            ("x + y", lambda: x + y, 1), ("ops.add(x, y)", lambda: rows.add(x, y), 1),
            ("x * 2.0", lambda: x * 2.0, 1), ("ops.exp(x)", lambda: rows.exp(x), 1),
            ("ops.where(c, x, y)", lambda: rows.where(c, x, y), 1),
            ("x[1:]", lambda: x[1:], 1),
            ("ops.softmax(x, axis=0)", lambda: rows.softmax(x, axis=0), 1),
            ("a compiled function of ten tensors", lambda: ten(*tens), 10)):
        us = least(f)
        over += us > limit
        print(f"| `{text}` | {us:.2f} | {limit} |", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
