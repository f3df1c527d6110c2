"""Operators that move elements."""
from ._elementwise import out
from ._text import Unsupported, Value, builder, order_of


def written(b, x, view, y):
    """x whose part view(x) is y: a write to a storage of its own."""
    if not x.own:
        x = b.one("copy", [x], x.dtype, x.shape)
    x.own = False
    r = b.one("write", [view(x), b.cast(y, x.dtype)], x.dtype, x.shape)
    r.own = True
    return r


@builder
def shaped(b, n, row, x, *args, **kwargs):
    return b.reshape(x, out(n)[1])


@builder
def permute(b, n, row, x, dims):
    return b.transpose(x, [d % x.rank for d in dims])


@builder
def transpose(b, n, row, x, i, j):
    perm = list(range(x.rank))
    if perm:
        i, j = i % x.rank, j % x.rank
        perm[i], perm[j] = j, i
    return b.transpose(x, perm)


@builder
def transpose_last(b, n, row, x):
    return b.transpose(x, list(range(x.rank))[::-1])


@builder
def expand(b, n, row, x, size, implicit=False):
    return b.broadcast(x, out(n)[1])


def bounds(x, dim, start, end):
    size = x.shape[dim]
    start = 0 if start is None else start
    end = size if end is None else end
    start = min(max(start + size if start < 0 else start, 0), size)
    end = min(max(end + size if end < 0 else end, start), size)
    return start, end


