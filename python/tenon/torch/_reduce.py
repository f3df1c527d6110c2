"""Reductions, and what runs along an axis."""
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
