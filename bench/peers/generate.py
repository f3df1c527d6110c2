#!/usr/bin/env python3
"""generate.py: `tenon bench generate` beside llama.cpp.

    python3 -m venv peers && peers/bin/pip install numpy gguf
    peers/bin/pip download --no-deps --no-binary :all: llama-cpp-python
    # in vendor/llama.cpp of what is unpacked:
    cmake -B build -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF
    cmake --build build --target llama-bench
    peers/bin/python bench/peers/generate.py build/tenon .../llama-bench

Both read prompts of 128 and 512 tokens and write tokens, with GPT-2's layers of drawn
weights: 12 of width 768, and 256 or 50257 tokens. llama.cpp reads a file that is made
here; its weights of vectors stay f32, those of matrices are f32 or bf16. Each case
is measured in turn; a rate is the median of the runs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

LAYERS, HEADS, WIDTH, CONTEXT = 12, 12, 768, 1024
SIZES = {"85m": 256, "124m": 50257}
WORKS = {"prefill 128": ["-p", "128", "-n", "0"],
         "prefill 512": ["-p", "512", "-n", "0"],
         "decode": ["-p", "0", "-n", "64", "-d", "128"]}


def words(vocab):
    """Tokens that differ: single bytes as GPT-2 writes them, then numbers."""
    letters = [chr(256 + i) for i in range(256)]
    return letters + ["t%d" % i for i in range(vocab - len(letters))]


def write_model(path, vocab, dtype):
    import gguf
    import numpy as np

    draw = np.random.default_rng(1)
    w = gguf.GGUFWriter(path, "gpt2")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(4 * WIDTH)
    w.add_block_count(LAYERS)
    w.add_head_count(HEADS)
    w.add_layer_norm_eps(1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(words(vocab))
    w.add_token_types([gguf.TokenType.NORMAL] * vocab)
    w.add_token_merges(["%s %s" % (chr(256), chr(257))])
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)

    def add(name, *shape):
        x = draw.standard_normal(shape, dtype=np.float32) * 0.02
        if len(shape) == 1 or dtype == "f32":
            w.add_tensor(name, x)
            return
        kind = gguf.GGMLQuantizationType.BF16
        w.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)

    def norm(name):
        add(name + ".weight", WIDTH)
        add(name + ".bias", WIDTH)

    def linear(name, n_out, n_in):
        add(name + ".weight", n_out, n_in)
        add(name + ".bias", n_out)

    add("token_embd.weight", vocab, WIDTH)
    add("position_embd.weight", CONTEXT, WIDTH)
    norm("output_norm")
    add("output.weight", vocab, WIDTH)
    for i in range(LAYERS):
        norm("blk.%d.attn_norm" % i)
        linear("blk.%d.attn_qkv" % i, 3 * WIDTH, WIDTH)
        linear("blk.%d.attn_output" % i, WIDTH, WIDTH)
        norm("blk.%d.ffn_norm" % i)
        linear("blk.%d.ffn_up" % i, 4 * WIDTH, WIDTH)
        linear("blk.%d.ffn_down" % i, WIDTH, 4 * WIDTH)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def run(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if r.returncode != 0:
        sys.exit("generate.py: %s ends with %d" % (command[0], r.returncode))
    return r.stdout


def of_tenon(o, name):
    out = run([o.tenon, "bench", "generate", "--case", "gpt_" + name, "--repeat", "1",
               "--json"])
    return {r["work"]: r["tokens_per_second"] for r in map(json.loads, out.splitlines())}


def of_llama(o, path):
    rates = {}
    for work, how in WORKS.items():
        out = run([o.llama_bench, "-m", path, "-r", "1", "-t", str(o.threads), "-o", "json"]
                  + how)
        rates[work] = json.loads(out)[0]["avg_ts"]
    return rates


def case(o, name, folder):
    size, dtype = name.split("_")
    path = os.path.join(folder, name + ".gguf")
    write_model(path, SIZES[size], dtype)
    ours, theirs = [], []
    for _ in range(o.repeat):
        ours.append(of_tenon(o, name))
        theirs.append(of_llama(o, path))
    os.remove(path)
    for work in WORKS:
        a = statistics.median(r[work] for r in ours)
        b = statistics.median(r[work] for r in theirs)
        print("| %s, %s | %.1f | %.1f | %.2f |" % (name, work, a, b, a / b), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("tenon", help="the command tenon")
    p.add_argument("llama_bench", help="the command llama-bench")
    p.add_argument("--case", default="", help="only cases whose names contain this")
    p.add_argument("--repeat", type=int, default=5, help="pairs of runs (5)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="threads (all)")
    o = p.parse_args()
    os.environ["TENON_THREADS"] = str(o.threads)
    print("| case | Tenon, tokens/s | llama.cpp | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            for dtype in ("f32", "bf16"):
                if o.case in size + "_" + dtype:
                    case(o, size + "_" + dtype, folder)


if __name__ == "__main__":
    main()
