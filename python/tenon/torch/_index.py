"""Gather, scatter, sort: rows are written for the places of the indices."""
from ._elementwise import out
from ._shape import part, size_of
from ._text import Unsupported, Value, broadcast_shapes, builder

IDENTITY = {"+=": 0, "*=": 1, "max=": float("-inf"), "min=": float("inf")}


def counted(b, i, extent):
    """Indices that count from the end if they are negative."""
    return b.where(b.map("lt", i, 0, dtype="bool"), b.map("add", i, extent), i)


def letters(prefix, n):
    return [f"{prefix}{i}" for i in range(n)]


def bracket(names):
    return "[" + ", ".join(names) + "]"


def placed(b, x, indices):
    """Axes that are indexed, and their indices in one shape."""
    indices = list(indices) + [None] * (x.rank - len(indices))
    axes = [a for a, i in enumerate(indices) if i is not None]
    for a in axes:
        if indices[a].dtype in ("bool", "u8"):
            raise Unsupported("a mask: the shape depends on data")
    shape = broadcast_shapes(*(indices[a].shape for a in axes))
    ids = [b.broadcast(counted(b, indices[a], x.shape[a]), shape) for a in axes]
    return axes, ids, shape


def result_axes(x, axes, j):
    """Names of the result's axes: those of indices stand at the first indexed axis,
    or in front if others are between."""
    e = letters("e", x.rank)
    rest = [n for a, n in enumerate(e) if a not in axes]
    if axes[-1] - axes[0] + 1 != len(axes):
        return e, j + rest
    return e, e[:axes[0]] + j + e[axes[-1] + 1:]


@builder
def index(b, n, row, x, indices):
    axes, ids, shape = placed(b, x, indices)
    j = letters("j", len(shape))
    e, o = result_axes(x, axes, j)
    a = letters("a", len(ids))
    places = list(e)
    for axis, name in zip(axes, a):
        places[axis] = name + bracket(j)
    name = b.row(f"(x{bracket(e)}, " + ", ".join(f"{k}{bracket(j)}:int" for k in a)
                 + f") -> o {{ o{bracket(o)} = x{bracket(places)} }}")
    return b.one(name, [x] + ids, x.dtype, out(n)[1])


def _masked_put(b, x, mask, value):
    if len(value.shape) > 0 and any(e != 1 for e in value.shape):
        raise Unsupported("values for the places of a mask")
    value = b.reshape(b.cast(value, x.dtype), ())
    mask = b.reshape(b.cast(mask, "bool"), mask.shape + (1,) * (x.rank - mask.rank))
    return b.where(b.broadcast(mask, x.shape), value, x)


@builder
def index_put(b, n, row, x, indices, values, accumulate=False):
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].dtype in ("bool", "u8") and indices[0] is not None:
        if accumulate:
            raise Unsupported("adding at the places of a mask")
        return _masked_put(b, x, given[0], values)
    axes, ids, shape = placed(b, x, indices)
    count = 1
    for s in shape:
        count *= s
    e, o = result_axes(x, axes, letters("j", len(shape)))
    extent = dict(zip(e, x.shape)) | dict(zip(letters("j", len(shape)), shape))
    u = b.broadcast(b.cast(values, x.dtype), [extent[k] for k in o])
    e, flat = result_axes(x, axes, ["j"])
    u = b.reshape(u, [count if k == "j" else extent[k] for k in flat])
    ids = [b.reshape(i, (count,)) for i in ids]
    a = letters("a", len(ids))
    places = list(e)
    for axis, name in zip(axes, a):
        places[axis] = name + "[j]"
    head = (f"(x{bracket(e)}, " + ", ".join(f"{k}[j]:int" for k in a)
            + f", u{bracket(flat)}) -> o {{ ")
    won = [e[axis] for axis in axes]
    if accumulate:
        body = f"o{bracket(e)} = x{bracket(e)}; o{bracket(places)} += u{bracket(flat)} }}"
    else:
        w = f"w{bracket(won)}"
        at = bracket([w if k == "j" else k for k in flat])
        body = (f"{w} = cast(-1, i64); w{bracket([places[axis] for axis in axes])} max= j; "
                f"o{bracket(e)} = u{at} where {w} >= 0 else x{bracket(e)} }}")
    return b.one(b.row(head + body), [x] + ids + [u], x.dtype, x.shape)


