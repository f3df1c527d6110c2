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
    # values of fewer bits than a byte, and of float8, are its bytes
    form = {1: "f", 7: "q", 6: "i", 9: "?", 11: "d", 4: "H", 12: "I",
            13: "Q"}.get(elem, "B")
    out = b"".join(num(1, d) for d in dims) + num(2, elem) + part(8, name)
    if raw:
        return out + part(9, struct.pack("<%d%s" % (len(values), form), *values))
    if elem == 1:
        return out + part(4, struct.pack("<%df" % len(values), *values))
    return out + part({7: 7, 12: 11, 13: 11}.get(elem, 5), b"".join(varint(v) for v in values))


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
    if isinstance(v[0], str):
        return out + b"".join(part(9, x) for x in v) + num(20, 8)
    if isinstance(v[0], float):
        return out + part(7, struct.pack("<%df" % len(v), *v)) + num(20, 6)
    if isinstance(v[0], bytes):
        return out + part(5, v[0]) + num(20, 4)
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

# newer operators, and those of other domains
ml = part(8, part(1, "ai.onnx.ml") + num(2, 5))
preview = part(8, part(1, "ai.onnx.preview") + num(2, 1))


def newer(op, inputs, outs=("y",), opset=28, domain=None, extra=b"", **attrs):
    made = node(op, [p[0] for p in inputs], list(outs), **attrs)
    if domain:
        made += part(7, domain)
    return model([made], [port(*p) for p in inputs if p[0]],
                 [part(1, o) for o in outs if o], (), opset, extra)


mask = graph([node("Tanh", ["s"], ["o"])], [port("s", [1, 2, 3, 3])],
             [part(1, "o")])
tree = dict(
    nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
    nodes_featureids=[1, 0, 0], nodes_values=[0.5, 0.0, 0.0],
    nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
    nodes_falsenodeids=[2, 0, 0])
