#!/usr/bin/env python3
"""zoo.py [OPTION]... FOLDER [TENON]: architectures of today, beside peers.

Exports models from their public definitions (torchvision, transformers, and a
few modules of plain PyTorch) to ONNX, as torch.onnx.export does today: batch 1,
f32, constant shapes. Weights are drawn from a seed, so nothing is downloaded,
and what is computed means nothing: only its values and its time count. FOLDER
gets NAME.onnx and NAME.INPUT.npy for each input; what is there already is kept
(--again exports it anew).

Then each model is run by TENON, by ONNX Runtime and by OpenVINO, in turn, round
after round, each in a process of its own with the same number of threads and in
f32; each round gives one median of each. The table has the medians of the
rounds; `ratio` is the median of the rounds' ratios, a peer's time over ours:
above 1 ours is faster. `apart` is the greatest difference between our output
and ONNX Runtime's; `of greatest` the same divided by the greatest element. On a
machine that does other work, too, only `apart` means something.

Other models are measured the same way, instead of these, if --net names their
files; inputs are drawn from the seed, and so are weights that a model fills with
one number (ConstantOfShape). With --batch N they have batches of N.

With --forms instead: nine small nets in 22 forms each, by both exporters,
opsets 17 to 23, f32, f16 and bf16, quantised and optimised by ONNX Runtime's
tools (zoo_forms.py); only values are compared, not time.

Needs torch, torchvision, transformers, onnx, onnxscript and numpy for the
export, onnxruntime and openvino for the peers, in an environment of their own:

    python3 -m venv ~/peers
    ~/peers/bin/pip install torch torchvision transformers onnx onnxscript \\
        onnxruntime openvino
    ~/peers/bin/python bench/peers/zoo.py /tmp/zoo build/tenon
    ~/peers/bin/python bench/peers/zoo.py /tmp/nets build/tenon --net a.onnx

A peer that is not installed is left out, and that is said. Exit code 0: all
models ran and agree with ONNX Runtime; 1: one does not; 2: the command line
makes no sense, or what the export needs is not installed.
"""
import argparse
import importlib.util
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import warnings

SEED = 20
APART = 1e-3  # of the greatest element: what rounding may do in a deep net
SECONDS = 0.4  # of one peer in one round, about
MOST = 50  # runs in one round


# ---- the models ----
#
# A function gives a module and its inputs by name. What is imported is imported
# inside of it, so that --list needs nothing.


def picture(name, size=224, **words):
    """A net of torchvision, and a picture."""
    def build():
        import torch
        import torchvision

        net = getattr(torchvision.models, name)(weights=None, **words)
        return net, {"x": torch.randn(1, 3, size, size)}
    return build


def vit():
    """DeiT-Ti's sizes."""
    import torch
    from torchvision.models import VisionTransformer

    net = VisionTransformer(image_size=224, patch_size=16, num_layers=12,
                            num_heads=3, hidden_dim=192, mlp_dim=768)
    return net, {"x": torch.randn(1, 3, 224, 224)}


def tokens(n, vocabulary):
    import torch

    return {"tokens": torch.randint(0, vocabulary, (1, n))}


def of_transformers(config, words, model, n, field):
    """A model of transformers made small, its output `field`, and n tokens."""
    def build():
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        c = getattr(transformers, config)(**words)
        c._attn_implementation = "sdpa"
        c.use_cache = False

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = getattr(transformers, model)(c)

            def forward(self, tokens):
                return getattr(self.net(input_ids=tokens), field)

        return Net(), tokens(n, c.vocab_size)
    return build


def gru():
    """Frames of sound to letters: two recurrent layers in both directions."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Conv1d(80, 128, 5, stride=2, padding=2)
            self.gru = nn.GRU(128, 192, 2, batch_first=True,
                              bidirectional=True)
            self.head = nn.Linear(384, 32)

        def forward(self, x):
            y = torch.relu(self.front(x)).transpose(1, 2)
            return self.head(self.gru(y)[0]).log_softmax(-1)

    return Net(), {"x": torch.randn(1, 80, 200)}


def lstm():
    """A language model of one recurrent layer."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(2000, 256)
            self.lstm = nn.LSTM(256, 256, batch_first=True)
            self.norm = nn.LayerNorm(256)
            self.head = nn.Linear(256, 2000)

        def forward(self, tokens):
            return self.head(self.norm(self.lstm(self.table(tokens))[0]))

    return Net(), tokens(64, 2000)


