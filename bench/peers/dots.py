#!/usr/bin/env python3
"""dots.py [--rounds N] [--case NAME] LIBTENON: products of few bits.

Products of bf16, and of i8 and u8 with sums in i32, by one thread: ours, and
PyTorch's (oneDNN). In one process, in turn, one run each at a time; a figure is the
least processor time of the rounds. Integers must be equal, and bf16 differ by no
more than its last bit. LIBTENON is build/libtenon.so.
"""
import argparse
import ctypes
import time

import torch

INT = ("op mm(x[m, k]:int, y[k, n]:int) -> o "
       "{ o[m, n] += cast(x[m, k], i32) * cast(y[k, n], i32) }\n")
NT = ("op nt(x[m, k], y[n, k]) -> o { o[m, n] += x[m, k] * y[n, k] }\n")


class Tenon:
    """A program with two inputs and one output."""

    def __init__(self, path, text):
        self.lib = ctypes.CDLL(path)
        self.context, self.program = ctypes.c_void_p(), ctypes.c_void_p()
        self.lib.tn_context_diag.restype = ctypes.c_char_p
        self.need(self.lib.tn_context_new(ctypes.byref(self.context), None))
        data = text.encode()
        self.need(self.lib.tn_program_parse(
            ctypes.byref(self.program), self.context, data,
            ctypes.c_size_t(len(data)), b"dots"))

    def need(self, status):
        if status < 0:
            raise SystemExit("dots: a program of ours fails: %d" % status)

    def run(self, x, y, out):
        inputs = (ctypes.c_void_p * 2)(x.data_ptr(), y.data_ptr())
        outputs = (ctypes.c_void_p * 1)(out.data_ptr())
        self.need(self.lib.tn_program_run(self.program, inputs, outputs))


def program(op, t, x, y):
    return "%sprogram {\n x: %s[%d,%d]\n y: %s[%d,%d]\n o = %s(x, y)\n return o\n}\n" % (
        {"mm": INT, "nt": NT}.get(op, ""), t, *x.shape, t, *y.shape, op)


def cases():
    for m, n, k in ((1024, 1024, 1024), (64, 768, 768), (512, 2304, 768),
                    (512, 768, 3072)):
        x = torch.randn(m, k).bfloat16()
        y = torch.randn(k, n).bfloat16()
        yield ("bf16 %d x %d x %d" % (m, n, k), program("matmul", "bf16", x, y),
               x, y, lambda x, y: x @ y, torch.bfloat16)
        z = y.t().contiguous()
        yield ("bf16 %d x %d x %d, y turned" % (m, n, k),
               program("nt", "bf16", x, z), x, z,
               lambda x, y: x @ y.t(), torch.bfloat16)
        x = torch.randint(-128, 128, (m, k), dtype=torch.int8)
        y = torch.randint(-128, 128, (k, n), dtype=torch.int8)
        yield ("i8 %d x %d x %d" % (m, n, k), program("mm", "i8", x, y), x, y,
               torch._int_mm, torch.int32)


def seconds(run, times):
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--rounds", type=int, default=15)
    a.add_argument("--case", default="")
    a.add_argument("lib")
    a = a.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| product | ours, GFLOP/s | PyTorch's | ratio |\n|---|---|---|---|")
    for name, text, x, y, peer, out in cases():
        if a.case not in name:
            continue
        o = torch.empty(*peer(x, y).shape, dtype=out)
        ours = Tenon(a.lib, text)
        ours.run(x, y, o)
        want = peer(x, y)
        if out == torch.int32 and not torch.equal(o, want):
            raise SystemExit("dots: %s: the sums differ" % name)
        if not torch.allclose(o.float(), want.float(), rtol=2 ** -7, atol=.1):
            raise SystemExit("dots: %s: the results differ" % name)
        flops = 2 * x.shape[0] * x.shape[1] * o.shape[1]
        times = max(1, int(2e8 // flops))
        t = [[], []]
        for _ in range(a.rounds):
            t[0].append(seconds(lambda: ours.run(x, y, o), times))
            t[1].append(seconds(lambda: peer(x, y), times))
        t = [min(u) for u in t]
        print("| %s | %.0f | %.0f | %.2f |" % (
            name, flops / t[0] / 1e9, flops / t[1] / 1e9, t[1] / t[0]),
            flush=True)


if __name__ == "__main__":
    main()
