#!/usr/bin/env python3
"""lengths.py [--lengths N,N..] MODEL BUILD: memory of a model at many lengths.

Runs a model whose inputs are whole numbers [1,N] (tokens, a mask) in one process
with one length, the last, and in one with all of them (ten by default), all new,
and prints what each process has held at most (VmHWM of the kernel: weights that are
mapped count), and the ratio. BUILD is Tenon's build folder; its Python package is
used. Exit status 1: the ratio is above 1.3.

A BERT-base, in an environment with torch and transformers:

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel(transformers.BertConfig(), False)

        def forward(self, ids, mask):
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    one = torch.ones(1, 16, dtype=torch.int64)
    torch.onnx.export(Net().eval(), (one, one), "bert.onnx", opset_version=17,
                      dynamo=False, input_names=["ids", "mask"], output_names=["y"],
                      dynamic_axes={"ids": {1: "n"}, "mask": {1: "n"}})
"""
import argparse
import os
import subprocess
import sys

MOST = 1.3
LENGTHS = "16,24,32,48,64,80,96,112,120,128"


def held(what):
    with open("/proc/self/status", encoding="utf-8") as f:
        for line in f:
            if line.startswith(what + ":"):
                return int(line.split()[1]) / 1024
    raise SystemExit("lengths.py: /proc has no " + what)


def run(model, build, lengths):
    """In a process of its own: runs the model with each length."""
    sys.path.insert(0, os.path.join(build, "python"))
    import tenon

    net = tenon.onnx.load(model)
    for n in lengths:
        ones = tenon.ones([1, n], dtype="i64")
        (y, *_) = net(*[ones] * len(net.inputs))
        total = y.sum().item()
        if total != total:
            raise SystemExit("lengths.py: the output is NaN")
    print(held("VmHWM"), held("VmRSS"))


def measure(model, build, lengths):
    out = subprocess.run(
        [sys.executable, __file__, "--child", "--lengths",
         ",".join(map(str, lengths)), model, build],
        stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [float(x) for x in out[-2:]]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--lengths", metavar="N,N..", default=LENGTHS)
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("model", metavar="MODEL")
    p.add_argument("build", metavar="BUILD")
    o = p.parse_args()
    lengths = [int(n) for n in o.lengths.split(",")]
    if o.child:
        run(o.model, o.build, lengths)
        return 0
    one = measure(o.model, o.build, lengths[-1:])
    ten = measure(o.model, o.build, lengths)
    for name, v in (("one length", one), ("%d lengths" % len(lengths), ten)):
        print("%-12s %7.0f MB at most, %7.0f MB at the end" % (name, *v))
    print("ratio %.2f, %.2f" % (ten[0] / one[0], ten[1] / one[1]))
    return 1 if ten[0] > MOST * one[0] else 0


if __name__ == "__main__":
    sys.exit(main())
