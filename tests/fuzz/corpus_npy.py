#!/usr/bin/env python3
"""corpus_npy.py STAMP: writes .npy files, good and bad, into the folder npy
beside STAMP, then STAMP. Needs no NumPy: the bytes are put together here."""
import os
import struct
import sys


def npy(descr, order, shape, data, version=1, length=None, tail=""):
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (
        descr, order, shape)
    text = (text + tail).encode()
    pad = -(12 + len(text) + 1) % 64
    text += b" " * pad + b"\n"
    n = len(text) if length is None else length
    head = b"\x93NUMPY" + bytes([version, 0])
    head += struct.pack("<H" if version == 1 else "<I", n)
    return head + text + data


files = {}
for version in 1, 2, 3:
    files["v%d" % version] = npy("'<f4'", "False", "(2, 3)",
                                 bytes(range(24)), version)
for code, size in (("f2", 2), ("f4", 4), ("f8", 8), ("i1", 1), ("i2", 2),
                   ("i4", 4), ("i8", 8), ("u1", 1), ("b1", 1),
                   ("u2", 2), ("u4", 4), ("u8", 8)):
    for byte_order in "<>" if size > 1 else "|":
        for fortran in "True", "False":
            name = "%s_%s_%s" % (code, "<>|".index(byte_order), fortran)
            files[name] = npy("'%s%s'" % (byte_order, code), fortran,
                              "(2, 3)", bytes(range(1, 6 * size + 1)))
for name, shape, n in (("rank0", "()", 1), ("rank1", "(5,)", 5),
                       ("empty", "(3, 0, 2)", 0),
                       ("rank8", "(1, 2, 1, 2, 1, 2, 1, 2)", 16),
                       ("long", "(2L, 2L)", 4)):
    files[name] = npy("'<f4'", "True", shape, bytes(4 * n))
for name, shape in (("rank9", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"),
                    ("negative", "(-1, 3)"), ("nested", "((2,), 3)"),
                    ("deep", "(" * 500), ("huge", "(281474976710656,)"),
                    ("overflow", "(4294967296, 4294967296)"),
                    ("digits", "(" + "9" * 400 + ",)"), ("float", "(2.0,)"),
                    ("no_comma", "(3)"), ("list", "[2, 3]")):
    files["bad_" + name] = npy("'<f4'", "False", shape, bytes(24))
for name, descr in (("complex", "'<c16'"), ("object", "'|O'"),
                    ("struct", "[('a', '<f4'), ('b', '<i8')]"),
                    ("unended", "'<f4")):
    files["bad_" + name] = npy(descr, "False", "(2, 3)", bytes(24))
files["bad_length"] = npy("'<f4'", "False", "()", bytes(4), 2, 0xffffffff)
files["bad_short"] = npy("'<f4'", "False", "(2, 3)", bytes(23))
files["bad_rest"] = npy("'<f4'", "False", "(2, 3)", bytes(25))
files["bad_version"] = npy("'<f4'", "False", "()", bytes(4), 9)
files["bad_tail"] = npy("'<f4'", "False", "()", bytes(4), tail="{}")
files["bad_empty"] = b""
files["bad_magic"] = b"\x93NUMPZ\1\0\0\0"

stamp = sys.argv[1]
folder = os.path.join(os.path.dirname(stamp), "npy")
os.makedirs(folder, exist_ok=True)
for name, data in sorted(files.items()):
    with open(os.path.join(folder, name + ".npy"), "wb") as f:
        f.write(data)
with open(stamp, "w") as f:
    f.write("%d files\n" % len(files))
