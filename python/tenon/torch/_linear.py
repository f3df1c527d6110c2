"""Products, convolutions, pooling."""
from ._elementwise import out
from ._text import Unsupported, builder, is_float


@builder
def matmul(b, n, row, x, y, *dtype):
    shape = out(n)[1]
    return b.one("matmul", [x, y], x.dtype, shape)


@builder
def addmm(b, n, row, c, x, y, *, beta=1, alpha=1):
    shape = out(n)[1]
    p = b.one("matmul", [x, y], x.dtype, shape)
    p = p if alpha == 1 else b.map("mul", p, alpha)
    if beta == 0:
        return p
    return b.map("add", p, c if beta == 1 else b.map("mul", c, beta))


@builder
def mv(b, n, row, x, y):
    return b.one("matvec", [x, y], x.dtype, out(n)[1])


@builder
def dot(b, n, row, x, y):
    return b.one("dot", [x, y], x.dtype, ())


@builder
def cdist(b, n, row, x, y, p, compute_mode):
    if p != 2:
        raise Unsupported(f"distances with p = {p}")
    return b.one("cdist", [x, y], x.dtype, out(n)[1])


# -- convolution --

def spread(v, n):
    v = [v] if isinstance(v, int) else list(v)
    return v * n if len(v) == 1 else v


def conv_row(x, stride, padding, dilation, transposed, output_padding, groups):
    k = x.rank - 2
    stride, padding = spread(stride, k), spread(padding, k)
    hi = padding
    if transposed:
        hi = [p - o for p, o in zip(padding, spread(output_padding, k))]
    return "conv_transpose" if transposed else "conv", dict(
        groups=groups, stride=stride, dil=spread(dilation, k), lo=padding, hi=hi)


@builder
def convolution(b, n, row, x, w, bias, stride, padding, dilation, transposed,
                output_padding, groups):
    row, attrs = conv_row(x, stride, padding, dilation, transposed, output_padding,
                          groups)
    shape = out(n)[1]
    y = b.one(row, [x, w], x.dtype, shape, **attrs)
    if bias is None:
        return y
    return b.map("add", y, b.reshape(bias, (shape[1],) + (1,) * (len(shape) - 2)))


@builder
def convolution_backward(b, n, row, g, x, w, bias_sizes, stride, padding, dilation,
                         transposed, output_padding, groups, mask):
    row, attrs = conv_row(x, stride, padding, dilation, transposed, output_padding,
                          groups)
    grads = [b.adjoint(row, [x, w], i, g, **attrs) if mask[i] else None
             for i in range(2)]
    axes = [a for a in range(g.rank) if a != 1]
    grads.append(b.reduce("reduce_sum", g, axes, False) if mask[2] else None)
    return grads


# -- pooling --

def batched(b, x, k):
    """x with the batch that PyTorch lets be absent; k: axes of an image."""
    return b.reshape(x, (1,) * (k + 2 - x.rank) + x.shape) if x.rank < k + 2 else x


def windows(kernel, stride, padding, dilation, k):
    kernel = spread(kernel, k)
    stride = spread(stride, k) if stride not in ([], None, ()) else kernel
    return kernel, stride, spread(padding, k), spread(dilation, k)


def axes_text(k):
    return ([f"y{i}" for i in range(k)], [f"p{i}" for i in range(k)])


def reads(kernel, stride, padding, dilation):
    return ", ".join(f"y{i} * {s} + p{i} * {d} - {p}" for i, (s, p, d) in enumerate(
        zip(stride, padding, dilation)))


def ranges(kernel, extents):
    return ", ".join([f"p{i} < {e}" for i, e in enumerate(kernel)]
                     + [f"y{i} < {e}" for i, e in enumerate(extents)])


def used(n, i):
    return any(u.args[1] == i for u in n.users)


