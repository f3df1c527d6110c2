#!/usr/bin/env python3
"""torch_backend.py: the backend of torch.compile beside PyTorch's own.

    PYTHONPATH=build/python python bench/peers/torch_backend.py [--only NAME,..] [--list]
        [--curves] [--gradients N] [--seed N] [--rate LR] [--steps N]
        [--rounds N] [--no-inductor]

Architectures of torchvision and transformers, with drawn weights and small inputs.
For each: are forward and backward programs alone, and how far are the losses of 20
training steps from eager's (--curves stops there)? Two more columns say how far those of
eager and of tenon are from a run in f64: training can be chaotic, then no two runs in f32
are alike. --gradients N says for N draws of weights and data how far the gradient of the
first step is from that in f64, by eager and by tenon. Random numbers of dropout are the same in all three runs. Then the processor
time of a training step, steps of eager, Inductor and tenon in turn (medians), and that of
the first step, compilers included, with empty caches; "traced" is what PyTorch itself takes
of that before a compiler sees a graph: the first step of a backend that runs the same graphs
as they are. Prints a line of a Markdown table for each architecture, and the geometric means.
"""
import argparse
import copy
import math
import os
import statistics
import sys
import tempfile
import time
import warnings

CACHE = tempfile.mkdtemp(prefix="torch_backend.")
os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="",
                  TORCHINDUCTOR_CACHE_DIR=CACHE, TORCHINDUCTOR_COMPILE_THREADS="1",
                  TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
warnings.filterwarnings("ignore", message="(?!tenon)")

import torch  # noqa: E402
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._functorch.partitioners import min_cut_rematerialization_partition  # noqa: E402

import tenon  # noqa: E402
import tenon.torch  # noqa: E402

F = torch.nn.functional


def dtype_of(net):
    return next(net.parameters()).dtype


def image(name, size=64, batch=8, **how):
    """A net of torchvision: images to classes."""
    def make():
        import torchvision
        net = getattr(torchvision.models, name)(num_classes=10, **how)
        x, y = torch.randn(batch, 3, size, size), torch.arange(batch) % 10
        return net, lambda net: F.cross_entropy(net(x.to(dtype_of(net))), y)
    return make


def custom(build, size=32, batch=8):
    def make():
        import torchvision
        net = build(torchvision.models)
        x, y = torch.randn(batch, 3, size, size), torch.arange(batch) % 10
        return net, lambda net: F.cross_entropy(net(x.to(dtype_of(net))), y)
    return make


def words(config, model, batch=2, length=16, seq2seq=False, **sizes):
    """A net of transformers: words to the next words."""
    def make():
        import transformers
        c = getattr(transformers, config)(**sizes)
        net = getattr(transformers, model)(c)
        ids = torch.randint(5, 60, (batch, length))
        given = {"labels": ids} if seq2seq else {}

        def loss(net):
            out = net(input_ids=ids, **given)
            if seq2seq:
                return out.loss
            logits = out.logits if hasattr(out, "logits") else out.last_hidden_state
            return F.cross_entropy(logits.flatten(0, 1), ids.flatten())
        return net, loss
    return make


def like_bert(config, model, **more):
    return words(config, model, vocab_size=64, hidden_size=32, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
                 **more)


def like_llama(config, model, **more):
    return like_bert(config, model, num_key_value_heads=1, pad_token_id=0, **more)


