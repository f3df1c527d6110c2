"""Every row of the table of operations, as a function.

    >>> from tenon import ops
    >>> ops.softmax(x, axis=1)

`help(ops.softmax)` shows the row: the one line that defines the operation, and from
which its gradient and its code are derived. Operands come first, then attributes,
in the row's order; attributes may also be given by name. Names that are words of
Python end in `_`: `ops.and_`.
"""
import keyword as _keyword

from ._tenon import _row, _row_names

__all__ = []
for _name in _row_names():
    _public = _name + "_" if _keyword.iskeyword(_name) else _name
    globals()[_public] = _row(_name)
    __all__.append(_public)
del _name, _public
