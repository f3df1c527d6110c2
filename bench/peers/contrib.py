#!/usr/bin/env python3
"""contrib.py [OPTION]... FOLDER [TENON]: com.microsoft operators, beside ONNX
Runtime.

Writes a model of one node for each case below, its inputs, and the outputs that
ONNX Runtime computes without optimisation, as ONNX writes its tests:
FOLDER/test_NAME/model.onnx and test_data_set_0/*.pb. Then `TENON check` runs
them by interpreter and compiled code. Floats may differ by 1e-4 of the number
and as much absolutely; integers must be equal. With other draws (SEED) a result
may lie at the middle of two integers, where a last bit decides: the state of an
LSTM, which is quantised in each round, is then a step apart.

Needs onnx, onnxruntime and numpy. Exit code 0: all agree; 1: one does not.
"""
import argparse
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

SEED = 17
F, I64, I32, U8, I8 = np.float32, np.int64, np.int32, np.uint8, np.int8
draw = np.random.default_rng(SEED)


def f(*shape):
    return draw.standard_normal(shape).round(3).astype(F)


def near_one(*shape):
    return (1 + 0.1 * draw.standard_normal(shape)).round(3).astype(F)


def q(dtype, *shape):
    i = np.iinfo(dtype)
    return draw.integers(i.min, i.max + 1, shape).astype(dtype)


def weights(dtype, *shape):
    """Of 7 bits: ONNX Runtime limits sums of two products of 8 bits to 16 bits
    on processors without instructions for them."""
    return q(dtype, *shape) // dtype(2)


def s(*values):
    """A scale: a number, or one for each index."""
    return np.array(values[0] if len(values) == 1 else values, F)


def z(dtype, *values):
    return np.array(values[0] if len(values) == 1 else values, dtype)


def small(dtype, *shape):
    return draw.integers(0, 5, shape).astype(dtype)


def unary(op, dtype, **attrs):
    zero = 120 if dtype == U8 else -3
    return op, [q(dtype, 2, 3, 4), s(0.031), z(dtype, zero), s(0.0227),
                z(dtype, zero + 2)], attrs


def binary(op, dtype, shape):
    zero = 120 if dtype == U8 else -3
    return op, [q(dtype, 2, 3, 4), s(0.031), z(dtype, zero),
                q(dtype, *shape), s(0.0413), z(dtype, zero + 1), s(0.0527),
                z(dtype, zero + 2)], {}


