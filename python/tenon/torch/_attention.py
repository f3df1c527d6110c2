"""Attention of whole tensors, and its gradient."""
import math

from ._text import Unsupported, builder


def _scores(b, q, k, mask, causal, scale):
    """q k' / sqrt(d) with its mask: [.., m, n]."""
    shape = q.shape[:-1] + (k.shape[-2],)
    last = list(range(k.rank - 2)) + [k.rank - 1, k.rank - 2]
    s = b.one("matmul", [q, b.transpose(k, last)], q.dtype, shape)
    s = b.map("mul", s, float(scale if scale is not None else 1 / math.sqrt(q.shape[-1])))
    if mask is not None:
        s = b.map("add", s, b.cast(mask, s.dtype))
    if causal:
        i = b.reshape(b.iota(shape[-2]), (shape[-2], 1))
        above = b.map("gt", b.iota(shape[-1]), i, dtype="bool")
        s = b.where(above, b.fill((), float("-inf"), s.dtype), s)
    return s


def _plain(q, dropout_p):
    if dropout_p != 0:
        raise Unsupported("attention with dropout")
    if q.dtype not in ("f32", "f64"):
        raise Unsupported(f"attention of {q.dtype}")


@builder
def attention(b, n, row, q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None,
              scale=None):
    _plain(q, dropout_p)
    s = _scores(b, q, k, attn_mask, is_causal, scale)
    p = b.one("softmax", [s], s.dtype, s.shape, axis=s.rank - 1)
    o = b.one("matmul", [p, v], q.dtype, q.shape[:-1] + v.shape[-1:])
    lse = b.reduce("logsumexp", s, [s.rank - 1], False)
    return [o, lse]


@builder
def attention_backward(b, n, row, g, q, k, v, o, lse, dropout_p, is_causal, *,
                       attn_mask=None, scale=None):
    _plain(q, dropout_p)
    scale = float(scale if scale is not None else 1 / math.sqrt(q.shape[-1]))
    s = _scores(b, q, k, attn_mask, is_causal, scale)
    last = list(range(s.rank - 2)) + [s.rank - 1, s.rank - 2]
    p = b.map("exp", b.map("sub", s, b.reshape(lse, lse.shape + (1,))))
    dv = b.one("matmul", [b.transpose(p, last), g], v.dtype, v.shape)
    dp = b.one("matmul", [g, b.transpose(v, last)], s.dtype, s.shape)
    rows = b.reduce("reduce_sum", b.map("mul", g, o), [g.rank - 1], True)
    ds = b.map("mul", b.map("mul", p, b.map("sub", dp, rows)), scale)
    dq = b.one("matmul", [ds, k], q.dtype, q.shape)
    dk = b.one("matmul", [b.transpose(ds, last), q], k.dtype, k.shape)
    return [dq, dk, dv]