def diffusion():
    """A level of the U-Net of latent diffusion: two residual blocks with group
    norms and the time's embedding, attention over the pixels after the first,
    attention over a text after that."""
    import torch
    from torch import nn
    from torch.nn.functional import scaled_dot_product_attention, silu

    wide, time_wide, text_wide, heads = 256, 512, 384, 8

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.GroupNorm(32, wide)
            self.conv1 = nn.Conv2d(wide, wide, 3, padding=1)
            self.time = nn.Linear(time_wide, wide)
            self.norm2 = nn.GroupNorm(32, wide)
            self.conv2 = nn.Conv2d(wide, wide, 3, padding=1)

        def forward(self, x, t):
            y = self.conv1(silu(self.norm1(x)))
            y = y + self.time(silu(t))[:, :, None, None]
            return x + self.conv2(silu(self.norm2(y)))

    class Attention(nn.Module):
        def __init__(self, from_wide):
            super().__init__()
            self.q = nn.Linear(wide, wide, bias=False)
            self.k = nn.Linear(from_wide, wide, bias=False)
            self.v = nn.Linear(from_wide, wide, bias=False)
            self.o = nn.Linear(wide, wide)

        def forward(self, x, y):
            q, k, v = (f(z).unflatten(-1, (heads, -1)).transpose(1, 2)
                       for f, z in ((self.q, x), (self.k, y), (self.v, y)))
            a = scaled_dot_product_attention(q, k, v)
            return self.o(a.transpose(1, 2).flatten(2))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Residual(), Residual()
            self.norm = nn.GroupNorm(32, wide)
            self.norm1 = nn.LayerNorm(wide)
            self.norm2 = nn.LayerNorm(wide)
            self.own, self.text = Attention(wide), Attention(text_wide)

        def forward(self, x, t, text):
            x = self.first(x, t)
            y = self.norm(x).flatten(2).transpose(1, 2)
            z = self.norm1(y)
            y = y + self.own(z, z)
            y = y + self.text(self.norm2(y), text)
            return self.last(x + y.transpose(1, 2).reshape(x.shape), t)

    return Net(), {"x": torch.randn(1, wide, 24, 24),
                   "t": torch.randn(1, time_wide),
                   "text": torch.randn(1, 40, text_wide)}


LLAMA = dict(vocab_size=2000, hidden_size=256, intermediate_size=688,
             num_hidden_layers=4, num_attention_heads=8,
             num_key_value_heads=4, max_position_embeddings=128)
GPT2 = dict(vocab_size=2000, n_embd=256, n_layer=4, n_head=8,
            n_positions=128)
BERT = dict(vocab_size=2000, hidden_size=256, num_hidden_layers=4,
            num_attention_heads=8, intermediate_size=1024)

