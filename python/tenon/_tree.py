"""Nested lists, tuples and dictionaries, as a flat list of tensors and the rest."""
from ._tenon import Tensor


class Leaf:
    """Where a tensor stood."""

    __slots__ = ()

    def __repr__(self):
        return "*"


LEAF = Leaf()


def flatten(x, leaves):
    """The structure of x, hashable if what is not a tensor is; tensors go to leaves."""
    if isinstance(x, Tensor):
        leaves.append(x)
        return LEAF
    if isinstance(x, (list, tuple)):
        return (type(x), tuple(flatten(e, leaves) for e in x))
    if isinstance(x, dict):
        return (dict, tuple((k, flatten(v, leaves)) for k, v in x.items()))
    return (None, type(x), x)


def unflatten(structure, leaves):
    """The opposite: leaves is an iterator of tensors."""
    if structure is LEAF:
        return next(leaves)
    kind = structure[0]
    if kind is None:
        return structure[2]
    if kind is dict:
        return {k: unflatten(s, leaves) for k, s in structure[1]}
    parts = [unflatten(s, leaves) for s in structure[1]]
    if hasattr(kind, "_fields"):  # a named tuple
        return kind(*parts)
    return kind(parts)
