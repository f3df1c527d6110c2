"""The backend `tenon` of torch.compile.

    >>> import torch, tenon.torch
    >>> f = torch.compile(model, backend="tenon")

Graphs of PyTorch's operators, forward and backward (AOTAutograd), become programs:
aten.def has one line for each operator. Tensors stay PyTorch's: programs read and
write their memory. What no rows are known for runs in PyTorch, and is named in a
warning once. docs/torch.md says the rest.
"""
import torch
import torch._dynamo
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from . import _graph, _table

__all__ = ["backend", "operators", "programs", "report"]

#: The plans of the graphs that were compiled last, newest last.
_plans = []
KEPT = 64


def _compile(gm, example_inputs):
    run = _graph.prepare(gm)
    _plans.append(run)
    del _plans[:-KEPT]

    def call(args):
        given = list(args)
        args.clear()
        return run(given)

    call._boxed_call = True
    return call


_aot = aot_autograd(
    fw_compiler=_compile, decompositions=_table.decompositions,
    partition_fn=min_cut_rematerialization_partition,
    keep_inference_input_mutations=True)


def backend(gm, example_inputs, **options):
    """For torch.compile(backend="tenon"); there are no options."""
    if options:
        raise TypeError(f"tenon has no options {sorted(options)}")
    return _aot(gm, example_inputs)


def operators():
    """Names of PyTorch's operators that become rows, as aten.def has them."""
    return sorted(str(op) for op in _table.operators)


def _known():
    for p in _plans:
        yield from p.plans.values() if isinstance(p, _graph.Dynamic) else [p]


def programs():
    """The programs made by the last compilations, as text in the .tn language."""
    return [s.text for p in _known() for s in p.programs]


def report():
    """For each operator that runs in PyTorch in these compilations: why."""
    return {str(n.target): why for p in _known() for n, why in p.refused.items()}


if "tenon" not in torch._dynamo.list_backends(exclude_tags=()):
    torch._dynamo.register_backend(backend, name="tenon")
