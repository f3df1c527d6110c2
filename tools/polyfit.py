#!/usr/bin/env python3
"""Fit the polynomials of src/target/c/math_fn.def: prints every coefficient.

Method. For f on [lo, hi] and P(x) = sum c_k x^k, minimise the largest
|w(x) (f(x) - P(x))| by Remez exchange in 50-digit decimal arithmetic; w makes
it the relative error of the function that the kernel computes. Coefficients
are then rounded to float; the error printed is that of the rounded ones.
Needs nothing but Python.

    $ tools/polyfit.py           all
    $ tools/polyfit.py exp log   some
"""
import struct
import sys
from decimal import Decimal as D, getcontext

getcontext().prec = 50
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")
LN2 = D(2).ln()


def to_f32(x):
    return D(struct.unpack("f", struct.pack("f", float(x)))[0])


def series(term0, ratio):
    """term0 * (1 + r(1) (1 + r(2) (...))) until nothing changes."""
    s, t, k = D(0), term0, 1
    while t != 0 and s + t != s:
        s += t
        t *= ratio(k)
        k += 1
    return s


def sin(x):
    return series(x, lambda k: -x * x / ((2 * k) * (2 * k + 1)))


def cos(x):
    return series(D(1), lambda k: -x * x / ((2 * k - 1) * (2 * k)))


def expm1(x):
    return series(x, lambda k: x / (k + 1))


def tanh(x):
    t = expm1(2 * x)
    return t / (t + 2)


def erf(x):
    # positive terms only: no cancellation for large x
    s = series(x, lambda k: 2 * x * x / (2 * k + 1))
    return 2 / PI.sqrt() * (-x * x).exp() * s


def log1p(x):
    return (1 + x).ln()


def solve(m, v):
    n = len(v)
    m = [row[:] + [v[i]] for i, row in enumerate(m)]
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(m[r][c]))
        m[c], m[p] = m[p], m[c]
        for r in range(n):
            if r != c and m[r][c] != 0:
                q = m[r][c] / m[c][c]
                m[r] = [a - q * b for a, b in zip(m[r], m[c])]
    return [m[i][n] / m[i][i] for i in range(n)]


