"""zoo_forms.py: small nets in every form in which models come today: by both
exporters of torch, opsets 17 to 23, f32, f16 and bf16, quantised by ONNX
Runtime's tools in eight ways, and optimised by it. zoo.py --forms runs this.

A form is compared with ONNX Runtime on the same file, without optimisation; if
that cannot run it (convolutions of bf16), with what torch computes. The greatest
difference, over the greatest element, must be within the form's bound.
Weights are quantised to 7 bits, since ONNX Runtime limits sums of two products
of 8 bits to 16 bits on processors without instructions for them.
"""
import logging
import os
import subprocess
import sys
import tempfile
import warnings

SEED = 21
TENON_SECONDS = 300  # of one model, at most


# ---- the nets: a module, and its input ----


def nets():
    """{name: function of no arguments to (module, input)}"""
    import torch
    from torch import nn
    from torch.nn import functional as fn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 3, padding=1)
            self.norm = nn.BatchNorm2d(16)
            self.a = nn.Conv2d(16, 16, 3, padding=1, bias=False)
            self.b = nn.BatchNorm2d(16)
            self.head = nn.Linear(16, 10)

        def forward(self, x):
            x = fn.max_pool2d(torch.relu(self.norm(self.stem(x))), 2)
            x = torch.relu(x + self.b(self.a(x)))
            return self.head(x.mean((2, 3)))

    class Mobile(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
            self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.gate = nn.Conv2d(8, 8, 1)
            self.wide = nn.Conv2d(8, 24, 1)
            self.head = nn.Linear(24, 5)

        def forward(self, x):
            x = fn.hardswish(self.stem(x))
            x = fn.relu6(self.deep(x))
            x = x * torch.sigmoid(self.gate(fn.adaptive_avg_pool2d(x, 1)))
            return self.head(fn.adaptive_avg_pool2d(self.wide(x), 1)
                             .flatten(1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
            self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
            self.last = nn.Conv2d(11, 4, 1)

        def forward(self, x):
            y = self.up(fn.leaky_relu(self.down(x)))
            y = torch.cat([x, y], 1)
            return fn.interpolate(self.last(y), scale_factor=2)

    class Waves(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Conv1d(4, 16, 5, padding=2)
            self.b = nn.Conv1d(16, 16, 3, dilation=2)
            self.head = nn.Linear(16, 6)

        def forward(self, x):
            x = fn.avg_pool1d(fn.elu(self.a(x)), 2)
            return self.head(torch.tanh(self.b(x)).amax(2))

    class Perceptron(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 32)
            self.norm = nn.LayerNorm(32)

        def forward(self, x):
            return self.norm(x + self.b(fn.gelu(self.a(x))))

    class Block(nn.Module):
        """Of a transformer; causal: with a gated feed-forward part."""

        def __init__(self, causal):
            super().__init__()
            self.causal = causal
            self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.qkv, self.o = nn.Linear(32, 96), nn.Linear(32, 32)
            self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 32)
            self.gate = nn.Linear(32, 64)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2)
                       for t in self.qkv(self.norm1(x)).chunk(3, -1))
            y = fn.scaled_dot_product_attention(q, k, v,
                                                is_causal=self.causal)
            x = x + self.o(y.transpose(1, 2).flatten(2))
            y = self.norm2(x)
            if self.causal:
                return x + self.b(fn.silu(self.gate(y)) * self.a(y))
            return x + self.b(fn.gelu(self.a(y), approximate="tanh"))

    class Recurrent(nn.Module):
        def __init__(self, kind, both):
            super().__init__()
            self.net = kind(16, 24, batch_first=True, bidirectional=both)
            self.head = nn.Linear(48 if both else 24, 8)

        def forward(self, x):
            return self.head(self.net(x)[0])

    def of(make, *shape):
        return lambda: (make(), torch.randn(shape))

    return {
        "residual": of(Residual, 2, 3, 16, 16),
        "mobile": of(Mobile, 1, 3, 24, 24),
        "unet": of(UNet, 1, 3, 16, 16),
        "waves": of(Waves, 2, 4, 40),
        "perceptron": of(Perceptron, 4, 32),
        "encoder": of(lambda: Block(False), 2, 10, 32),
        "decoder": of(lambda: Block(True), 1, 12, 32),
        "lstm": of(lambda: Recurrent(nn.LSTM, False), 2, 7, 16),
        "gru": of(lambda: Recurrent(nn.GRU, True), 1, 9, 16),
    }


# ---- the forms ----


def export(net, x, path, opset, dynamo=True, dtype=None):
    """What torch computes, in f32."""
    import torch

    class Cast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net.to(dtype)

        def forward(self, x):
            return self.net(x.to(dtype)).float()

    net = (net if dtype is None else Cast()).eval()
    with torch.no_grad():
        y = net(x).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (x,), path, input_names=["x"], output_names=["y"],
            opset_version=opset, dynamo=dynamo, verbose=False,
            # norms folded into convolutions of bf16 would be f32
            **({"external_data": False, "optimize": dtype is None}
               if dynamo else {}))
    return y


