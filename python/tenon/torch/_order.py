"""What follows from the order of elements: the k-th, the median, the most frequent, the
largest so far; where values stand in a sorted row; the places of a mask, counted."""
from ._elementwise import common, out
from ._index import bracket, letters
from ._shape import size_of
from ._text import Unsupported, builder, is_float


def _rows(b, x, dim):
    """x with dim as the last axis, of rank 1 at least; and the axes before."""
    if x.rank == 0:
        return b.reshape(x, (1,)), ()
    dim %= x.rank
    x = b.transpose(x, [a for a in range(x.rank) if a != dim] + [dim])
    return x, x.shape[:-1]


def _sorted(b, x):
    return b.call("sort", [x], [(x.dtype, x.shape), ("i64", x.shape)], axis=x.rank - 1,
                  desc=False)


def _at(b, x, i):
    """x[.., i[..]] along the last axis."""
    e = letters("e", x.rank - 1)
    name = b.row(f"(x{bracket(e + ['n'])}, i{bracket(e)}:int) -> o {{ o{bracket(e)} = "
                 f"x{bracket(e + [f'i{bracket(e)}'])} }}")
    return b.one(name, [x, i], x.dtype, i.shape)


def _both(b, n, v, k):
    """Values and indices in the shapes of the node."""
    shape = tuple(n.meta["val"][0].shape)
    return [b.reshape(v, shape), b.reshape(k, shape)]


@builder
def kth(b, n, row, x, k, dim=-1, keepdim=False):
    x, lead = _rows(b, x, dim)
    v, i = _sorted(b, x)
    place = b.fill(lead, k - 1, "i64")
    return _both(b, n, _at(b, v, place), _at(b, i, place))


