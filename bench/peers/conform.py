"""conform.py FOLDER                        ONNX's node tests, run by ONNX Runtime
conform.py --write FOLDER                   writes these tests
conform.py --exact TENON FOLDER NAME...     who is nearer to the exact values

With --write the node tests of the onnx that is installed are written to FOLDER
instead, a folder each, as tools/conform_onnx.sh reads them.

With --exact the tests NAME are computed in f64, too: by ONNX's own reference, with
all types of floats in the model changed to f64. The table has, for all outputs of
floats together, how many elements the test's values and ours differ in, as `tenon
check` counts; in how many of these ours are nearer to those of f64; and over all
elements the root mean square of the distance, ours and the test's. Exit code 1: of the
elements of a test that differ, the test's are nearer in more than half.

The same comparison as `tenon check`: |x - y| <= 1e-7 + 1e-3 |y|, equal types and
shapes; NaN is NaN. Values of types that NumPy has not, such as bfloat16, go
through a Cast that is put before and behind the model: from and to f32, or i8 and
u8, which hold them all. Prints what fails, with the first line of its reason,
and a count of each kind.
Needs onnx, onnxruntime and numpy (bench/peers/zoo.py says how to get them).
"""
import collections
import os
import sys

import numpy
import onnx
from onnx import numpy_helper


def value(path, kind):
    """A tensor, a list of them, or None: of a file input_0.pb."""
    data = open(path, "rb").read()
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        t = onnx.TensorProto()
        t.ParseFromString(data)
        return numpy_helper.to_array(t)
    if which == "sequence_type":
        s = onnx.SequenceProto()
        s.ParseFromString(data)
        return numpy_helper.to_list(s)
    if which == "optional_type":
        o = onnx.OptionalProto()
        o.ParseFromString(data)
        return numpy_helper.to_optional(o)
    raise ValueError("a value of kind " + str(which))


def same(got, want):
    if want is None or got is None:
        return got is want
    if isinstance(want, list):
        return (isinstance(got, list) and len(got) == len(want) and
                all(same(a, b) for a, b in zip(got, want)))
    got, want = numpy.asarray(got), numpy.asarray(want)
    if got.shape != want.shape:
        return False
    if want.dtype.kind in "OSU":
        return bool((got.astype(str) == want.astype(str)).all())
    if got.dtype != want.dtype:
        return False
    a = got.astype("complex128" if want.dtype.kind == "c" else "float64")
    b = want.astype(a.dtype)
    with numpy.errstate(invalid="ignore"):
        near = abs(a - b) <= 1e-7 + 1e-3 * abs(b)
    return bool((near | (a == b) | (numpy.isnan(a) & numpy.isnan(b))).all())


def numpy_has(elem):
    t = onnx.helper.tensor_dtype_to_np_dtype(elem)
    return t.kind != "V" and t.type.__module__ == "numpy"


def wide(elem):
    """The type of NumPy that holds all values of elem."""
    name = onnx.TensorProto.DataType.Name(elem)
    return (onnx.TensorProto.UINT8 if name.startswith("UINT") else
            onnx.TensorProto.INT8 if name.startswith("INT") else
            onnx.TensorProto.FLOAT)


def with_casts(model):
    """The model on types of NumPy."""
    g, before, behind = model.graph, [], []
    known = {x.name for x in g.initializer}
    for i, x in enumerate(list(g.input) + list(g.output)):
        t = x.type.tensor_type
        is_input = i < len(g.input)
        if x.type.WhichOneof("value") != "tensor_type" or (
                numpy_has(t.elem_type)) or (is_input and x.name in known):
            continue
        outside = "%s_outside_%d" % (x.name, i)
        if is_input:
            before.append(onnx.helper.make_node(
                "Cast", [outside], [x.name], to=t.elem_type))
        else:
            behind.append(onnx.helper.make_node(
                "Cast", [x.name], [outside], to=wide(t.elem_type)))
        t.elem_type = wide(t.elem_type)
        x.name = outside
    nodes = before + list(g.node) + behind
    del g.node[:]
    g.node.extend(nodes)
    return model.SerializeToString()


def fed(v, elem):
    """A value as the model with casts takes and gives it."""
    if isinstance(v, numpy.ndarray) and not numpy_has(elem):
        return v.astype(onnx.helper.tensor_dtype_to_np_dtype(wide(elem)))
    return v


def one(folder):
    """None, or why it fails: ("refused" or "values", text)."""
    import onnxruntime as ort

    path = os.path.join(folder, "model.onnx")
    model = onnx.load(path)
    types = [x.type.tensor_type.elem_type for x in model.graph.output]
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    known = {x.name for x in model.graph.initializer}
    inputs = [x for x in model.graph.input if x.name not in known]
    elems = [x.type.tensor_type.elem_type for x in inputs]
    kinds = []
    for x in list(inputs) + list(model.graph.output):
        kind = onnx.TypeProto()
        kind.CopyFrom(x.type)
        kinds.append(kind)
    try:
        data = with_casts(model)
        s = ort.InferenceSession(data, o, ["CPUExecutionProvider"])
    except Exception as e:
        return "refused", str(e)
    n = 0
    while os.path.isdir(os.path.join(folder, "test_data_set_%d" % n)):
        at = os.path.join(folder, "test_data_set_%d" % n)
        n += 1
        try:
            feed = {x.name: fed(value("%s/input_%d.pb" % (at, i), kinds[i]),
                                elems[i])
                    for i, x in enumerate(inputs)
                    if os.path.exists("%s/input_%d.pb" % (at, i))}
            got = s.run(None, feed)
            want = [fed(value("%s/output_%d.pb" % (at, i),
                              kinds[len(inputs) + i]), types[i])
                    for i in range(len(types))]
        except Exception as e:
            return "refused", str(e)
        for a, b, y in zip(got, want, model.graph.output):
            if not same(a, b):
                return "values", y.name
    return None