def exported(opset, dynamo, dtype=None):
    def make(net, x, path):
        import torch

        return export(net, x, path, opset, dynamo,
                      None if dtype is None else getattr(torch, dtype))
    return make


def calibration(x):
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": x.numpy()}, {"x": -0.8 * x.numpy()}]

        def get_next(self):
            return self.left.pop() if self.left else None

    return Reader()


def with_bits(plain, path, bits, qdq):
    """Weights of products in blocks of 16, of so many bits."""
    import onnx
    from onnxruntime import quantization as q
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer)

    m = MatMulNBitsQuantizer(onnx.load(plain), algo_config=(
        DefaultWeightOnlyQuantConfig(
            block_size=16, is_symmetric=False, bits=bits,
            quant_format=q.QuantFormat.QDQ if qdq
            else q.QuantFormat.QOperator)))
    m.process()
    m.model.save_model_to_file(path)


# kind: format, types of activations and weights, limited to 7 bits
STATIC = {
    "qdq": ("QDQ", "QUInt8", "QInt8", True),
    "qdq16": ("QDQ", "QUInt16", "QInt8", False),
    "qdq4": ("QDQ", "QUInt8", "QInt4", False),
    "qoperator": ("QOperator", "QUInt8", "QInt8", True),
}


def quantised(kind):
    """kind: one of STATIC, dynamic, bits4, bits8, bits4_qdq"""
    def make(net, x, path):
        from onnxruntime import quantization as q

        with tempfile.TemporaryDirectory() as d:
            plain = os.path.join(d, "plain.onnx")
            newer = kind in ("qdq16", "qdq4", "bits4_qdq")
            export(net, x, plain, 21 if newer else 17, newer)
            if kind == "dynamic":
                q.quantize_dynamic(plain, path, reduce_range=True,
                                   weight_type=q.QuantType.QInt8)
            elif kind.startswith("bits"):
                with_bits(plain, path, int(kind[4]), kind.endswith("qdq"))
            else:
                form, a, w, seven = STATIC[kind]
                q.quantize_static(
                    plain, path, calibration(x), per_channel=True,
                    reduce_range=seven, quant_format=q.QuantFormat[form],
                    activation_type=q.QuantType[a],
                    weight_type=q.QuantType[w])
    return make


