#!/usr/bin/env python3
"""api_md.py: docs/api.md from include/tenon.h and its parts.

    tools/api_md.py > docs/api.md

Every section of a header becomes a chapter, and everything that a header
declares stands in it: functions, types, constants, macros. A docstring and the
declarations up to the next blank line are one entry. A function that records
the line of its call is a macro over tn_at_NAME(file, line, ..); it is shown as
it is called. The functions of rows are in docs/ops.md.
"""
import os
import re
import sys

HEADERS = ["tenon.h", "tenon_onnx.h", "tenon_function.h", "tenon_train.h",
           "tenon_nn.h", "tenon_shard.h", "tenon_device.h",
           "tenon_export.h"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SECTION = re.compile(r"^/\* -{4} (.*?) -+ \*/$")
# What makes a header compile, and says nothing to its reader.
PLUMBING = re.compile(r"^#\s*(if|ifdef|ifndef|else|elif|endif|include)|"
                      r'^extern "C"|^}\s*$|^#define (TN_API|TN_MUST_USE|'
                      r"TN_PRINTF|TENON_\w*H)\b")
# A macro that adds the line of its caller, what it calls, and with what more.
LINE_MACRO = re.compile(
    r"#define (tn_\w+)\([^)]*\)\s*(tn_at_\w+)\("
    r"(?:tn_here\(c, )?__FILE__, __LINE__\)?, __VA_ARGS__((?:, \w+)*)\)\n")
# The function behind such macros.
LINE_FUNCTION = re.compile(
    r"^([^\n(]*?)(tn_at_\w+)\(\s*(?:const char \*file,\s*int32_t line,\s*)?"
    r"([^;]*?)\)(\s*TN_PRINTF\(\d+, \d+\))?;", re.M)


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


def declarations(lines, i):
    """The declarations from line i to the next blank line or docstring."""
    out, depth = [], 0
    while i < len(lines):
        line = lines[i]
        if depth == 0 and (not line.strip() or line.startswith("/**") or
                           SECTION.match(line)):
            break
        i += 1
        if depth == 0 and PLUMBING.match(line):
            continue
        out.append(line)
        depth += line.count("{") - line.count("}")
    return out, i


def as_called(decl):
    """tn_at_NAME(file, line, ..) behind macros, as each of them is called."""
    text = re.sub(r"[ \t]*\\\n\s*", " ", "\n".join(decl)) + "\n"
    calls = {}  # by tn_at_NAME: the macros over it, with what they add

    def note(m):
        more = m.group(3).count(",")
        calls.setdefault(m.group(2), []).append((m.group(1), more))
        return ""

    def signatures(m):
        result, name, params = m.group(1), m.group(2), m.group(3)
        out = []
        for macro, more in calls.get(name, []):
            kept = params.split(",")
            kept = ",".join(kept[:len(kept) - more])
            out.append("%s%s(%s);" % (result, macro, kept))
        return "\n".join(out) if out else m.group(0)

    text = LINE_FUNCTION.sub(signatures, LINE_MACRO.sub(note, text))
    text = re.sub(r"^TN_API (TN_MUST_USE )?", "", text, flags=re.M)
    text = re.sub(r"\n+", "\n", text).strip("\n")
    text = re.sub(r"^(?!typedef)([^\n#(]*\()([^{};]*)\);", wrapped, text,
                  flags=re.M)
    return text, names_of(text)


def wrapped(m):
    """A prototype in lines of 80 columns."""
    lines = [m.group(1)]
    params = " ".join(m.group(2).split()).split(", ")
    for i, param in enumerate(params):
        end = ", " if i + 1 < len(params) else ");"
        if len(lines[-1].expandtabs(8)) + len(param) + len(end.strip()) > 80:
            lines.append("\t")
        lines[-1] += param + end
    return "\n".join(line.rstrip() for line in lines)


def names_of(text):
    """What a chunk of declarations declares, in order."""
    found = []
    flat = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    for m in re.finditer(r"#define (\w+)|^}\s*(\w+);|typedef struct \w+ (\w+);|"
                         r"typedef [^;{(]*?\(?\*?(\w+)\)?\(|\b(tn_\w+)\(",
                         flat, flags=re.M):
        name = next(g for g in m.groups() if g)
        if name not in found:
            found.append(name)
    if not found and "enum {" in flat:
        found = re.findall(r"\bTN_\w+", flat)[:1]
    return found


def as_list(text):
    """Labelled lines ("errors  .."), which Markdown would run together, as
    items of a list; the rest as it is."""
    out, in_list = [], False
    for line in text:
        m = re.match(r"([a-z_\[\]]+|\*out)  +(\S.*)$", line)
        if m and not line.startswith(" "):
            if not in_list and out and out[-1]:
                out.append("")
            out.append("* %s: %s" % m.groups())
            in_list = True
        elif in_list and line.startswith("  "):
            out.append("  " + line.strip())
        else:
            if in_list and line:
                out.append("")
            in_list = False
            out.append(line)
    return out


def entry(text, decl):
    text = as_list(text)
    decl, names = as_called(decl)
    code = decl.split("\n")
    out = ["", "### " + ", ".join(names), "", "```c"] + code + ["```"]
    return out + ([""] + text if text else [])


def main():
    out = ["# The C interface", "",
           "Made by `tools/api_md.py` from `include/tenon.h` and its parts: "
           "`tenon_onnx.h`, `tenon_function.h`, `tenon_train.h`, "
           "`tenon_nn.h`, `tenon_shard.h`, `tenon_device.h` and `tenon_export.h`. "
           "Operations "
           "(`tenon_ops.h`) follow the table in [ops.md](ops.md): first the "
           "operands in the order of the row, then its attributes; a list is a "
           "pointer and a number, and NULL stands for its default; several "
           "results go to an array.", "",
           "Functions that build something record the line of their call, for "
           "diagnoses. They are macros over `tn_at_NAME(file, line, ..)`, which "
           "a binding for another language calls itself."]
    for name in HEADERS:
        with open(os.path.join(ROOT, "include", name)) as f:
            lines = f.read().split("\n")
        i = lines.index(" */") + 1 if lines[0] == "/*" else 0
        while i < len(lines):
            m = SECTION.match(lines[i])
            text = []
            if m:
                out += ["", "## " + m.group(1).strip().capitalize()]
                i += 1
                continue
            if lines[i].startswith("/**"):
                first = i
                while "*/" not in lines[i]:
                    i += 1
                i += 1
                text = doc_text(lines[first:i])
            decl, i = declarations(lines, i)
            while not text and not decl and i < len(lines) and \
                    not lines[i].strip():
                i += 1
            if decl and decl[0].startswith("/*") and \
                    decl[-1].endswith("*/"):
                out += [""] + doc_text(decl)  # on all that follows
            elif decl:
                out += entry(text, decl)
            elif text:
                sys.exit("api_md.py: %s: nothing is declared behind: %s" %
                         (name, text[0]))
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
