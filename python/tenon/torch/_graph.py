"""A graph of PyTorch's operators as steps: programs, and what PyTorch does itself.

    add -> sort of complex numbers -> mul -> sum      one program, one call, one program

Each operator is tried alone first. What no rows are known for is a step of PyTorch's;
everything else is grouped into as few programs as the dependences allow. Views of
inputs that leave the graph are made by PyTorch, without a copy.
"""
import operator
import warnings
from inspect import signature

import torch
from torch.fx import GraphModule, Node

from .._tenon import Error, _parse
from ._random import drawn, shorter
from ._table import operators
from ._text import Text, Unsupported, Value, dtype_of, order_of

aten = torch.ops.aten
VIEWS = {getattr(getattr(aten, n.split(".")[0]), n.split(".")[1]) for n in (
    "view.default permute.default transpose.int t.default unsqueeze.default "
    "squeeze.dim squeeze.dims expand.default slice.Tensor select.int alias.default "
    "detach.default as_strided.default").split()}
QUIET = ("_assert", "check_errors", "sym_", "getitem")
said = set()
# the shorter way past the parser of arguments, where this version of PyTorch has it
_empty = getattr(torch._C._dynamo.guards, "_empty_strided_cpu",
                 lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype))


def _compared(t, shape, stride):
    if t.shape != shape or t.stride() != stride and t.numel() > 1:
        raise AssertionError("another shape or other strides")


_assert_layout = getattr(torch._C._dynamo.guards, "assert_size_stride", _compared)


def say(node, why):
    """Names an operator that runs in PyTorch; once."""
    target = node.target
    if str(target) == "with_effects":  # a token, and the operator
        target = node.args[1]
    name = str(target)
    if name in said or any(q in name for q in QUIET):
        return
    said.add(name)
    warnings.warn(f"tenon: {name} runs in PyTorch, between compiled parts: {why}",
                  stacklevel=2)


def is_number(x):
    return isinstance(x, (int, float, bool))


def val(node):
    return node.meta.get("val")


def nodes_of(args):
    found = []
    torch.fx.map_arg(args, found.append)
    return found


def operands(node):
    return nodes_of((node.args, node.kwargs))


def reader(args):
    """f(env): these arguments with what env has for their nodes. What is no list of
    nodes and constants is walked at each call."""
    def known(n):  # a number that follows from the shapes: no step computes it
        return n.op != "placeholder" and is_number(val(n))

    args = torch.fx.map_arg(args, lambda n: val(n) if known(n) else n)
    if not nodes_of(args):
        return lambda env: args
    if isinstance(args, (tuple, list)) and all(
            isinstance(a, Node) or not nodes_of(a) for a in args):
        slots = [(a, isinstance(a, Node)) for a in args]
        return lambda env: [env[a] if is_node else a for a, is_node in slots]
    return lambda env: torch.fx.map_arg(args, env.__getitem__)


def function_of(gm, node):
    """What computes a node that PyTorch runs: by a shorter way, if there is one."""
    if node.op == "call_module":
        return gm.get_submodule(node.target)
    v = val(node)
    if node.target is aten.empty.memory_format and v.device.type == "cpu":
        of = tuple(v.shape), v.stride(), v.dtype
        return lambda *args, **kwargs: _empty(*of)
    return shorter.get(node.target, node.target)


