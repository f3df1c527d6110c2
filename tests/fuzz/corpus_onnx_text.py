"""corpus_onnx_text.py STAMP: writes the models of tests/unit/test_onnx.c as
texts into the folder "onnx_text" beside STAMP, then STAMP."""
import os
import re
import sys

stamp = sys.argv[1]
root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
text = open(os.path.join(root, "tests", "unit", "test_onnx.c")).read()
folder = os.path.join(os.path.dirname(stamp) or ".", "onnx_text")
os.makedirs(folder, exist_ok=True)
strings = r'(?:"(?:[^"\\\n]|\\.)*"\s*)+'
models = [
    "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', s)).replace('\\"', '"')
    for s in re.findall(strings, text)
]
models = sorted({m for m in models if m.startswith("opset")})
assert len(models) > 50
for i, m in enumerate(models):
    with open(os.path.join(folder, "%03d.txt" % i), "w") as f:
        f.write(m)
open(stamp, "w").close()