def halved(net, x, path):
    """f16 by ONNX Runtime's converter, which keeps inputs and outputs."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with tempfile.TemporaryDirectory() as d:
        plain = os.path.join(d, "plain.onnx")
        y = export(net, x, plain, 17, False)
        onnx.save(convert_float_to_float16(onnx.load(plain),
                                           keep_io_types=True), path)
        return y


def optimised(first):
    """What ONNX Runtime writes after its own fusions."""
    def make(net, x, path):
        import onnxruntime as ort

        with tempfile.TemporaryDirectory() as d:
            plain = os.path.join(d, "plain.onnx")
            y = first(net, x, plain)
            o = ort.SessionOptions()
            o.log_severity_level = 4
            o.optimized_model_filepath = path
            o.graph_optimization_level = (
                ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
            ort.InferenceSession(plain, o, ["CPUExecutionProvider"])
            return y
    return make


# name: function, bound of the difference over the greatest element. f16 and
# bf16 are rounded in other places; quantised values may be a step or two of 255
# apart where a sum lies close to the middle of two.
FORMS = {
    "dynamo18": (exported(18, True), 1e-5),
    "dynamo20": (exported(20, True), 1e-5),
    "dynamo21": (exported(21, True), 1e-5),
    "dynamo22": (exported(22, True), 1e-5),
    "dynamo23": (exported(23, True), 1e-5),
    "legacy17": (exported(17, False), 1e-5),
    "legacy19": (exported(19, False), 1e-5),
    "legacy20": (exported(20, False), 1e-5),
    "f16": (exported(20, True, "float16"), 1e-2),
    "f16_converted": (halved, 1e-2),
    "bf16": (exported(20, True, "bfloat16"), 5e-2),
    "qdq": (quantised("qdq"), 2.5e-2),
    "qdq16": (quantised("qdq16"), 1e-3),
    "qdq4": (quantised("qdq4"), 2.5e-2),
    "qoperator": (quantised("qoperator"), 2.5e-2),
    "dynamic": (quantised("dynamic"), 2.5e-2),
    "bits4": (quantised("bits4"), 1e-5),
    "bits4_qdq": (quantised("bits4_qdq"), 1e-5),
    "bits8": (quantised("bits8"), 1e-5),
    "optimised": (optimised(exported(17, False)), 1e-5),
    "optimised_qdq": (optimised(quantised("qdq")), 2.5e-2),
    "optimised_dynamic": (optimised(quantised("dynamic")), 2.5e-2),
}


# ---- one model ----


def reference(path, x, otherwise):
    """(values, whose)"""
    import onnxruntime as ort

    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        s = ort.InferenceSession(path, o, ["CPUExecutionProvider"])
        return s.run(None, {"x": x})[0], "ONNX Runtime"
    except Exception:  # it has no such kernel
        if otherwise is None:
            raise
        return otherwise, "torch"


def ours(tenon, path, data, d):
    """(values, None) or (None, why not)"""
    import numpy

    r = subprocess.run(
        [tenon, "run", path, "--input", "x=" + data, "--output", d],
        capture_output=True, text=True, check=False, timeout=TENON_SECONDS)
    if r.returncode != 0:
        return None, (r.stderr.strip().splitlines() or [
            "exit code %d" % r.returncode])[-1]
    return numpy.load(os.path.join(d, "y.npy")), None


def one(o, net, form, build):
    """A line of the table, and what failed: None, "refused", "apart", "made"."""
    import numpy
    import torch

    path = os.path.join(o.folder, "%s-%s.onnx" % (net, form))
    make, bound = FORMS[form]
    torch.manual_seed(SEED)
    module, x = build()
    module.eval()
    try:
        with open(os.devnull, "w", encoding="ascii") as null:
            out, sys.stdout = sys.stdout, null
            try:
                y = make(module, x, path)
            finally:
                sys.stdout = out
        want, whose = reference(path, x.numpy(), y)
    except Exception as e:
        text = (str(e).strip().splitlines() or [type(e).__name__])[0]
        return [net, form, "not made: " + text[:150]], "made"
    with tempfile.TemporaryDirectory() as d:
        data = os.path.join(d, "x.npy")
        numpy.save(data, x.numpy())
        got, why = ours(o.tenon, path, data, d)
    if got is None:
        return [net, form, why], "refused"
    most = float(numpy.abs(want).max())
    d = float(numpy.abs(got - want).max()) if got.shape == want.shape else (
        float("inf"))
    return [net, form, "%.2g of %s" % (d / most, whose)], (
        None if d <= bound * most else "apart")


def run(o):
    """The table; True: a model is refused or differs."""
    logging.disable(logging.WARNING)
    build = nets()
    os.makedirs(o.folder, exist_ok=True)
    n = {None: 0, "refused": 0, "apart": 0, "made": 0}
    print("| net | form | of the greatest apart |\n|---|---|---|")
    for net in build:
        for form in FORMS:
            name = "%s-%s" % (net, form)
            if o.only and name not in o.only and form not in o.only and (
                    net not in o.only):
                continue
            cells, bad = one(o, net, form, build[net])
            n[bad] += 1
            print("| " + " | ".join(cells) + " |" + (
                " " + bad if bad else ""), flush=True)
    print("\n%d models run and agree, %d differ, %d are refused; %d could not "
          "be made by the tools" % (n[None], n["apart"], n["refused"],
                                    n["made"]))
    return n["refused"] + n["apart"] > 0
