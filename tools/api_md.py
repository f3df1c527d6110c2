#!/usr/bin/env python3
"""api_md.py: docs/api.md from the docstrings of include/tenon.h and its parts.

    tools/api_md.py > docs/api.md

Every section of the header becomes a chapter; every docstring an entry with
the declaration that follows it. The functions of rows are in docs/ops.md.
"""
import os
import re
import sys

HEADERS = ["tenon.h", "tenon_train.h", "tenon_nn.h", "tenon_shard.h"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SECTION = re.compile(r"^/\* -{4} (.*?) -+ \*/$")


def doc_text(lines):
    """The words of a comment, without its stars."""
    out = []
    for line in lines:
        line = re.sub(r"^\s*/\*\*\s?", "", line)
        line = re.sub(r"\s*\*/\s*$", "", line)
        line = re.sub(r"^\s*\*\s?", "", line)
        out.append(line.rstrip())
    while out and not out[0]:
        out.pop(0)
    while out and not out[-1]:
        out.pop()
    return out


def declaration(lines, i):
    """Lines of what follows a docstring, up to its end."""
    out, depth = [], 0
    while i < len(lines):
        line = lines[i]
        out.append(line)
        depth += line.count("{") - line.count("}")
        i += 1
        more = line.endswith("\\") or out[-1].startswith("#define")
        if depth == 0 and line.rstrip().endswith(";") and not more:
            break
        if line.startswith("#define") and not line.endswith("\\"):
            # a constant, or the macro in front of its function
            if i >= len(lines) or not lines[i].startswith("TN_API"):
                break
        if not line.strip():
            break
    return out, i


def name_of(decl):
    text = " ".join(decl)
    m = re.search(r"#define (\w+)", text)
    if m:
        return m.group(1)
    m = re.search(r"typedef struct \w+ (\w+);", text)
    if m:
        return m.group(1)
    m = re.search(r"}\s*(\w+);\s*$", text)
    if m:
        return m.group(1)
    m = re.search(r"(\w+)\(", text.replace("__attribute__((", ""))
    return m.group(1) if m else text.strip(" ;")


def main():
    lines = []
    for name in HEADERS:
        with open(os.path.join(ROOT, "include", name)) as f:
            lines += f.read().split("\n")
    out = ["# The C interface", "",
           "Made by `tools/api_md.py` from `include/tenon.h` and its parts, "
           "`include/tenon_train.h` and `include/tenon_nn.h`. The functions of "
           "operations (`include/tenon_ops.h`) follow the table in "
           "[ops.md](ops.md): operands in the row's order, then its attributes; "
           "a list is a pointer and a number, and NULL is its default; several "
           "results go to an array."]
    i = 0
    while i < len(lines):
        m = SECTION.match(lines[i])
        if m:
            out += ["", "## " + m.group(1).strip().capitalize()]
        if not lines[i].startswith("/**"):
            i += 1
            continue
        first = i
        while "*/" not in lines[i]:
            i += 1
        i += 1
        text = doc_text(lines[first:i])
        decl, i = declaration(lines, i)
        while decl and not decl[-1].strip():
            decl.pop()
        out += ["", "### " + name_of(decl), "", "```c"] + \
            [re.sub(r"\s+\\$", " \\\\", d) for d in decl] + ["```", ""] + text
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
