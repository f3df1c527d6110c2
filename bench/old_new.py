#!/usr/bin/env python3
"""old_new.py OLD NEW [NET.onnx ...]: two builds of tenon, side by side.

Runs `tenon bench` of both builds in turn, case by case, and prints for each
row the speed of NEW divided by that of OLD: the median over the pairs. Rows
below --least (0.97) are named at the end, and the exit status is then 1.

    bench/old_new.py old/tenon build/tenon light/*.onnx

OLD and NEW are programs; each uses the library that lies beside it. Time is
shared among the parts; every row has at least one pair, unless the time
(--seconds, 540) is over before its part begins. --json prints an object a row.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

# part, share of the time, repeats of a measurement
PARTS = [("fused", 0.2, 5), ("contract", 0.35, 3), ("step", 0.1, 5),
         ("train", 0.15, 5), ("nets", 0.2, 9)]
CASES = {
    "fused": ["relu_ax_b_plus_y", "bias_gelu", "softmax_last", "softmax_first",
              "layer_norm_residual", "rms_norm", "sum_axis_0", "sum_axis_1",
              "sum_all", "batch_norm", "transpose_add", "box_blur_3x3",
              "cross_entropy", "argmax"],
    # each word is a part of the names of some cases
    "contract": ["128x128x128", "256x256x256", "512x512x512",
                 "1024x1024x1024", "2048x2048", "x768", "x4096", "64x64",
                 "conv7", "conv3", "conv1", "dw3", "gelu", "f64", "i8",
                 "attention", "decode"],
    "step": ["gpt", "resnet"],
    "train": ["1m", "10m"],
}


def progress(text):
    """On a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{'old_new: ' if text else ''}{text}")


def environment(program):
    env = dict(os.environ)
    env["LD_LIBRARY_PATH"] = os.path.dirname(os.path.abspath(program))
    return env


def rows_of(program, part, case, repeat):
    """Rows of one run: {name: seconds}."""
    if part == "nets":
        args = ["nets", case, "--batch", "1"]
    else:
        args = [part, "--case", case]
    done = subprocess.run(
        [program, "bench", *args, "--repeat", str(repeat), "--json"],
        env=environment(program), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    rows = {}
    for line in done.stdout.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "run_ms" in row:
            name = re.sub(r"\.onnx$", "", row["name"])
            rows[name + " run"] = 1e-3 * row["run_ms"]
            rows[name + " cold compile"] = 1e-3 * row["cold_ms"]
        elif "seconds" in row:
            name = row.get("case") or row["name"]
            if name.endswith("_memory"):
                continue
            if "threads" in row:
                name += f", {row['threads']} threads"
            rows[name] = row["seconds"]
    if not rows:
        sys.stderr.write(f"old_new: {program} bench {' '.join(args)}: "
                         f"{done.stderr.strip() or 'no rows'}\n")
    return rows


def measure(a, part, cases, seconds, repeat, table):
    """Pairs of all cases, again while there is time."""
    end, longest, rounds = time.time() + seconds, 0, 0
    while cases and rounds < a.rounds and (
            rounds == 0 or time.time() + longest < end):
        begin = time.time()
        for case in cases:
            if time.time() > a.end:
                return
            order = [("old", a.old), ("new", a.new)]
            got = {k: rows_of(p, part, case, repeat)
                   for k, p in (order if rounds % 2 == 0 else order[::-1])}
            for name in got["old"].keys() & got["new"].keys():
                table.setdefault((part, name), []).append(
                    (got["old"][name], got["new"][name]))
            progress(f"{part}, {os.path.basename(case)}, round {rounds + 1}")
        longest = max(longest, time.time() - begin)
        rounds += 1


def summary(pairs):
    old, new = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    return old, new, statistics.median(p[0] / p[1] for p in pairs)


def say(a, table):
    below, logs = [], {}
    if not a.json:
        print("| bench | case | old ms | new ms | speed, new / old | pairs |\n"
              "|---|---|---|---|---|---|")
    for (part, name), pairs in table.items():
        old, new, ratio = summary(pairs)
        logs.setdefault(part, []).append(math.log(ratio))
        if ratio < a.least:
            below.append((ratio, part, name))
        if a.json:
            print(json.dumps({"bench": part, "case": name, "old": old,
                              "new": new, "ratio": round(ratio, 4),
                              "pairs": len(pairs)}))
        else:
            print(f"| {part} | {name} | {1e3 * old:.4g} | {1e3 * new:.4g} | "
                  f"{ratio:.2f} | {len(pairs)} |")
    if a.json:
        print(json.dumps({"rows": len(table), "below": [
            {"bench": p, "case": n, "ratio": round(r, 4)}
            for r, p, n in sorted(below)]}))
        return below
    print()
    for part, values in logs.items():
        mean = math.exp(sum(values) / len(values))
        print(f"{part}: {len(values)} rows, geometric mean {mean:.2f}")
    print(f"{len(below)} of {len(table)} rows below {a.least}"
          + "".join(f"\n  {r:.2f} {p} {n}" for r, p, n in sorted(below)))
    return below


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("nets", nargs="*")
    p.add_argument("--parts", default="fused,contract,step,train,nets")
    p.add_argument("--case", help="only cases that contain this text")
    p.add_argument("--seconds", type=float, default=540)
    p.add_argument("--rounds", type=int, default=9, help="of pairs, at most")
    p.add_argument("--least", type=float, default=0.97)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    for program in (a.old, a.new):
        if not os.access(program, os.X_OK):
            sys.exit(f"old_new: {program} is no program")
    wanted = [x for x in PARTS if x[0] in a.parts.split(",")]
    if not a.nets:
        wanted = [x for x in wanted if x[0] != "nets"]
    if not wanted:
        sys.exit(f"old_new: no part in {a.parts}; parts are "
                 + ", ".join(x[0] for x in PARTS))
    left, table = sum(share for _, share, _ in wanted), {}
    a.end = time.time() + a.seconds
    for part, share, repeat in wanted:
        cases = a.nets if part == "nets" else CASES[part]
        if a.case:
            cases = [c for c in cases if a.case in c]
        now = (a.end - time.time()) * share / left
        measure(a, part, cases, now, repeat, table)
        left -= share
    progress("")
    sys.exit(1 if say(a, table) or not table else 0)


main()
