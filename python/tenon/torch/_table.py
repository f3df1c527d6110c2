"""The table of operators, aten.def, and what PyTorch decomposes: all else."""
import pathlib
import re

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from . import _attention, _bits, _elementwise, _index, _linear, _order  # noqa: F401
from . import _random, _reduce, _shape, _special  # noqa: F401
from ._text import builders

_LINE = re.compile(r'^OP\("([\w.]+)", (\w+), "([^"]*)"\)$')

def _operator(name):
    space, name = name.split(".", 1) if name.startswith("prims.") else ("aten", name)
    packet, overload = name.split(".")
    packet = getattr(getattr(torch.ops, space), packet, None)
    return getattr(packet, overload, None)


def _read():
    table = {}
    text = (pathlib.Path(__file__).parent / "aten.def").read_text(encoding="utf-8")
    for line in re.sub(r"/\*.*?\*/", "", text, flags=re.S).splitlines():
        if not line:
            continue
        name, f, words = _LINE.match(line).groups()
        op = _operator(name)
        if op is not None:  # this version of PyTorch has it
            table[op] = (builders[f], words)
    return table


def decompositions():
    """PyTorch's: of what is no core operator, and of core ones without a line."""
    aten = torch.ops.aten
    table = core_aten_decompositions()
    table.update(get_decompositions([
        getattr(aten, name) for name in _CORE if hasattr(aten, name)]))
    table = {op: f for op, f in table.items() if op not in operators}
    return table | _random.decompositions


_CORE = """native_layer_norm native_layer_norm_backward native_group_norm
native_group_norm_backward _native_batch_norm_legit
_native_batch_norm_legit_no_training _native_batch_norm_legit_functional
native_batch_norm native_batch_norm_backward native_dropout_backward baddbmm
upsample_bilinear2d upsample_nearest1d upsample_nearest2d upsample_nearest3d
upsample_linear1d upsample_trilinear3d upsample_bicubic2d
grid_sampler_2d col2im im2col reflection_pad1d_backward reflection_pad2d_backward
reflection_pad3d_backward glu glu_backward _softmax_backward_data
_log_softmax_backward_data nll_loss_forward nll_loss_backward lift _chunk_cat
_batch_norm_with_update_functional batch_norm_backward dist index_add
index_copy masked_fill addmv addr unfold unfold_backward _fused_rms_norm""".split()

operators = _read()
