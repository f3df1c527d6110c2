"""Reductions, and what runs along an axis."""
import math

from ._elementwise import out
from ._text import Unsupported, builder, is_float


def axes_of(x, dim, none_is_all=True):
    if dim is None or (none_is_all and not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.rank))
    return [dim] if isinstance(dim, int) else list(dim)


@builder
def total(b, n, row, x, dim=None, keepdim=False, dtype=None):
    return b.reduce("reduce_sum", b.cast(x, out(n)[0]), axes_of(x, dim), keepdim)


@builder
def mean(b, n, row, x, dim=None, keepdim=False, dtype=None):
    return b.reduce("reduce_mean", b.cast(x, out(n)[0]), axes_of(x, dim), keepdim)


@builder
def prod(b, n, row, x, dim=None, keepdim=False, dtype=None):
    return b.reduce("reduce_prod", b.cast(x, out(n)[0]), axes_of(x, dim), keepdim)


@builder
def extreme(b, n, rows, x, dim=(), keepdim=False):
    row = rows.split()[x.dtype == "bool"]
    return b.reduce(row, x, axes_of(x, dim), keepdim)


@builder
def truth(b, n, row, x, dim=None, keepdim=False):
    r = b.reduce(row, b.cast(x, "bool"), axes_of(x, dim), keepdim)
    return b.cast(r, out(n)[0])


def _flat(b, x):
    n = 1
    for e in x.shape:
        n *= e
    return b.reshape(x, (n,))


@builder
def arg_extreme(b, n, row, x, dim=None, keepdim=False):
    shape = out(n)[1]
    x = b.cast(x, "u8") if x.dtype == "bool" else x
    if dim is None or x.rank == 0:
        x, dim = _flat(b, x), 0
    dim %= x.rank
    short = [e for i, e in enumerate(x.shape) if i != dim]
    return b.reshape(b.one(row, [x], "i64", short, axis=dim), shape)


@builder
def with_index(b, n, row, x, dim, keepdim=False):
    v, _ = n.meta["val"]
    shape, was = tuple(v.shape), x.dtype
    x = b.cast(x, "u8") if was == "bool" else x
    if x.rank == 0:
        x = b.reshape(x, (1,))
    dim %= x.rank
    short = [e for i, e in enumerate(x.shape) if i != dim]
    m, k = b.call(row, [x], [(x.dtype, short), ("i64", short)], axis=dim)
    return [b.cast(b.reshape(m, shape), was), b.reshape(k, shape)]


@builder
def running(b, n, row, x, dim, dtype=None):
    x = b.cast(x, out(n)[0])
    if x.rank == 0:
        return x
    return b.one(row, [x], x.dtype, x.shape, axis=dim % x.rank)


@builder
def running_logsumexp(b, n, row, x, dim):
    """A scan: each is log(exp(x) + exp(the one before))."""
    if x.rank == 0:
        return x
    dim %= x.rank
    e = [f"e{a}" for a in range(x.rank)]
    at = ", ".join(e)
    before = ", ".join(f"{a} - 1" if i == dim else a for i, a in enumerate(e))
    p = f"(o[{before}] else -inf)"
    high = f"max(x[{at}], {p})"
    name = b.row(f"(x[{at}]:float) -> o {{ o[{at}] = {high} + sel(x[{at}] == {p}, "
                 f"{math.log(2)!r}, log1p(exp(-abs(x[{at}] - {p})))) }}")
    wide = b.one(name, [b.cast(x, "f64")], "f64", x.shape)  # as PyTorch carries it
    return b.cast(wide, x.dtype)


@builder
def histogram(b, n, row, x, bins=100, min=0, max=0):
    """Counts of elements; those outside of the range are in no bin."""
    x = _flat(b, x)
    if 0 in x.shape:
        return b.fill((bins,), 0, x.dtype)
    if min == max:  # the range is that of the elements, or 2 around one
        low, high = (b.reduce(r, x, [0], False) for r in ("reduce_min", "reduce_max"))
        one = b.map("eq", low, high, dtype="bool")
        low = b.where(one, b.map("sub", low, 1), low)
        high = b.where(one, b.map("add", high, 1), high)
    else:
        low, high = b.fill((), min, x.dtype), b.fill((), max, x.dtype)
    at = b.map("div", b.map("mul", b.map("sub", x, low), bins), b.map("sub", high, low))
    at = b.map("min", b.cast(b.map("floor", at) if is_float(x.dtype) else at, "i64"), bins - 1)
    inside = b.map("and", b.map("ge", x, low, dtype="bool"),
                   b.map("le", x, high, dtype="bool"))
    at = b.where(inside, at, b.fill((), -1, "i64"))
    name = b.row(f"(x[i]:num, k[i]:int) -> o {{ o[j] = cast(0, x) for j < {bins}; "
                 "o[k[i]] += cast(1, x) else skip }")
    return b.one(name, [x, at], x.dtype, (bins,))


@builder
def var(b, n, words, x, dim=None, correction=None, keepdim=False):
    correction = 1 if correction is None else correction
    axes = axes_of(x, dim)
    count = 1
    for a in axes:
        count *= x.shape[a] if x.rank else 1
    if correction != int(correction) or count < correction or x.rank == 0:
        raise Unsupported("variance with this correction")
    if not is_float(x.dtype):
        raise Unsupported(f"variance of {x.dtype}")
    axes = [a % x.rank for a in axes]
    shape = [1 if i in axes else e for i, e in enumerate(x.shape)
             if keepdim or i not in axes]
    v = b.one("reduce_var", [x], x.dtype, shape, axes=axes, keep=bool(keepdim),
              ddof=int(correction))
    if words == "var":
        return v
    return [v, b.reduce("reduce_mean", x, axes, keepdim)]


@builder
def var_dim(b, n, row, x, dim=None, unbiased=True, keepdim=False):
    return var(b, n, "var", x, dim, int(unbiased), keepdim)


@builder
def softmax(b, n, row, x, dim, half_to_float=False):
    dtype, shape = out(n)
    x = b.cast(x, dtype)
    if x.rank == 0:
        x, dim = b.reshape(x, (1,)), 0
    return b.reshape(b.one(row, [x], dtype, x.shape, axis=dim % x.rank), shape)
