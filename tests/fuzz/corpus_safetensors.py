#!/usr/bin/env python3
"""corpus_safetensors.py STAMP: writes .safetensors files, good and bad, into
the folder safetensors beside STAMP, then STAMP. The bytes are put together by
Python's own json and struct."""
import json
import os
import struct
import sys


def st(header, data, length=None, pad=True):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if pad:
        text += b" " * (-len(text) % 8)
    n = len(text) if length is None else length
    return struct.pack("<Q", n) + text + data


def t(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


files = {}
sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4,
         "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
         "U64": 8, "U32": 4, "U16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
         "F8_E8M0": 1}
for name, size in sizes.items():
    files[name] = st({"x": t(name, [2, 3], 0, 6 * size)},
                     bytes(range(6 * size)))
header, at = {"__metadata__": {"format": "pt", "note": "a\"\\\n\u00e9\u20ac"}}, 0
for i, (name, size) in enumerate(sizes.items()):
    header["layer.%d.weight" % i] = t(name, [i, 2], at, at + 2 * i * size)
    at += 2 * i * size
files["many"] = st(header, bytes(at))
files["indented"] = st(json.dumps(header, indent=2).encode(), bytes(at))
files["reversed"] = st(dict(reversed(list(header.items()))), bytes(at))
files["raw_utf8"] = st(json.dumps(
    {"\u00e9\U0001f600": t("U8", [], 0, 1)},
    ensure_ascii=False).encode(), b"\1")
files["escapes"] = st(json.dumps({"\u00e9\U0001f600\x7f/\t": t("U8", [], 0, 1)}
                                 ).encode(), b"\1")
files["rank8"] = st({"x": t("U8", [1] * 7 + [2], 0, 2)}, b"\1\2")
files["empty"] = st({}, b"")
files["metadata"] = st({"__metadata__": {"a": "b"}}, b"")
files["bad_twice"] = st(b'{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},'
                        b'"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}',
                        b"\1\2")
files["bad_overlap"] = st({"a": t("U8", [2], 0, 2), "b": t("U8", [2], 1, 3)},
                          b"\1\2\3")
files["bad_gap"] = st({"a": t("U8", [2], 0, 2), "b": t("U8", [2], 3, 5)},
                      b"\1\2\3\4\5")
files["bad_short"] = st({"a": t("F64", [2], 0, 16)}, bytes(15))
files["bad_long"] = st({"a": t("F64", [2], 0, 16)}, bytes(17))
files["bad_span"] = st({"a": t("F64", [2], 0, 8)}, bytes(16))
files["bad_shape"] = st({"a": t("F64", [2 ** 62, 0], 0, 0)}, b"")
files["bad_number"] = st({"a": t("F64", [1.5], 0, 8)}, bytes(8))
files["bad_deep"] = st(b"{" + b'"a":{' * 3000, b"")
files["bad_lists"] = st(b'{"a":{"shape":' + b"[" * 3000, b"")
files["bad_length"] = st({}, b"", length=2 ** 63)
files["bad_nothing"] = b""

stamp = sys.argv[1]
folder = os.path.join(os.path.dirname(stamp), "safetensors")
os.makedirs(folder, exist_ok=True)
for name, data in sorted(files.items()):
    with open(os.path.join(folder, name + ".safetensors"), "wb") as f:
        f.write(data)
with open(stamp, "w") as f:
    f.write("%d files\n" % len(files))