# name: what it is, function; the most telling ones first
MODELS = {
    "efficientnet_b0": ("convolutions of groups, squeeze-and-excitation",
                        picture("efficientnet_b0")),
    "mobilenet_v3_small": ("the same, with hard swish",
                           picture("mobilenet_v3_small")),
    "diffusion": ("group norm, SiLU, attention over pixels and over a text",
                  diffusion),
    "gru": ("a convolution, and two GRU layers in both directions", gru),
    "vit": ("a vision transformer of DeiT-Ti's sizes", vit),
    "swin_t": ("attention in shifted windows", picture("swin_t")),
    "shufflenet_v2": ("channels split and shuffled",
                      picture("shufflenet_v2_x1_0")),
    "convnext_tiny": ("7x7 depthwise convolutions, layer norm, GELU",
                      picture("convnext_tiny")),
    "regnet_y": ("convolutions of groups, squeeze-and-excitation",
                 picture("regnet_y_400mf")),
    "llama": ("a decoder: rotary positions, grouped heads, RMS norm, SwiGLU",
              of_transformers("LlamaConfig", LLAMA, "LlamaForCausalLM", 64,
                              "logits")),
    "densenet121": ("concatenations of all layers before",
                    picture("densenet121")),
    "maxvit_t": ("attention in windows and on grids, convolutions between",
                 picture("maxvit_t")),
    "mobilenet_v2": ("inverted residuals", picture("mobilenet_v2")),
    "resnet18": ("residual blocks", picture("resnet18")),
    "gpt2": ("a decoder: layer norm, GELU, one matrix for q, k and v",
             of_transformers("GPT2Config", GPT2, "GPT2LMHeadModel", 64,
                             "logits")),
    "bert": ("an encoder", of_transformers(
        "BertConfig", BERT, "BertModel", 64, "last_hidden_state")),
    "lstm": ("an embedding and an LSTM layer", lstm),
    "squeezenet": ("fire modules", picture("squeezenet1_1")),
}


# ---- export ----


def complain(text):
    progress("")
    print("zoo.py: " + text, file=sys.stderr, flush=True)


def progress(text):
    if sys.stderr.isatty():
        print("\r\x1b[K" + text, end="", file=sys.stderr, flush=True)


def draw(net):
    """Nothing stays all 0 or all 1: norms without a scale and layer scales of a
    millionth hide what is wrong. The rest is as the module draws it."""
    import torch

    with torch.no_grad():
        for p in net.parameters():
            if p.numel() > 1 and p.min() == p.max():
                around = 0 if p.min() == 0 else max(float(p.min()), 0.1)
                p.copy_(around + 0.1 * torch.randn_like(p))
        for name, b in net.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn_like(b))
            elif name.endswith("running_var"):
                b.copy_(0.5 + torch.rand_like(b))


def export(name, folder, legacy):
    """NAME.onnx and NAME.INPUT.npy in the folder."""
    import numpy
    import torch

    torch.manual_seed(SEED)
    net, inputs = MODELS[name][1]()
    draw(net)
    net.eval()
    path = os.path.join(folder, name + ".onnx")
    for key, v in inputs.items():
        numpy.save(os.path.join(folder, "%s.%s.npy" % (name, key)),
                   v.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, tuple(inputs.values()), path + ".part",
            input_names=list(inputs), output_names=["y"],
            dynamo=not legacy, external_data=False, verbose=False)
    os.replace(path + ".part", path)  # it is there when all of it is


def need(what, modules):
    """Ends with a message if a module is not installed."""
    gone = [m for m in modules if importlib.util.find_spec(m) is None]
    if gone:
        complain("to %s this Python lacks %s: %s -m pip install %s" % (
            what, ", ".join(gone), sys.executable, " ".join(gone)))
        sys.exit(2)


def export_all(names, folder, again, legacy):
    """Exports what is not there; the names of the models that are."""
    made = []
    wanted = [n for n in names if again or
              not os.path.exists(os.path.join(folder, n + ".onnx"))]
    if wanted:
        need("export %s" % ", ".join(wanted), (
            "torch", "torchvision", "transformers", "onnx", "onnxscript",
            "numpy"))
    os.makedirs(folder, exist_ok=True)
    for name in names:
        try:
            if name in wanted:
                progress("export %d/%d: %s" % (
                    wanted.index(name) + 1, len(wanted), name))
                export(name, folder, legacy)
            made.append(name)
        except Exception as e:  # each exporter has exceptions of its own
            complain("%s: torch.onnx.export fails: %s" % (
                name, (str(e).splitlines() or [repr(e)])[0]))
    progress("")
    return made


