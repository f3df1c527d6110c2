#!/usr/bin/env python3
"""torch_opinfo.py: PyTorch's own samples of its operators, through the backend of
torch.compile, forward and backward, f32.

    PYTHONPATH=build/python python bench/peers/torch_opinfo.py [--samples N] [--interp]
        [--only NAME,..] [--json FILE]

Every OpInfo of torch.testing that has f32 is taken; of each the first N samples (0: all).
A sample is equal if results and gradients are within PyTorch's tolerances of what eager
gives; exact if they are within them of what eager gives in f64, and eager's in f32 are not.
It counts for an operator of ATen if its graph is programs alone: what PyTorch ran
itself is counted beside. --interp computes by the interpreter of rows instead of by
compiled kernels, which is faster for thousands of small programs.
"""
import argparse
import collections
import json
import os
import sys
import time
import warnings

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from functorch.compile import aot_function, make_boxed_func  # noqa: E402
from torch._functorch.partitioners import min_cut_rematerialization_partition  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import tenon  # noqa: E402
import tenon.torch  # noqa: E402
from tenon.torch import _graph, _random, _table  # noqa: E402

# names of operators that give no numbers to compare: memory as it is, or random ones
# whose samples set no seed
NOT_COMPARED = ("empty", "rand", "normal", "uniform", "cauchy", "exponential",
                "geometric", "log_normal", "multinomial", "bernoulli", "dropout",
                "rrelu", "jiterator", "resize_", "to_sparse", "sparse", "svd_lowrank",
                "pca_lowrank", "fractional", "_scaled_mm", "_flash_attention",
                "_efficient_attention", "chalf", "cfloat", "cdouble")


def flat(x):
    return [t for t in pytree.tree_leaves(x) if isinstance(t, torch.Tensor)]


class Graphs:
    """What was compiled for one sample."""

    def __init__(self):
        self.plans = []

    def compile(self, gm, inputs):
        plan = _graph.prepare(gm)
        self.plans.append(plan)
        return make_boxed_func(lambda *args: plan(list(args)))

    def refused(self):
        return {str(n.target): why for p in self.plans for n, why in p.refused.items()
                if _table.operators.get(n.target, (None,))[0] is not _random.drawn
                and "getitem" not in str(n.target)}

    def written(self):
        return {str(n.target) for p in self.plans for n in p.calls()
                if n not in p.refused and n.target in _table.operators}


def differentiable(x):
    return x.requires_grad and x.dtype.is_floating_point


def gradients(outs, leaves):
    total = [o for o in outs if differentiable(o) and o.grad_fn is not None]
    if not total or not leaves:
        return []
    torch.manual_seed(7)
    seeds = [torch.randn(o.shape).to(o.dtype) for o in total]  # the same in f64
    return [g for g in torch.autograd.grad(total, leaves, seeds, allow_unused=True)]


def sides(op, sample):
    """f of the sample's tensors, and these."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def f(*tensors):
        mine = list(leaves)
        for i, t in zip(at, tensors):
            mine[i] = t
        x, args, kwargs = pytree.tree_unflatten(mine, spec)
        return flat(op(x, *args, **kwargs))

    return f, [leaves[i] for i in at]


def attempt(f, tensors):
    xs = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    torch.manual_seed(3)
    outs = f(*xs)
    return [o.detach() for o in outs], gradients(outs, [x for x in xs if differentiable(x)])


def plain(gm, inputs):
    return make_boxed_func(gm.forward)


def in_f64(op, sample, like):
    """What eager gives for the sample in f64, rounded to the dtypes of like; or None."""
    wide = sample.transform(lambda x: x.double() if isinstance(x, torch.Tensor)
                            and x.dtype == torch.float32 else x)
    f, tensors = sides(op, wide)
    tensors = [t.detach().requires_grad_(was.requires_grad)
               for t, was in zip(tensors, sides(op, sample)[1])]
    try:
        exact = attempt(f, tensors)
    except Exception:  # not every operator has f64
        return None
    return [[x if x is None else x.to(y.dtype) if y is not None else x
             for x, y in zip(a, b)] for a, b in zip(exact, like)]


def differs(want, have):
    """Results and gradients that are not within PyTorch's tolerances; None: all are."""
    try:
        for a, b in zip(want, have):
            for x, y in zip(a, b):
                if x is None or y is None:  # no gradient is one of zeros
                    assert not (y if x is None else x).any() if x is not y else True
                    continue
                torch.testing.assert_close(y, x, equal_nan=True)
    except AssertionError as e:
        return " ".join(str(e).split())[:300] or "a gradient is missing"
    return None