def write(folder):
    """The node tests, made by their definitions."""
    from argparse import Namespace
    from onnx.backend.test import cmd_tools
    from onnx.backend.test.case import node

    class Cases:
        collect_testcases = staticmethod(node.collect_testcases)

    # it writes to FOLDER/node what its model_test collects
    cmd_tools.model_test = Cases
    cmd_tools.generate_data(Namespace(output=folder))
    print("%d tests in %s" % (len(os.listdir(os.path.join(folder, "node"))),
                              os.path.join(folder, "node")))
    return 0


# ---- who is nearer ----

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16,
          onnx.TensorProto.BFLOAT16)
DOUBLE = onnx.TensorProto.DOUBLE


def as_double(t):
    if t.data_type in FLOATS:
        t.CopyFrom(numpy_helper.from_array(
            numpy_helper.to_array(t).astype("float64"), t.name))


def in_f64(model):
    """The model with all floats of 64 bits."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for x in list(m.graph.input) + list(m.graph.output):
        if x.type.tensor_type.elem_type in FLOATS:
            x.type.tensor_type.elem_type = DOUBLE
    del m.graph.value_info[:]
    for t in m.graph.initializer:
        as_double(t)
    for node in m.graph.node:
        for a in node.attribute:
            if a.name in ("to", "dtype", "softmax_precision") and (
                    a.i in FLOATS):
                a.i = DOUBLE
            if a.HasField("t"):
                as_double(a.t)
    return m


def by_tenon(tenon, model, feed):
    """The outputs, of types that NumPy has."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "model.onnx")
        m = onnx.ModelProto()
        m.ParseFromString(with_casts(model))
        onnx.save(m, path)
        command = [tenon, "run", path, "--output", d]
        for x, v in zip(m.graph.input, feed):
            numpy.save(os.path.join(d, "in.%s.npy" % x.name), v)
            command += ["--input", "%s=%s/in.%s.npy" % (x.name, d, x.name)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [numpy.load(os.path.join(d, y.name + ".npy"))
                for y in m.graph.output]


def nearer(tenon, folder):
    """(elements that differ, of these ours nearer, rms ours, rms the test's)"""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(os.path.join(folder, "model.onnx"))
    ports = list(model.graph.input) + list(model.graph.output)
    n = len(model.graph.input)
    at = os.path.join(folder, "test_data_set_0")
    values = [value("%s/%s_%d.pb" % (at, *(("input", i) if i < n else
                                           ("output", i - n))), x.type)
              for i, x in enumerate(ports)]
    elems = [x.type.tensor_type.elem_type for x in ports]
    exact = ReferenceEvaluator(in_f64(model)).run(None, {
        x.name: v.astype("float64") if e in FLOATS else v
        for x, v, e in zip(ports[:n], values, elems)})
    ours = by_tenon(tenon, model, map(fed, values[:n], elems))
    got, want, right = (numpy.concatenate([
        numpy.asarray(v, "float64").ravel()
        for v, e in zip(x, elems[n:]) if e in FLOATS])
        for x in (ours, values[n:], exact))
    apart = abs(got - want) > 1e-7 + 1e-3 * abs(want)
    won = abs(got - right) < abs(want - right)
    return (int(apart.sum()), int((apart & won).sum()),
            *(float(((x - right) ** 2).mean() ** .5) for x in (got, want)))


def exact(tenon, root, names):
    print("| test | differ | ours nearer | rms, ours | rms, the test's |\n"
          "|---|---|---|---|---|")
    lost = 0
    for name in names:
        row = nearer(tenon, os.path.join(root, name))
        lost += 2 * row[1] < row[0]
        print("| %s | %d | %d | %.2g | %.2g |" % (name, *row), flush=True)
    return 1 if lost else 0


def main():
    if sys.argv[1:2] == ["--exact"]:
        return exact(sys.argv[2], sys.argv[3], sys.argv[4:])
    if "--write" in sys.argv[1:]:
        return write(sys.argv[-1])
    root, failed, n = sys.argv[-1], collections.Counter(), 0
    for name in sorted(os.listdir(root)):
        if not os.path.exists(os.path.join(root, name, "model.onnx")):
            continue
        n += 1
        why = one(os.path.join(root, name))
        if why is not None:
            failed[why[0]] += 1
            print("%s: %s: %s" % (name, why[0], (why[1].splitlines() or [""])[
                0][:150]), flush=True)
    print("%d tests, %d pass; %s" % (n, n - sum(failed.values()), ", ".join(
        "%d %s" % (v, k) for k, v in failed.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
