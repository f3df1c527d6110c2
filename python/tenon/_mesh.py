"""Tensors on several processes: placements, and what they add to Tensor."""
import operator
from typing import NamedTuple

from . import _tenon
from ._tenon import Mesh, Tensor

_WHOLE, _SHARD, _PARTS = range(3)  # tn_placement_kind


class Placement:
    """What one axis of a mesh does to a tensor: Shard, Replicate or Partial."""

    __slots__ = ("_row",)

    def __eq__(self, other):
        return self._row == other._row if isinstance(other, Placement) else NotImplemented

    def __hash__(self):
        return hash(self._row)


class Shard(Placement):
    """Each process has a block of an axis of the tensor (-1: the last).

    block: indices of a process; 0: the least that is enough. Blocks need not divide the
    axis, and the last processes may have none. Two axes of the mesh may cut one axis of
    the tensor: the second cuts the blocks of the first.
    """

    __slots__ = ()

    def __init__(self, axis, block=0):
        self._row = (_SHARD, operator.index(axis), operator.index(block), None)

    def __repr__(self):
        _, axis, block, _ = self._row
        return f"Shard({axis})" if block == 0 else f"Shard({axis}, {block})"


class Replicate(Placement):
    """Each process has it all."""

    __slots__ = ()

    def __init__(self):
        self._row = (_WHOLE, 0, 0, None)

    def __repr__(self):
        return "Replicate()"


class Partial(Placement):
    """Each process has a part of a "sum", "prod", "max" or "min"."""

    __slots__ = ()

    def __init__(self, op="sum"):
        if not isinstance(op, str):
            raise TypeError(f"the name of an operation is expected, not {op!r}")
        self._row = (_PARTS, 0, 0, op)

    def __repr__(self):
        return f"Partial({self._row[3]!r})"


def _rows(mesh, placements):
    """What the extension takes: (kind, axis, block, op) of each axis of the mesh."""
    if not isinstance(mesh, Mesh):
        raise TypeError(f"a tenon.Mesh is expected, not {mesh!r}")
    names = mesh.names
    if isinstance(placements, Placement):
        placements = [placements]
    elif isinstance(placements, dict):
        for name in placements:
            if name not in names:
                raise ValueError(f"the mesh has no axis {name!r}: it has {names}")
        placements = [placements.get(name, Replicate()) for name in names]
    placements = list(placements)
    for p in placements:
        if not isinstance(p, Placement):
            raise TypeError(f"a placement is Shard(axis), Replicate() or Partial(op), not {p!r}")
    if len(placements) != len(names):
        raise ValueError(f"{len(placements)} placements are given for the axes {names}")
    return [p._row for p in placements]


def shard_(x, mesh, placements):
    """Says where the storage of x lies, and returns x.

    placements: one for each axis of the mesh, or a dictionary by the names of axes, whose
    others replicate. What is computed already is moved. All processes make the same call,
    with the same elements: each keeps what is its own.
    """
    return _tenon._shard(x, mesh, _rows(mesh, placements))


def reshard(x, mesh, placements):
    """x in another placement: a view of the same storage.

    Reading it makes a copy, once for each version of x; writing to it writes to x, where
    x lies. `shard_stats` counts both.
    """
    return _tenon._reshard(x, mesh, _rows(mesh, placements))


class MoveTime(NamedTuple):
    """How long a move takes, by all processes of a mesh together: `measure_move`."""

    name: str  # "all-gather", or what the move is in other words
    seconds: float  # the median of process 0
    mpi_seconds: float  # of the MPI call that does the same; 0: there is none
    bytes_sent: int  # by all processes
    bytes_least: int  # what any way of doing it sends


def measure_move(mesh, shape, before, after, repeat=9):
    """How long a matrix of f32 takes from one placement to another, as a MoveTime.

    shape: rows and columns. before, after: placements, as `shard_` takes them. repeat: how
    often it is moved. All processes make the same call, and get the same times.
    """
    rows, columns = map(operator.index, shape)
    return MoveTime(*_tenon._measure(mesh, rows, columns, _rows(mesh, before),
                                     _rows(mesh, after), operator.index(repeat)))


def local(x):
    """A copy of the part of x that this process has; computes x.

    It is a tensor of a context of its own (`x.local().context`), which knows no other
    process: it does not meet tensors of the mesh in one operation. A part that is not a
    range on each axis has one axis, in the order of the elements of x.
    """
    return _tenon._local(x)


def local_offset(x):
    """The index in x at which the part of this process begins; None: it is not a range
    on each axis. Computes x."""
    return _tenon._local_offset(x)


def set_local(x, value):
    """Writes the part of x that this process has, and returns x.

    value: of the shape of x.local(). Processes that have the same part must write the same.
    """
    return _tenon._set_local(x, value)


def full(x):
    """A copy of x of which every process has all."""
    return _tenon._full(x)


for _f in (shard_, reshard, local, local_offset, set_local, full):
    setattr(Tensor, _f.__name__, _f)
Tensor.placement = property(
    lambda x: _tenon._placement(x),
    doc="Where the elements lie, as text: \"data: axis 0 by 2\", or \"replicated\". "
        "Computes the tensor.")