def remez(f, w, powers, lo, hi, n_grid=700):
    """Coefficients for `powers`, and the largest weighted error."""
    n = len(powers)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(PI * i / (n_grid - 1))
            for i in range(n_grid)]
    grid = [x for x in grid if x != 0]
    # the lowest power belongs to the weight, so that no basis function
    # vanishes inside the interval; a weight has no sign
    low = powers[0]
    powers = [p - low for p in powers]
    fx = [f(x) / x ** low for x in grid]
    wx = [abs(w(x) * x ** low) for x in grid]
    ref = [round(i * (len(grid) - 1) / n) for i in range(n + 1)]
    for _ in range(60):
        rows = [[grid[i] ** p for p in powers] + [(-1) ** j / wx[i]]
                for j, i in enumerate(ref)]
        c = solve(rows, [fx[i] for i in ref])
        level = abs(c[n])
        err = [wx[i] * (fx[i] - sum(c[k] * grid[i] ** p
               for k, p in enumerate(powers))) for i in range(len(grid))]
        # one extremum in each run of equal sign
        runs = []
        for i, e in enumerate(err):
            if runs and (err[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(err[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            if abs(err[runs[0]]) < abs(err[runs[-1]]):
                runs.pop(0)
            else:
                runs.pop()
        if len(runs) < n + 1:
            break
        worst = max(abs(e) for e in err)
        if runs == ref or worst <= level * D("1.001"):
            break
        ref = runs
    return c[:n], max(abs(e) for e in err)


def fit(f, w, n, lo, hi):
    """n coefficients as floats, the largest error before and after rounding"""
    exact, best = remez(f, w, list(range(n)), lo, hi)
    c = [to_f32(v) for v in exact]
    err = D(0)
    for i in range(2001):
        x = lo + (hi - lo) * i / 2000
        if x != 0:
            p = sum(v * x ** k for k, v in enumerate(c))
            err = max(err, abs(w(x) * (f(x) - p)))
    return c, best, err


def exp_fit():
    """exp(r) = 1 + (r + r^2 P(r))"""
    h = LN2 / 2 * D("1.001")
    return fit(lambda r: (expm1(r) - r) / r ** 2,
               lambda r: r ** 2 / r.exp(), 5, -h, h)


def expm1_fit():
    """expm1(r) = r + r^2 P(r)"""
    h = LN2 / 2 * D("1.001")
    return fit(lambda r: (expm1(r) - r) / r ** 2,
               lambda r: r ** 2 / expm1(r), 6, -h, h)


def log_fit():
    """log(1+f) = f + f^2 (-1/2 + f P(f)) on [2/3, 4/3)"""
    return fit(lambda f: (log1p(f) - f + f * f / 2) / f ** 3,
               lambda f: f ** 3 / log1p(f), 8,
               D(-1) / 3, D(1) / 3)


def tanh_fit():
    """tanh(x) = x + x^3 P(x^2), s = x^2 up to 0.625^2"""
    def f(s):
        x = s.sqrt()
        return (tanh(x) - x) / (x * s)

    def w(s):
        x = s.sqrt()
        return x * s / tanh(x)
    return fit(f, w, 5, D("1e-8"), D("0.625") ** 2)


def erf_fit():
    """1 - erf(x) = exp(-x - x Q(x)) up to 3.95: beyond, erf(x) is 1"""
    def f(x):
        return -(1 - erf(x)).ln() / x - 1

    def w(x):
        return x * (1 - erf(x)) / erf(x)
    return fit(f, w, 9, D("1e-6"), D("3.95"))


def sin_fit():
    """sin(r) = r + r^3 P(r^2), s = r^2 up to (pi/4)^2"""
    def f(s):
        x = s.sqrt()
        return (sin(x) - x) / (x * s)

    def w(s):
        x = s.sqrt()
        return x * s / sin(x)
    return fit(f, w, 3, D("1e-8"), (PI / 4 * D("1.001")) ** 2)


def cos_fit():
    """cos(r) = 1 - r^2/2 + r^4 P(r^2)"""
    def f(s):
        return (cos(s.sqrt()) - 1 + s / 2) / s ** 2

    def w(s):
        return s ** 2 / cos(s.sqrt())
    return fit(f, w, 3, D("1e-8"), (PI / 4 * D("1.001")) ** 2)


def pow_fit():
    """log2((1+s)/(1-s)) = 2/ln(2) s + s^3 P(s^2), s up to 3 - sqrt(8)"""
    def log2(s):
        return ((1 + s) / (1 - s)).ln() / LN2

    def f(t):
        s = t.sqrt()
        return (log2(s) - 2 / LN2 * s) / (t * s)

    def w(t):
        s = t.sqrt()
        return t * s / log2(s)
    return fit(f, w, 4, D("1e-8"), ((3 - D(8).sqrt()) * D("1.001")) ** 2)


def split(name, value, bits):
    """value = sum of floats of at most so many bits each"""
    print(f"{name}: split into floats of {bits} bits")
    rest = value
    for b in bits:
        e = 0
        while abs(rest) * D(2) ** e >= 1:
            e -= 1
        while abs(rest) * D(2) ** e < D("0.5"):
            e += 1
        unit = D(2) ** (b + e)
        part = to_f32((rest * unit).to_integral_value() / unit)
        print(f"\t{float(part).hex()}f")
        rest -= part
    print(f"\trest {float(rest):.3g}")


def two_over_pi():
    """2/pi as words of 32 bits after the point, first a zero word"""
    def atan_inv(n, one):  # one * atan(1/n), in integers
        t = s = one // n
        k, sign = 3, -1
        while t:
            t //= n * n
            s += sign * (t // k)
            k, sign = k + 2, -sign
        return s
    one = 1 << 400
    pi = 4 * (4 * atan_inv(5, one) - atan_inv(239, one))
    bits = (2 * one << 224) // pi
    print("2/pi: 0, " + ", ".join(
        f"0x{bits >> 224 - 32 * i & 0xffffffff:08x}" for i in range(1, 8)))


FITS = {"exp": exp_fit, "expm1": expm1_fit, "log": log_fit, "tanh": tanh_fit,
        "erf": erf_fit, "sin": sin_fit, "cos": cos_fit, "pow": pow_fit}


def main():
    for name in sys.argv[1:] or FITS:
        c, best, err = FITS[name]()
        print(f"{name}: {FITS[name].__doc__}")
        for v in c:
            print(f"\t{float(v).hex()}f")
        print(f"\tlargest relative error 2^{float(err.ln() / LN2):.2f}, "
              f"before rounding 2^{float(best.ln() / LN2):.2f}")
    split("ln 2", LN2, [14, 24])
    split("2/ln 2", 2 / LN2, [12, 24])
    split("pi/2", PI / 2, [11, 11, 11, 11, 24])
    two_over_pi()


main()