class Program:
    """A compiled part of the graph: called with tensors, it returns tensors."""

    def __init__(self, inputs, outputs, text):
        self.inputs, self.outputs = inputs, outputs  # nodes
        self.text = text
        self.program = _parse(text, "torch.tn")
        self.check()
        self.program._compile()
        self.wants = [(tuple(v.shape), layout(v)[1], v.dtype) for v in map(val, inputs)]
        self.gives = [(tuple(v.shape), layout(v)[1], v.dtype) for v in map(val, outputs)]
        self.fixed = set()  # numbers of inputs that are written

    def check(self):
        """What the library found of shapes and dtypes is what memory is made for."""
        for found, nodes in ((self.program.inputs, self.inputs),
                             (self.program.outputs, self.outputs)):
            for (name, dtype, shape), v in zip(found, map(val, nodes)):
                order, _ = layout(v)
                if dtype != dtype_of(v.dtype) or shape != tuple(v.shape[a] for a in order):
                    raise AssertionError(f"{name} is {dtype}{list(shape)}, not {v.dtype} "
                                         f"{list(v.shape)}")

    def as_wanted(self, tensors):
        """The tensors, or dense copies of those whose memory is not as it should be."""
        result = []
        for i, (t, (shape, stride, dtype)) in enumerate(zip(tensors, self.wants)):
            if t.shape != shape or t.dtype != dtype or not t.is_cpu:
                raise RuntimeError(
                    f"tenon: input {i} is {t.dtype} {tuple(t.shape)} on {t.device}; the "
                    f"program was made for {dtype} {shape} on the CPU")
            if t.stride() != stride and t.numel() > 1 or t.is_neg():
                if i in self.fixed:
                    raise RuntimeError(f"tenon: input {i}, which is written, has strides "
                                       f"{t.stride()}, not {stride}")
                t = torch.empty_strided(shape, stride, dtype=dtype).copy_(t)
            result.append(t)
        return result

    def __call__(self, tensors):
        try:
            for t, (shape, stride, dtype) in zip(tensors, self.wants):
                _assert_layout(t, shape, stride)
                if t.dtype is not dtype or not t.is_cpu or t.is_neg():
                    raise AssertionError("another dtype or device, or not negated yet")
        except AssertionError:
            tensors = self.as_wanted(tensors)
        out = [_empty(*of) for of in self.gives]
        self.program._run(tuple([t.data_ptr() for t in tensors]),
                          tuple([t.data_ptr() for t in out]))
        return out


def layout(v):
    """The order of axes in memory, and strides: the tensor's own if it is dense."""
    order = order_of(v.shape, v.stride())
    if order is not None and 0 not in v.shape:
        return order, tuple(v.stride())
    strides, step = [], 1
    for n in reversed(v.shape):
        strides.insert(0, step)
        step *= max(n, 1)
    return list(range(len(v.shape))), tuple(strides)


class Writer:
    """Writes the nodes of one part as a program."""

    def __init__(self, nodes):
        self.text, self.nodes = Text(), nodes
        self.values, self.inputs = {}, []
        self.written = {n.args[0] for n in nodes if n.target is aten.copy_.default}

    def input(self, node):
        v = val(node)
        if not isinstance(v, torch.Tensor):
            raise Unsupported(f"an operand that is {type(v).__name__}")
        if v.device.type != "cpu":
            raise Unsupported(f"device {v.device.type}")
        if v.layout != torch.strided or v.is_conj():
            raise Unsupported(f"layout {v.layout}")
        order, _ = layout(v)
        x = self.text.input(dtype_of(v.dtype), [v.shape[a] for a in order],
                            node in self.written)
        self.inputs.append(node)
        back = [order.index(a) for a in range(len(order))]
        return self.text.transpose(x, back)

    def value(self, node):
        if node in self.values:
            return self.values[node]
        v = val(node)
        self.values[node] = v if is_number(v) else self.input(node)
        return self.values[node]

    def write(self, node):
        self.text.node = node
        if node.target is operator.getitem:
            r = self.value(node.args[0])[node.args[1]]
        else:
            f, words = operators[node.target]
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.value)
            try:
                signature(f).bind(self.text, node, words, *args, **kwargs)
            except TypeError as e:
                raise Unsupported(f"arguments: {e}") from e
            r = f(self.text, node, words, *args, **kwargs)
        self.values[node] = r
        self.check(node, r)

    def check(self, node, r):
        v = val(node)
        for x, y in zip(r, v) if isinstance(r, list) else [(r, v)]:
            if isinstance(x, Value) and isinstance(y, torch.Tensor) and (
                    x.shape != tuple(y.shape) or x.dtype != dtype_of(y.dtype)):
                raise Unsupported(f"{x.dtype}{list(x.shape)} came out, not "
                                  f"{y.dtype} {list(y.shape)}")

    def output(self, node):
        r, (order, _) = self.value(node), layout(val(node))
        self.text.outputs.append(self.text.transpose(r, order))

    def program(self, outputs):
        for n in self.nodes:
            self.write(n)
        for n in outputs:
            self.output(n)
        if not outputs:  # it only writes: a program returns something
            self.text.outputs.append(self.text.fill((), 0, "f32"))


