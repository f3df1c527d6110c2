"""corpus_onnx.py STAMP: writes ONNX models into the folder "onnx" beside STAMP,
then STAMP: a model for each way in which a reader or an importer goes."""
import os
import struct
import sys


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def num(field, v):
    return varint(field << 3) + varint(v)


def part(field, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, values, elem=1, raw=True):
    form = {1: "f", 7: "q", 6: "i", 9: "?", 2: "B", 11: "d"}[elem]
    out = b"".join(num(1, d) for d in dims) + num(2, elem) + part(8, name)
    if raw:
        return out + part(9, struct.pack("<%d%s" % (len(values), form), *values))
    if elem == 1:
        return out + part(4, struct.pack("<%df" % len(values), *values))
    return out + part(7 if elem == 7 else 5, b"".join(varint(v) for v in values))


def port(name, dims, elem=1):
    shape = b"".join(
        part(1, num(1, d) if isinstance(d, int) else part(2, d)) for d in dims
    )
    return part(1, name) + part(2, part(1, num(1, elem) + part(2, shape)))


def attr(name, v):
    out = part(1, name)
    if isinstance(v, int):
        return out + num(3, v) + num(20, 2)
    if isinstance(v, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", v) + num(20, 1)
    if isinstance(v, str):
        return out + part(4, v) + num(20, 3)
    if isinstance(v, bytes):
        return out + part(6, v) + num(20, 5)
    return out + b"".join(num(8, x) for x in v) + num(20, 7)


def node(op, ins, outs, **attrs):
    return (
        b"".join(part(1, x) for x in ins)
        + b"".join(part(2, x) for x in outs)
        + part(4, op)
        + b"".join(part(5, attr(k, v)) for k, v in attrs.items())
    )


def graph(nodes, ins, outs, inits=()):
    return (
        b"".join(part(1, n) for n in nodes)
        + part(2, "g")
        + b"".join(part(5, t) for t in inits)
        + b"".join(part(11, p) for p in ins)
        + b"".join(part(12, p) for p in outs)
    )


def model(nodes, ins, outs, inits=(), opset=13, extra=b""):
    return (
        num(1, 8)
        + part(2, "corpus")
        + part(7, graph(nodes, ins, outs, inits))
        + part(8, num(2, opset))
        + extra
    )


x4 = [port("x", ["N", 4])]
y = [part(1, "y")]
image = [port("x", [1, 2, 4, 4])]


def one(op, inits=(), ins=None, opset=13, n_out=1, **attrs):
    names = ["x"] + ["w%d" % i for i in range(len(inits))]
    outs = ["y"] + ["z%d" % i for i in range(n_out - 1)]
    return model(
        [node(op, names, outs, **attrs)],
        x4 if ins is None else ins,
        y,
        [tensor("w%d" % i, *t) for i, t in enumerate(inits)],
        opset,
    )


then = graph([node("Neg", ["x"], ["t"])], [], [part(1, "t")])
other = graph([node("Abs", ["x"], ["t"])], [], [part(1, "t")])
body = graph(
    [node("Add", ["v", "v"], ["o"])],
    [port("i", [], 7), port("c", [], 9), port("v", ["N", 4])],
    [part(1, "c"), part(1, "o"), part(1, "o")],
)
function = part(
    25,
    part(1, "F") + part(10, "my") + part(4, "a") + part(5, "b")
    + part(7, node("Neg", ["a"], ["b"])) + part(9, num(2, 13)),
)

models = {
    "add": one("Add", [([4], [1, 2, 3, 4])]),
    "typed": model([node("Mul", ["x", "w"], ["y"])], x4, y,
                   [tensor("w", [4], [1, 2, 3, 4], raw=False)]),
    "clip": one("Clip", opset=6, min=0.5, max=2.5),
    "reshape": one("Reshape", [([2], [0, -1], 7)]),
    "slice": one("Slice", [([1], [-1], 7), ([1], [-9], 7), ([1], [1], 7),
                           ([1], [-2], 7)]),
    "pad": one("Pad", [([4], [0, 1, 0, 2], 7)], mode="reflect"),
    "gather": one("Gather", [([2], [-1, 0], 7)], axis=1),
    "scatter": one("ScatterElements", [([1, 2], [1, 1], 7), ([1, 2], [5, 6])],
                   axis=1),
    "topk": one("TopK", [([1], [2], 7)], n_out=2),
    "nonzero": model([node("NonZero", ["w"], ["y"])], x4, y,
                     [tensor("w", [3], [0, 1, 2])]),
    "conv": one("Conv", [([2, 2, 3, 3], [1] * 36)], image,
                auto_pad="SAME_UPPER", strides=[2, 2]),
    "transposed": one("ConvTranspose", [([2, 1, 2, 2], [1] * 8)], image,
                      output_shape=[9, 9]),
    "pool": one("MaxPool", (), image, n_out=2, kernel_shape=[3, 3],
                strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
    "average": one("AveragePool", (), image, kernel_shape=[2, 2]),
    "norm": one("BatchNormalization", [([2], [1, 2])] * 4, image),
    "layer": one("LayerNormalization", [([4], [1, 2, 3, 4])], opset=17),
    "softmax": one("Softmax", axis=-1),
    "resize": one("Resize", [([0], []), ([4], [1, 1, 2, 1.5])], image,
                  mode="cubic"),
    "gemm": one("Gemm", [([2, 4], list(range(8)))], transB=1, alpha=0.5),
    "einsum": one("Einsum", [([4], [1, 2, 3, 4])], equation="ij,j->i"),
    "lstm": one("LSTM", [([1, 8, 4], [0] * 32), ([1, 8, 2], [0] * 16)],
                [port("x", [2, 1, 4])], n_out=3, hidden_size=2),
    "quantize": one("QuantizeLinear", [([], [0.5]), ([], [3], 2)]),
    "onehot": model([node("OneHot", ["i", "n", "v"], ["y"])], x4, y,
                    [tensor("i", [2], [0, -1], 7), tensor("n", [], [3], 7),
                     tensor("v", [2], [0, 1])]),
    "dft": one("DFT", (), [port("x", [1, 4, 1])], opset=17, axis=1),
    "if": model([node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
                x4, y, [tensor("c", [], [1], 9)]),
    "loop": model([node("Loop", ["n", "", "x"], ["y", "z"], body=body)], x4, y,
                  [tensor("n", [], [2], 7)]),
    "sequence": model([node("SplitToSequence", ["x"], ["s"], axis=1),
                       node("ConcatFromSequence", ["s"], ["y"], axis=0)], x4, y),
    "function": model(
        [part(1, "x") + part(2, "y") + part(4, "F") + part(7, "my")], x4, y,
        extra=function),
    "shapes": model([node("Shape", ["x"], ["s"]),
                     node("ConstantOfShape", ["s"], ["t"]),
                     node("Expand", ["t", "s"], ["u"]),
                     node("Tile", ["u", "r"], ["y"])], x4, y,
                    [tensor("r", [2], [2, 1], 7)]),
}

stamp = sys.argv[1]
folder = os.path.join(os.path.dirname(stamp) or ".", "onnx")
os.makedirs(folder, exist_ok=True)
for name, data in models.items():
    with open(os.path.join(folder, name + ".onnx"), "wb") as f:
        f.write(data)
open(stamp, "w").close()