def draw_inputs(model, stem):
    """STEM.INPUT.npy for each input of a model that is no weight."""
    import numpy
    import onnx

    r = numpy.random.default_rng(SEED)
    known = {i.name for i in model.graph.initializer}
    for i in model.graph.input:
        t = i.type.tensor_type
        shape = [d.dim_value for d in t.shape.dim]
        if i.name in known:
            continue
        if min(shape, default=1) < 1 or t.elem_type != onnx.TensorProto.FLOAT:
            raise ValueError("input %s is not f32 of a constant shape" % i.name)
        numpy.save("%s.%s.npy" % (stem, urllib.parse.quote(i.name, safe="")),
                   r.uniform(-1, 1, shape).astype("float32"))


def draw_weights(model):
    """f32 weights that a model fills with one number are drawn: factors of several
    axes from a normal distribution by the length of their sums, all others
    between 0.5 and 1.5. Filters that all are the same make layers beside each
    other equal, and a peer computes equal layers once, as it could not in any
    net that somebody trained."""
    import numpy
    from onnx import TensorProto, numpy_helper

    r = numpy.random.default_rng(SEED)
    g = model.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in g.initializer}
    for node in [n for n in g.node if n.op_type == "ConstantOfShape"]:
        if node.input[0] not in shapes:
            continue
        shape = [int(d) for d in shapes[node.input[0]]]
        if min(shape, default=1) < 1 or any(
                a.t.data_type != TensorProto.FLOAT for a in node.attribute):
            continue
        if len(shape) > 1:
            draw = r.standard_normal(shape, dtype="float32")
            draw *= math.sqrt(2 / math.prod(shape[1:]))
        else:
            draw = r.uniform(0.5, 1.5, shape).astype("float32")
        g.initializer.append(numpy_helper.from_array(draw, node.output[0]))
        g.node.remove(node)


def take(nets, folder, batch):
    """Puts models of other files into the folder; their names there."""
    need("read %s" % ", ".join(nets), ("onnx", "numpy"))
    import onnx
    from nets import with_batch

    os.makedirs(folder, exist_ok=True)
    names = []
    for path in nets:
        name = os.path.basename(path)
        name = name[:-len(".onnx")] if name.endswith(".onnx") else name
        if batch is not None:
            name += "-%d" % batch
        stem = os.path.join(folder, name)
        try:
            model = with_batch(path, batch)[0] if batch else onnx.load(path)
            draw_weights(model)
            draw_inputs(model, stem)
            onnx.save(model, stem + ".onnx")
            names.append(name)
        except Exception as e:  # of a reader of files, of any kind
            complain("%s: %s" % (path, (str(e).splitlines() or [repr(e)])[0]))
    return names


# ---- peers, each a process of its own ----


def inputs_of(path):
    """{name: its file} of the arrays beside a model."""
    folder, stem = os.path.split(path[:-len(".onnx")])
    return {urllib.parse.unquote(f[len(stem) + 1:-len(".npy")]):
            os.path.join(folder, f)
            for f in sorted(os.listdir(folder or "."))
            if f.startswith(stem + ".") and f.endswith(".npy")}


def onnx_runtime(path, threads):
    import onnxruntime

    o = onnxruntime.SessionOptions()
    o.log_severity_level = 3
    o.intra_op_num_threads = threads
    o.inter_op_num_threads = 1
    s = onnxruntime.InferenceSession(path, o, ["CPUExecutionProvider"])
    return lambda x: s.run(None, x)[0]


def openvino(path, threads):
    from openvino import Core

    c = Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = c.create_infer_request()
    return lambda x: request.infer(x)[0]


PEERS = {"ONNX Runtime": ("onnxruntime", onnx_runtime),
         "OpenVINO": ("openvino", openvino)}


def serve(name, path, threads, out):
    """The process of a peer: writes its output, then for each number of runs
    that it reads the median of their seconds. Waits without working."""
    import numpy

    call = PEERS[name][1](path, threads)
    x = {k: numpy.load(f) for k, f in inputs_of(path).items()}
    numpy.save(out, call(x))
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            call(x)
            times.append(time.perf_counter() - start)
        print(statistics.median(times), flush=True)


