"""Elementwise operators, casts, and tensors made of numbers."""
import torch

from ._text import Unsupported, Value, Word, builder, dtype_of, is_float


def out(n):
    """dtype and shape of what the node gives."""
    v = n.meta["val"]
    return dtype_of(v.dtype), tuple(v.shape)


def common(n):
    """The dtype in which PyTorch compares the first two operands."""
    x, y = (a.meta["val"] if hasattr(a, "meta") else a for a in n.args[:2])
    return dtype_of(torch.result_type(x, y))


def wide(b, row, dtype, *operands):
    """A row on numbers; booleans go through i32."""
    if dtype != "bool":
        return b.map(row, *(b.cast(x, dtype) for x in operands), like=dtype)
    r = b.map(row, *(b.cast(x, "i32") for x in operands), like="i32")
    return b.cast(r, "bool")


@builder
def real(b, n, row, x):
    return b.map(row, b.cast(x, out(n)[0]))


@builder
def number(b, n, row, x):
    return wide(b, row, out(n)[0], x)


@builder
def whole(b, n, row, x):
    return b.map(row, x) if is_float(x.dtype) else x


@builder
def scaled(b, n, words, x):
    row, when, factor = words.split()
    x = b.cast(x, out(n)[0])
    if when == "before":
        return b.map(row, b.map("mul", x, float(factor)))
    return b.map("mul", b.map(row, x), float(factor))


@builder
def round_decimals(b, n, row, x, *, decimals=0):
    if not is_float(x.dtype):
        return x
    ten = 10.0 ** abs(decimals)
    to, back = ("mul", "div") if decimals >= 0 else ("div", "mul")
    return b.map(back, b.map("round", b.map(to, x, ten)), ten)


@builder
def hypot(b, n, row, x, y):
    """The larger one times what is at most the root of 2."""
    dtype = out(n)[0]
    x, y = b.map("abs", b.cast(x, dtype)), b.map("abs", b.cast(y, dtype))
    large, small = b.map("max", x, y), b.map("min", x, y)
    ratio = b.map("div", small, large)
    r = b.map("mul", large, b.map("sqrt", b.map("add", b.map("square", ratio), 1.0)))
    plain = b.map("or", b.map("eq", large, 0.0, dtype="bool"),
                  b.map("isinf", large, dtype="bool"))
    return b.where(plain, large, r)


@builder
def test(b, n, row, x):
    return b.map(row, b.cast(x, x.dtype if is_float(x.dtype) else "f32"), dtype="bool")


@builder
def logical_not(b, n, row, x):
    return b.map("not", b.cast(x, "bool"))


@builder
def bits_not(b, n, row, x):
    return b.map("not" if x.dtype == "bool" else row, x)


@builder
def bits(b, n, rows, x, y):
    dtype = out(n)[0]
    row = rows.split()[dtype == "bool"]
    return b.map(row, b.cast(x, dtype), b.cast(y, dtype))


@builder
def arith(b, n, row, x, y, alpha=1):
    dtype = out(n)[0]
    if alpha != 1:
        y = wide(b, "mul", dtype, y, alpha) if isinstance(y, Value) else y * alpha
    if dtype == "bool":  # of truth values: the least of 1 and the sum
        return wide(b, row, dtype, x, y)
    neutral = {"add": 0, "sub": 0, "mul": 1}.get(row)
    if neutral is not None and not isinstance(y, Value) and y == neutral:
        return b.cast(x, dtype)
    return wide(b, row, dtype, x, y)


@builder
def known(b, n, row, x, y):
    """The larger (or smaller) of two; of one that is NaN: the other."""
    dtype = out(n)[0]
    x, y = b.value(x, dtype), b.value(y, dtype)
    m = wide(b, row, dtype, x, y)
    if not is_float(dtype):
        return m
    m = b.where(b.map("isnan", x, dtype="bool"), y, m)
    return b.where(b.map("isnan", y, dtype="bool"), x, m)


@builder
def div(b, n, row, x, y, rounding_mode=None):
    dtype = out(n)[0]
    x, y = b.cast(x, dtype), b.cast(y, dtype)
    if rounding_mode is None or (rounding_mode == "trunc" and not is_float(dtype)):
        return b.map("div", x, y)
    if rounding_mode == "trunc":
        return b.map("trunc", b.map("div", x, y))
    whole = b.map("div", b.map("sub", x, b.map("mod", x, y)), y)
    if not is_float(dtype):
        return whole
    y = b.value(y, dtype)
    return b.where(b.map("eq", y, 0.0, dtype="bool"), b.map("div", x, y),
                   b.map("round", whole))


