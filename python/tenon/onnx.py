"""ONNX models.

    >>> model = tenon.onnx.load("resnet.onnx", dims={"batch": 4})
    >>> (y,) = model(x)
"""
import os

from ._tenon import _onnx

__all__ = ["load"]


def load(path, dims=None):
    """Reads a model as a tenon.Program.

    dims: sizes of dimensions that have a name, or of an axis as "x[0]". Without them a
    model whose shapes are not known is compiled for the shapes that it is called with,
    and then it has no gradient. Weights that nodes of the model make are parameters, too.
    """
    return _onnx(os.fspath(path), dims)
