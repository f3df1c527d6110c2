"""Special functions, as rows of elementary ones in f64."""
import math

from ._elementwise import out
from ._text import Unsupported, builder


def polynomial(coefficients, x):
    """Text of c0 + c1 x + c2 x^2 .., by Horner's rule."""
    text = repr(float(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        text = f"({float(c)!r} + {x} * {text})"
    return text


def in_f64(b, n, text, x):
    """A row on f64, of one operand x[i..]; the result in the node's dtype."""
    y = b.one(b.row("(x[i..]:float) -> o { " + text + " }"), [b.cast(x, "f64")], "f64",
              x.shape)
    return b.cast(y, out(n)[0])


# -- gamma: below 1/2 by reflection, else by the asymptotic series at 12 and more --

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
MIRRORED = "y[i..] = sel(x[i..] < 0.5, 1 - x[i..], x[i..]); "
FRACTION = f"{math.pi!r} * sel(abs(x[i..]) < 0.5, x[i..], x[i..] - round(x[i..]))"
POLE = "x[i..] < 0 and x[i..] == floor(x[i..])"


def _cotangent(n):
    """P such that the n-th derivative of cot is P(cot)."""
    p = [0.0, 1.0]
    for _ in range(n):
        d = [i * c for i, c in enumerate(p)][1:] + [0.0, 0.0]
        p = [-c - (d[i - 2] if i >= 2 else 0) for i, c in enumerate(d)]
    return p


def _psi(order):
    """The derivative of digamma of this order, of y: equations for p."""
    n = math.factorial(order)
    terms = [B * math.factorial(2 * j + order + 1) / math.factorial(2 * j + 2)
             for j, B in enumerate(BERNOULLI)]
    series = f"{polynomial(terms, 'r[i..]')} * pow(z[i..], {-order - 2}.0)"
    if order == 0:
        p = f"log(z[i..]) - 0.5 / z[i..] - {series} - s[i..]"
    else:
        p = (f"({math.factorial(order - 1)}.0 * pow(z[i..], {-order}.0) + {0.5 * n} * "
             f"pow(z[i..], {-order - 1}.0) + {series} + s[i..])")
        p = p if order % 2 else "-" + p
    return (f"z[i..] = y[i..] + 12; r[i..] = 1 / (z[i..] * z[i..]); "
            f"s[i..] += {n}.0 * pow(y[i..] + cast(k, f64), {-order - 1}.0) for k < 12; "
            f"p[i..] = {p}; ")


@builder
def polygamma(b, n, row, order, x):
    if not 0 <= order <= 8:
        raise Unsupported(f"polygamma of order {order}")
    below = (f"{(-1.0) ** order} * p[i..] - {math.pi ** (order + 1)!r} * "
             f"{polynomial(_cotangent(order), 'c[i..]')}")
    at_pole = "nan" if order == 0 else "inf"
    return in_f64(b, n, f"{MIRRORED}{_psi(order)}c[i..] = 1 / tan({FRACTION}); o[i..] = "
                  f"sel({POLE}, {at_pole}, sel(x[i..] < 0.5, {below}, p[i..]))", x)


@builder
def digamma(b, n, row, x):
    return polygamma(b, n, row, 0, x)


@builder
def lgamma(b, n, row, x):
    terms = [B / ((2 * j + 1) * (2 * j + 2)) for j, B in enumerate(BERNOULLI)]
    return in_f64(b, n, (
        MIRRORED + "z[i..] = sel(y[i..] < 12, y[i..] + 12, y[i..]); "
        "s[i..] += sel(y[i..] < 12, log(y[i..] + cast(k, f64)), 0) for k < 12; "
        f"r[i..] = 1 / (z[i..] * z[i..]); p[i..] = z[i..] * (log(z[i..]) - 1) - "
        f"0.5 * log(z[i..]) + {0.5 * math.log(2 * math.pi)!r} + "
        f"{polynomial(terms, 'r[i..]')} / z[i..] - s[i..]; "
        "o[i..] = sel(isinf(x[i..]), inf, sel(x[i..] < 0.5, "
        f"log({math.pi!r} / abs(sin({FRACTION}))) - p[i..], p[i..]))"), x)


# -- modified Bessel functions: by the series at 0, and by that at infinity from 20 on --

@builder
def bessel_i(b, n, words, x):
    """words: the order, and whether it is multiplied by exp(-|x|)."""
    order, scaled = words.split()
    order = int(order)
    near = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(50)]
    far, a = [1.0], 1.0
    for k in range(1, 26):
        a *= -(4 * order * order - (2 * k - 1) ** 2) / (8 * k)
        far.append(a)
    near = polynomial(near, "t[i..]")
    far = f"{polynomial(far, '(1 / a[i..])')} * rsqrt({2 * math.pi!r} * a[i..])"
    if order:
        near = f"0.5 * a[i..] * {near}"
    if scaled == "scaled":
        near = f"exp(-a[i..]) * {near}"
    else:
        far = f"exp(a[i..]) * {far}"
    sign = "sign(x[i..]) * " if order else ""
    return in_f64(b, n, "a[i..] = abs(x[i..]); t[i..] = sel(a[i..] < 20, 0.25 * x[i..] * "
                  f"x[i..], 0); o[i..] = {sign}sel(a[i..] < 20, {near}, {far})", x)


@builder
def sinc(b, n, row, x):
    """sin(x) / x."""
    return in_f64(b, n, "o[i..] = sel(x[i..] == 0, 1, sel(isinf(x[i..]), 0, sin(x[i..]) / "
                  "x[i..]))", x)


# -- the error function: far from 0 by a continued fraction --

def _erfcx(a):
    """exp(a a) (1 - erf(a)) of a >= 2."""
    text = a
    for k in range(60, 0, -1):
        text = f"({a} + {k / 2!r} / {text})"
    return f"{1 / math.sqrt(math.pi)!r} / {text}"


@builder
def erfc(b, n, words, x):
    """words: scaled by exp(x x), or plain."""
    far, near = _erfcx("a[i..]"), "(1 - erf(x[i..]))"
    if words == "scaled":
        near = f"exp(x[i..] * x[i..]) * {near}"
    else:
        far = f"exp(-a[i..] * a[i..]) * {far}"
    return in_f64(b, n, f"a[i..] = max(x[i..], 2); o[i..] = sel(x[i..] > 2, {far}, {near})", x)


@builder
def erfinv(b, n, row, x):
    """By steps of Newton, from a guess that is right to a thousandth."""
    if x.dtype == "f64":
        raise Unsupported("erfinv of f64")
    k = 2 / (math.pi * 0.147)
    guess = (f"w[i..] = log((1 - x[i..]) * (1 + x[i..])); h[i..] = {k!r} + 0.5 * w[i..]; "
             "e0[i..] = sign(x[i..]) * sqrt(max(sqrt(max(h[i..] * h[i..] - w[i..] / 0.147, "
             "0)) - h[i..], 0)); ")
    half = 0.5 * math.sqrt(math.pi)
    for k in range(3):
        e = f"e{k}[i..]"
        guess += (f"e{k + 1}[i..] = {e} - (erf({e}) - x[i..]) * {half!r} * exp({e} * {e}); ")
    return in_f64(b, n, guess + "o[i..] = sel(abs(x[i..]) == 1, x[i..] * inf, sel("
                  "abs(x[i..]) > 1, nan, e3[i..]))", x)
