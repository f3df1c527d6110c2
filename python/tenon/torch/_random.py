"""Random numbers: PyTorch draws them, before the program that reads them, so they are
those that PyTorch would have drawn without a compiler. What is drawn must not depend
on data, only on shapes; operators that do are taken apart here."""
import torch

from ._text import Unsupported, builder

aten = torch.ops.aten


@builder
def drawn(b, n, row, *args, **kwargs):
    """Never written: _graph.py has PyTorch run it."""
    raise Unsupported("random numbers")


def native_dropout(x, p, train):
    if not train or p == 0:
        return x.clone(), torch.ones(x.shape, dtype=torch.bool, device=x.device)
    if p == 1:
        return torch.zeros_like(x), torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    mask = aten.bernoulli.p(
        aten.empty.memory_format(x.shape, dtype=torch.bool, device=x.device), 1 - p)
    return x * mask * (1 / (1 - p)), mask


def rand_like(x, dtype=None, layout=None, device=None, pin_memory=None,
              memory_format=None):
    return aten.rand.default(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def randn_like(x, dtype=None, layout=None, device=None, pin_memory=None,
               memory_format=None):
    return aten.randn.default(x.shape, dtype=dtype or x.dtype, device=device or x.device)


# the same functions past the dispatcher's way through Python
shorter = {aten.bernoulli.p: torch.bernoulli}

decompositions = {
    aten.native_dropout.default: native_dropout,
    aten.rand_like.default: rand_like,
    aten.randn_like.default: randn_like,
}
