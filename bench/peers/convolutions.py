#!/usr/bin/env python3
"""convolutions.py [--rounds N] [--case TEXT] BUILD: beside PyTorch, one thread.

Convolutions of ResNets, and their gradients by the input and by the weights, f32:
ours, and PyTorch's (oneDNN), in one process, in turn. A figure is the least
processor time of the rounds; ratio is the time of PyTorch divided by ours. The
script fails if a result is further from PyTorch's than 1e-4 of its largest element.
BUILD is Tenon's build folder; its Python package is used.
"""
import argparse
import os
import sys
import time

os.environ.setdefault("TENON_THREADS", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402

# images, channels, pixels a side, filters, filter's side, stride, border
SHAPES = [(2, 64, 56, 64, 3, 1, 1), (2, 128, 28, 128, 3, 1, 1),
          (2, 256, 14, 256, 3, 1, 1), (2, 512, 7, 512, 3, 1, 1),
          (2, 64, 56, 128, 3, 2, 1), (2, 256, 14, 512, 3, 2, 1),
          (2, 3, 224, 64, 7, 2, 3), (2, 64, 56, 128, 1, 2, 0),
          (4, 1024, 14, 2048, 1, 2, 0), (2, 256, 56, 64, 1, 1, 0)]


def ours(tenon, x, w, dy, stride, pad):
    """{name: function of no arguments that returns an array}"""
    tx, tw, tdy = (tenon.asarray(t.numpy()) for t in (x, w, dy))

    def conv(x, w):
        return tenon.ops.conv(x, w, stride=[stride] * 2, lo=[pad] * 2,
                              hi=[pad] * 2)

    @tenon.compile
    def forward(x, w):
        return conv(x, w)

    @tenon.compile
    def by_input(x, w, dy):
        x.requires_grad_()
        return tenon.grad((conv(x, w) * dy).sum(), [x])[0]

    @tenon.compile
    def by_weights(x, w, dy):
        w.requires_grad_()
        return tenon.grad((conv(x, w) * dy).sum(), [w])[0]

    return {"forward": lambda: np.asarray(forward(tx, tw)),
            "by input": lambda: np.asarray(by_input(tx, tw, tdy)),
            "by weights": lambda: np.asarray(by_weights(tx, tw, tdy))}


def theirs(x, w, dy, stride, pad):
    def backward(mask):
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1,
            mask)

    return {"forward": lambda: torch.nn.functional.conv2d(
                x, w, None, stride, pad).numpy(),
            "by input": lambda: backward([True, False, False])[0].numpy(),
            "by weights": lambda: backward([False, True, False])[1].numpy()}


def least(a, b, rounds):
    best = [float("inf")] * 2
    for _ in range(rounds):
        for i, f in enumerate((a, b)):
            began = time.process_time()
            f()
            best[i] = min(best[i], time.process_time() - began)
    return best


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--case", default="")
    p.add_argument("build")
    a = p.parse_args()
    sys.path.insert(0, os.path.join(a.build, "python"))
    import tenon

    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| convolution | what | ms | ms, PyTorch | ratio | GFLOP/s |\n"
          "|---|---|---|---|---|---|")
    logs = []
    for n, c, h, o, k, stride, pad in SHAPES:
        name = "%dx%d /%d, %dx%d@%d, %d" % (k, k, stride, n, c, h, o)
        if a.case not in name:
            continue
        x, w = torch.randn(n, c, h, h), torch.randn(o, c, k, k) * 0.05
        dy = torch.randn_like(torch.nn.functional.conv2d(x, w, None, stride,
                                                         pad))
        gflop = 2 * dy.numel() * c * k * k / 1e9
        us = ours(tenon, x, w, dy, stride, pad)
        them = theirs(x, w, dy, stride, pad)
        for what, f in us.items():
            got, want = f(), them[what]()
            off = np.abs(got - want).max() / np.abs(want).max()
            if not off < 1e-4:
                sys.exit("%s, %s: differs by %g" % (name, what, off))
            t = least(f, them[what], a.rounds)
            logs.append(np.log(t[1] / t[0]))
            print("| %s | %s | %.2f | %.2f | %.2f | %.0f |" % (
                name, what, 1e3 * t[0], 1e3 * t[1], t[1] / t[0],
                gflop / t[0]), flush=True)
    if logs:
        print("\nratio, geometric mean: %.2f" % np.exp(np.mean(logs)))


if __name__ == "__main__":
    main()
