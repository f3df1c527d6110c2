#!/usr/bin/env python3
"""corpus_notation.py STAMP: writes texts for fuzz_notation into the folder
notation beside STAMP, then STAMP: every row of ops.def, the .tn programs of
the repository, and systems."""
import os
import re
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
files = {}

text = "".join(open(os.path.join(root, "src", "notation", name)).read()
               for name in ("ops.def", "ops_nn.def", "ops_model.def"))
text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
for i, row in enumerate(re.findall(r"ROW\((.*?)\"\)$", text, re.S | re.M)):
    text = re.split(r'",\s*"', row + '"', maxsplit=1)[1]
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', '"' + text)
    whole = "".join(parts).encode().decode("unicode_escape")
    files["row%d" % i] = whole if whole.startswith("opaque ") else \
        "my_" + whole
for folder, _, names in os.walk(root):
    if "/build" in folder or "/." in folder[len(root):]:
        continue
    for name in names:
        if name.endswith(".tn"):
            path = os.path.join(folder, name)
            files[os.path.relpath(path, root).replace("/", "_")] = \
                open(path).read()
left = ["2*i + k", "i/2", "i%3", "(i/2)%3", "11 - i - 2*k", "(i + 5)%7",
        "2*i/3", "clamp(i - 2, 5)", "3", "i - i", "i*5/3", "k*3 + i"]
for i, index in enumerate(left):
    files["left%d.tn" % i] = """op f(x[i]:num, y[k]:num) -> o {
  o[d] = cast(0, x) for d < 12; o[%s] += x[i] * y[k] else skip }
program { x: f32[5] y: f32[3] o = f(x, y) return o }""" % index
files["scatter.tn"] = """program { x: f32[4,3] i: i32[5] u: f32[5,3]
  a = scatter_add(x, i, u) b = scatter_set(x, i, u) c = take(x, i, axis=1)
  d = einsum(x, c, equation="ij,ik->jk") e = concat(a, b, axis=-1)
  f = split(e, axis=0, sizes=[1,3]) return c, d, e }"""
files["system"] = """system {
  x: f32[24] input 0
  ids: i64[4] input 1
  c: f32[24]
  p: f32[24] storage 3
  d: f64[24]
  v: f32[]
  k: i64[]
  cumsum cumsum#0: c[i:4, t:6 down] = x[6*i + t] + sel(inside(t, 0, 5), c[6*i + t + 1], 0)
  _ scatter#1: p{k + 6*ids[j in 0..4]}[k:6] += x[k + 6*j] for j:4 from x[at] * 2
  _ _#2: d[i:24] = cast(x[i/4%3] + x[clamp(i, 3, 23) - 3] - 0.1, f64) * f64(inf)
  a argmax#3: (v, k)[] argmax= (x[i], index(i)) for i:24
  return c, p, d, k
}
"""
files["sort"] = """system {
  x: f32[3] input 0
  o: f32[3]
  k: i64[3]
  sort sort#0: (o, k) = opaque sort(x; 0, 1)
  return o
}
"""

stamp = sys.argv[1]
out = os.path.join(os.path.dirname(stamp) or ".", "notation")
os.makedirs(out, exist_ok=True)
for name, content in files.items():
    with open(os.path.join(out, name), "w") as f:
        f.write(content)
open(stamp, "w").close()
