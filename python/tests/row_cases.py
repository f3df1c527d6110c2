"""A case for every row of the table: operands, attributes, and what NumPy says.

    "name": ("operands", {attributes}, reference)

Operands are words, one for each: its axes, and after a colon what is in it. An axis is a
letter, whose extent EXTENTS says for each of three shapes, an upper-case letter (twice
the extent), or a digit (that extent); "." is no axis, "*" the three of SHAPES, "~" their
last axis. In it are floats in -2..2, or in "lo,hi", or: "bool"; "int", -3..3; "i8";
"<n", indices below the extent n; "key". Attributes that are strings "=.." are computed
from the extents and `dtype`. The reference gets the arrays, floats as float64, and the
attributes; None: NumPy has nothing like it, so only the gradient is compared.
"""
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SHAPES = [(7,), (3, 5), (2, 3, 4)]
EXTENTS = [dict(a=2, b=3, c=4, d=3, e=5), dict(a=3, b=1, c=5, d=4, e=2),
           dict(a=1, b=4, c=3, d=2, e=6)]

#: Rows whose operands are one list.
LISTS = {"concat", "stack", "einsum"}
#: Rows whose results have room for more than there is: the last says how much is there.
COUNTED = {"nonzero", "unique", "unique_slices"}
#: Rows that draw from a key, or choose: neither NumPy's nor with a gradient. The same
#: key gives the same.
ALONE = {"uniform", "normal", "bernoulli", "randint", "exponential", "gumbel",
         "categorical", "u01", "non_max_suppression"}
