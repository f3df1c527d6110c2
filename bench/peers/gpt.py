#!/usr/bin/env python3
"""gpt.py TENON [CASE]: `tenon bench train` beside PyTorch.

Prints a Markdown table: the same GPT (sizes, tied head, AdamW with clipping by
the norm of all gradients, f32, 4 sequences) in PyTorch, eager and compiled by
torch.compile, each case right after ours, with as many threads as there are
CPUs. first: from the import on to the end of the first step, everything
compiled that is to be compiled. MB: the most that the process held.
PyTorch is measured where it can be imported (`pip install torch` into any
environment, outside of the repository); else only ours is.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {"1m": (4, 4, 128, 256), "10m": (6, 6, 384, 256),
         "124m": (12, 12, 768, 50257)}
BATCH, REPEAT = 4, 7


def model(layers, heads, width, vocab, context):
    """A module from ids (b, t) and what follows them to the loss."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = (y.view(b, t, heads, w // heads).transpose(1, 2)
                       for y in self.qkv(self.norm1(x)).split(w, 2))
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
            h = f.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(h)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(vocab, width)
            self.place = nn.Embedding(context, width)
            nn.init.normal_(self.token.weight, std=0.05)
            nn.init.normal_(self.place.weight, std=0.05)
            self.block = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)

        def forward(self, ids, after):
            t = torch.arange(ids.shape[1])
            x = self.token(ids) + self.place(t)
            for block in self.block:
                x = block(x)
            x = f.linear(self.norm(x), self.token.weight)
            return f.cross_entropy(x.view(-1, vocab), after.reshape(-1))

    torch.manual_seed(0)
    return Gpt()


def peer(size, context, compiled):
    """One process: prints seconds to the end of the first step, of a step."""
    start = time.perf_counter()
    import resource

    import torch

    torch.set_num_threads(os.cpu_count())
    size = SIZES[size]
    net = model(*size, context)
    step = torch.compile(net) if compiled else net
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    ids = torch.randint(size[-1], (BATCH, context + 1))

    def one():
        loss = step(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        opt.step()
        opt.zero_grad()
        return loss.item()

    one()
    first = time.perf_counter() - start
    one()
    times = []
    for _ in range(REPEAT):
        at = time.perf_counter()
        one()
        times.append(time.perf_counter() - at)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"first": first, "step": statistics.median(times),
                      "bytes": 1024 * used}))


def measure(size, context, how):
    """The same in a new process, nothing cached; None: it failed."""
    with tempfile.TemporaryDirectory() as cache:
        r = subprocess.run(
            [sys.executable, __file__, "--peer", size, context, how],
            stdout=subprocess.PIPE, check=False, text=True,
            env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache))
    return json.loads(r.stdout) if r.returncode == 0 else None


def cells(m, ours):
    if m is None:
        return " - | - | - | - |"
    return " %.1f | %.2f | %.1f | %.0f |" % (
        1e3 * m["step"], m["step"] / ours["seconds"], m["first"],
        1e-6 * m["bytes"])


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "compile")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        import torch
        print("PyTorch %s, %d threads\n" % (torch.__version__, os.cpu_count()))
        hows = ["eager", "compile"]
    except ImportError as e:
        print("without PyTorch: %s" % e, file=sys.stderr)
        hows = []
    print("| case | ours: step ms | first s, cold | warm | MB |" + "".join(
        " %s: step ms | over ours | first s | MB |" % h for h in hows))
    print("|---" * (5 + 4 * len(hows)) + "|")
    for size in SIZES:
        for context in ("64", "256"):
            name = "gpt_%s_%s" % (size, context)
            if len(sys.argv) > 2 and sys.argv[2] not in name:
                continue
            out = subprocess.run(
                [sys.argv[1], "bench", "train", "--json", "--case", name,
                 "--repeat", str(REPEAT)], check=True,
                stdout=subprocess.PIPE, text=True).stdout
            ours = json.loads(out.splitlines()[0])
            line = "| %s | %.1f | %.1f | %.2f | %.0f |" % (
                name, 1e3 * ours["seconds"], ours["first_cold"],
                ours["first_warm"], 1e-6 * ours["bytes_process"])
            for how in hows:
                line += cells(measure(size, context, how), ours)
            print(line, flush=True)


if __name__ == "__main__":
    main()
