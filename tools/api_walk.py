#!/usr/bin/env python3
"""api_walk.py: one C function for every public function of include/*.h, which
calls it with the arguments that a test chooses (tests/unit/test_api_walk.c).

    tools/api_walk.py include/tenon.h ... > walk.inc

A parameter whose type is not in TYPES stops the build: so a new function is
always walked, and a new type gets its good and bad values.
"""
import re
import sys

# by type: the function of the test that gives argument i
TYPES = {
    "tn_context *": "a_context", "const tn_context *": "a_context",
    "tn_tensor *": "a_tensor", "const tn_tensor *": "a_tensor",
    "tn_tensor *const *": "a_tensors", "tn_tensor **": "a_room",
    "const char *": "a_text", "char *": "a_no_text", "char **": "a_text_room",
    "const char *const *": "a_texts",
    "int32_t": "an_i32", "int64_t": "an_i64", "uint64_t": "a_u64",
    "size_t": "a_size", "uint32_t": "a_u32", "double": "a_double",
    "bool": "a_bool", "tn_dtype": "a_dtype", "tn_level": "a_level",
    "tn_status": "a_status",
    "const int64_t *": "some_i64", "int64_t *": "room_i64",
    "int32_t *": "room_i32", "double *": "room_f64",
    "const bool *": "some_bool",
    "const void *": "some_data", "void *": "room_data",
    "const void *const *": "some_arrays", "void *const *": "room_arrays",
    "const tn_array *": "an_array", "tn_array *": "no_array",
    "tn_array **": "room_array", "const tn_array **": "room_borrowed",
    "tn_program *": "a_program", "const tn_program *": "a_program",
    "tn_onnx *": "a_model", "const tn_onnx *": "a_model",
    "tn_npz *": "an_npz", "const tn_npz *": "an_npz",
    "tn_params *": "a_set", "const tn_params *": "a_set",
    "tn_optimizer *": "an_optimizer", "const tn_optimizer *": "an_optimizer",
    "tn_layer *": "a_layer", "const tn_layer *": "a_layer",
    "tn_layer *const *": "some_layers",
    "tn_function *": "a_function", "const tn_function *": "a_function",
    "tn_mesh *": "a_mesh", "const tn_mesh *": "a_mesh",
    "tn_world *": "a_world", "const tn_world *": "a_world",
    "tn_body *": "a_body", "tn_host *": "a_host",
    "const tn_attr *": "some_attrs", "const tn_pair *": "some_pairs",
    "const tn_placement *": "some_places",
    "const tn_export_options *": "some_export",
    "tn_dl_managed *": "a_managed", "tn_dl_managed **": "room_managed",
}
SKIPPED = {
    # process-wide: loads MPI, which ends the process when it is not started
    "tn_join_mpi": "a_context only NULL",
}


def declarations(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#.*?(?<!\\)$", " ", text, flags=re.S | re.M)
    for m in re.finditer(r"TN_API\s+((?:TN_MUST_USE\s+)?)([^;]*);", text):
        text = re.sub(r"TN_PRINTF\([^)]*\)", "", m.group(2))
        yield re.sub(r"\s+", " ", text).strip()


def split(params):
    out, depth, word = [], 0, ""
    for c in params:
        depth += c == "("
        depth -= c == ")"
        if c == "," and depth == 0:
            out.append(word.strip())
            word = ""
        else:
            word += c
    return out + [word.strip()] if word.strip() else out


def type_of(param):
    """Type and name of "tn_tensor *const *in"."""
    m = re.match(r"(.*?)(\w+)(\[\])?$", param)
    kind, name = m.group(1).strip(), m.group(2)
    if m.group(3):
        kind += " *" if not kind.endswith("*") else "*"
    return re.sub(r"\s+", " ", kind), name


def value(fn, kind, name, i):
    if name == "file" and i == 0:
        return "__FILE__"
    if name == "line" and i == 1:
        return "__LINE__"
    if name == "format":
        return "\"%%s\", a_word(b, %d)" % i
    if kind in TYPES:
        return "%s(b, %d, \"%s\")" % (TYPES[kind], i, name)
    if re.match(r"tn_\w+ \*\*$", kind):
        return "(void *)a_handle_room(b, %d)" % i
    m = re.match(r"(const )?(tn_\w+) \*$", kind)
    if m and m.group(1) and m.group(2).endswith(("_options", "_wishes")):
        return "options(b, %d, sizeof(%s))" % (i, m.group(2))
    if m and not m.group(1):
        return "room(b, %d, sizeof(%s))" % (i, m.group(2))
    sys.exit("api_walk: %s: no value is known for %s %s" % (fn, kind, name))


def main():
    rows = []
    for path in sys.argv[1:]:
        with open(path) as f:
            for d in declarations(f.read()):
                m = re.match(r"(.*?)(\w+)\((.*)\)$", d)
                if not m:
                    sys.exit("api_walk: not understood: " + d)
                result, fn = m.group(1).strip(), m.group(2)
                params = [] if m.group(3) == "void" else split(m.group(3))
                args, n = [], 0
                for i, p in enumerate(params):
                    if p == "...":
                        continue
                    kind, name = type_of(p)
                    args.append(value(fn, kind, name, i))
                    n = i + 1
                call = "%s(%s)" % (fn, ", ".join(args))
                result = result.replace("TN_MUST_USE", "").strip()
                if result == "tn_status":
                    body = "status_is(b, %s);" % call
                elif result in ("tn_tensor *", "tn_layer *", "tn_mesh *"):
                    body = "%s_is(b, %s);" % (result.split()[0][3:], call)
                else:
                    body = "%s%s;" % ("" if result == "void" else "(void)!", call)
                rows.append((fn, n, body))
    for fn, n, body in rows:
        print("static void walk_%s(bad *b)\n{\n\t(void)b;\n\t%s\n}\n" % (fn, body))
    print("static const struct walk {\n\tconst char *name;\n\tint32_t n;\n"
          "\tvoid (*call)(bad *b);\n} walks[] = {")
    for fn, n, body in rows:
        print("\t{\"%s\", %d, walk_%s}," % (fn, n, fn))
    print("};")


main()