NETS = {
    "gpt2": words("GPT2Config", "GPT2LMHeadModel", vocab_size=64, n_positions=32, n_embd=32,
                  n_layer=2, n_head=2),
    "bert": like_bert("BertConfig", "BertForMaskedLM"),
    "roberta": like_bert("RobertaConfig", "RobertaForMaskedLM"),
    "electra": like_bert("ElectraConfig", "ElectraForMaskedLM", embedding_size=32),
    "albert": like_bert("AlbertConfig", "AlbertForMaskedLM", embedding_size=32),
    "distilbert": words("DistilBertConfig", "DistilBertForMaskedLM", vocab_size=64, dim=32,
                        n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64),
    "llama": like_llama("LlamaConfig", "LlamaForCausalLM"),
    "qwen2": like_llama("Qwen2Config", "Qwen2ForCausalLM"),
    "mistral": like_llama("MistralConfig", "MistralForCausalLM"),
    "opt": words("OPTConfig", "OPTForCausalLM", vocab_size=64, hidden_size=32, ffn_dim=64,
                 num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=32,
                 max_position_embeddings=64),
    "gpt_neox": like_bert("GPTNeoXConfig", "GPTNeoXForCausalLM"),
    "vit": custom(lambda m: m.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)),
    "convnext": custom(lambda m: m.ConvNeXt(
        [m.convnext.CNBlockConfig(16, 32, 1), m.convnext.CNBlockConfig(32, None, 1)],
        num_classes=10)),
    "swin": custom(lambda m: m.SwinTransformer([4, 4], 32, [1, 1], [2, 2], [4, 4],
                                               num_classes=10)),
    "alexnet": image("alexnet"),
    "squeezenet": image("squeezenet1_1"),
    "resnet18": image("resnet18"),
    "shufflenet": image("shufflenet_v2_x0_5"),
    "mobilenet_v3": image("mobilenet_v3_small"),
    "mnasnet": image("mnasnet0_5"),
    "t5": words("T5Config", "T5ForConditionalGeneration", seq2seq=True, vocab_size=64,
                d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2,
                decoder_start_token_id=0),
    "bart": words("BartConfig", "BartForConditionalGeneration", seq2seq=True, vocab_size=64,
                  d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
                  decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
                  max_position_embeddings=64, pad_token_id=1, bos_token_id=0,
                  eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2),
    "gptj": words("GPTJConfig", "GPTJForCausalLM", vocab_size=64, n_positions=64, n_embd=32,
                  n_layer=2, n_head=2, rotary_dim=8),
    "bloom": words("BloomConfig", "BloomForCausalLM", vocab_size=64, hidden_size=32,
                   n_layer=2, n_head=2),
    "phi": like_bert("PhiConfig", "PhiForCausalLM", pad_token_id=0),
    "gemma": like_llama("GemmaConfig", "GemmaForCausalLM", head_dim=16),
    "modernbert": like_bert("ModernBertConfig", "ModernBertForMaskedLM", pad_token_id=0,
                            bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
    "deberta": like_bert("DebertaV2Config", "DebertaV2ForMaskedLM"),
    "mpnet": like_bert("MPNetConfig", "MPNetForMaskedLM"),
    "vgg11": image("vgg11"),
    "swin_v2": custom(lambda m: m.SwinTransformer(
        [4, 4], 32, [1, 1], [2, 2], [4, 4], num_classes=10,
        block=m.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=m.swin_transformer.PatchMergingV2)),
    "efficientnet": image("efficientnet_b0"),
    "regnet": image("regnet_y_400mf"),
    "googlenet": image("googlenet", aux_logits=False, init_weights=True),
}


def traced(net, loss, a):
    """Seconds of a first step whose graphs are made like ours, and run by PyTorch."""
    def as_it_is(gm, inputs):
        return make_boxed_func(gm.forward)

    backend = aot_autograd(
        fw_compiler=as_it_is, decompositions=tenon.torch._table.decompositions,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True)
    side = Side(net, loss, backend, a.rate)
    return measured(side.step)[1]


class Side:
    """One way to train the net: the same weights, data and random numbers."""

    def __init__(self, net, loss, backend, rate, dtype=torch.float32):
        self.net = copy.deepcopy(net).to(dtype)
        self.loss = loss
        self.call = self.net if backend is None else torch.compile(
            self.net, backend=backend, dynamic=False)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=rate)
        self.n = 0

    def step(self):
        torch.default_generator.manual_seed(self.n)  # nothing is noted for other devices
        self.n += 1
        loss = self.loss(self.call)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def processor_seconds():
    return sum(os.times()[:4])


def measured(f):
    start = processor_seconds()
    value = f()
    return value, processor_seconds() - start


def curves(eager, ours, exact, steps):
    """The greatest relative distances of losses: ours to eager's, and both to those in
    f64; and the seconds of our first step."""
    worst, first = [0, 0, 0], 0
    for i in range(steps):
        a, c = eager.step(), exact.step()
        b, seconds = measured(ours.step)
        first = seconds if i == 0 else first
        now = abs(a - b) / abs(a), abs(a - c) / abs(c), abs(b - c) / abs(c)
        worst = list(map(max, worst, now))
    return worst, first