@builder
def max_pool(b, n, row, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    k = 3 if "3d" in str(n.target) else 2
    shape = tuple(n.meta["val"][0].shape)
    kernel, stride, padding, dilation = windows(kernel, stride, padding, dilation, k)
    x = batched(b, x, k)
    low = "inf" if is_float(x.dtype) else "inf"
    full = x.shape[:2] + shape[-k:]
    y, p = axes_text(k)
    d = ", ".join(f"d{i}" for i in range(k))
    at, span = reads(kernel, stride, padding, dilation), ranges(kernel, shape[-k:])
    o = ", ".join(["n", "c"] + y)
    if not used(n, 1):
        name = b.row(f"(x[n, c, {d}]:num) -> m {{ m[{o}] max= x[n, c, {at}] else -{low}"
                     f" for {span} }}")
        return [b.reshape(b.one(name, [x], x.dtype, full), shape), None]
    window, place, left = p[0], "", f"k[{o}]"
    for i in range(1, k):
        window = f"({window}) * {kernel[i]} + {p[i]}"
    parts = []  # the place in the window, axis by axis, from the last
    for i in reversed(range(k)):
        parts.insert(0, f"({left} % {kernel[i]})" if i else f"({left})")
        left = f"({left} / {kernel[i]})"
    for i in range(k):
        here = f"(y{i} * {stride[i]} - {padding[i]} + {parts[i]} * {dilation[i]})"
        place = here if i == 0 else f"({place} * {x.shape[2 + i]} + {here})"
    name = b.row(f"(x[n, c, {d}]:num) -> m, o {{ (m, k)[{o}] argmax= "
                 f"(x[n, c, {at}] else -{low}, {window}) for {span}; o[{o}] = {place} }}")
    m, i = b.call(name, [x], [(x.dtype, full), ("i64", full)])
    return [b.reshape(m, shape), b.reshape(i, shape)]


@builder
def max_pool_backward(b, n, row, g, x, kernel, stride, padding, dilation, ceil_mode, ids):
    k = 3 if "3d" in str(n.target) else 2
    x, ids, g = batched(b, x, k), batched(b, ids, k), batched(b, g, k)
    size = places = 1
    for e in x.shape[2:]:
        size *= e
    for e in g.shape[2:]:
        places *= e
    flat = x.shape[:2] + (places,)
    name = b.row(f"(g[n, c, y]:num, i[n, c, y]:int) -> o {{ o[n, c, d] = cast(0, g) for d"
                 f" < {size}; o[n, c, i[n, c, y]] += g[n, c, y] }}")
    r = b.one(name, [b.reshape(g, flat), b.reshape(ids, flat)], g.dtype,
              x.shape[:2] + (size,))
    return b.reshape(r, out(n)[1])


def counts(b, dtype, extents, sizes, kernel, stride, padding, include, divisor):
    """By what each window's sum is divided: a number, or a tensor."""
    whole = all((o - 1) * s - p + e <= h + p for o, s, p, e, h in zip(
        extents, stride, padding, kernel, sizes))
    if divisor:
        return float(divisor)
    if whole and (include or not any(padding)):
        n = 1
        for e in kernel:
            n *= e
        return float(n)
    result = None
    for i, (o, h, e, s, p) in enumerate(zip(extents, sizes, kernel, stride, padding)):
        start = b.map("add", b.map("mul", b.iota(o), s), -p)
        end = b.map("min", b.map("add", start, e), h + (p if include else 0))
        start = start if include else b.map("max", start, 0)
        n = b.reshape(b.map("sub", end, start), (o,) + (1,) * (len(extents) - 1 - i))
        result = n if result is None else b.map("mul", result, n)
    return b.cast(result, dtype)


def mean_windows(n, kernel, stride, padding):
    k = next(d for d in (1, 2, 3) if f"{d}d" in str(n.target))
    return (k,) + windows(kernel, stride, padding, 1, k)


@builder
def mean_pool(b, n, row, x, kernel, stride=(), padding=0, ceil_mode=False,
              count_include_pad=True, divisor_override=None):
    shape = out(n)[1]
    k, kernel, stride, padding, dilation = mean_windows(n, kernel, stride, padding)
    x = batched(b, x, k)
    d = ", ".join(f"d{i}" for i in range(k))
    o = ", ".join(["n", "c"] + axes_text(k)[0])
    name = b.row(f"(x[n, c, {d}]:num) -> o {{ o[{o}] += x[n, c, "
                 f"{reads(kernel, stride, padding, dilation)}] else 0"
                 f" for {ranges(kernel, shape[-k:])} }}")
    r = b.one(name, [x], x.dtype, x.shape[:2] + shape[-k:])
    r = b.map("div", r, counts(b, x.dtype, shape[-k:], x.shape[2:], kernel, stride,
                               padding, count_include_pad, divisor_override))
    return b.reshape(r, shape)


@builder
def mean_pool_backward(b, n, row, g, x, kernel, stride, padding, ceil_mode,
                       count_include_pad, divisor_override):
    k, kernel, stride, padding, dilation = mean_windows(n, kernel, stride, padding)
    x, g = batched(b, x, k), batched(b, g, k)
    g = b.map("div", g, counts(b, g.dtype, g.shape[2:], x.shape[2:], kernel, stride,
                               padding, count_include_pad, divisor_override))
    y = axes_text(k)[0]
    d = [f"d{i}" for i in range(k)]
    size = ", ".join(f"{i} < {e}" for i, e in zip(d, x.shape[2:]))
    name = b.row(f"(g[n, c, {', '.join(y)}]:num) -> o {{ o[n, c, {', '.join(d)}] = cast(0,"
                 f" g) for {size}; o[n, c, {reads(kernel, stride, padding, dilation)}] +="
                 f" g[n, c, {', '.join(y)}] else skip for "
                 f"{', '.join(f'p{i} < {e}' for i, e in enumerate(kernel))} }}")
    return b.reshape(b.one(name, [g], g.dtype, x.shape), out(n)[1])


def _even(sizes, extents):
    return all(o and h % o == 0 for h, o in zip(sizes, extents))


def _shares(b, dtype, h, o):
    """[o, h]: what each element gives to each mean of nearly equal stretches."""
    y = b.reshape(b.iota(o), (o, 1))
    i = b.reshape(b.iota(h), (1, h))
    start = b.map("div", b.map("mul", y, h), o)
    end = b.map("div", b.map("add", b.map("mul", b.map("add", y, 1), h), o - 1), o)
    inside = b.map("and", b.map("ge", i, start, dtype="bool"),
                   b.map("lt", i, end, dtype="bool"))
    return b.map("div", b.cast(inside, dtype), b.cast(b.map("sub", end, start), dtype))


def _along(b, x, m, axis, transposed):
    """x with m, a matrix, applied along an axis."""
    x_axes = "abcdefg"[:x.rank]
    o_axes = x_axes.replace(x_axes[axis], "z")
    m_axes = x_axes[axis] + "z" if transposed else "z" + x_axes[axis]
    shape = list(x.shape)
    shape[axis] = m.shape[1 if transposed else 0]
    return b.one("einsum", [m, x], x.dtype, shape,
                 equation=f"{m_axes},{x_axes}->{o_axes}")


@builder
def adaptive_mean(b, n, row, x, size):
    shape = out(n)[1]
    size = [size] if isinstance(size, int) else list(size)
    k = len(size)
    lead, images = x.shape[:-k], x.shape[-k:]
    if _even(images, size):
        parts = [e for h, o in zip(images, size) for e in (o, h // o)]
        x = b.reshape(x, lead + tuple(parts))
        axes = [len(lead) + 2 * i + 1 for i in range(k)]
        return b.reduce("reduce_mean", x, axes, False)
    for i, (h, o) in enumerate(zip(images, size)):
        x = _along(b, x, _shares(b, x.dtype, h, o), len(lead) + i, False)
    return b.reshape(x, shape)


@builder
def adaptive_mean_backward(b, n, row, g, x):
    k = 3 if "3d" in str(n.target) else 2
    lead, images, size = x.shape[:-k], x.shape[-k:], g.shape[-k:]
    if _even(images, size):
        parts = [e for h, o in zip(images, size) for e in (o, h // o)]
        count = 1
        for e in parts[1::2]:
            count *= e
        g = b.map("div", g, float(count))
        g = b.reshape(g, lead + tuple(e for o in size for e in (o, 1)))
        return b.reshape(b.broadcast(g, lead + tuple(parts)), x.shape)
    for i, (h, o) in enumerate(zip(images, size)):
        g = _along(b, g, _shares(b, g.dtype, h, o), len(lead) + i, True)
    return g