x24 = ("x", [2, 4])
models.update({
    "attention": newer("Attention", [(n, [1, 2, 3, 4]) for n in "qkv"],
                       is_causal=1, softcap=2.0),
    "linear_attention": newer(
        "LinearAttention", [("q", [1, 3, 4]), ("k", [1, 3, 2]), ("v", [1, 3, 3]),
                            ("p", [1, 1, 2, 3]), ("g", [1, 3, 2]),
                            ("b", [1, 3, 1])], ("y", "s"),
        q_num_heads=2, kv_num_heads=1),
    "causal_conv": newer("CausalConvWithState", [
        ("x", [1, 2, 3]), ("w", [2, 1, 2]), ("b", [2]), ("p", [1, 2, 1])],
        ("y", "s"), activation="silu"),
    "flex": newer("FlexAttention", [(n, [1, 2, 3, 4]) for n in "qkv"],
                  domain="ai.onnx.preview", extra=preview, score_mod=mask),
    "grid": newer("GridSample", [("x", [1, 1, 2, 3, 2]), ("g", [1, 1, 2, 1, 3])],
                  mode="linear", padding_mode="reflection"),
    "deform": newer("DeformConv", [
        ("x", [1, 2, 3, 3]), ("w", [2, 1, 2, 2]), ("o", [1, 16, 2, 2]),
        ("b", [2]), ("m", [1, 8, 2, 2])], group=2, offset_group=2),
    "antialias": one("Resize", [([0], []), ([4], [1, 1, 0.5, 0.4])], image,
                     18, mode="cubic", antialias=1),
    "ratio": one("Resize", [([0], []), ([0], []), ([2], [3, 5], 7)], image, 18,
                 axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
    "irfft": one("DFT", (), [port("x", [1, 4, 2])], opset=17, axis=1, inverse=1,
                 onesided=1),
    "bits": one("BitCast", opset=26, to=6),
    "scaler": newer("Scaler", [x24], domain="ai.onnx.ml", extra=ml,
                    offset=[1.0, 2.0, 3.0, 4.0], scale=[2.0]),
    "labels": newer("LabelEncoder", [("x", [3], 7)], domain="ai.onnx.ml",
                    extra=ml, keys_int64s=[1, 2], values_floats=[1.0, 2.0]),
    "classes": newer("LinearClassifier", [x24], ("y", "z"), domain="ai.onnx.ml",
                     extra=ml, coefficients=[1.0] * 8, intercepts=[1.0, 2.0],
                     classlabels_ints=[3, 4], post_transform="SOFTMAX_ZERO"),
    "imputer": newer("Imputer", [x24], domain="ai.onnx.ml", extra=ml,
                     imputed_value_floats=[1.0], replaced_value_float=2.0),
    "regressor": newer("TreeEnsembleRegressor", [x24], domain="ai.onnx.ml",
                       extra=ml, n_targets=1, target_treeids=[0, 0],
                       target_nodeids=[1, 2], target_ids=[0, 0],
                       target_weights=[1.0, 2.0], **tree),
    "classifier": newer("TreeEnsembleClassifier", [x24], ("y", "z"),
                        domain="ai.onnx.ml", extra=ml, class_treeids=[0, 0],
                        class_nodeids=[1, 2], class_ids=[0, 0],
                        class_weights=[1.0, -2.0], classlabels_int64s=[7, 8],
                        **tree),
    "trees": newer(
        "TreeEnsemble", [x24], domain="ai.onnx.ml", extra=ml, n_targets=1,
        tree_roots=[0], nodes_featureids=[0, 1], nodes_truenodeids=[1, 0],
        nodes_falsenodeids=[2, 1], nodes_trueleafs=[0, 1],
        nodes_falseleafs=[1, 1], leaf_targetids=[0, 0, 0],
        nodes_modes=[tensor("m", [2], [0, 6], 2)],
        nodes_splits=[tensor("s", [2], [0.5, 0])],
        leaf_weights=[tensor("w", [3], [1, 2, 3])],
        membership_values=[tensor("v", [2], [1, float("nan")])]),
})

for number, values in ((4, [1, 65535]), (12, [1, 2**32 - 1]), (13, [1, 2**64 - 1]),
                       (17, [0x7E, 0xFF]), (18, [0x80, 1]), (19, [0x7C, 0xFF]),
                       (20, [0x80, 0x7F]), (24, [0, 255])):
    for raw in (True, False):
        models["elem%d%s" % (number, "" if raw else "_field")] = model(
            [node("Cast", ["w"], ["y"], to=1)], [], y,
            [tensor("w", [2], values, number, raw)], 24)
for number, n in ((21, 3), (22, 3), (23, 3), (25, 5), (26, 5)):
    for raw in (True, False):
        models["elem%d%s" % (number, "" if raw else "_field")] = model(
            [node("Cast", ["w"], ["v"], to=number),
             node("Cast", ["v"], ["y"], to=6)], [], y,
            [tensor("w", [n], [0x9A, 0x03], number, raw)], 25)
models["saturate"] = one("Cast", opset=24, to=19, saturate=0)
models["powers"] = one("Cast", opset=24, to=24, round_mode="nearest")
models["int4"] = one("QuantizeLinear", [([], [0.5]), ([1], [3], 22)], opset=21)
models["mx"] = one("DequantizeLinear", [([1], [127], 24)],
                   [port("x", [4], 23)], opset=24, output_dtype=1)



def strings(name, values):
    """Strings, in string_data."""
    return (num(1, len(values)) + num(2, 8) + part(8, name)
            + b"".join(part(6, v) for v in values))


# operators that look at characters, of strings in the file
words = [strings("w", ["Mo", "1e5", "\u00e9 b", ""])]
for name, op, attrs in (
        ("normalize", "StringNormalizer", {"case_change_action": "UPPER",
                                           "stopwords": ["mo"]}),
        ("regex", "RegexFullMatch", {"pattern": "(a|[^b-d]{1,3})+\\w?"}),
        ("string_split", "StringSplit", {"maxsplit": 1}),
        ("string_identity", "Identity", {})):
    models[name] = model([node(op, ["w"], ["y"], **attrs)], [], y, words, 20)
models["join"] = model([node("StringConcat", ["w", "w"], ["y"])], [], y, words,
                       20)
for to in (1, 7, 10, 11, 13):
    models["read%d" % to] = model([node("Cast", ["w"], ["y"], to=to)], [], y,
                                  [strings("w", ["-1", "12"])], 21)
models["written"] = model([node("Cast", ["w"], ["y"], to=8)], [], y,
                          [tensor("w", [3], [0.1, -2e30, float("inf")])], 21)

# pictures in the file: PNM and BMP, which need no library
dots = b"BM" + struct.pack("<IIIIiiHHIIIIII", 0, 0, 62, 40, 3, 2, 1, 8, 1, 0, 0,
                           0, 2, 0) + bytes(4) + b"www\0"
for name, data in (
        ("pnm_text", b"P3 1 2 255 1 2 3 # text\n4 5 6"),
        ("pnm_bits", b"P4 9 2\n\xa0\x80\x5f\0"),
        ("pnm_bytes", b"P6 1 2 300\n" + bytes(12)),
        ("bmp_runs", dots + b"\3\1\0\0\0\3\1\0\1\0\0\1"),
        ("bmp_rows", dots[:30] + bytes(4) + dots[34:] + bytes(8))):
    models[name] = model([node("ImageDecoder", ["w"], ["y"],
                               pixel_format="Grayscale")], [], y,
                         [tensor("w", [len(data)], list(data), 2)], 20)

stamp = sys.argv[1]
folder = os.path.join(os.path.dirname(stamp) or ".", "onnx")
os.makedirs(folder, exist_ok=True)
for name, data in models.items():
    with open(os.path.join(folder, name + ".onnx"), "wb") as f:
        f.write(data)
open(stamp, "w").close()