#: References that need the operands' own dtype.
AS_THEY_ARE = {"bit_cast"}

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def tf32(x):
    """10 bits of fraction; halves go away from 0."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.trunc(fraction * 2048 + np.copysign(0.5, x)), exponent - 11).astype(x.dtype)


def softmax(x, axis=-1, mask=True):
    e = np.where(mask, np.exp(x), 0)
    s = e.sum(axis, keepdims=True)
    return np.divide(e, s, out=np.zeros_like(e), where=s > 0)


def over(f):
    return lambda x, axes: f(x, axis=tuple(axes))


def at(f):
    def g(x, ids, u):
        o = x.copy()
        f.at(o, ids, u)
        return o
    return g


def segments(f, first):
    def g(x, ids, count):
        o = np.full((count,) + x.shape[1:], first)
        f.at(o, ids, x)
        return o
    return g


def segment_mean(x, ids, count):
    n = np.maximum(np.bincount(ids, minlength=count), 1)
    return segments(np.add, 0.0)(x, ids, count) / n[:, None]


def put(x, at, u):
    o = x.copy()
    o[at] = u
    return o


def put_along(x, ids, u, axis):
    o = x.copy()
    np.put_along_axis(o, ids, u, axis)
    return o


def add_at(x, at, u):
    o = x.copy()
    np.add.at(o, at, u)
    return o


def padded(mode):
    return lambda x, lo, hi: np.pad(x, list(zip(lo, hi)), mode=mode)


def normal(x, axes, g=1, c=0, eps=1e-5):
    """x with mean 0 and variance 1 along axes, times g, plus c."""
    m, v = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * g + c


def channel(v, x):
    return v.reshape((-1,) + (1,) * (x.ndim - 2))


def batch_norm(x, g, b, rm, rv):
    o = normal(x, (0, 2, 3), channel(g, x), channel(b, x))
    return (o, rm + 0.1 * (x.mean((0, 2, 3)) - rm), rv + 0.1 * (x.var((0, 2, 3)) - rv))


def group_norm(x, g, b, groups):
    y = normal(x.reshape(x.shape[0], groups, -1), 2).reshape(x.shape)
    return y * channel(g, x) + channel(b, x)


def moved(x, parts, axes, shape):
    return x.reshape(parts).transpose(axes).reshape(shape)


def conv(x, w, groups, stride, lo, hi):
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(lo, hi)))
    win = sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride[0], ::stride[1]]
    xs, ws = np.split(win, groups, 1), np.split(w, groups, 0)
    return np.concatenate([np.einsum("ncyxij,fcij->nfyx", a, b) for a, b in zip(xs, ws)], 1)


def windows(f):
    def g(x, kernel):
        return f(sliding_window_view(x, kernel, (2, 3)), axis=(-1, -2))
    return g


def nearest(x, size):
    h, w = x.shape[2:]
    return x[:, :, np.arange(size[0]) * h // size[0]][..., np.arange(size[1]) * w // size[1]]


def between(x, size, align, axis):
    at = np.linspace(0, x.shape[-1] - 1, size)
    return np.stack([np.interp(at, np.arange(x.shape[-1]), r) for r in x])


def losses(x, t):
    z = np.log(np.exp(x).sum(-1))
    return z - np.take_along_axis(x, t[..., None], -1)[..., 0]


def masked_loss(x, t, ignore):
    kept = t != ignore
    return (losses(x, t) * kept).sum() / max(kept.sum(), 1)


def soft_loss(x, p):
    z = np.log(np.exp(x).sum(-1, keepdims=True))
    return (p * (z - x)).sum(-1).mean()


def attention(q, k, v, scale, bias=0):
    return softmax(np.einsum("...td,...ud->...tu", q, k) * scale + bias) @ v


def grouped(q, k, v, groups, scale):
    return attention(q, np.repeat(k, groups, 1), np.repeat(v, groups, 1), scale)


def rope(x, c, s):
    x1, x2 = np.split(x, 2, -1)
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], -1)


def rope_pairs(x, c, s):
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return np.stack([x1 * c - x2 * s, x2 * c + x1 * s], -1).reshape(x.shape)


def sgd_momentum(p, m, g, lr):
    m = 0.9 * m + g
    return p - lr * m, m


def adam(p, m, v, g, lr, c1, c2, decay=0.0, eps=1e-8, lamb=False):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    u = c1 * m / (np.sqrt(c2 * v) + eps) + decay * p
    r = np.sqrt((p * p).sum() / (u * u).sum()) if lamb else 1
    return p - lr * r * u, m, v


def adagrad(p, v, g, lr):
    v = v + g * g
    return p - lr * g / (np.sqrt(v) + 1e-10), v


def rmsprop(p, v, g, lr):
    v = 0.99 * v + 0.01 * g * g
    return p - lr * g / (np.sqrt(v) + 1e-8), v


def sample_boxes(x, b, i, j, u, v):
    o = x[b[:, None, None], :, i[:, :, None], j[:, None, :]]
    return np.moveaxis(o, -1, 1) * u[:, None, :, None] * v[:, None, None, :]


def unique(x):
    o, first, inverse, counts = np.unique(x, True, True, True)
    return o, first, inverse.ravel(), counts, len(o)


def unique_slices(x, axis):
    o, first, inverse, counts = np.unique(x, True, True, True, axis)
    return first, inverse.ravel(), counts, len(o)


def found(x):
    k = np.argwhere(x)
    return k, len(k)


LAST, FIRST, MIDDLE = {"axis": -1}, {"axis": 0}, {"axis": 1}
AXES = {"axes": [0, 2]}
IMAGE = "a2cd"
TWO = {"kernel": [2, 2]}


def each(rows):
    """Elementwise rows: "name": reference, or (reference, lo, hi)."""
    out = {}
    for name, f in rows.items():
        f, lo, hi = f if isinstance(f, tuple) else (f, -2, 2)
        out[name] = (f"*:{lo},{hi}", {}, f)
    return out


def pairs(rows):
    """The same, of two operands; the second is broadcast."""
    out = {}
    for name, f in rows.items():
        f, what = f if isinstance(f, tuple) else (f, "-2,2")
        out[name] = (f"*:{what} ~:{what}", {}, f)
    return out


SCALAR = each({
    "exp": np.exp, "exp_weight": lambda x: np.where(x > -87, np.exp(x), 0), "log": (np.log, 0.1, 4), "sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4), "tanh": np.tanh, "erf": erf,
    "sin": (np.sin, -3, 3), "cos": (np.cos, -3, 3), "tan": (np.tan, -1, 1),
    "asin": (np.arcsin, -0.9, 0.9), "acos": (np.arccos, -0.9, 0.9), "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": (np.arccosh, 1.1, 4), "atanh": (np.arctanh, -0.9, 0.9), "sigmoid": sigmoid,
    "log1p": (np.log1p, -0.5, 3), "expm1": np.expm1, "softplus": softplus,
    "relu": lambda x: np.maximum(x, 0), "abs": np.abs, "neg": np.negative,
    "sign": np.sign, "recip": (np.reciprocal, 0.2, 3), "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "tf32": tf32, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite, "nan_to_num": np.nan_to_num,
    "identity": np.positive, "copy": np.copy, "stop_gradient": np.positive,
    "square": np.square, "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (
        x + 0.044715 * x ** 3))),
    "gelu_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "thresholded_relu": lambda x: np.where(x > 1, x, 0),
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "tanh_shrink": lambda x: x - np.tanh(x), "log_sigmoid": lambda x: -softplus(-x),
    "logit": (lambda x: np.log(x / (1 - x)), 0.1, 0.9),
}) | pairs({
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": (np.divide, "0.3,2"),
    "pow": (np.power, "0.3,2"), "fmod": (np.fmod, "0.3,2"), "mod": (np.mod, "0.3,2"),
    "max": np.maximum, "min": np.minimum, "atan2": (np.arctan2, "0.3,2"),
    "logaddexp": np.logaddexp, "squared_difference": lambda x, y: (x - y) ** 2,
    "xlogy": (lambda x, y: x * np.log(y), "0.3,2"),
    "prelu": lambda x, a: np.where(x > 0, x, a * x), "isclose": (np.isclose, "0.3,2"),
    "lt": (np.less, "int"), "le": (np.less_equal, "int"), "gt": (np.greater, "int"),
    "ge": (np.greater_equal, "int"), "eq": (np.equal, "int"), "ne": (np.not_equal, "int"),
    "and_": (np.logical_and, "bool"), "or_": (np.logical_or, "bool"),
    "xor": (np.logical_xor, "bool"), "bit_and": (np.bitwise_and, "int"),
    "bit_or": (np.bitwise_or, "int"), "bit_xor": (np.bitwise_xor, "int"),
    "u01": (None, "int"),
    "mse": lambda x, y: np.mean((x - y) ** 2), "l1_loss": lambda x, y: np.abs(x - y).mean(),
    "huber": lambda x, y: np.where(np.abs(x - y) <= 1, (x - y) ** 2 / 2,
                                   np.abs(x - y) - 0.5).mean(),
    "hinge_loss": lambda x, y: np.maximum(0, 1 - x * y).mean(),
    "bce": (lambda x, t: -(t * np.log(x) + (1 - t) * np.log1p(-x)).mean(), "0.1,0.9"),
    "bce_with_logits": lambda x, t: (softplus(x) - x * t).mean(),
}) | {
    "not_": ("*:bool", {}, np.logical_not), "bit_not": ("*:int", {}, np.bitwise_not),
    "shl": ("*:int *:<c", {}, np.left_shift), "shr": ("*:int *:<c", {}, np.right_shift),
    "where": ("*:bool * ~", {}, np.where), "sel": ("*:bool * ~", {}, np.where),
    "masked_fill": ("* ~:bool", {"value": 0.5}, lambda x, c, value: np.where(c, value, x)),
    "clip": ("*", {"lo": -0.5, "hi": 0.7}, lambda x, lo, hi: np.clip(x, lo, hi)),
    "cast": ("*", {"to": "f64"}, lambda x, to: x), "write": ("* *", {}, lambda x, v: v),
    "affine": ("*", {"alpha": 1.5, "beta": 0.5}, lambda x, alpha, beta: alpha * x + beta),
    "addcmul": ("* ~ *", {"value": 0.5}, lambda c, x, y, value: c + value * x * y),
    "addcdiv": ("* ~ *:0.3,2", {"value": 0.5}, lambda c, x, y, value: c + value * x / y),
    "lerp": ("* ~ *", {}, lambda x, y, w: x + w * (y - x)),
    "fill_like": ("*", {"value": 2.0}, lambda x, value: np.full_like(x, value)),
}

REDUCTIONS = {
    "reduce_sum": ("abc", AXES, over(np.sum)), "reduce_prod": ("abc", AXES, over(np.prod)),
    "reduce_max": ("abc", AXES, over(np.max)), "reduce_min": ("abc", AXES, over(np.min)),
    "reduce_mean": ("abc", AXES, over(np.mean)), "reduce_var": ("abc", AXES, over(np.var)),
    "reduce_std": ("abc", AXES, over(np.std)), "reduce_all": ("abc:bool", AXES, over(np.all)),
    "reduce_any": ("abc:bool", AXES, over(np.any)),
    "count_nonzero": ("abc:int", AXES, over(np.count_nonzero)),
    "reduce_l1": ("abc", AXES, lambda x, axes: np.abs(x).sum(tuple(axes))),
    "reduce_l2": ("abc", AXES, lambda x, axes: np.sqrt((x * x).sum(tuple(axes)))),
    "reduce_lp": ("abc", {"p": 3.0} | AXES,
                  lambda x, axes, p: (np.abs(x) ** p).sum(tuple(axes)) ** (1 / p)),
    "reduce_sumsq": ("abc", AXES, lambda x, axes: (x * x).sum(tuple(axes))),
    "reduce_logsum": ("abc:0.1,2", AXES, lambda x, axes: np.log(x.sum(tuple(axes)))),
    "logsumexp": ("abc", AXES, lambda x, axes: np.log(np.exp(x).sum(tuple(axes)))),
    "logsumexp_online": ("abc", AXES, lambda x, axes: np.log(np.exp(x).sum(tuple(axes)))),
    "moments": ("abc", AXES, lambda x, axes: (x.mean(tuple(axes)), x.var(tuple(axes)))),
    "argmax": ("abc", MIDDLE, np.argmax), "argmin": ("abc", MIDDLE, np.argmin),
    "max_with_index": ("abc", MIDDLE, lambda x, axis: (x.max(axis), x.argmax(axis))),
    "min_with_index": ("abc", MIDDLE, lambda x, axis: (x.min(axis), x.argmin(axis))),
    "histogram": ("ed:<c", {"bins": "=c"}, lambda ids, bins: np.bincount(
        ids.ravel(), minlength=bins)),
    "segment_sum": ("eb e:<c", {"count": "=c"}, segments(np.add, 0.0)),
    "segment_max": ("eb e:<c", {"count": "=c"}, segments(np.maximum, -np.inf)),
    "segment_mean": ("eb e:<c", {"count": "=c"}, segment_mean),
    "cumsum": ("abc", MIDDLE, np.cumsum), "cumprod": ("abc", MIDDLE, np.cumprod),
    "cumsum_reverse": ("abc", MIDDLE, lambda x, axis: np.flip(
        np.cumsum(np.flip(x, axis), axis), axis)),
    "cumsum_exclusive": ("abc", MIDDLE, lambda x, axis: np.cumsum(x, axis) - x),
    "cumsum_reverse_exclusive": ("abc", MIDDLE, lambda x, axis: np.flip(
        np.cumsum(np.flip(x, axis), axis), axis) - x),
    "cummax": ("abc", MIDDLE, np.maximum.accumulate),
    "cummin": ("abc", MIDDLE, np.minimum.accumulate),
    "linear_recurrence": ("abc abc", {}, None), "tanh_rnn": ("ab b", {}, None),
    "discounted_sum": ("abc", {"axis": 1, "gamma": 0.9}, None),
    "moving_average": ("abc", {"axis": 1, "alpha": 0.3}, None),
    "sort": ("abc", LAST, lambda x, axis: (np.sort(x, axis), np.argsort(x, axis))),
    "argsort": ("abc", LAST, np.argsort),
    "topk": ("abc", {"count": 2}, lambda x, count: (
        -np.sort(-x)[..., :count], np.argsort(-x)[..., :count])),
    "nonzero": ("ab:int", {}, found), "unique": ("ab:int", {}, unique),
    "unique_slices": ("eb:int", FIRST, unique_slices),
    "softmax": ("abc", MIDDLE, softmax),
    "log_softmax": ("abc", MIDDLE, lambda x, axis: np.log(softmax(x, axis))),
    "masked_softmax": ("abc abc:bool", MIDDLE, lambda x, m, axis: softmax(x, axis, m)),
    "diff": ("abc", MIDDLE, lambda x, axis: np.diff(x, axis=axis)),
    "trace": ("abb", {}, lambda x: np.trace(x, axis1=-2, axis2=-1)),
    "det": ("abb", {}, np.linalg.det),
}

MADE = {
    "fill": ("", {"shape": "=[a,b]", "value": 1.5, "dtype": "=dtype"},
             lambda shape, value, dtype: np.full(shape, value)),
    "iota": ("", {"shape": "=[a,b]", "axis": 1, "dtype": "=dtype"},
             lambda shape, axis, dtype: np.indices(shape)[axis]),
    "arange": ("", {"n": "=c", "start": 2, "step": 3, "dtype": "=dtype"},
               lambda n, start, step, dtype: np.arange(start, start + step * n, step)),
    "linspace": ("", {"start": -1.0, "stop": 2.0, "n": "=c", "dtype": "=dtype"},
                 lambda start, stop, n, dtype: np.linspace(start, stop, n)),
    "eye": ("", {"n": "=c", "m": "=d", "k": 1, "dtype": "=dtype"},
            lambda n, m, k, dtype: np.eye(n, m, k)),
    "one_hot": ("ab:<c", {"depth": "=c", "dtype": "=dtype"},
                lambda ids, depth, dtype: np.eye(depth)[ids]),
    "uniform": (".:key", {"shape": "=[a,b]", "dtype": "=dtype"}, None),
    "normal": (".:key", {"shape": "=[a,b]", "dtype": "=dtype"}, None),
    "bernoulli": (".:key ab:0.1,0.9", {}, None),
    "randint": (".:key", {"shape": "=[a,b]", "hi": 5}, None),
    "exponential": (".:key", {"shape": "=[a,b]", "dtype": "=dtype"}, None),
    "gumbel": (".:key", {"shape": "=[a,b]", "dtype": "=dtype"}, None),
    "categorical": (".:key ab", {}, None), "dropout": ("ab .:key", {}, None),
}

MOVES = {
    "along_axis": ("b", {"shape": "=[a,b,c]", "axis": 1},
                   lambda x, shape, axis: np.broadcast_to(x[:, None], shape)),
    "reshape": ("ab", {"shape": "=[b,a]"}, lambda x, shape: np.reshape(x, shape)),
    "flatten": ("abc", {"axis": 2}, lambda x, axis: x.reshape(-1, x.shape[2])),
    "transpose": ("abc", {"perm": [2, 0, 1]}, lambda x, perm: np.transpose(x, perm)),
    "slice": ("Cb", {"axes": [0], "start": [1], "count": [2], "step": [2]},
              lambda x, **_: x[1:4:2]),
    "narrow": ("Cb", {"start": 1, "count": 2}, lambda x, **_: x[1:3]),
    "dynamic_narrow": ("Cb .:<d", {"count": 2}, lambda x, s, count: x[s:s + count]),
    "select": ("abc", {"axis": 1, "index": 0}, lambda x, axis, index: np.take(x, index, axis)),
    "flip": ("abc", {"axes": [0, 2]}, lambda x, axes: np.flip(x, axes)),
    "roll": ("abc", {"axes": [2], "shift": [1]}, lambda x, axes, shift: np.roll(x, shift, axes)),
    "broadcast_to": ("b", {"shape": "=[a,b]"}, lambda x, shape: np.broadcast_to(x, shape)),
    "squeeze": ("a1b", {"axes": [1]}, lambda x, axes: np.squeeze(x, axes[0])),
    "unsqueeze": ("ab", MIDDLE, lambda x, axis: np.expand_dims(x, axis)),
    "pad": ("cd", {"lo": [1, 0], "hi": [0, 2]}, padded("constant")),
    "pad_edge": ("cd", {"lo": [1, 0], "hi": [0, 2]}, padded("edge")),
    "pad_reflect": ("cd", {"lo": [1, 0], "hi": [0, 2]}, padded("reflect")),
    "pad_wrap": ("cd", {"lo": [1, 0], "hi": [0, 2]}, padded("wrap")),
    "tile": ("ab", {"reps": [2, 3]}, lambda x, reps: np.tile(x, reps)),
    "repeat": ("ab", {"axis": 1, "reps": 2}, lambda x, axis, reps: np.repeat(x, reps, axis)),
    "tril": ("abc", {"k": 1}, lambda x, k: np.tril(x, k)),
    "triu": ("abc", {"k": 1}, lambda x, k: np.triu(x, k)),
    "diagonal": ("abc", {"k": 1}, lambda x, k: np.diagonal(x, k, -2, -1)),
    "diag_embed": ("ab", {}, lambda x: x[..., None] * np.eye(x.shape[-1])),
    "depth_to_space": ("a8bc", {"r": 2}, lambda x, r: moved(
        x, (x.shape[0], 2, 2, 2) + x.shape[2:], (0, 3, 4, 1, 5, 2),
        (x.shape[0], 2, 2 * x.shape[2], -1))),
    "space_to_depth": ("a2BD", {"r": 2}, lambda x, r: moved(
        x, (x.shape[0], 2, x.shape[2] // 2, 2, x.shape[3] // 2, 2), (0, 3, 5, 1, 2, 4),
        (x.shape[0], 8, x.shape[2] // 2, -1))),
    "pixel_shuffle": ("a8bc", {"r": 2}, lambda x, r: moved(
        x, (x.shape[0], 2, 2, 2) + x.shape[2:], (0, 1, 4, 2, 5, 3),
        (x.shape[0], 2, 2 * x.shape[2], -1))),
    "pixel_unshuffle": ("a2BD", {"r": 2}, lambda x, r: moved(
        x, (x.shape[0], 2, x.shape[2] // 2, 2, x.shape[3] // 2, 2), (0, 1, 3, 5, 2, 4),
        (x.shape[0], 8, x.shape[2] // 2, -1))),
    "channel_shuffle": ("a6b", {"groups": 2}, lambda x, groups: moved(
        x, (x.shape[0], 2, 3, -1), (0, 2, 1, 3), x.shape)),
    "resize_nearest": (IMAGE, {"size": [5, 3]}, nearest),
    "resize_linear": ("ac", {"size": 5, "align": 1, "axis": -1}, between),
    "grid_sample": ("a2cd abe2:-0.9,0.9", {}, None),
    "take": ("cb de:<c", FIRST, np.take),
    "take_along": ("cb db:<c", FIRST, np.take_along_axis),
    "gather_nd": ("e2:<a aab", {}, lambda ids, x: x[tuple(ids.T)]),
    "embedding": ("ed:<c cb", {}, lambda ids, w: w[ids]),
    "embedding_bag": ("ed:<c cb", {}, lambda ids, w: w[ids].sum(-2)),
    "scatter_add": ("cb e:<c eb", {}, at(np.add)),
    "scatter_max": ("cb e:<c eb", {}, at(np.maximum)),
    "scatter_min": ("cb e:<c eb", {}, at(np.minimum)),
    "scatter_mul": ("cb e:<c eb", {}, at(np.multiply)), "scatter_set": ("cb e:<c eb", {}, put),
    "index_add": ("ac e:<c ae", MIDDLE, lambda x, i, u, axis: add_at(x, (slice(None), i), u)),
    "index_set": ("ac e:<c ae", MIDDLE, lambda x, i, u, axis: put(x, (slice(None), i), u)),
    "add_along": ("cb db:<c db", FIRST, lambda x, i, u, axis: add_at(
        x, (i, np.arange(x.shape[1])), u)),
    "put_along": ("cb db:<c db", FIRST, put_along),
    "scatter_nd_add": ("e2:<a aab eb", {}, lambda i, x, u: add_at(x, tuple(i.T), u)),
    "scatter_nd_set": ("e2:<a aab eb", {}, lambda i, x, u: put(x, tuple(i.T), u)),
    "resample": ("cb e2:<c e2", FIRST, lambda x, i, w, axis: np.einsum(
        "ykb,yk->yb", x[i], w)),
    "sample_pixels": (IMAGE + " abe:<c abe:<d", {}, lambda x, i, j: np.stack(
        [x[n][:, i[n], j[n]] for n in range(len(x))])),
    "sample_boxes": (IMAGE + " e:<a e3:<c e2:<d e3 e2", {}, sample_boxes),
    "max_boxes": (IMAGE + " e:<a e3:<c e3:<c e2:<d e2:<d", {}, None),
    "bit_cast": ("ab", {"dtype": "='i' + dtype[1:]"},
                 lambda x, dtype: x.view("int" + dtype[1:])),
    "concat": ("ab cb", FIRST, np.concatenate), "stack": ("ab ab", MIDDLE, np.stack),
    "split": ("aBc", {"axis": 1, "parts": 2}, lambda x, axis, parts: tuple(
        np.split(x, parts, axis))),
    "unbind": ("abc", MIDDLE, lambda x, axis: tuple(np.moveaxis(x, axis, 0))),
}

PRODUCTS = {
    "matmul": ("abc cd", {}, np.matmul), "matvec": ("abc c", {}, np.matmul),
    "dot": ("c c", {}, np.dot), "vecdot": ("abc c", {}, lambda x, y: (x * y).sum(-1)),
    "outer": ("a b", {}, np.outer), "kron": ("ab cd", {}, np.kron),
    "linear": ("abc dc d", {}, lambda x, w, c: x @ w.T + c),
    "linear_nobias": ("abc dc", {}, lambda x, w: x @ w.T),
    "addmm": ("ab ac cb", {"alpha": 0.5, "beta": 2.0},
              lambda c, x, y, alpha, beta: beta * c + alpha * (x @ y)),
    "bilinear": ("ab dbc ac", {}, lambda x, w, y: np.einsum("ai,fij,aj->af", x, w, y)),
    "cross": ("ab3 b3", {}, np.cross),
    "cdist": ("ab cb", {}, lambda x, y: np.linalg.norm(x[:, None] - y, axis=-1)),
    "einsum": ("ab bc", {"equation": "ij,jk->ki"},
               lambda x, equation: np.einsum(equation, *x)),
    "conv": ("a4cd 6222", {"groups": 2, "stride": [1, 2], "lo": [1, 0], "hi": [0, 1]}, conv),
    "conv_transpose": ("a4cd 4222", {"groups": 2, "stride": [1, 2], "lo": [1, 0]}, None),
    "unfold": (IMAGE, TWO, lambda x, kernel: sliding_window_view(
        x, kernel, (2, 3)).transpose(0, 1, 4, 5, 2, 3)),
    "fold": ("a222cd", {"size": "=[c+1,d+1]"}, None),
    "max_pool": (IMAGE, TWO, windows(np.max)), "avg_pool": (IMAGE, TWO, windows(np.mean)),
    "avg_pool_padded": (IMAGE, TWO, windows(np.mean)),
    "lp_pool": (IMAGE, TWO, windows(lambda x, axis: np.sqrt((x * x).sum(axis)))),
    "global_avg_pool": (IMAGE, {}, lambda x: x.mean((2, 3))),
    "global_max_pool": (IMAGE, {}, lambda x: x.max((2, 3))),
    "attention": ("abcd abed abe5", {"scale": 0.5}, attention),
    "attention_online": ("abcd abed abe5", {"scale": 0.5}, attention),
    "attention_bias": ("abcd abed abe5 abce", {"scale": 0.5},
                       lambda q, k, v, bias, scale: attention(q, k, v, scale, bias)),
    "attention_grouped": ("a4cd a2ed a2e5", {"groups": 2, "scale": 0.5}, grouped),
    "rope": ("abC bc bc", {}, rope), "rope_pairs": ("abC bc bc", {}, rope_pairs),
    "glu": ("aBc", MIDDLE, lambda x, axis: np.split(x, 2, axis)[0] * sigmoid(
        np.split(x, 2, axis)[1])),
    "swiglu": ("aBc", MIDDLE, lambda x, axis: np.prod(
        [*np.split(x, 2, axis), sigmoid(np.split(x, 2, axis)[0])], 0)),
}

LEARNING = {
    "bucketize": ("* 5", {}, lambda x, e: np.searchsorted(np.sort(e), x)),
    "isin": ("*:int 3:int", {}, np.isin),
    "quantize_linear": ("ab b:0.3,2 b:i8", MIDDLE, lambda x, s, z, axis: np.clip(
        np.rint(x / s) + z, -128, 127)),
    "dequantize_linear": ("ab:i8 b:0.3,2 b:i8", MIDDLE, lambda q, s, z, axis: (
        q.astype(float) - z) * s),
    "layer_norm": ("abc bc bc", {"k": 2}, lambda x, g, c, k: normal(x, (1, 2), g, c)),
    "layer_norm_welford": ("abc c c", {}, lambda x, g, c: normal(x, 2, g, c)),
    "rms_norm": ("abc c", {}, lambda x, g: x / np.sqrt(
        (x * x).mean(-1, keepdims=True) + 1e-5) * g),
    "batch_norm": ("abcd b b b b:0.3,2", {}, batch_norm),
    "batch_norm_infer": ("abcd b b b b:0.3,2", {}, lambda x, g, b, rm, rv: (
        x - channel(rm, x)) / np.sqrt(channel(rv, x) + 1e-5) * channel(g, x) + channel(b, x)),
    "group_norm": ("a6cd 6 6", {"groups": 2}, group_norm),
    "instance_norm": ("abcd b b", {}, lambda x, g, b: normal(
        x, (2, 3), channel(g, x), channel(b, x))),
    "standardize": ("abc", AXES, lambda x, axes: normal(x, tuple(axes))),
    "l2_normalize": ("abc", {"axes": [1]}, lambda x, axes: x / np.sqrt(
        (x * x).sum(1, keepdims=True))),
    "local_response_norm": ("a5c", {"size": 3, "alpha": 0.5}, None),
    "cross_entropy": ("abc ab:<c", {}, lambda x, t: losses(x, t).mean()),
    "cross_entropy_rows": ("abc ab:<c", {}, losses),
    "cross_entropy_masked": ("abc ab:<c", {"ignore": 1}, masked_loss),
    "cross_entropy_soft": ("abc abc:0.1,0.9", {}, soft_loss),
    "nll_loss": ("abc ab:<c", {}, lambda x, t: -np.take_along_axis(
        x, t[..., None], -1).mean()),
    "kl_div": ("ab ab:0.1,0.9", {}, lambda x, p: (p * (np.log(p) - x)).sum() / len(x)),
    "cosine_similarity": ("abc abc", {}, lambda x, y: (x * y).sum(-1) / (
        np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))),
    "sgd": ("ab ab .:0.01,0.1", {}, lambda p, g, lr: p - lr * g),
    "sgd_momentum": ("ab ab ab .:0.01,0.1", {}, sgd_momentum),
    "adam": ("ab ab ab:0.3,2 ab .:0.01,0.1 .:1,2 .:1,2", {}, adam),
    "adamw": ("ab ab ab:0.3,2 ab .:0.01,0.1 .:1,2 .:1,2", {},
              lambda *a: adam(*a, decay=0.01)),
    "lamb": ("ab ab ab:0.3,2 ab .:0.01,0.1 .:1,2 .:1,2", {},
             lambda *a: adam(*a, decay=0.01, eps=1e-6, lamb=True)),
    "adagrad": ("ab ab:0.3,2 ab .:0.01,0.1", {}, adagrad),
    "rmsprop": ("ab ab:0.3,2 ab .:0.01,0.1", {}, rmsprop),
    "clip_factor": (".:1,4", {"limit": 0.5}, lambda s, limit: limit / np.sqrt(s)),
    "non_max_suppression": ("ae4 a2e .:0.1,0.9 .:0.1,0.2", {"most": 2}, None),
}

CASES = SCALAR | REDUCTIONS | MADE | MOVES | PRODUCTS | LEARNING