class Peer:
    """One that serves; ask(n) is the median of n runs, None: it has ended."""

    def __init__(self, name, path, threads, out):
        self.name = name
        self.child = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--serve", name, path,
             str(threads), out], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, n):
        try:
            self.child.stdin.write("%d\n" % n)
            self.child.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.child.stdout.readline()
        return float(line) if line else None

    def end(self):
        """What it has said of why it ended."""
        text = self.child.communicate()[1].strip().splitlines()
        return text[-1] if text else "no reason given"


class Ours:
    """The same of `tenon run`."""

    name = "tenon"

    def __init__(self, tenon, path, threads, out):
        self.command = [tenon, "run", path, "--json"]
        for k, f in inputs_of(path).items():
            self.command += ["--input", k + "=" + f]
        self.env = dict(os.environ, TENON_THREADS=str(threads))
        self.out, self.why = out, ""
        self.first = None  # the file of the first output

    def ask(self, n):
        r = subprocess.run(
            self.command + ["--repeat", str(n), "--output", self.out],
            env=self.env, capture_output=True, text=True, check=False)
        if r.returncode != 0:
            self.why = r.stderr.strip().splitlines()[-1:] or [
                "exit code %d" % r.returncode]
            return None
        said = json.loads(r.stdout)
        self.first = os.path.join(self.out, urllib.parse.quote(
            said["outputs"][0]["name"], safe="") + ".npy")
        return said["run_ms"] / 1e3

    def end(self):
        return self.why[0] if self.why else ""


# ---- measuring ----


def apart(ours, theirs):
    """(greatest difference, that over the greatest element)"""
    import numpy

    a, b = (numpy.load(f).astype("float64") for f in (ours, theirs))
    if a.shape != b.shape or not (numpy.isfinite(a) == numpy.isfinite(b)).all():
        return math.inf, math.inf
    most = numpy.nanmax(numpy.abs(b), initial=0)
    d = float(numpy.nanmax(numpy.abs(a - b), initial=0))
    return d, d / most if most > 0 else d


def rounds_of(players, rounds):
    """{name: [seconds of each round]} of those who did not end, in turn."""
    times = {p.name: [] for p in players}
    order, draw_order = list(players), random.Random(SEED)
    first = {p.name: p.ask(3) for p in players}  # compiles, warms up
    n = {k: max(3, min(MOST, int(SECONDS / max(t, 1e-9))))
         for k, t in first.items() if t is not None}
    for i in range(rounds):
        draw_order.shuffle(order)  # who follows whom counts
        for p in order:
            progress("%s, round %d/%d" % (p.name, i + 1, rounds))
            t = p.ask(n[p.name]) if p.name in n else None
            if t is None:
                n.pop(p.name, None)
            else:
                times[p.name].append(t)
    progress("")
    return {k: v for k, v in times.items() if k in n and len(v) == rounds}


def measure(o, name, peers):
    """A line of the table as a dict; failures are said, and in "failed"."""
    path = os.path.join(o.folder, name + ".onnx")
    line = {"model": name, "failed": False}
    with tempfile.TemporaryDirectory() as d:
        players = [Ours(o.tenon, path, o.threads, d)]
        players += [Peer(k, path, o.threads, os.path.join(
            d, PEERS[k][0] + ".npy")) for k in peers]
        times = rounds_of(players, o.rounds)
        for p in players:
            why = p.end()
            if p.name not in times:
                complain("%s: %s: %s" % (name, p.name, why))
                line["failed"] = True
        for k, v in times.items():
            line[k] = {"ms": 1e3 * statistics.median(v)}
            if k != "tenon" and "tenon" in times:
                line[k]["ratio"] = statistics.median(
                    b / a for a, b in zip(times["tenon"], v))
        theirs = os.path.join(d, "onnxruntime.npy")
        if "tenon" in times and os.path.exists(theirs):
            line["apart"], line["relative"] = apart(
                players[0].first, theirs)
            if not line["relative"] <= APART:
                complain("%s: the outputs are %g of the greatest apart; %g is "
                         "allowed" % (name, line["relative"], APART))
                line["failed"] = True
    return line