def _median(b, words, x):
    """The lower one of the two in the middle; NaN if one is, or without those that are.
    NaN stands behind all numbers."""
    n = x.shape[-1]
    if n == 0:
        raise Unsupported("the median of no elements")
    v, i = _sorted(b, x)
    if not is_float(x.dtype):
        place = b.fill(x.shape[:-1], (n - 1) // 2, "i64")
        return _at(b, v, place), _at(b, i, place)
    nan = b.cast(b.map("isnan", x, dtype="bool"), "i64")
    n_nan = b.reduce("reduce_sum", nan, [x.rank - 1], False)
    rest = b.map("sub", b.fill((), n, "i64"), n_nan)
    if words == "nan":
        middle = b.map("sub", rest, 1)
        place = b.map("max", b.map("div", middle, 2), 0)
    else:
        some = b.map("gt", n_nan, 0, dtype="bool")
        place = b.where(some, rest, b.fill((), (n - 1) // 2, "i64"))
    return _at(b, v, place), _at(b, i, place)


@builder
def median(b, n, words, x):
    return _median(b, words, b.reshape(x, (size_of(x.shape),)))[0]


@builder
def median_dim(b, n, words, x, dim=-1, keepdim=False):
    return _both(b, n, *_median(b, words, _rows(b, x, dim)[0]))


@builder
def mode(b, n, row, x, dim=-1, keepdim=False):
    """Of the most frequent ones the smallest, where it stands last."""
    x, lead = _rows(b, x, dim)
    v, i = _sorted(b, x)
    one, other = b.reshape(v, v.shape + (1,)), b.reshape(v, lead + (1,) + v.shape[-1:])
    same = b.cast(b.map("eq", one, other, dtype="bool"), "i64")
    count = b.reduce("reduce_sum", same, [v.rank], False)
    best = b.one("argmax", [count], "i64", lead, axis=v.rank - 1)
    value = _at(b, v, best)
    is_it = b.map("eq", v, b.reshape(value, lead + (1,)), dtype="bool")
    k = b.reduce("reduce_max", b.where(is_it, i, b.fill((), -1, "i64")), [v.rank - 1], False)
    return _both(b, n, value, k)


@builder
def running_extreme(b, n, row, x, dim):
    """The index is that of the last element that is as extreme as those before."""
    shape, was = x.shape, x.dtype
    x = b.reshape(x, (1,)) if x.rank == 0 else x
    x = b.cast(x, "u8") if was == "bool" else x
    dim %= x.rank
    v = b.one(row, [x], x.dtype, x.shape, axis=dim)
    here = b.map("eq", x, v, dtype="bool")
    if is_float(x.dtype):
        here = b.map("or", here, b.map("isnan", x, dtype="bool"))
    at = b.reshape(b.iota(x.shape[dim]), (x.shape[dim],) + (1,) * (x.rank - 1 - dim))
    at = b.where(here, at, b.fill((), 0, "i64"))
    k = b.one("cummax", [at], "i64", x.shape, axis=dim)
    return [b.cast(b.reshape(v, shape), was), b.reshape(k, shape)]


# -- sorted rows --

def _searched(b, n, s, x, right):
    """How many elements of each row of s are less than x, or equal."""
    x = b.reshape(x, x.shape + (1,))
    if s.rank > 1:
        s = b.reshape(s, s.shape[:-1] + (1,) + s.shape[-1:])
    less = b.map("le" if right else "lt", s, x, dtype="bool")
    return b.reduce("reduce_sum", b.cast(less, out(n)[0]), [less.rank - 1], False)


@builder
def searchsorted(b, n, row, s, x, *, out_int32=False, right=False, side=None, sorter=None):
    shape = out(n)[1]
    if 0 in shape or 0 in s.shape:
        return b.fill(shape, 0, out(n)[0])
    if sorter is not None:
        e = letters("e", s.rank - 1)
        at = bracket(e + [f"i{bracket(e + ['k'])}"])
        name = b.row(f"(x{bracket(e + ['n'])}, i{bracket(e + ['k'])}:int) -> o {{ "
                     f"o{bracket(e + ['k'])} = x{at} }}")
        s = b.one(name, [s, sorter], s.dtype, sorter.shape)
    dtype = common(n)  # in which the two are compared
    s, x = b.cast(s, dtype), b.value(x, dtype)
    flat = b.reshape(x, (1,)) if x.rank == 0 else x
    return b.reshape(_searched(b, n, s, flat, right or side == "right"), shape)


@builder
def bucketize(b, n, row, x, bounds, *, out_int32=False, right=False):
    return searchsorted(b, n, row, bounds, x, right=right)


# -- the places of a mask, counted --

def _counted(b, mask):
    """The number of each place of a mask that is true, in the order of memory; -1."""
    flat = b.reshape(b.cast(mask, "bool"), (size_of(mask.shape),))
    number = b.one("cumsum", [b.cast(flat, "i64")], "i64", flat.shape, axis=0)
    return b.where(flat, b.map("sub", number, 1), b.fill((), -1, "i64"))


@builder
def masked_scatter(b, n, row, x, mask, source):
    x = b.broadcast(x, out(n)[1])
    if 0 in x.shape or 0 in source.shape:
        return x
    k = _counted(b, b.broadcast(mask, x.shape))
    flat = b.reshape(source, (size_of(source.shape),))
    taken = b.one("take", [flat, b.map("max", k, 0)], x.dtype, k.shape, axis=0)
    here = b.map("ge", k, 0, dtype="bool")
    return b.reshape(b.where(here, taken, b.reshape(x, k.shape)), x.shape)


@builder
def masked_scatter_backward(b, n, row, g, mask, sizes):
    dtype, shape = out(n)
    if 0 in shape or 0 in g.shape:
        return b.fill(shape, 0, dtype)
    k = _counted(b, b.broadcast(mask, g.shape))
    name = b.row(f"(g[i]:num, k[i]:int) -> o {{ o[j] = cast(0, g) for j < {size_of(shape)}; "
                 "o[k[i]] += g[i] else skip }")
    r = b.one(name, [b.reshape(g, k.shape), k], dtype, (size_of(shape),))
    return b.reshape(r, shape)


@builder
def nonzero_static(b, n, row, x, *, size, fill_value=-1):
    shape = out(n)[1]
    if 0 in shape or 0 in x.shape:
        return b.fill(shape, fill_value, "i64")
    k = _counted(b, x)
    name = b.row(f"(k[i]:int) -> w {{ w[j] = cast(-1, i64) for j < {size}; "
                 "w[k[i]] max= i else skip }")
    w = b.one(name, [k], "i64", (size,))
    columns, step = [], size_of(x.shape)
    for extent in x.shape:
        step //= extent
        at = b.map("mod", b.map("div", w, step), extent)
        at = b.where(b.map("lt", w, 0, dtype="bool"), b.fill((), fill_value, "i64"), at)
        columns.append(b.reshape(at, (size, 1)))
    if len(columns) == 1:
        return columns[0]
    return b.one("concat", columns, "i64", shape, axis=1)