def bits(n, k, block, bits, zeros, bias=False):
    blocks = (k + block - 1) // block
    b = q(U8, n, blocks, block * bits // 8)
    zero = None
    if zeros == "packed":
        zero = q(U8, n, (blocks * bits + 7) // 8)
    elif zeros == "floats":
        zero = small(F, n, blocks)
    inputs = [f(2, 3, k), b, np.abs(f(n, blocks)) * F(0.1), zero]
    if bias:
        inputs += [None, f(n)]
    return "MatMulNBits", inputs, dict(K=k, N=n, block_size=block, bits=bits)


def lstm(direction, dtype, per, clip=None, lengths=False):
    n, inputs, hidden, steps, batch = (
        2 if direction == "bidirectional" else 1, 3, 4, 5, 2)
    scales = (n,) if per == "tensor" else (n, 4 * hidden)
    zero = np.zeros(scales, dtype) if dtype == I8 else np.full(
        scales, 64, dtype)
    attrs = dict(direction=direction, hidden_size=hidden)
    if clip is not None:
        attrs["clip"] = clip
    return "DynamicQuantizeLSTM", [
        f(steps, batch, inputs), weights(dtype, n, inputs, 4 * hidden),
        weights(dtype, n, hidden, 4 * hidden), f(n, 8 * hidden),
        np.array([3, 5], I32) if lengths else None, f(n, batch, hidden),
        f(n, batch, hidden), None,
        np.abs(near_one(*scales)) * F(0.01), zero,
        np.abs(near_one(*scales)) * F(0.01), zero], attrs, 3


def mha(*, kv=5, heads=2, size=4, v_size=4, seq=3, more=(), outputs=1, **attrs):
    return "MultiHeadAttention", [
        f(2, seq, heads * size), f(2, kv, heads * size),
        f(2, kv, heads * v_size)] + list(more), dict(
            num_heads=heads, **attrs), outputs


def attention(more=(), outputs=1, width=24, **attrs):
    attrs.setdefault("num_heads", 2)
    return "Attention", [f(2, 3, 5), f(5, width), f(width)] + list(
        more), attrs, outputs


def qattention(more=(), dtype=I8, scale=s(0.02), outputs=1, **attrs):
    return "QAttention", [
        q(U8, 2, 3, 5), weights(dtype, 5, 24), f(24), s(0.01), scale] + list(
            more), dict(num_heads=2, **attrs), outputs


def gqa(seq, past, total, lengths, *, packed=False, heads=2, kv=1, size=16,
        rotary=False, more=(), batch=2, outputs=3, **attrs):
    if packed:
        new = [f(batch, seq, (heads + 2 * kv) * size), None, None]
    else:
        new = [f(batch, seq, heads * size), f(batch, seq, kv * size),
               f(batch, seq, kv * size)]
    state = [f(batch, kv, past, size), f(batch, kv, past, size)]
    turns = [f(6, size // 2), f(6, size // 2)] if rotary else [None, None]
    return "GroupQueryAttention", new + state + [
        np.array(lengths, I32), np.array([total], I32)] + turns + list(
            more), dict(num_heads=heads, kv_num_heads=kv,
                        do_rotary=int(rotary), **attrs), outputs


CASES = {
    "bias_gelu": ("BiasGelu", [f(2, 3, 5), f(5)], {}),
    "gelu": ("Gelu", [f(2, 5)], {}),
    "fast_gelu": ("FastGelu", [f(2, 5)], {}),
    "fast_gelu_bias": ("FastGelu", [f(2, 5), f(5)], {}),
    "quick_gelu": ("QuickGelu", [f(2, 5)], {}),
    "quick_gelu_alpha": ("QuickGelu", [f(2, 5)], {"alpha": 0.5}),
    "fused_matmul": ("FusedMatMul", [f(2, 3, 4), f(2, 4, 5)],
                     {"alpha": 0.5}),
    "fused_matmul_trans": ("FusedMatMul", [f(2, 4, 3), f(2, 5, 4)],
                           {"transA": 1, "transB": 1}),
    "fused_matmul_batch": ("FusedMatMul", [f(3, 2, 4), f(4, 2, 5)],
                           {"transBatchA": 1, "transBatchB": 1}),
    "fused_matmul_both": ("FusedMatMul", [f(4, 2, 6, 3), f(2, 6, 4, 5)],
                          {"transBatchA": 1, "transA": 1}),
    "fused_gemm": ("FusedGemm", [f(3, 4), f(5, 4), f(5)],
                   {"transB": 1, "activation": "Relu"}),
    "fused_gemm_leaky": ("FusedGemm", [f(3, 4), f(4, 5), f(5)],
                         {"activation": "LeakyRelu",
                          "activation_alpha": 0.1}),
    "fused_conv": ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)],
                   {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "fused_conv_sum": ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3),
                                     f(1, 3, 3, 3)],
                       {"activation": "HardSigmoid",
                        "activation_params": [0.3, 0.4]}),
    "fused_conv_clip": ("FusedConv", [f(1, 2, 5), f(3, 2, 3)],
                        {"activation": "Clip",
                         "activation_params": [-0.5, 0.75]}),
    "fused_conv_leaky": ("FusedConv", [f(1, 2, 5), f(3, 2, 3)],
                         {"activation": "LeakyRelu",
                          "activation_params": [0.2]}),
    "skip_norm": ("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8),
                                             near_one(8), f(8)], {}),
    "skip_norm_bias": ("SkipLayerNormalization",
                       [f(2, 3, 8), f(3, 8), near_one(8), f(8), f(8)],
                       {"epsilon": 0.01}, 4),
    "skip_norm_no_beta": ("SkipLayerNormalization",
                          [f(2, 3, 8), f(1, 3, 8), near_one(8)], {}),
    "skip_simple": ("SkipSimplifiedLayerNormalization",
                    [f(2, 3, 8), f(2, 3, 8), near_one(8), f(8)],
                    {"epsilon": 0.01}, (0, 3)),
    "embed_norm": ("EmbedLayerNormalization",
                   [small(I32, 2, 4), small(I32, 2, 4) % 2, f(6, 8), f(5, 8),
                    f(2, 8), near_one(8), f(8),
                    np.array([[1, 1, 1, 0], [1, 1, 0, 0]], I32)], {}, 3),
    "embed_norm_positions": ("EmbedLayerNormalization",
                             [small(I32, 2, 4), None, f(6, 8), f(5, 8), None,
                              near_one(8), f(8), None, small(I32, 2, 4)], {}, 2),
    "quantize": ("QuantizeLinear", [f(2, 3, 4), s(0.0137), z(U8, 128)], {}),
    "quantize_16": ("QuantizeLinear", [f(2, 3, 4), s(0.000137),
                                       z(np.uint16, 32768)], {}),
    "quantize_axis": ("QuantizeLinear", [f(2, 3, 4), s(0.01, 0.02, 0.03),
                                         z(I8, 1, -2, 3)], {"axis": 1}),
    "dequantize": ("DequantizeLinear", [q(I8, 2, 3), s(0.02), z(I8, 3)], {}),
    "dequantize_16": ("DequantizeLinear", [q(np.int16, 2, 3), s(0.02),
                                           z(np.int16, 3)], {}),
    "qadd": binary("QLinearAdd", U8, (2, 3, 4)),
    "qadd_i8": binary("QLinearAdd", I8, (4,)),
    "qmul": binary("QLinearMul", U8, (2, 1, 4)),
    "qmul_i8": binary("QLinearMul", I8, (2, 3, 4)),
    "qsigmoid": unary("QLinearSigmoid", U8),
    "qsigmoid_i8": unary("QLinearSigmoid", I8),
    "qleaky": unary("QLinearLeakyRelu", U8, alpha=0.3),
    "qleaky_i8": unary("QLinearLeakyRelu", I8),
    "qsoftmax": ("QLinearSoftmax", [q(U8, 2, 3, 4), s(0.031), z(U8, 4),
                                    s(1 / 256), z(U8, 0)],
                 {"axis": 1, "opset": 13}),
    "qsoftmax_flat": ("QLinearSoftmax", [q(I8, 2, 3, 4), s(0.031), z(I8, 4),
                                         s(1 / 256), z(I8, -128)],
                      {"axis": 1, "opset": 11}),
    "qwhere": ("QLinearWhere", [small(bool, 2, 3), q(U8, 2, 3), s(0.02),
                                z(U8, 3), q(U8, 3), s(0.03), z(U8, 5),
                                s(0.0237), z(U8, 9)], {}),
    "qconcat": ("QLinearConcat", [s(0.0271), z(U8, 110), q(U8, 2, 3), s(0.03),
                                  z(U8, 120), q(U8, 2, 1), s(0.02),
                                  z(U8, 100)], {"axis": 1}),
    "qpool": ("QLinearAveragePool", [q(U8, 1, 2, 5, 5), s(0.03), z(U8, 120),
                                     s(0.0217), z(U8, 110)],
              {"kernel_shape": [3, 3], "strides": [2, 2],
               "pads": [1, 1, 1, 1]}),
    "qpool_last": ("QLinearAveragePool",
                   [q(U8, 1, 5, 5, 2), s(0.03), z(U8, 120), s(0.0217),
                    z(U8, 110)],
                   {"kernel_shape": [2, 2], "channels_last": 1}),
    "qglobal": ("QLinearGlobalAveragePool", [q(U8, 1, 2, 5, 5), s(0.03),
                                             z(U8, 120), s(0.0217),
                                             z(U8, 110)], {}),
    "qglobal_last": ("QLinearGlobalAveragePool",
                     [q(I8, 1, 5, 3, 2), s(0.03), z(I8, 7), s(0.0217),
                      z(I8, -11)], {"channels_last": 1}),
    "qconv_last": ("QLinearConv", [q(U8, 1, 5, 5, 2), s(0.03), z(U8, 120),
                                   weights(I8, 3, 2, 3, 3), s(0.01, 0.02, 0.03),
                                   z(I8, 0, 0, 0), s(0.217), z(U8, 110),
                                   q(I32, 3) >> 20], {"channels_last": 1}),
    "qgemm": ("QGemm", [q(U8, 3, 4), s(0.03), z(U8, 120), weights(I8, 4, 5),
                        s(0.02), z(I8, 0), q(I32, 5) >> 20, s(0.137),
                        z(U8, 110)], {}),
    "qgemm_float": ("QGemm", [q(U8, 3, 4), s(0.03), z(U8, 120), weights(I8, 5, 4),
                              s(0.01, 0.02, 0.03, 0.04, 0.05),
                              z(I8, 0, 0, 0, 0, 0), q(I32, 5) >> 20],
                    {"transB": 1, "alpha": 0.5}),
    "dynamic_matmul": ("DynamicQuantizeMatMul", [f(2, 3, 8), weights(I8, 8, 5),
                                                 s(0.02), z(I8, 0), f(5)], {}),
    "dynamic_matmul_columns": ("DynamicQuantizeMatMul",
                               [f(3, 8), weights(U8, 8, 3), s(0.01, 0.02, 0.03),
                                z(U8, 63, 64, 65)], {}),
    "integer_to_float": ("MatMulIntegerToFloat",
                         [q(U8, 2, 3, 8), weights(I8, 8, 5), s(0.01), s(0.02),
                          z(U8, 120), z(I8, 0), f(5)], {}),
    "integer_to_float_columns": ("MatMulIntegerToFloat",
                                 [q(I8, 3, 8), weights(I8, 8, 2), s(0.01),
                                  s(0.02, 0.03), None, z(I8, 3, -4)], {}),
    "bits4": bits(5, 32, 16, 4, "none"),
    "bits4_packed": bits(5, 48, 16, 4, "packed"),
    "bits4_rest": bits(3, 40, 32, 4, "packed", bias=True),
    "bits4_floats": bits(3, 32, 16, 4, "floats"),
    "bits8": bits(3, 32, 16, 8, "packed"),
    "bits2": bits(3, 64, 32, 2, "none"),
    "lstm": lstm("forward", I8, "tensor"),
    "lstm_reverse": lstm("reverse", U8, "tensor"),
    "lstm_both": lstm("bidirectional", I8, "gate"),
    "lstm_lengths": lstm("forward", I8, "gate", lengths=True),
    "rotary": ("RotaryEmbedding", [f(2, 3, 8), np.array([2], I64), f(9, 2),
                                   f(9, 2)], {}),
    "rotary_ids": ("RotaryEmbedding", [f(2, 3, 8), small(I64, 2, 3), f(9, 2),
                                       f(9, 2)], {"interleaved": 1}),
    "rotary_heads": ("RotaryEmbedding", [f(2, 2, 3, 4), small(I64, 2, 3),
                                         f(9, 2), f(9, 2)], {}),
    "rotary_part": ("RotaryEmbedding", [f(2, 3, 12), small(I64, 2, 3),
                                        f(9, 2), f(9, 2)],
                    {"num_heads": 2, "rotary_embedding_dim": 4}),
    "attention": attention(),
    "attention_causal": attention(unidirectional=1),
    "attention_ends": attention([np.array([2, 3], I32)]),
    "attention_starts": attention([np.array([3, 2, 1, 0], I32)]),
    "attention_mask": attention([np.array([[1, 1, 0], [0, 0, 0]], I32)]),
    "attention_mask3": attention([small(I32, 2, 3, 3) % 2],
                                 mask_filter_value=-100.0),
    "attention_past": attention([None, f(2, 2, 2, 4, 4)], outputs=2,
                                unidirectional=1),
    "attention_bias": attention([None, None, f(1, 2, 3, 3)], scale=0.7),
    "attention_sizes": attention(width=22, qkv_hidden_sizes=[8, 8, 6]),
    "qattention": qattention(),
    "qattention_columns": qattention(
        [np.array([2, 3], I32), z(U8, 130), np.zeros(24, I8)],
        scale=(near_one(24) * F(0.02))),
    "qattention_past": qattention(
        [None, z(U8, 130), z(I8, 0), f(2, 2, 2, 4, 4)], outputs=2,
        unidirectional=1),
    "mha": mha(),
    "mha_values": mha(v_size=3, scale=0.3),
    "mha_bias": mha(more=[f(24)]),
    "mha_padding": mha(more=[None, np.array([[1, 1, 1, 1, 0],
                                             [1, 0, 0, 0, 0]], I32)]),
    "mha_add": mha(more=[None, None, f(2, 1, 3, 5)]),
    "mha_past": mha(kv=3, more=[None, None, None, f(2, 2, 2, 4),
                                f(2, 2, 2, 4)], outputs=3, unidirectional=1),
    "mha_heads": ("MultiHeadAttention", [f(2, 3, 8), f(2, 2, 5, 4),
                                         f(2, 2, 5, 4)], {"num_heads": 2}),
    "gqa": gqa(3, 0, 3, [2, 2]),
    "gqa_packed": gqa(3, 0, 3, [2, 2], packed=True, rotary=True),
    "gqa_next": gqa(1, 4, 5, [4, 4], rotary=True),
    "gqa_next_lengths": gqa(1, 4, 5, [4, 2], rotary=True),
    "gqa_room": gqa(1, 8, 5, [4, 3], rotary=True, rotary_interleaved=1),
    "gqa_window": gqa(5, 0, 5, [4, 4], local_window_size=2),
    "gqa_softcap": gqa(3, 0, 3, [2, 2], softcap=2.0),
    "gqa_smooth": gqa(3, 0, 3, [2, 2], smooth_softmax=1),
    "gqa_sink": gqa(3, 0, 3, [2, 2], more=[None, None, f(2)]),
    "gqa_bias": gqa(2, 3, 5, [4], more=[None, f(1, 2, 2, 5)], batch=1),
    "gqa_chunk": gqa(2, 3, 5, [4], rotary=True, scale=0.4, batch=1),
    "qembed_norm": ("QEmbedLayerNormalization",
                    [small(I32, 2, 4), small(I32, 2, 4) % 2, q(U8, 6, 8),
                     q(U8, 5, 8), q(U8, 2, 8), q(U8, 8), q(U8, 8),
                     np.array([[1, 1, 1, 0], [1, 1, 0, 0]], I32), s(0.02),
                     s(0.01), s(0.015), s(0.01), s(0.02), z(U8, 120),
                     z(U8, 130), z(U8, 128), z(U8, 20), z(U8, 100)], {}, 2),
}