class Refused(Exception):
    """The library refused what was written for this node."""

    def __init__(self, node, why):
        super().__init__(why)
        self.node, self.why = node, why


def compiled(nodes, outputs):
    w = Writer(nodes)
    w.program(outputs)
    text = str(w.text)
    try:
        p = Program(w.inputs, outputs, text)
    except Error as e:
        node = w.text.node_of.get(e.line - w.text.first) if e.file == "torch.tn" else None
        if node is None:
            raise
        raise Refused(node, f"[{e.rule}] {e.text}") from e
    if not outputs:
        p.gives = [((), (), torch.float32)]
    p.fixed = {i for i, n in enumerate(w.inputs) if n in w.written}
    return p


def why_not(node):
    """Why this operator cannot be written; None: it can."""
    if node.target is not operator.getitem and node.target not in operators:
        return "no line in aten.def"
    w = Writer([node])
    try:
        if node.target is operator.getitem:
            return None
        v = val(node)
        for t in v if isinstance(v, (list, tuple)) else [v]:
            if isinstance(t, torch.Tensor) and t.device.type != "cpu":
                return f"device {t.device.type}"
        w.write(node)
    except Unsupported as e:
        return str(e)
    return None


class Plan:
    """The steps of a graph whose shapes are known."""

    def __init__(self, gm):
        self.gm = gm
        self.nodes = list(gm.graph.nodes)
        self.result = next(n for n in self.nodes if n.op == "output")
        self.constants = {}
        self.refused = {}  # node: why
        for n in self.nodes:
            if n.op == "get_attr":
                t = gm
                for part in n.target.split("."):
                    t = getattr(t, part)
                self.constants[n] = t
                n.meta.setdefault("val", t)
        self.find_refused()
        while True:
            self.find_late()
            self.find_levels()
            try:
                self.make_steps()
                break
            except Refused as e:
                self.refuse(e.node, e.why)

    def refuse(self, node, why):
        self.refused[node] = why
        if operators.get(node.target, (None,))[0] is not drawn:
            say(node, why)
            return
        for a in operands(node):  # memory to draw into: not worth a program before
            if a.op == "call_function" and not operands(a):
                self.refused[a] = why

    def calls(self):
        return [n for n in self.nodes if n.op in ("call_function", "call_module")
                and not is_number(val(n))]

    def find_refused(self):
        for n in self.calls():
            if n.target is operator.getitem and n.args[0] in self.refused:
                self.refused[n] = "of what PyTorch made"
                continue
            why = why_not(n)
            if why is not None:
                self.refuse(n, why)

    def find_late(self):
        """Views of inputs, and of what leaves the graph, that leave it themselves."""
        leaving = set(operands(self.result))
        written = {n.args[0] for n in self.nodes if n.target is aten.copy_.default}
        self.late = []
        for n in sorted(leaving, key=self.nodes.index):
            chain, at = [], n
            while at.op == "call_function" and at.target in VIEWS:
                chain.insert(0, at)
                at = at.args[0]
                if at in leaving and at.op != "placeholder":
                    break
            if chain and (at.op == "placeholder" and at not in written
                          or at in leaving and at.op == "call_function"):
                self.late += [c for c in chain if c not in self.late]
        self.late.sort(key=self.nodes.index)

    def find_levels(self):
        """Even levels are programs, odd ones PyTorch's."""
        level, last_random, odd = {}, -1, []
        writes = []
        for n in self.calls():
            if n.target is aten.copy_.default:
                writes.append(n)
                continue
            at = max((level[a] for a in operands(n) if a in level), default=-1)
            if n.target is operator.getitem and n.args[0] in level:
                level[n] = level[n.args[0]]
                continue
            if n in self.refused:
                at += 1 - at % 2
                if operators.get(n.target, (None,))[0] is drawn:
                    at = last_random = max(at, last_random)
            else:
                at = max(at + at % 2, 0)
            level[n] = at
        top = max(level.values(), default=0)
        for n in writes:
            even = top + top % 2
            level[n] = even + 1 if n in self.refused else even
        self.level = level

    def make_steps(self):
        late = set(self.late)
        needed = set(operands(self.result)) - late
        needed |= {a for n in self.late for a in operands(n)} - late
        parts = {}
        for n, at in self.level.items():
            parts.setdefault(at, []).append(n)
        order = {n: i for i, n in enumerate(self.nodes)}
        self.steps = []
        for at in sorted(parts):
            nodes = sorted(parts[at], key=order.get)
            if at % 2:
                self.steps.append(nodes)
                continue
            used = {a for n, other in self.level.items() if other != at
                    for a in operands(n)} | needed
            nodes = alive(nodes, used)
            outs = [n for n in nodes if n in used]
            if nodes:
                self.steps.append(compiled(nodes, outs))
        self.inputs = [n for n in self.nodes if n.op == "placeholder"]
        self.reads = {n: (function_of(self.gm, n), reader(n.args), reader(n.kwargs))
                      for n in self.late + [n for s in self.steps
                                            if not isinstance(s, Program) for n in s]}
        self.read_results = reader(self.result.args[0])

    @property
    def programs(self):
        return [s for s in self.steps if isinstance(s, Program)]

    def __call__(self, args):
        env = dict(zip(self.inputs, args))
        env.update(self.constants)
        for s in self.steps:
            if isinstance(s, Program):
                env.update(zip(s.outputs, s([env[n] for n in s.inputs])))
            else:
                for n in s:
                    env[n] = self.eager(n, env)
        for n in self.late:
            env[n] = self.eager(n, env)
        return self.read_results(env)

    def eager(self, n, env):
        f, args, kwargs = self.reads[n]
        return f(*args(env), **kwargs(env))