@builder
def index_select(b, n, row, x, dim, ids):
    if x.rank == 0:
        x, dim = b.reshape(x, (1,)), 0
    ids = b.reshape(ids, (1,)) if ids.rank == 0 else ids
    dim %= x.rank
    shape = [ids.shape[0] if i == dim else e for i, e in enumerate(x.shape)]
    return b.reshape(b.one("take", [x, ids], x.dtype, shape, axis=dim), out(n)[1])


@builder
def embedding(b, n, row, w, ids, *rest, **options):
    return b.one("embedding", [ids, w], w.dtype, out(n)[1])


@builder
def embedding_backward(b, n, row, g, ids, rows, padding_idx, by_frequency):
    if by_frequency:
        raise Unsupported("gradients scaled by frequency")
    if padding_idx >= 0:
        none = b.map("eq", ids, padding_idx, dtype="bool")
        g = b.where(b.reshape(none, none.shape + (1,)), b.fill((), 0, g.dtype), g)
    j = letters("j", ids.rank)
    name = b.row(f"(g{bracket(j + ['c'])}:num, i{bracket(j)}:int) -> o {{"
                 f" o[v, c] = cast(0, g) for v < {rows}; "
                 f"o[i{bracket(j)}, c] += g{bracket(j + ['c'])} }}")
    return b.one(name, [g, ids], g.dtype, (rows, g.shape[-1]))


# -- along one axis --

def lifted(b, *xs):
    return [b.reshape(x, (1,)) if x.rank == 0 else x for x in xs]


@builder
def gather(b, n, row, x, dim, ids, sparse_grad=False):
    shape = ids.shape
    if 0 in shape:
        return b.fill(shape, 0, x.dtype)
    x, ids = lifted(b, x, ids)
    dim %= x.rank
    e, j = letters("e", x.rank), letters("j", x.rank)
    places = [f"i{bracket(j)}" if a == dim else j[a] for a in range(x.rank)]
    name = b.row(f"(x{bracket(e)}, i{bracket(j)}:int) -> o {{ "
                 f"o{bracket(j)} = x{bracket(places)} }}")
    return b.reshape(b.one(name, [x, ids], x.dtype, ids.shape), shape)


def put(b, x, dim, ids, u, how):
    """x with u at places ids along dim; how: set, or what to collect by."""
    e, j = letters("e", x.rank), letters("j", x.rank)
    at = bracket([f"i{bracket(j)}" if a == dim else j[a] for a in range(x.rank)])
    head = f"(x{bracket(e)}, i{bracket(j)}:int, u"
    if how == "set":
        # the places of u that x has more of are never read
        hi = [0 if a == dim else x.shape[a] - u.shape[a] for a in range(x.rank)]
        if any(hi):
            shape = [s + h for s, h in zip(u.shape, hi)]
            u = b.one("pad", [u], u.dtype, shape, lo=[0] * x.rank, hi=hi)
        w = f"w{bracket(e)}"
        read = bracket([w if a == dim else e[a] for a in range(x.rank)])
        k = bracket(["k" if a == dim else e[a] for a in range(x.rank)])
        text = (f"{head}{k}) -> o {{ {w} = cast(-1, i64); w{at} max= j{dim}; "
                f"o{bracket(e)} = u{read} where {w} >= 0 else x{bracket(e)} }}")
    else:
        text = (f"{head}{bracket(j)}) -> o {{ o{bracket(e)} = x{bracket(e)}; "
                f"o{at} {how} u{bracket(j)} }}")
    return b.one(b.row(text), [x, ids, u], x.dtype, x.shape)


def source(b, x, ids, src):
    """What is scattered: as many as there are indices."""
    if not isinstance(src, Value):
        return b.fill(ids.shape, src, x.dtype)
    (src,) = lifted(b, src)
    for a in range(ids.rank):
        src = part(b, src, a, 0, ids.shape[a])
    return src


