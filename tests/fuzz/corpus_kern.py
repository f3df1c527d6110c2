#!/usr/bin/env python3
"""corpus_kern.py STAMP: writes kernels for fuzz_kern into the folder kern
beside STAMP, then STAMP: those of tests/unit/kern_texts.h, and those of the
golden files of the level kern."""
import os
import re
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
files = {}

text = open(os.path.join(root, "unit", "kern_texts.h")).read()
for name, body in re.findall(
        r"^static const char (\w+)\[\] =\n((?:\t\".*\"\n?)+|(?:\t\".*\";?\n)+)",
        text, re.M):
    parts = re.findall(r'^\t"((?:[^"\\]|\\.)*)"', body, re.M)
    files[name] = "".join(parts).encode().decode("unicode_escape")
golden = os.path.join(root, "golden", "kern")
for name in sorted(os.listdir(golden)):
    whole = open(os.path.join(golden, name)).read().split("\n# >>>\n")[-1]
    for i, kernel in enumerate(re.findall(
            r"^kernel .*?^\}\n", whole, re.M | re.S)):
        files["%s_%d" % (name, i)] = kernel

stamp = sys.argv[1]
out = os.path.join(os.path.dirname(stamp) or ".", "kern")
os.makedirs(out, exist_ok=True)
for name, content in files.items():
    with open(os.path.join(out, name), "w") as f:
        f.write(content)
open(stamp, "w").close()
