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
def addbmm(b, n, row, c, x, y, *, beta=1, alpha=1):
    p = b.one("einsum", [x, y], x.dtype, out(n)[1], equation="bij,bjk->ik")
    p = p if alpha == 1 else b.map("mul", p, alpha)
    if beta == 0:
        return p
    return b.map("add", p, c if beta == 1 else b.map("mul", c, beta))


@builder
def trilinear(b, n, row, x, y, z, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """The sum over axes of the product of three, which get axes of extent 1 first."""
    wide = []
    for v, axes in ((x, expand1), (y, expand2), (z, expand3)):
        shape = list(v.shape)
        for a in axes:
            shape.insert(a, 1)
        wide.append(b.reshape(v, shape))
    product = b.map("mul", b.map("mul", wide[0], wide[1]), wide[2])
    return b.reduce("reduce_sum", product, sumdim, False)


def _differences(b, x, y):
    """[.., i, j, k]: of each row of x to each of y."""
    x = b.reshape(x, x.shape[:-1] + (1,) + x.shape[-1:])
    return b.map("sub", x, b.reshape(y, y.shape[:-2] + (1,) + y.shape[-2:]))


@builder
def cdist(b, n, row, x, y, p, compute_mode):
    shape = out(n)[1]
    if p == 2:
        return b.one("cdist", [x, y], x.dtype, shape)
    d = b.map("abs", _differences(b, x, y))
    if p == 0:
        d = b.cast(b.map("ne", d, 0.0, dtype="bool"), x.dtype)
    elif p not in (1, float("inf")):
        d = b.map("pow", d, float(p))
    if x.shape[-1] == 0 or 0 in shape:
        return b.fill(shape, 0, x.dtype)
    r = b.reduce("reduce_max" if p == float("inf") else "reduce_sum", d, [len(shape)], False)
    return r if p in (0, 1, float("inf")) else b.map("pow", r, 1 / p)


@builder
def cdist_backward(b, n, row, g, x, y, p, dist):
    dtype, shape = out(n)
    if p == 0 or 0 in shape or 0 in g.shape:
        return b.fill(shape, 0, dtype)
    d = _differences(b, x, y)
    size, sign = b.map("abs", d), b.map("sign", d)
    g, dist = b.reshape(g, g.shape + (1,)), b.reshape(dist, dist.shape + (1,))
    if p == float("inf"):
        part = b.map("mul", sign, b.cast(b.map("eq", size, dist, dtype="bool"), dtype))
    elif p == 1:
        part = sign
    else:
        ratio = b.map("div", size, dist)
        part = b.map("mul", sign, ratio if p == 2 else b.map("pow", ratio, p - 1.0))
        none = b.map("eq", size if p < 1 else dist, 0.0, dtype="bool")
        part = b.where(none, b.fill((), 0, dtype), part)
    return b.reduce("reduce_sum", b.map("mul", part, g), [d.rank - 2], False)


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


def flat_place(left, kernel, start, dilation, sizes):
    """Text: where in an image element number left of the window at start is."""
    parts, place = [], ""
    for i in reversed(range(len(kernel))):
        parts.insert(0, f"({left} % {kernel[i]})" if i else f"({left})")
        left = f"({left} / {kernel[i]})"
    for i, size in enumerate(sizes):
        here = f"({start[i]} + {parts[i]} * {dilation[i]})"
        place = here if i == 0 else f"({place} * {size} + {here})"
    return place


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
    window = p[0]
    for i in range(1, k):
        window = f"({window}) * {kernel[i]} + {p[i]}"
    start = [f"y{i} * {s} - {q}" for i, (s, q) in enumerate(zip(stride, padding))]
    place = flat_place(f"k[{o}]", kernel, start, dilation, x.shape[2:])
    name = b.row(f"(x[n, c, {d}]:num) -> m, o {{ (m, k)[{o}] argmax= "
                 f"(x[n, c, {at}] else -{low}, {window}) for {span}; o[{o}] = {place} }}")
    m, i = b.call(name, [x], [(x.dtype, full), ("i64", full)])
    return [b.reshape(m, shape), b.reshape(i, shape)]


@builder
def adaptive_max(b, n, row, x, size):
    """Windows begin at y * h / o and end at (y + 1) * h / o, rounded up."""
    shape = tuple(n.meta["val"][0].shape)
    k = 3 if "3d" in str(n.target) else 2
    x = batched(b, x, k)
    full = x.shape[:2] + shape[-k:]
    if 0 in full:
        return [b.fill(shape, 0, x.dtype), b.fill(shape, 0, "i64")]
    y, p = axes_text(k)
    start, inside, kernel = [], [], []
    for i, (h, o) in enumerate(zip(x.shape[2:], full[2:])):
        start.append(f"y{i} * {h} / {o}")
        inside.append(f"p{i} < (y{i} * {h} + {h + o - 1}) / {o} - y{i} * {h} / {o}")
        kernel.append(max(-(-(j + 1) * h // o) - j * h // o for j in range(o)))
    d = ", ".join(f"d{i}" for i in range(k))
    at = ", ".join(f"{s} + {q}" for s, q in zip(start, p))
    o = ", ".join(["n", "c"] + y)
    window = p[0]
    for i in range(1, k):
        window = f"({window}) * {kernel[i]} + {p[i]}"
    name = b.row(f"(x[n, c, {d}]:num) -> m, o {{ (m, k)[{o}] argmax= ((x[n, c, {at}] else "
                 f"-inf) where {' and '.join(inside)} else -inf, {window}) for "
                 f"{ranges(kernel, full[2:])}; o[{o}] = "
                 f"{flat_place(f'k[{o}]', kernel, start, [1] * k, x.shape[2:])} }}")
    m, i = b.call(name, [x], [(x.dtype, full), ("i64", full)])
    return [b.reshape(m, shape), b.reshape(i, shape)]


@builder
def adaptive_max_backward(b, n, row, g, x, ids):
    return max_pool_backward(b, n, row, g, x, None, None, None, None, None, ids)


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


def _smooth(b, dtype, h, o, align, scale):
    """[o, h]: weights of a triangle around each place of the result, as wide as 2 places
    of the larger side."""
    if align:
        step = (h - 1) / (o - 1) if o > 1 else 0.0
    else:
        step = 1 / scale if scale else h / o
    wide = max(step, 1.0)
    center = b.map("mul", b.map("add", b.cast(b.iota(o), "f64"), 0.5), step)
    center = b.reshape(center, (o, 1))
    i = b.reshape(b.cast(b.iota(h), "f64"), (1, h))
    far = b.map("abs", b.map("div", b.map("add", b.map("sub", i, center), 0.5), wide))
    w = b.map("max", b.map("add", b.map("neg", far), 1.0), 0.0)
    w = b.map("div", w, b.reduce("reduce_sum", w, [1], True))
    return b.cast(w, dtype)


def _smooth_axes(b, n, x, images, size, align, scales, back):
    if is_float(x.dtype):
        for i, (h, o) in enumerate(zip(images, size)):
            x = _along(b, x, _smooth(b, x.dtype, h, o, align, scales[i]), 2 + i, back)
        return x
    raise Unsupported(f"smooth images of {x.dtype}")


@builder
def resize_smooth(b, n, row, x, size, align, scales_h=None, scales_w=None):
    return _smooth_axes(b, n, x, x.shape[2:], size, align, (scales_h, scales_w), False)


@builder
def resize_smooth_backward(b, n, row, g, size, sizes, align, scales_h=None, scales_w=None):
    return _smooth_axes(b, n, g, sizes[2:], size, align, (scales_h, scales_w), True)


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
