"""Attention of whole tensors, and its gradient.

Axes: batch, heads, places, width. If k and v have fewer heads, each serves several of q:
then all have one axis more, [batch, heads of k, heads of q for each, places, width].
"""
import math

from ._text import Unsupported, builder


def _swapped(b, x):
    return b.transpose(x, list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2])


def _product(b, x, y):
    lead = max(x.shape[:-2], y.shape[:-2])
    return b.one("matmul", [x, y], x.dtype, lead + (x.shape[-2], y.shape[-1]))


def _shared(b, k, *others):
    """How many heads of q a head of k serves; k, then the others, with that axis."""
    shape, heads = k.shape, others[0].shape[1]
    if len(shape) != 4 or heads == shape[1]:
        return (1, k) + others
    n = heads // shape[1]
    out = [b.reshape(k, shape[:2] + (1,) + shape[2:])]
    for x in others:
        if x is None:
            out.append(None)
        elif x.shape[1] == heads:
            out.append(b.reshape(x, (x.shape[0], shape[1], n) + x.shape[2:]))
        else:
            out.append(b.reshape(x, x.shape[:2] + (1,) + x.shape[2:]))
    return (n, *out)


def _scores(b, q, k, mask, causal, scale):
    """q k' * scale with its mask: [.., m, n]."""
    s = b.map("mul", _product(b, q, _swapped(b, k)), scale)
    if mask is not None:
        s = b.map("add", s, b.cast(mask, s.dtype))
    if causal:
        m, n = s.shape[-2:]
        above = b.map("gt", b.iota(n), b.reshape(b.iota(m), (m, 1)), dtype="bool")
        s = b.where(above, b.fill((), float("-inf"), s.dtype), s)
    return s


def _plain(q, dropout_p, scale):
    """The scale, if these can be written."""
    if dropout_p != 0:
        raise Unsupported("attention with dropout")
    if q.dtype not in ("f32", "f64"):
        raise Unsupported(f"attention of {q.dtype}")
    return float(scale if scale is not None else 1 / math.sqrt(q.shape[-1]))


def _masked(b, mask, rank):
    """mask with all axes of the scores."""
    if mask is None or mask.rank == rank:
        return mask
    return b.reshape(mask, (1,) * (rank - mask.rank) + mask.shape)


@builder
def attention(b, n, row, q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None,
              scale=None):
    scale = _plain(q, dropout_p, scale)
    shape = q.shape
    _, k, q, v, mask = _shared(b, k, q, v, _masked(b, attn_mask, q.rank))
    s = _scores(b, q, k, mask, is_causal, scale)
    p = b.one("softmax", [s], s.dtype, s.shape, axis=s.rank - 1)
    lse = b.reduce("logsumexp", s, [s.rank - 1], False)
    return [b.reshape(_product(b, p, v), shape[:-1] + v.shape[-1:]),
            b.reshape(lse, shape[:-1])]


@builder
def attention_backward(b, n, row, g, q, k, v, o, lse, dropout_p, is_causal, *,
                       attn_mask=None, scale=None):
    scale = _plain(q, dropout_p, scale)
    shapes = [x.shape for x in (q, k, v)]
    lse = b.reshape(lse, lse.shape + (1,))
    share, k, q, v, g, o, lse, mask = _shared(
        b, k, q, v, g, o, lse, _masked(b, attn_mask, q.rank))
    s = _scores(b, q, k, mask, is_causal, scale)
    p = b.map("exp", b.map("sub", s, lse))
    dv = _product(b, _swapped(b, p), g)
    dp = _product(b, g, _swapped(b, v))
    rows = b.reduce("reduce_sum", b.map("mul", g, o), [g.rank - 1], True)
    ds = b.map("mul", b.map("mul", p, b.map("sub", dp, rows)), scale)
    dq, dk = _product(b, ds, k), _product(b, _swapped(b, ds), q)
    if share > 1:
        dk, dv = (b.reduce("reduce_sum", x, [2], False) for x in (dk, dv))
    return [b.reshape(x, s) for x, s in zip((dq, dk, dv), shapes)]