def try_sample(op, sample):
    """(verdict, why, operators): equal, exact, split, unequal or skipped."""
    f, tensors = sides(op, sample)
    if not tensors or any(t.is_complex() or t.layout != torch.strided for t in tensors):
        return "skipped", "no dense real tensors", set()
    try:
        want = attempt(f, tensors)
    except Exception as e:  # what eager does not do is not asked of us
        return "skipped", f"eager: {type(e).__name__}", set()
    if any(t.is_complex() for t in want[0]):
        return "skipped", "complex results", set()
    graphs = Graphs()
    g = aot_function(f, graphs.compile, graphs.compile, decompositions=_table.decompositions(),
                     partition_fn=min_cut_rematerialization_partition)
    try:
        have = attempt(g, tensors)
    except (tenon.Error, AssertionError, KeyError, IndexError, TypeError) as e:
        return "unequal", f"{type(e).__name__}: {str(e)[:300]}", set()
    except Exception as e:  # AOTAutograd cannot trace it: shapes that depend on data ..
        return "skipped", f"not traced: {type(e).__name__}: {str(e)[:80]}", set()
    why = differs(want, have)
    if why:
        if differs(want, attempt(aot_function(f, plain, plain), tensors)):
            return "skipped", "AOTAutograd alone gives other numbers (random ones)", set()
        exact = in_f64(op, sample, want)
        if exact and differs(exact, want) and not differs(exact, have):
            return "exact", why, graphs.written()
        return "unequal", why, graphs.written()
    if graphs.refused():
        return "split", str(graphs.refused())[:200], graphs.written()
    return "equal", "", graphs.written()


def run(op, n):
    counts, whys, ops = collections.Counter(), {}, set()
    samples = op.sample_inputs("cpu", torch.float32,
                               requires_grad=op.supports_autograd)
    for i, sample in enumerate(samples):
        if n and i >= n:
            break
        verdict, why, written = try_sample(op, sample)
        counts[verdict] += 1
        if verdict in ("equal", "exact", "split"):
            ops |= written
        if verdict != "equal":
            whys.setdefault(verdict, f"sample {i}: {why}")
    return counts, whys, ops


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", type=int, default=0)
    p.add_argument("--interp", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--seconds", type=float, default=0, help="stop after so many")
    p.add_argument("--json")
    a = p.parse_args()
    torch.set_num_threads(1)
    start, total, table, operators = time.time(), collections.Counter(), {}, set()
    with tenon.Context(threads=1, interp=a.interp):
        for op in op_db:
            if a.only and op.full_name not in a.only.split(","):
                continue
            if torch.float32 not in op.dtypes or any(s in op.full_name for s in NOT_COMPARED):
                continue
            if a.seconds and time.time() - start > a.seconds:
                print("stopped at", op.full_name)
                break
            try:
                counts, whys, ops = run(op, a.samples)
            except Exception as e:  # its samples cannot be made here
                counts, whys, ops = collections.Counter(), {"skipped": str(e)[:80]}, set()
            table[op.full_name] = (dict(counts), whys)
            total.update(counts)
            operators |= ops
            if set(counts) - {"equal"}:
                print(op.full_name, dict(counts), whys, flush=True)
    whole = {n: c for n, (c, _) in table.items() if not c.get("split", 0)
             and c.get("equal", 0) + c.get("exact", 0) + c.get("unequal", 0)}
    equal = sum(c.get("equal", 0) + c.get("exact", 0) for c in whole.values())
    unequal = sum(c.get("unequal", 0) for c in whole.values())
    print(f"{len(table)} OpInfos, {dict(total)}, {time.time() - start:.0f} s")
    print(f"{len(operators)} operators of ATen were rows in samples that are equal")
    print(f"{len(whole)} OpInfos are programs alone: {equal} of {equal + unequal} samples equal or exact "
          f"({100 * equal / max(equal + unequal, 1):.2f} %)")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"table": table, "operators": sorted(operators)}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