def alive(nodes, used):
    """Those that something needs."""
    need, out = set(used), []
    for n in reversed(nodes):
        if n in need or n.target is aten.copy_.default:
            need.update(operands(n))
            out.append(n)
    return out[::-1]


class Dynamic:
    """A graph with sizes that are known when it is called: a plan for each."""

    def __init__(self, gm):
        self.gm, self.plans = gm, {}

    def __call__(self, args):
        key = tuple((tuple(a.shape), a.stride(), a.dtype)
                    if isinstance(a, torch.Tensor) else a for a in args)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = Plan(self.known(args))
        return plan(args)

    def known(self, args):
        """The graph with the shapes that follow from these arguments."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.passes.fake_tensor_prop import FakeTensorProp

        copy = torch.fx.Graph()
        copy.output(copy.graph_copy(self.gm.graph, {}))
        gm = GraphModule(self.gm, copy)
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        fake = [mode.from_tensor(a, static_shapes=True) if isinstance(a, torch.Tensor)
                else a for a in args]
        FakeTensorProp(gm, mode).propagate_dont_convert_inputs(*fake)
        return gm


def prepare(gm):
    """What is called with the arguments of the graph, as a list."""
    symbolic = any(
        isinstance(v, (torch.SymInt, torch.SymFloat, torch.SymBool))
        or isinstance(v, torch.Tensor) and any(
            isinstance(e, torch.SymInt) for e in v.shape)
        for v in (n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"))
    return Dynamic(gm) if symbolic else Plan(gm)