def part(b, x, dim, start, end, step=1):
    """x[start:end:step] along dim."""
    dim %= x.rank
    start, end = bounds(x, dim, start, end)
    count = -(-(end - start) // step)
    if count == x.shape[dim]:
        return x
    shape = [count if i == dim else n for i, n in enumerate(x.shape)]
    return b.one("slice", [x], x.dtype, shape, axes=[dim], start=[start if count else 0],
                 count=[count], step=[step])


@builder
def slice_(b, n, row, x, dim=0, start=None, end=None, step=1):
    return part(b, x, dim, start, end, step)


@builder
def narrow(b, n, row, x, dim, start, length):
    dim %= x.rank
    start += x.shape[dim] if start < 0 else 0
    return part(b, x, dim, start, start + length)


@builder
def slice_scatter(b, n, row, x, src, dim=0, start=None, end=None, step=1):
    if 0 in src.shape:
        return x
    return written(b, x, lambda x: part(b, x, dim, start, end, step), src)


def selected(b, x, dim, index):
    dim %= x.rank
    shape = [n for i, n in enumerate(x.shape) if i != dim]
    return b.one("select", [x], x.dtype, shape, axis=dim,
                 index=index % x.shape[dim])


@builder
def select(b, n, row, x, dim, index):
    return selected(b, x, dim, index)


@builder
def select_scatter(b, n, row, x, src, dim, index):
    return written(b, x, lambda x: selected(b, x, dim, index), src)


@builder
def split(b, n, row, x, size, dim=0):
    extent = x.shape[dim % x.rank]
    starts = range(0, max(extent, 1), size) if size else [0]
    return [part(b, x, dim, s, min(s + size, extent)) for s in starts]


@builder
def split_sizes(b, n, row, x, sizes, dim=0):
    parts, at = [], 0
    for size in sizes:
        parts.append(part(b, x, dim, at, at + size))
        at += size
    return parts


@builder
def unbind(b, n, row, x, dim=0):
    return [selected(b, x, dim, i) for i in range(x.shape[dim % x.rank])]


@builder
def diagonal(b, n, row, x, offset=0, dim1=0, dim2=1):
    i, j = dim1 % x.rank, dim2 % x.rank
    x = b.transpose(x, [a for a in range(x.rank) if a not in (i, j)] + [i, j])
    return b.one("diagonal", [x], x.dtype, out(n)[1], k=offset)


@builder
def diagonal_scatter(b, n, row, x, src, offset=0, dim1=0, dim2=1):
    i, j = dim1 % x.rank, dim2 % x.rank
    perm = [a for a in range(x.rank) if a not in (i, j)] + [i, j]

    def view(x):
        return b.one("diagonal", [b.transpose(x, perm)], x.dtype, src.shape, k=offset)
    return written(b, x, view, src) if 0 not in src.shape else x


def stretch(b, n, x):
    """x as one axis in the order of memory, and how to get back."""
    val = n.args[0].meta["val"]
    order = order_of(val.shape, val.stride())
    if order is None or val.storage_offset() != 0:
        raise Unsupported("a view of memory that is not dense")
    inner = [x.shape[a] for a in order]
    back = [order.index(a) for a in range(x.rank)]
    flat = b.reshape(b.transpose(x, order), (size_of(x.shape),))
    return flat, lambda y: b.transpose(b.reshape(y, inner), back)


def strided(b, size, stride, offset):
    """A row that reads elements of one axis by strides: a view."""
    letters = [f"i{k}" for k in range(len(size))]
    place = " + ".join([str(offset or 0)] + [
        f"{s} * {i}" for s, i in zip(stride, letters)])
    extent = ", ".join(f"{i} < {e}" for i, e in zip(letters, size))
    return b.row(f"(x[n]) -> o {{ o[{', '.join(letters)}] = x[{place}]"
                 + (f" for {extent}" if extent else "") + " }")


@builder
def as_strided(b, n, row, x, size, stride, storage_offset=None):
    flat, _ = stretch(b, n, x)
    return b.one(strided(b, size, stride, storage_offset), [flat], x.dtype, size)


@builder
def as_strided_scatter(b, n, row, x, src, size, stride, storage_offset=None):
    if 0 in size:
        return x
    flat, back = stretch(b, n, x)
    view = strided(b, size, stride, storage_offset)
    return back(written(b, flat, lambda f: b.one(view, [f], x.dtype, size), src))


@builder
def cat(b, n, row, xs, dim=0):
    dtype, shape = out(n)
    if 0 in shape:
        return b.fill(shape, 0, dtype)
    xs = [b.cast(x, dtype) for x in xs if 0 not in x.shape]
    if len(xs) == 1:
        return xs[0]
    return b.one("concat", xs, dtype, shape, axis=dim % len(shape))


def around(x, pads):
    """lo and hi for all axes: PyTorch counts from the last axis."""
    k = len(pads) // 2
    lo = [0] * (x.rank - k) + [pads[2 * i] for i in reversed(range(k))]
    hi = [0] * (x.rank - k) + [pads[2 * i + 1] for i in reversed(range(k))]
    return lo, hi


@builder
def constant_pad(b, n, row, x, pads, value=0):
    dtype, shape = out(n)
    lo, hi = around(x, pads)
    if dtype == "bool":
        x = b.one("pad", [b.cast(x, "u8")], "u8", shape, lo=lo, hi=hi,
                  value=float(value))
        return b.cast(x, "bool")
    return b.one("pad", [x], dtype, shape, lo=lo, hi=hi, value=float(value))


@builder
def pad(b, n, row, x, pads):
    lo, hi = around(x, pads)
    return b.one(row, [x], x.dtype, out(n)[1], lo=lo, hi=hi)


@builder
def pad_backward(b, n, row, g, x, pads):
    lo, hi = around(x, pads)
    return b.adjoint(row, [x], 0, g, lo=lo, hi=hi)


@builder
def flip(b, n, row, x, dims):
    dims = [d % x.rank for d in dims] if x.rank else []
    if not dims:
        return x
    return b.one("flip", [x], x.dtype, x.shape, axes=dims)


@builder
def roll(b, n, row, x, shifts, dims=()):
    if 0 in x.shape or x.rank == 0:
        return x
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    shape, flat = x.shape, not dims
    if flat:
        x, dims = b.reshape(x, (size_of(shape),)), [0]
    total = {}
    for d, s in zip(dims, shifts):
        total[d % x.rank] = total.get(d % x.rank, 0) + s
    x = b.one("roll", [x], x.dtype, x.shape, axes=list(total),
              shift=list(total.values()))
    return b.reshape(x, shape)


def size_of(shape):
    n = 1
    for e in shape:
        n *= e
    return n


@builder
def repeat(b, n, row, x, reps):
    x = b.reshape(x, (1,) * (len(reps) - x.rank) + x.shape)
    return b.one("tile", [x], x.dtype, out(n)[1], reps=list(reps))
