"""Text of programs: what builders write, and the types of what they write."""
import json
import math
import re

import torch

from .._tenon import _adjoint

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16",
    torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16",
    torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
    torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
    torch.bool: "bool"}
MAX_RANK = 8


#: Functions that write rows for operators, by name.
builders = {}


def builder(f):
    """Marks f(text, node, words, *arguments, **keywords): it writes rows for a node of
    the graph and returns a value, or a list of them. words: of the line in aten.def."""
    builders[f.__name__.rstrip("_")] = f
    return f


class Unsupported(Exception):
    """An operator, or a case of it, that no rows are known for; the text says why."""


class Value:
    """A tensor of the program: its name in the text, dtype ("f32") and shape."""

    __slots__ = ("name", "dtype", "shape", "own")

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)
        self.own = False  # a storage, no view, and the text has no next version of it

    @property
    def rank(self):
        return len(self.shape)


class Word(str):
    """A word in the text, such as a dtype."""


def dtype_of(t):
    if t not in DTYPES:
        raise Unsupported(f"dtype {t}")
    return DTYPES[t]


def is_float(dtype):
    return dtype in ("f32", "f64", "f16", "bf16")


def order_of(shape, strides):
    """The axes from slowest to fastest, if the elements are dense in that order."""
    if 0 in shape:
        return list(range(len(shape)))
    axes = sorted(range(len(shape)), key=lambda i: (-strides[i], shape[i] == 1, i))
    step = 1
    for i in reversed(axes):
        if shape[i] != 1:
            if strides[i] != step:
                return None
            step *= shape[i]
    return axes


def broadcast_shapes(*shapes):
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s):
            at = rank - len(s) + i
            if out[at] == 1:
                out[at] = n
    return tuple(out)


def _number(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, int):
        return str(x) if abs(x) <= 1 << 53 else repr(float(x))
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return "nan" if math.isnan(x) else repr(float(x))


def _attr(x):
    if isinstance(x, Word):
        return str(x)
    if isinstance(x, str):
        return f'"{x}"'
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(str(int(e)) for e in x) + "]"
    return _number(x)


class Text:
    """A program in the making."""

    def __init__(self):
        self.inputs, self.lines, self.rows, self.outputs = [], [], {}, []
        self.n = 0
        self.node = None    # of the graph, which is being written
        self.node_of = {}   # number of the line: node

    def is_param(self, node):
        """Whether the memory of this node of the graph can be written."""
        v = node.meta.get("val")
        return (node.op == "placeholder" and isinstance(v, torch.Tensor)
                and order_of(v.shape, v.stride()) is not None)

    # -- lines --

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def input(self, dtype, shape, is_param=False):
        if len(shape) > MAX_RANK:
            raise Unsupported(f"{len(shape)} axes")
        v = Value(self.name(), dtype, shape)
        self.inputs.append((v, is_param))
        return v

    def call(self, row, operands, results, /, **attrs):
        """row(operands, attrs); results: (dtype, shape) of each."""
        out = [Value(self.name(), t, s) for t, s in results]
        args = [x.name if isinstance(x, Value) else _number(x) for x in operands]
        args += [f"{k}={_attr(v)}" for k, v in attrs.items()]
        for v in out:
            if v.rank > MAX_RANK:
                raise Unsupported(f"{v.rank} axes")
        self.node_of[len(self.lines)] = self.node
        self.lines.append(
            f"{', '.join(v.name for v in out)} = {row}({', '.join(args)})")
        return out

    def one(self, row, operands, dtype, shape, /, **attrs):
        return self.call(row, operands, [(dtype, shape)], **attrs)[0]

    def row(self, text):
        """The name of a row of this program's own; text begins with its operands."""
        if text not in self.rows:
            self.rows[text] = f"row{len(self.rows)}"
        return self.rows[text]

    def adjoint(self, row, operands, of, grad, /, **attrs):
        """The gradient of row(operands) with respect to operands[of], derived by the
        library from the row; grad: of its one result."""
        args = [f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in operands]
        args += [f"{k}={_attr(v)}" for k, v in attrs.items()]
        told = json.loads(_adjoint(f"{row}({', '.join(args)})"))
        names = [o["name"] for o in told["operands"]]
        if "row" not in told["operands"][of]:
            raise Unsupported(told["operands"][of].get("why", "no gradient"))
        text = told["operands"][of]["row"]
        head, body = text.split("(", 1)
        params = re.findall(r"(\w+)\[", body.split("->")[0])
        given = [operands[names.index(p)] if p in names else grad for p in params]
        x = operands[of]
        return self.one(self.row("(" + body), given, x.dtype, x.shape)

    def __str__(self):
        out = [f"op {name}{text}" for text, name in self.rows.items()]
        out.append("program {")
        for v, is_param in self.inputs:
            out.append(f"  {'param ' if is_param else ''}{v.name}: {v.dtype}"
                       f"[{','.join(map(str, v.shape))}]")
        self.first = len(out) + 1  # number of the line of lines[0]
        out += ["  " + line for line in self.lines]
        out.append("  return " + ", ".join(v.name for v in self.outputs))
        return "\n".join(out) + "\n}\n"

    # -- what most builders need --

    def cast(self, x, dtype):
        """x, a value or a number, in this dtype; numbers stay what they are."""
        if not isinstance(x, Value):
            return bool(x) if dtype == "bool" else x if is_float(dtype) else int(x)
        if x.dtype == dtype:
            return x
        return self.one("cast", [x], dtype, x.shape, to=Word(dtype))

    def fill(self, shape, value, dtype):
        x = self.one("fill", [], dtype, shape, shape=list(shape),
                     value=float(value) if is_float(dtype) else int(value),
                     dtype=Word(dtype))
        x.own = True
        return x

    def value(self, x, dtype):
        """The same as a value: numbers become tensors without axes."""
        return self.cast(x, dtype) if isinstance(x, Value) else self.fill((), x, dtype)

    def map(self, row, *operands, dtype=None, like=None, **attrs):
        """An elementwise row; operands of one dtype, numbers among them. dtype: of
        the result; like: of numbers, if no operand says it."""
        first = next((x.dtype for x in operands if isinstance(x, Value)), like)
        operands = [x if isinstance(x, Value) else self.fill((), x, first)
                    for x in operands]
        shape = broadcast_shapes(*(x.shape for x in operands))
        x = self.one(row, operands, dtype or first, shape, **attrs)
        x.own = row != "identity"
        return x

    def where(self, c, x, y):
        return self.one("where", [c, x, y], x.dtype,
                        broadcast_shapes(c.shape, x.shape, y.shape))

    def reshape(self, x, shape):
        if tuple(shape) == x.shape:
            return x
        return self.one("reshape", [x], x.dtype, shape, shape=list(shape))

    def transpose(self, x, perm):
        """Axis i of the result is axis perm[i] of x."""
        if list(perm) == list(range(x.rank)):
            return x
        return self.one("transpose", [x], x.dtype, [x.shape[i] for i in perm],
                        perm=list(perm))

    def broadcast(self, x, shape):
        if tuple(shape) == x.shape:
            return x
        return self.one("broadcast_to", [x], x.dtype, shape, shape=list(shape))

    def reduce(self, row, x, axes, keep, dtype=None):
        axes = [a % x.rank for a in axes] if x.rank else []
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)
                 if keep or i not in axes]
        if not axes:
            return x if dtype is None else self.cast(x, dtype)
        return self.one(row, [x], dtype or x.dtype, shape, axes=axes, keep=bool(keep))

    def iota(self, n, dtype="i64"):
        return self.one("iota", [], dtype, [n], shape=[n], dtype=Word(dtype))