def cell(form, value):
    return "-" if value is None else form % value


def row(line, peers):
    cells = [line["model"], cell("%.2f", line.get("tenon", {}).get("ms"))]
    for k in peers:
        cells += [cell("%.2f", line.get(k, {}).get(f)) for f in ("ms", "ratio")]
    cells += [cell("%.2g", line.get(k)) for k in ("apart", "relative")]
    return "| " + " | ".join(cells) + " |"


def table(o, names):
    peers, ratios, failed = [], {}, False
    for k, (module, _) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            complain("without %s: no module %s" % (k, module))
        else:
            peers.append(k)
    if not o.json:
        heads = ["model", "ours ms"]
        for k in peers:
            heads += [k + " ms", "ratio"]
        heads += ["apart", "of greatest"]
        print("| " + " | ".join(heads) + " |")
        print("|---" * len(heads) + "|", flush=True)
    for name in names:
        line = measure(o, name, peers)
        failed |= line["failed"]
        for k in peers:
            if "ratio" in line.get(k, {}):
                ratios.setdefault(k, []).append(line[k]["ratio"])
        print(json.dumps(line) if o.json else row(line, peers), flush=True)
    for k, v in ratios.items():
        if not o.json:
            print("%sgeometric mean of the ratios to %s: %.2f" % (
                "\n" if k == peers[0] else "", k,
                math.exp(sum(map(math.log, v)) / len(v))))
    return failed


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", metavar="FOLDER", nargs="?",
                   help="of the models; outside of the repository")
    p.add_argument("tenon", metavar="TENON", nargs="?",
                   help="the program; not with --export-only")
    p.add_argument("--list", action="store_true", help="name the models")
    p.add_argument("--only", metavar="NAME", action="append",
                   help="this model; any number of times")
    p.add_argument("--net", metavar="MODEL.onnx", action="append",
                   help="measure this model instead; any number of times")
    p.add_argument("--batch", type=int, help="of what --net names")
    p.add_argument("--export-only", action="store_true",
                   help="do not run anything")
    p.add_argument("--again", action="store_true",
                   help="export what is there, too")
    p.add_argument("--legacy", action="store_true",
                   help="by the older exporter of torch")
    p.add_argument("--forms", action="store_true",
                   help="small nets in every form; --only names nets, forms "
                   "or NET-FORM")
    p.add_argument("--threads", type=int, default=2, help="of each (2)")
    p.add_argument("--rounds", type=int, default=5,
                   help="of ours and the peers in turn (5)")
    p.add_argument("--json", action="store_true",
                   help="one JSON object a line for each model")
    o = p.parse_args()
    for name in o.only or []:
        if name not in MODELS and not o.forms:
            p.error("there is no model %s: %s" % (name, " ".join(MODELS)))
    if o.threads < 1 or o.rounds < 1 or (o.batch or 1) < 1:
        p.error("--threads, --rounds and --batch are at least 1")
    if o.net and (o.only or o.forms or o.export_only):
        p.error("--net goes without --only, --forms and --export-only")
    if o.batch is not None and not o.net:
        p.error("--batch goes with --net")
    if not o.list and (o.folder is None or
                       (o.tenon is None) != o.export_only):
        p.error("FOLDER and TENON are needed, or FOLDER with --export-only")
    if o.tenon is not None and not os.access(o.tenon, os.X_OK):
        p.error("%s is not a program" % o.tenon)
    return o


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
        return 0
    o = arguments()
    if o.forms:
        import zoo_forms

        return 1 if zoo_forms.run(o) else 0
    names = o.only or list(MODELS)
    if o.list:
        for name in names:
            print("%-20s %s" % (name, MODELS[name][0]))
        return 0
    if o.net:
        names = o.net
        made = take(names, o.folder, o.batch)
    else:
        made = export_all(names, o.folder, o.again, o.legacy)
    failed = len(made) < len(names)
    if not o.export_only:
        failed |= table(o, made)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