def port(name, x):
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def write(folder, name, op, inputs, attrs, outputs=1):
    """outputs: how many, or which."""
    names = ["i%d" % i if x is not None else "" for i, x in enumerate(inputs)]
    outputs = range(outputs) if isinstance(outputs, int) else outputs
    outs = ["o%d" % i if i in outputs else "" for i in range(
        max(outputs) + 1)]
    node = helper.make_node(op, names, outs, domain="com.microsoft", **attrs)
    named = [n for n in outs if n]
    there = [(n, x) for n, x in zip(names, inputs) if n]
    model = helper.make_model(helper.make_graph(
        [node], "g", [port(n, x) for n, x in there],
        [onnx.ValueInfoProto(name=n) for n in named]), opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(
                "com.microsoft", 1)], ir_version=8)
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1  # a state is quantised with all of its batch
    o.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    runs = onnxruntime.InferenceSession(
        model.SerializeToString(), o, ["CPUExecutionProvider"])
    got = runs.run(None, dict(there))
    at = os.path.join(folder, "test_" + name)
    data = os.path.join(at, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    keep = [i for i, x in enumerate(got) if x is not None]
    for kind, list_ in (("input", there),
                        ("output", [(named[i], got[i]) for i in keep])):
        for i, (n, x) in enumerate(list_):
            with open(os.path.join(data, "%s_%d.pb" % (kind, i)), "wb") as out:
                out.write(numpy_helper.from_array(
                    np.asarray(x), n).SerializeToString())
    del model.graph.output[:]
    model.graph.output.extend(
        port(n, np.asarray(x)) if x is not None else
        onnx.ValueInfoProto(name=n) for n, x in zip(named, got))
    for i in reversed(range(len(got))):
        if got[i] is None:
            del model.graph.output[i]
    onnx.save(model, os.path.join(at, "model.onnx"))


TYPES = {"float32": "float", "float64": "double", "float16": "float16"}


def as_text(x):
    """"float [2] 1 2", as tests/unit/onnx_writer.h has it."""
    x = np.asarray(x)
    return "%s [%s] %s" % (
        TYPES.get(x.dtype.name, x.dtype.name), ",".join(map(str, x.shape)),
        " ".join(str(v + 0) for v in x.ravel()))


def attr_text(v):
    if isinstance(v, str):
        return '"%s"' % v
    if isinstance(v, list):
        return "[%s]" % ",".join(map(attr_text, v))
    return "%.9f" % v if isinstance(v, float) else str(v)


def as_case(folder, name, op, inputs, attrs, outputs=1):
    """The lines of a case of tests/conform/contrib.txt."""
    at = os.path.join(folder, "test_" + name)
    node = onnx.load(os.path.join(at, "model.onnx")).graph.node[0]
    lines = ["# " + name, "node com.microsoft/%s %s > %s%s;" % (
        op, " ".join(n or "_" for n in node.input),
        " ".join(n or "_" for n in node.output),
        " :" + "".join(" %s=%s" % (k, attr_text(v)) for k, v in attrs.items())
        if attrs else "")]
    lines += ["%s %s" % (n, as_text(x))
              for n, x in zip(node.input, inputs) if n]
    for i, n in enumerate(n for n in node.output if n):
        got = onnx.load_tensor(os.path.join(
            at, "test_data_set_0", "output_%d.pb" % i))
        lines.append("%s %s" % (n, as_text(numpy_helper.to_array(got))))
    return "\n".join(lines) + "\n\n"


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", metavar="FOLDER")
    p.add_argument("tenon", metavar="TENON", nargs="?")
    p.add_argument("--only", metavar="NAME", action="append",
                   help="this case; any number of times")
    p.add_argument("--text", metavar="FILE",
                   help="also write all cases as tests/conform/contrib.txt")
    o = p.parse_args()
    refused = 0
    for name in o.only or CASES:
        try:
            write(o.folder, name, *CASES[name])
        except Exception as e:  # of ONNX Runtime: the case itself is wrong
            print("contrib.py: %s: ONNX Runtime: %s" % (
                name, str(e).strip().splitlines()[-1]), file=sys.stderr)
            refused += 1
    if o.text is not None:
        with open(o.text, "w", encoding="ascii") as out:
            out.write("".join(as_case(o.folder, n, *CASES[n])
                              for n in o.only or CASES))
    if o.tenon is None:
        return int(refused > 0)
    return subprocess.run(
        [o.tenon, "check", "--rtol=1e-4", "--atol=1e-4", o.folder],
        check=False).returncode or int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
