"""Tenon: a tensor compiler and training runtime.

    >>> import tenon
    >>> x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x.T).softmax(axis=1).tolist()

Operations record and return; elements are computed when somebody looks at them, in
kernels that are compiled for the operations around. `tenon.ops` has every operation;
`tenon.compile` makes whole steps one call; docs/python.md says the rest.
"""
import os as _os
from typing import Sequence as _Sequence
from typing import Union as _Union

from . import _tenon

_tenon._set_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from ._tenon import *  # noqa: E402,F401,F403  (types, dtypes, errors)
from ._tenon import (  # noqa: E402
    Context, Error, Mesh, Operation, Optimizer, Program, Tensor, agree, asarray,
    current_context, devices, from_dlpack, load_safetensors, parameter,
    random_key, save_safetensors, shard_debug, shard_patience, shard_stats,
    shard_strict)
from . import ops  # noqa: E402
from ._compile import (  # noqa: E402
    Compiled, compile, cond, eval, grad, no_grad, scan, step, while_loop)
from ._methods import (  # noqa: E402
    all, amax, amin, any, astype, concatenate, einsum, full, matmul, maximum, mean,
    minimum, ones, prod, reshape, std, sum, transpose, var, zeros)
from ._explain import explain  # noqa: E402
from ._mesh import (  # noqa: E402
    MoveTime, Partial, Placement, Replicate, Shard, measure_move)
from . import nn, onnx  # noqa: E402

#: What is accepted where a tensor is: numbers, nested lists, buffers.
TensorLike = _Union[Tensor, float, int, bool, _Sequence]
#: "f32", "float32", float, numpy.float32 ...
DTypeLike = _Union[str, type, object]

__version__ = _tenon.version()


def tensor(x, dtype=None):
    """A tensor with the elements of x, which are copied.

    x: a number, nested lists, a tensor, or an object with the buffer protocol, such
    as an array of NumPy. Floats of Python become f32, ints i64, unless dtype says
    otherwise. `asarray` shares memory instead.
    """
    return Tensor(x, dtype)


def seed(n):
    """Random keys of this thread's context follow from n."""
    current_context().seed(n)


def op(text):
    """Defines an operation by its row, in this thread's context.

        >>> double = tenon.op("double(x[i..]) -> o { o[i..] = x[i..] * 2 }")
        >>> double(x)

    Shape, gradient, fusion and code are derived from the row (docs/notation.md).
    Operands are given by place, attributes by name.
    """
    name = text.replace("opaque ", "", 1).split("(", 1)[0].strip()
    return _tenon._define(text, name)


def program(text, file=None):
    """A program in the .tn language, from its text."""
    return _tenon._parse(text, file)


def load(path):
    """A program from a .tn file, or from an ONNX model."""
    path = _os.fspath(path)
    if path.endswith(".onnx"):
        return onnx.load(path)
    with open(path, encoding="utf-8") as f:
        return _tenon._parse(f.read(), path)


def __getattr__(name):
    # rows whose names are no functions of NumPy's: tenon.softmax
    value = getattr(ops, name, None)
    if value is None:
        raise AttributeError(f"module 'tenon' has no attribute {name!r}")
    return value
