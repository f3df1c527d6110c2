#!/usr/bin/env python3
"""onnx_torch.py infer|train|compile|losses MODEL.onnx BATCH [DIR]: PyTorch.

Consumes a net of one input in ONNX (opset 7 to 11) of the operators in OPS and
makes a torch.fx.GraphModule of it that calls torch's functions one by one.
What nodes make of constants alone is computed once, and is a parameter or
buffer like the initialisers. Anything unknown ends with a sentence. Prints one
JSON object; for nets.py, which runs each in a process of its own:

    infer    seconds of one inference, eager, under inference_mode; first the
             net is compared with the output stored beside it, and, with drawn
             weights, with ONNX Runtime, each where it is there
    train    seconds of the first training step and of the ones behind it, as
             `tenon bench nets --train` has them: batch normalisation by the
             batch, cross entropy of the logits, all gradients, SGD with momentum
    compile  the same by torch.compile
    losses   of three smaller steps, lr; DIR gets the net with drawn weights
             and the data, so that `tenon train` can have the same
"""
import inspect
import json
import math
import operator
import os
import resource
import statistics
import sys
import time

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch import fx, nn
from torch.nn import functional as f

INFER, STEPS, CHECKED = 15, 7, 3  # runs, training steps, compared steps
RATE, MOMENTUM = 0.001, 0.9
CHECKED_RATE = 0.0001  # rounding in f32 is not seen in losses yet
APART = 1e-4  # of the greatest: sums of thousands of products
BRIGHT = 100  # of pixels: LRN hardly divides what is small


class Unsupported(Exception):
    """What this reader does not translate."""


# ---- operators: tensors, then attributes by their names ----


def even(pads):
    """[top, left, bottom, right], the same at both ends -> [top, left]"""
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise Unsupported("pads %s" % pads)
    return pads[:half]


def conv(x, w, b=None, *, pads=(0, 0, 0, 0), strides=(1, 1),
         dilations=(1, 1), group=1, kernel_shape=None):
    return f.conv2d(x, w, b, strides, even(pads), dilations, group)


def in_full(n, size, stride, low, high):
    """If all windows up to the far end are what torch's ceil_mode makes."""
    up = math.ceil((n + 2 * low - size) / stride) + 1
    up -= (up - 1) * stride >= n + low  # windows begin in the picture
    return up == (n + low + high - size) // stride + 1


def pool(call, x, size, strides, pads, **more):
    """None where torch's own ways of padding are not these."""
    if pads[:2] == pads[2:]:
        return call(x, size, strides, pads[:2], **more)
    if all(map(in_full, x.shape[2:], size, strides, pads[:2], pads[2:])):
        return call(x, size, strides, pads[:2], ceil_mode=True, **more)
    return None


def padded(x, pads, value):
    return f.pad(x, (pads[1], pads[3], pads[0], pads[2]), value=value)


def max_pool(x, *, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0)):
    y = pool(f.max_pool2d, x, kernel_shape, strides, pads)
    if y is None:
        y = f.max_pool2d(padded(x, pads, -math.inf), kernel_shape, strides)
    return y


def average_pool(x, *, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0)):
    y = pool(f.avg_pool2d, x, kernel_shape, strides, pads,
             count_include_pad=False)
    if y is None:  # of those pixels that there are
        y, there = (f.avg_pool2d(padded(v, pads, 0), kernel_shape, strides)
                    for v in (x, torch.ones_like(x[:1, :1])))
        y = y / there
    return y


def batch_norm(x, g, b, mean, var, *, epsilon=1e-5, momentum=0.9, train):
    return f.batch_norm(x, mean, var, g, b, train, 1 - momentum, epsilon)


def constant_of_shape(shape, *, value=None):
    value = torch.zeros(1) if value is None else value
    return value.expand(tuple(shape)).contiguous()


def dropout(x, *, ratio=0.5, train):
    return f.dropout(x, ratio, train)


