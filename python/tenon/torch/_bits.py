"""Operators that look at the bits of floats: their sign, exponent, neighbours."""
import math

from ._elementwise import out
from ._text import Unsupported, Word, builder, is_float

WHOLE = {"f64": "i64", "f32": "i32", "f16": "i16", "bf16": "i16"}
# bits of the fraction, and what is added to the exponent
FRACTION = {"f64": (52, 1023), "f32": (23, 127)}


def bits_of(b, x):
    return b.one("bit_cast", [x], WHOLE[x.dtype], x.shape, dtype=Word(WHOLE[x.dtype]))


def float_of(b, bits, dtype):
    return b.one("bit_cast", [bits], dtype, bits.shape, dtype=Word(dtype))


def negative(b, x):
    """Is the sign bit set? Also of -0 and NaN."""
    if x.dtype in WHOLE:
        x = bits_of(b, x)
    return b.map("lt", b.cast(x, "u8") if x.dtype == "bool" else x, 0, dtype="bool")


@builder
def signbit(b, n, row, x):
    return negative(b, x)


@builder
def copysign(b, n, row, x, y):
    dtype = out(n)[0]
    x = b.map("abs", b.cast(x, dtype))
    if isinstance(y, (int, float)):
        return x if math.copysign(1, y) > 0 else b.map("neg", x)
    return b.where(negative(b, y), b.map("neg", x), x)


@builder
def angle(b, n, row, x):
    """Of real numbers: 0, or pi below 0; NaN stays NaN."""
    dtype = out(n)[0]
    below = b.map("lt", x, 0, dtype="bool") if x.dtype != "bool" else b.fill((), 0, "bool")
    r = b.broadcast(b.where(below, b.fill((), math.pi, dtype), b.fill((), 0, dtype)), x.shape)
    if not is_float(x.dtype):
        return r
    return b.where(b.map("isnan", x, dtype="bool"), b.cast(x, dtype), r)


def power_of_2(b, k, dtype):
    """2 to the power of whole numbers whose result is a normal float; exact."""
    shift, bias = FRACTION[dtype]
    k = b.map("add", b.cast(k, WHOLE[dtype]), bias)
    return float_of(b, b.map("shl", k, shift), dtype)


@builder
def ldexp(b, n, row, x, y):
    dtype = out(n)[0]
    return b.map("mul", b.cast(x, dtype), b.map("pow", b.fill((), 2, dtype), b.cast(y, dtype)))


@builder
def frexp(b, n, row, x):
    if x.dtype not in FRACTION:
        raise Unsupported(f"frexp of {x.dtype}")
    shift, bias = FRACTION[x.dtype]
    size = b.map("abs", x)
    small = b.map("lt", size, 2.0 ** (1 - bias), dtype="bool")
    up = shift + 1  # brings the smallest floats to where exponents are normal
    scaled = b.where(small, b.map("mul", x, 2.0 ** up), x)
    bits = b.map("shr", bits_of(b, b.map("abs", scaled)), shift)
    e = b.map("sub", bits, bias - 1)
    half = b.map("div", e, 2)
    m = b.map("mul", scaled, power_of_2(b, b.map("neg", half), x.dtype))
    m = b.map("mul", m, power_of_2(b, b.map("sub", half, e), x.dtype))
    e = b.map("sub", e, b.where(small, b.fill((), up, e.dtype), b.fill((), 0, e.dtype)))
    plain = b.map("or", b.map("eq", x, 0.0, dtype="bool"),
                  b.map("not", b.map("isfinite", x, dtype="bool")))
    return [b.where(plain, x, m), b.cast(b.where(plain, b.fill((), 0, e.dtype), e), "i32")]


@builder
def nextafter(b, n, row, x, y):
    dtype, shape = out(n)
    if dtype not in FRACTION:
        raise Unsupported(f"nextafter of {dtype}")
    x, y = (b.broadcast(b.cast(v, dtype), shape) for v in (x, y))
    up, bits = b.map("lt", x, y, dtype="bool"), bits_of(b, x)
    away = b.map("eq", up, b.map("gt", x, 0.0, dtype="bool"), dtype="bool")
    one = b.fill((), 1, bits.dtype)
    bits = b.map("add", bits, b.where(away, one, b.fill((), -1, bits.dtype)))
    # from 0 it is the smallest float with the sign of the way
    tiny = float_of(b, one, dtype)
    tiny = b.where(up, tiny, b.map("neg", tiny))
    r = b.where(b.map("eq", x, 0.0, dtype="bool"), tiny, float_of(b, bits, dtype))
    r = b.where(b.map("eq", x, y, dtype="bool"), y, r)
    nan = b.map("or", b.map("isnan", x, dtype="bool"), b.map("isnan", y, dtype="bool"))
    return b.where(nan, b.map("add", x, y), r)