@builder
def scatter(b, n, how, x, dim, ids, src):
    if 0 in ids.shape:
        return x
    shape, was = x.shape, x.dtype
    x, ids = lifted(b, x, ids)
    src = source(b, x, ids, src)
    if was == "bool":
        x, src = b.cast(x, "u8"), b.cast(src, "u8")
    r = put(b, x, dim % x.rank, ids, src, how)
    return b.reshape(b.cast(r, was), shape)


@builder
def scatter_reduce(b, n, row, x, dim, ids, src, reduce, include_self=True):
    how = {"sum": "+=", "mean": "+=", "prod": "*=", "amax": "max=",
           "amin": "min="}[reduce]
    if 0 in ids.shape:
        return x
    if x.dtype == "bool":
        raise Unsupported("scatter_reduce of bool")
    shape = x.shape
    x, ids = lifted(b, x, ids)
    dim %= x.rank
    src = source(b, x, ids, src)
    start = x
    if not include_self:
        none = IDENTITY[how]
        if none in (float("inf"), float("-inf")) and x.dtype[0] not in "fb":
            raise Unsupported("extremes of integers without what was there")
        start = put(b, x, dim, ids, b.fill(ids.shape, none, x.dtype), "set")
    r = put(b, start, dim, ids, src, how)
    if reduce == "mean":
        one = b.fill(ids.shape, 1, x.dtype)
        first = b.fill(x.shape, 1 if include_self else 0, x.dtype)
        count = put(b, first, dim, ids, one, "+=")
        r = b.map("div", r, b.map("max", count, 1))
    return b.reshape(r, shape)


@builder
def scatter_reduce_old(b, n, row, x, dim, ids, src, reduce):
    return scatter_reduce(b, n, row, x, dim, ids, src,
                          {"add": "sum", "multiply": "prod"}[reduce])


@builder
def put_flat(b, n, row, x, ids, source, accumulate=False):
    """At places in the order of memory, as if x had one axis."""
    if 0 in x.shape or 0 in ids.shape:
        return x
    flat, count = b.reshape(x, (size_of(x.shape),)), (size_of(ids.shape),)
    ids = counted(b, b.reshape(ids, count), size_of(x.shape))
    r = put(b, flat, 0, ids, b.reshape(source, count), "+=" if accumulate else "set")
    return b.reshape(r, x.shape)


@builder
def index_reduce(b, n, row, x, dim, ids, src, reduce, *, include_self=True):
    shape = x.shape
    x, ids, src = lifted(b, x, ids, src)
    ids = b.reshape(ids, (src.shape[dim],) + (1,) * (x.rank - 1 - dim % x.rank))
    r = scatter_reduce(b, n, row, x, dim, b.broadcast(ids, src.shape), src, reduce,
                       include_self)
    return b.reshape(r, shape)


# -- order --

def _sorted(b, x, dim, descending):
    shape, was = x.shape, x.dtype
    (x,) = lifted(b, x)
    x = b.cast(x, "u8") if was == "bool" else x
    v, k = b.call("sort", [x], [(x.dtype, x.shape), ("i64", x.shape)],
                  axis=dim % x.rank, desc=bool(descending))
    return [b.reshape(b.cast(v, was), shape), b.reshape(k, shape)]


@builder
def sort(b, n, row, x, dim=-1, descending=False):
    return _sorted(b, x, dim, descending)


@builder
def sort_stable(b, n, row, x, *, stable=None, dim=-1, descending=False):
    return _sorted(b, x, dim, descending)


@builder
def topk(b, n, row, x, k, dim=-1, largest=True, sorted=True):
    v, _ = n.meta["val"]
    shape, was = tuple(v.shape), x.dtype
    (x,) = lifted(b, x)
    dim %= x.rank
    some = [k if i == dim else e for i, e in enumerate(x.shape)]
    v, i = b.call("topk", [x], [(x.dtype, some), ("i64", some)], axis=dim, count=k,
                  largest=bool(largest))
    return [b.reshape(v, shape), b.reshape(i, shape)]