def gemm(x, w, b=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    if alpha != 1 or beta != 1 or transA:
        raise Unsupported("alpha, beta, transA")
    return f.linear(x, w if transB else w.t(), b)


def lrn(x, *, size, alpha=1e-4, beta=0.75, bias=1.0):
    return f.local_response_norm(x, size, alpha, beta, bias)


def relu(x, *, inplace):
    return f.relu(x, inplace)


def reshape(x, shape):
    return x.reshape([x.shape[i] if n == 0 else n
                      for i, n in enumerate(shape)])


def softmax(x, *, axis=1):
    """All axes from this one on are one, up to opset 12."""
    return x.flatten(axis).softmax(-1).reshape(x.shape)


def sum_(x, *more, inplace):
    for y in more:
        x = x.add_(y) if inplace else x + y
        inplace = True  # it is ours now
    return x


def unsqueeze(x, *, axes):
    for i in sorted(axes):
        x = x.unsqueeze(i)
    return x


def mul(x, y):
    return operator.mul(x, y)


OPS = {
    "Add": sum_, "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "ConstantOfShape": constant_of_shape, "Conv": conv, "Dropout": dropout,
    "Gemm": gemm, "GlobalAveragePool": lambda x: f.adaptive_avg_pool2d(x, 1),
    "LRN": lrn, "MaxPool": max_pool, "Mul": mul, "Relu": relu,
    "Reshape": reshape, "Softmax": softmax, "Sum": sum_,
    "Transpose": lambda x, *, perm: x.permute(perm), "Unsqueeze": unsqueeze,
}
# What makes an array of its own that no gradient looks at again.
FRESH = {"Add", "BatchNormalization", "Conv", "Sum"}


def attributes(node, **given):
    """Keywords for the function in OPS; given: those that it may want."""
    if node.op_type not in OPS:
        raise Unsupported("operator %s" % node.op_type)
    known = inspect.signature(OPS[node.op_type]).parameters
    out = {k: v for k, v in given.items() if k in known}
    for a in node.attribute:
        v = onnx.helper.get_attribute_value(a)
        if a.name not in known:
            raise Unsupported("attribute %s of %s" % (a.name, node.op_type))
        if isinstance(v, onnx.TensorProto):
            v = tensor(v)
        out[a.name] = v
    return out


# ---- the net ----


def tensor(proto):
    return torch.from_numpy(numpy_helper.to_array(proto).copy())


class Net:
    """The nodes that depend on the input, and the constants that they take.

    node      in order                        constant  {name: tensor}
    input     its name; shape: that stored    output    the first one's name
    """

    def __init__(self, path, batch):
        model = onnx.load(path)
        g = model.graph
        opset = [i.version for i in model.opset_import if i.domain == ""]
        if not 7 <= opset[0] <= 11:
            raise Unsupported("opset %d" % opset[0])
        known = {i.name: tensor(i) for i in g.initializer}
        ports = [i for i in g.input if i.name not in known]
        if len(ports) != 1:
            raise Unsupported("%d inputs" % len(ports))
        dims = ports[0].type.tensor_type.shape.dim
        self.input, self.output = ports[0].name, g.output[0].name
        self.shape = [batch] + [d.dim_value for d in dims[1:]]
        self.opset, self.node = opset[0], []
        for n in g.node:
            if all(i in known for i in n.input):
                words = attributes(n, train=False, inplace=False)
                known[n.output[0]] = OPS[n.op_type](
                    *(known[i] for i in n.input), **words)
            else:
                self.node.append(n)
        self.constant = {i: known[i] for n in self.node for i in n.input
                         if i in known}
        for n in self.node:  # a stored batch of 1
            if n.op_type == "Reshape" and n.input[1] in self.constant:
                shape = self.constant[n.input[1]]
                if len(shape) > 1 and shape[0] == 1:
                    shape[0] = batch

    def role(self, op, i):
        """Names that operand i of operator op has somewhere."""
        return {n.input[i] for n in self.node
                if n.op_type == op and len(n.input) > i}

    def draw(self):
        """Other weights: with those of the file all pictures look the same."""
        rng = numpy.random.default_rng(0)
        near_1 = self.role("BatchNormalization", 1)
        near_1 |= self.role("BatchNormalization", 4)
        for name, v in self.constant.items():
            if not v.is_floating_point():
                continue
            if v.dim() > 1:
                k = math.sqrt(2 / math.prod(v.shape[1:]))
                new = k * rng.standard_normal(tuple(v.shape))
            else:
                new = rng.uniform(-0.5, 0.5, tuple(v.shape))
                new = new + (name in near_1)
            self.constant[name] = torch.from_numpy(new).to(v.dtype)

    def cut(self):
        """Leave out a Softmax that makes the output: cross entropy has one."""
        last = [n for n in self.node if n.output[0] == self.output]
        if last and last[0].op_type == "Softmax":
            self.output = last[0].input[0]
            self.node.remove(last[0])

    def module(self, train):
        """The net as a module, batch normalisation and dropout as said."""
        uses = [i for n in self.node for i in n.input]
        made = {n.output[0]: n.op_type for n in self.node}
        still = self.role("BatchNormalization", 3)
        still |= self.role("BatchNormalization", 4)
        root, g = nn.Module(), fx.Graph()
        value = {self.input: g.placeholder("x")}
        for k, (name, v) in enumerate(self.constant.items()):
            if not v.is_floating_point():
                value[name] = v.tolist()
            elif v.dim() == 0 or name in still:
                root.register_buffer("w%d" % k, v.clone())
            else:
                root.register_parameter("w%d" % k, nn.Parameter(v.clone()))
        for k, name in enumerate(self.constant):
            if name not in value:
                value[name] = g.get_attr("w%d" % k)
        for n in self.node:
            x = n.input[0]
            own = made.get(x) in FRESH and uses.count(x) == 1
            words = attributes(n, train=train, inplace=own)
            value[n.output[0]] = g.call_function(
                OPS[n.op_type], tuple(value[i] for i in n.input), words)
        g.output(value[self.output])
        return fx.GraphModule(root, g).train(train)

    def proto(self):
        """The net as a model again, its constants initialisers."""
        real = onnx.TensorProto.FLOAT
        g = onnx.helper.make_graph(
            self.node, "net",
            [onnx.helper.make_tensor_value_info(self.input, real, self.shape)],
            [onnx.helper.make_tensor_value_info(self.output, real, None)],
            [numpy_helper.from_array(v.numpy(), name)
             for name, v in self.constant.items()])
        return onnx.helper.make_model(
            g, ir_version=8,
            opset_imports=[onnx.helper.make_opsetid("", self.opset)])


# ---- what is measured ----


def compare(path, what, got, want):
    got, want = numpy.ravel(got), numpy.ravel(want)
    most = numpy.abs(want).max()
    apart = numpy.abs(got - want).max() if got.shape == want.shape else math.inf
    if not apart <= APART * most:
        sys.exit("%s: %s: %g apart, the greatest is %g: PyTorch's net is "
                 "another one" % (path, what, apart, most))


def check(path, batch):
    """Against what is stored, and what ONNX Runtime makes of drawn weights."""
    x = 2 * numpy.random.default_rng(1).random(
        Net(path, batch).shape, "float32") - 1
    stored = path.replace(".onnx", "_output_0.pb")
    if os.path.exists(stored):
        with open(stored, "rb") as file, torch.inference_mode():
            want = numpy_helper.to_array(
                onnx.TensorProto.FromString(file.read()))
            got = Net(path, batch).module(False)(torch.from_numpy(x))
        compare(path, "the stored output", got.numpy(),
                numpy.repeat(want, batch, 0))
    try:
        import onnxruntime
    except ImportError as e:
        print("%s: not compared with ONNX Runtime: %s" % (path, e),
              file=sys.stderr)
        return
    net = Net(path, batch)
    net.draw()
    net.cut()
    x *= BRIGHT
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    want = onnxruntime.InferenceSession(
        net.proto().SerializeToString(), options,
        ["CPUExecutionProvider"]).run(None, {net.input: x})[0]
    with torch.inference_mode():
        got = net.module(False)(torch.from_numpy(x))
    compare(path, "ONNX Runtime's output", got.numpy(), want)


def infer(path, batch):
    check(path, batch)
    net = Net(path, batch)
    net.draw()
    call = net.module(False)
    x = torch.rand(net.shape)
    times = []
    with torch.inference_mode():
        for _ in range(INFER + 2):
            start = time.perf_counter()
            call(x)
            times.append(time.perf_counter() - start)
    return {"run": statistics.median(times[2:])}


def step_of(net, call, x, y, rate):
    """One step as a function that returns the loss."""
    optimizer = torch.optim.SGD(net.parameters(), rate, MOMENTUM)

    def step():
        order = torch.randperm(len(x))
        optimizer.zero_grad()
        loss = f.cross_entropy(call(x[order]).flatten(1), y[order])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def train(path, batch, compiled):
    net = Net(path, batch)
    net.draw()
    net.cut()
    module = net.module(True)
    x = 2 * torch.rand(net.shape) - 1
    del net
    step = step_of(module, torch.compile(module) if compiled else module, x,
                   torch.zeros(batch, dtype=torch.int64), RATE)
    times = []
    for _ in range(STEPS + 1):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"first": times[0], "steps": times[1:], "bytes": 1024 * used}


def losses(path, batch, folder):
    net = Net(path, batch)
    if any(n.op_type == "Dropout" for n in net.node):
        raise Unsupported("the same losses twice with Dropout")
    rng = numpy.random.default_rng(1)
    x = 2 * rng.random(net.shape, "float32") - 1
    y = numpy.arange(batch)
    net.draw()
    onnx.save(net.proto(), os.path.join(folder, "net.onnx"))
    numpy.save(os.path.join(folder, "x.npy"), x)
    numpy.save(os.path.join(folder, "y.npy"), y)
    net.cut()
    module = net.module(True)
    step = step_of(module, module, torch.from_numpy(x), torch.from_numpy(y),
                   CHECKED_RATE)
    return {"losses": [step() for _ in range(CHECKED)], "lr": CHECKED_RATE}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    what, path, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(os.cpu_count())
    try:
        if what == "infer":
            out = infer(path, batch)
        elif what == "losses":
            out = losses(path, batch, sys.argv[4])
        else:
            out = train(path, batch, what == "compile")
    except Unsupported as e:
        sys.exit("%s: PyTorch: not translated: %s" % (path, e))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