def gradient(side):
    """Of one step: all of it, in f64."""
    torch.manual_seed(0)
    side.net.zero_grad()
    side.loss(side.call).backward()
    return torch.cat([p.grad.double().flatten() for p in side.net.parameters()
                      if p.grad is not None])


def gradients(name, n):
    """A line for each draw: distances of the gradient from that in f64, relative."""
    torch._dynamo.reset()
    net, _ = NETS[name]()
    net.train()
    ours = Side(net, None, "tenon", 0)
    for seed in range(n):
        torch.manual_seed(seed)
        net, loss = NETS[name]()
        net.train()
        ours.net.load_state_dict(net.state_dict())
        ours.loss = loss
        exact = gradient(Side(net, loss, None, 0, torch.float64))
        far = [((gradient(s) - exact).norm() / exact.norm()).item()
               for s in (Side(net, loss, None, 0), ours)]
        print(f"| {name} | {seed} | {far[0]:.1e} | {far[1]:.1e} |", flush=True)


def one(name, a):
    torch._dynamo.reset()
    tenon.torch._plans.clear()
    torch.manual_seed(a.seed)
    net, loss = NETS[name]()
    net.train()
    eager, ours = Side(net, loss, None, a.rate), Side(net, loss, "tenon", a.rate)
    worst, first = curves(eager, ours, Side(net, loss, None, a.rate, torch.float64), a.steps)
    split = {k: v for k, v in tenon.torch.report().items() if v != "random numbers"}
    n = len(tenon.torch.programs())
    row = [name, str(n), ", ".join(split) or "none", *(f"{w:.1e}" for w in worst),
           f"{first:.1f}"]
    if a.curves:
        print("| " + " | ".join(row) + " |", flush=True)
        return None
    sides = {"eager": eager, "tenon": ours}
    row.append(f"{traced(net, loss, a):.1f}")
    if not a.no_inductor:
        sides["inductor"] = Side(net, loss, "inductor", a.rate)
        row.append(f"{measured(sides['inductor'].step)[1]:.1f}")
    times = {k: [] for k in sides}
    for _ in range(a.rounds):
        for k, s in sides.items():
            start = time.thread_time()
            s.step()
            times[k].append(1e3 * (time.thread_time() - start))
    ms = {k: statistics.median(v) for k, v in times.items()}
    row += [f"{ms[k]:.2f}" for k in sides]
    row += [f"{ms[k] / ms['tenon']:.2f}" for k in sides if k != "tenon"]
    print("| " + " | ".join(row) + " |", flush=True)
    return ms


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only", default="")
    p.add_argument("--list", action="store_true")
    p.add_argument("--curves", action="store_true")
    p.add_argument("--no-inductor", action="store_true")
    p.add_argument("--gradients", type=int, default=0, metavar="N")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    p.add_argument("--steps", type=int, default=20, help="of the losses")
    p.add_argument("--rounds", type=int, default=9)
    a = p.parse_args()
    if a.list:
        print("\n".join(NETS))
        return 0
    torch.set_num_threads(1)
    all_ms = []
    names = [n for n in NETS if not a.only or n in a.only.split(",")]
    if a.gradients:
        print("| net | seed | eager from f64 | tenon from f64 |\n|---|---|---|---|")
        with tenon.Context(threads=1, cache_dir=CACHE):
            for name in names:
                gradients(name, a.gradients)
        return 0
    heads = ["net", "programs", "in PyTorch", "losses differ by", "eager from f64",
             "tenon from f64", "first, s"]
    if not a.curves:
        heads += ["traced, s"] + ([] if a.no_inductor else ["Inductor first, s"])
        heads += ["eager, ms", "tenon, ms"] + ([] if a.no_inductor else ["Inductor, ms"])
        heads += ["eager/tenon"] + ([] if a.no_inductor else ["Inductor/tenon"])
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    with tenon.Context(threads=1, cache_dir=CACHE):
        for name in names:
            try:
                all_ms.append(one(name, a))
            except Exception as e:
                print(f"| {name} | {type(e).__name__}: {str(e)[:200]} |", flush=True)
    for k in ("eager", "inductor"):
        ratios = [m[k] / m["tenon"] for m in all_ms if m and k in m]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"geometric mean {k}/tenon over {len(ratios)}: {mean:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