@builder
def compare(b, n, row, x, y):
    dtype = common(n)
    x, y = b.cast(x, dtype), b.cast(y, dtype)
    if dtype == "bool" and row not in ("eq", "ne"):
        x, y = b.cast(x, "i32"), b.cast(y, "i32")
    return b.map(row, x, y, dtype="bool")


@builder
def logical(b, n, row, x, y):
    return b.map(row, b.cast(x, "bool"), b.cast(y, "bool"))


@builder
def clamp(b, n, row, x, min=None, max=None):
    dtype = out(n)[0]
    if min is not None:
        x = wide(b, "max", dtype, x, min)
    if max is not None:
        x = wide(b, "min", dtype, x, max)
    return b.cast(x, dtype)


@builder
def clamp_min(b, n, row, x, bound):
    return clamp(b, n, row, x, bound)


@builder
def clamp_max(b, n, row, x, bound):
    return clamp(b, n, row, x, None, bound)


@builder
def hardtanh(b, n, row, x, min_val=-1, max_val=1):
    return clamp(b, n, row, x, min_val, max_val)


@builder
def leaky_relu(b, n, row, x, negative_slope=0.01):
    return b.map("leaky_relu", x, alpha=float(negative_slope))


@builder
def elu(b, n, row, x, alpha=1, scale=1, input_scale=1):
    low = b.map("mul", b.map("expm1", b.map("mul", x, float(input_scale))),
                float(alpha) * float(scale))
    high = b.map("mul", x, float(scale))
    return b.where(b.map("gt", x, 0.0, dtype="bool"), high, low)


@builder
def gelu(b, n, row, x, approximate="none"):
    return b.map("gelu_tanh" if approximate == "tanh" else "gelu", x)


@builder
def gelu_backward(b, n, row, grad, x, approximate="none"):
    row = "gelu_tanh" if approximate == "tanh" else "gelu"
    return b.adjoint(row, [x], 0, grad)


@builder
def pow_(b, n, row, x, y):
    dtype = out(n)[0]
    x = b.cast(x, dtype)
    short = {0.5: "sqrt", 1.0: "identity", 2.0: "square", -1.0: "recip",
             -0.5: "rsqrt"}.get(y if not isinstance(y, Value) else None)
    if short is not None and (is_float(dtype) or short in ("identity", "square")):
        return b.map(short, x)
    if y == 3 and isinstance(x, Value):
        return b.map("mul", b.map("mul", x, x), x)
    return b.map("pow", x, b.cast(y, dtype))


@builder
def fma(b, n, row, x, y, z):
    dtype = out(n)[0]
    return b.map("add", b.map("mul", b.cast(x, dtype), b.cast(y, dtype)),
                 b.cast(z, dtype))


@builder
def where(b, n, row, c, x, y):
    dtype = out(n)[0]
    return b.where(b.cast(c, "bool"), b.value(x, dtype), b.value(y, dtype))


# -- copies and casts --

@builder
def same(b, n, row, x, **layout):
    return x


@builder
def cast(b, n, row, x, **layout):
    return b.cast(x, out(n)[0])


@builder
def convert(b, n, row, x, dtype):
    return b.cast(x, out(n)[0])


@builder
def copy(b, n, row, x, y, non_blocking=False):
    return b.broadcast(b.cast(y, x.dtype), x.shape)


@builder
def copy_in(b, n, row, x, y, non_blocking=False):
    """A write to an input at the end: its memory gets it."""
    if not b.is_param(n.args[0]):
        raise Unsupported("a write to what is no dense input")
    y = b.broadcast(b.cast(y, x.dtype), x.shape)
    b.one("write", [x, y], x.dtype, x.shape)
    return y


# -- tensors made of numbers --

@builder
def full(b, n, words, *args, **layout):
    dtype, shape = out(n)
    return b.fill(shape, 0 if words else args[1], dtype)


@builder
def full_like(b, n, row, x, value, **layout):
    dtype, shape = out(n)
    return b.fill(shape, value, dtype)


@builder
def fill(b, n, row, x, value):
    dtype, shape = out(n)
    return b.fill(shape, value, dtype)


@builder
def scalar_tensor(b, n, row, value, **layout):
    return b.fill((), value, out(n)[0])


def counted(b, shape, dtype, start, step):
    i = b.iota(shape[0])
    if is_float(dtype):
        i = b.cast(i, "f64")
    if step != 1:
        i = b.map("mul", i, step)
    if start != 0:
        i = b.map("add", i, start)
    return b.cast(i, dtype)


@builder
def arange(b, n, row, start, end, step=1, **layout):
    dtype, shape = out(n)
    return counted(b, shape, dtype, start, step)


@builder
def iota(b, n, row, length, start, step, **layout):
    dtype, shape = out(n)
    return counted(b, shape, dtype, start, step)
