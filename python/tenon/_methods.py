"""Methods of Tensor, and functions with NumPy's names, over the table of operations."""
import math

from . import ops
from ._tenon import Tensor


def _like(x):
    return x if isinstance(x, Tensor) else Tensor(x)


def _axes(axis):
    if axis is None:
        return None
    return [axis] if isinstance(axis, int) else list(axis)


def _reduction(name, row, doc):
    def f(x, axis=None, keepdims=False):
        return row(_like(x), axes=_axes(axis), keep=keepdims)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = (f"{doc} over axis (an integer or several; None: all). "
                 f"keepdims: axes stay, with extent 1. See ops.{row.__name__}.")
    return f


def _mean(x, axes=None, keep=False):
    x = _like(x)
    if not str(x.dtype).startswith(("f", "bf")):
        x = ops.cast(x, "f32")
    return ops.reduce_mean(x, axes=axes, keep=keep)


_mean.__name__ = "reduce_mean"

sum = _reduction("sum", ops.reduce_sum, "The sum")
prod = _reduction("prod", ops.reduce_prod, "The product")
mean = _reduction("mean", _mean, "The mean")
amax = _reduction("amax", ops.reduce_max, "The largest element")
amin = _reduction("amin", ops.reduce_min, "The least element")
all = _reduction("all", ops.reduce_all, "Whether all elements are true,")
any = _reduction("any", ops.reduce_any, "Whether any element is true,")


def var(x, axis=None, keepdims=False):
    """The variance over axis, of the whole population."""
    return ops.reduce_var(_like(x), axes=_axes(axis), keep=keepdims)


def std(x, axis=None, keepdims=False):
    """The standard deviation over axis, of the whole population."""
    return ops.reduce_std(_like(x), axes=_axes(axis), keep=keepdims)


def reshape(x, *shape):
    """x in another shape, as a view; one extent may be -1."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = shape[0]
    x, shape = _like(x), list(shape)
    if shape.count(-1) == 1:
        rest = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.size // rest if rest else 0
    return ops.reshape(x, shape=shape)


def transpose(x, *axes):
    """x with its axes in this order, as a view; none given: reversed."""
    x = _like(x)
    if len(axes) == 1 and not isinstance(axes[0], int):
        axes = axes[0]
    return ops.transpose(x, perm=list(axes) if axes else list(range(x.ndim))[::-1])


def astype(x, dtype):
    """x in another dtype."""
    return ops.cast(x, to=dtype)


def zeros(shape, dtype="f32"):
    """A tensor of zeros."""
    return ops.fill(shape=shape, value=0.0, dtype=dtype)


def ones(shape, dtype="f32"):
    """A tensor of ones."""
    return ops.fill(shape=shape, value=1.0, dtype=dtype)


def full(shape, value, dtype="f32"):
    """A tensor whose elements are all value."""
    return ops.fill(shape=shape, value=value, dtype=dtype)


def concatenate(tensors, axis=0):
    """Tensors joined along an axis."""
    return ops.concat(list(tensors), axis=axis)


def matmul(x, y):
    """The matrix product; leading axes broadcast; vectors as NumPy has them."""
    x, y = _like(x), _like(y)
    if x.ndim == 1 and y.ndim == 1:
        return ops.dot(x, y)
    if y.ndim == 1:
        return ops.matvec(x, y)
    if x.ndim == 1:
        return ops.matvec(transpose(y) if y.ndim == 2 else ops.transpose(
            y, perm=[*range(y.ndim - 2), y.ndim - 1, y.ndim - 2]), x)
    return ops.matmul(x, y)


def einsum(equation, *tensors):
    """Sums of products, as the equation says: "ij,jk->ik"."""
    return ops.einsum(list(tensors), equation=equation)


maximum, minimum = ops.max, ops.min

_PLAIN = ("sum prod mean var std all any reshape transpose astype").split()
_ROWS = """abs exp log sqrt tanh sin cos sigmoid relu softmax log_softmax argmax argmin
cumsum flatten squeeze unsqueeze flip roll broadcast_to clip copy take""".split()

for _name in _PLAIN:
    setattr(Tensor, _name, globals()[_name])
for _name in _ROWS:
    setattr(Tensor, _name, getattr(ops, _name))
# NumPy leaves operators of its arrays with tensors to the tensors
Tensor.__array_ufunc__ = None
Tensor.max, Tensor.min = amax, amin
Tensor.T = property(lambda x: transpose(x), doc="The axes reversed, as a view.")
Tensor.__iter__ = lambda x: (x[i] for i in range(len(x)))
Tensor.__matmul__ = matmul
Tensor.__rmatmul__ = lambda x, y: matmul(y, x)
