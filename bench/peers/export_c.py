#!/usr/bin/env python3
"""export_c.py [OPTION]... TENON FOLDER [MODEL.onnx]...: exported C beside others.

For each model, the C of `tenon export --c` beside the same program compiled while it
runs (the library, on one thread), beside what emx-onnx-cgen and onnx2c write, where
they are found, and beside its own small form. Without a MODEL: a perceptron of three
layers and a small convolution net, which are made in FOLDER, and what lies there as
NAME.onnx (bench/peers/zoo.py --export-only --legacy --only mobilenet_v2 FOLDER).

All C is compiled by the same compiler with -O2 -march=native and its own flags. Each
program is a process that runs the net several times and prints its user time for a
run; ours and the others run in turn, round after round, and each round gives a ratio,
of which the table has the median: so another load of the machine changes both alike.
The exported C and the library, which are to be compared to a percent, are in one
process, and take turns of 20 ms: a virtual machine can have two speeds, each for
a tenth of a second.

    ms          user time of a run of the exported C
    library     its time divided by that of the library: 1.03 is 3 % slower
    emx, onnx2c the other's time divided by ours: above 1 ours is faster
    RAM         bytes that are written: our arena; of others their variables and the
                stack of their functions, of the entry and the deepest other one
    ROM         code and constants
    small       code without constants of --dialect c99 --small, -Os, by
                arm-none-eabi-gcc for a Cortex-M3 if it is there
    stack       the greatest frame of a function of ours (-fstack-usage)
    export      seconds of processor time of tenon export, without a test and without
                compilers that it starts; beside, those of the compiler of the C

With --check, what is beyond a limit is named, and the exit code is 1: RAM is at most
2 % more than the plan and the state; stack below 2048; small below 60,000; export
below 2 s; two exports are equal; library at most 1.03.

    python3 -m venv ~/peers
    ~/peers/bin/pip install emx-onnx-cgen onnx numpy
    ~/peers/bin/python bench/peers/export_c.py build/tenon /tmp/export

onnx2c is no package of PyPI nor of Debian: a program of that name is used if PATH has
one. Exit code 0: all was measured; 1: a model was not; 2: wrong command line.
"""
import argparse
import filecmp
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

FLAGS = ["-O2", "-march=native", "-std=gnu99", "-w"]

MAIN = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static double used(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_utime.tv_sec + r.ru_utime.tv_usec * 1e-6;
}
static void one(void);
static void prepare(void);
int main(int argc, char **argv)
{
	int n = atoi(argv[argc - 1]);
	double begin;
	prepare();
	one();
	begin = used();
	for (int i = 0; i < n; i++)
		one();
	printf("%.9g\n", (used() - begin) / n);
	return 0;
}
"""

# Ours and the library, of which both have a prepare() and a one(), in turn.
BOTH = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
#define prepare prepare_ours
#define one one_ours
@OURS@
#undef prepare
#undef one
#define prepare prepare_library
#define one one_library
@LIBRARY@
#undef prepare
#undef one
static double batch(void (*run)(void), int n)
{
	double begin = used();
	for (int i = 0; i < n; i++)
		run();
	return (used() - begin) / n;
}
int main(int argc, char **argv)
{
	int pairs = atoi(argv[argc - 1]), n;
	double a, b;
	prepare_ours();
	prepare_library();
	batch(one_ours, 2), batch(one_library, 2);
	n = 1 + (int)(0.02 / (batch(one_ours, 3) + 1e-7));
	for (int i = 0; i < pairs && (i < 4 || used() < 30); i++) {
		a = batch(one_ours, n);
		b = batch(one_library, n);
		b += batch(one_library, n);
		a += batch(one_ours, n);
		printf("%.9g %.9g\n", a / 2, b / 2);
	}
	return 0;
}
"""

OURS = r"""
#include "net.h"
#include <sys/mman.h>
static net_net net;
@ARRAYS@
/* In large pages, as the library has it. */
static void *memory(size_t n)
{
	size_t huge = (size_t)1 << 21;
	void *p = aligned_alloc(huge, (n + huge) / huge * huge);
	if (p == NULL)
		exit(1);
	madvise(p, (n + huge) / huge * huge, MADV_HUGEPAGE);
	return p;
}
static void prepare(void)
{
	FILE *f = fopen("net.weights", "rb");
	void *w = f != NULL ? memory(NET_WEIGHTS_BYTES) : NULL;
	if (f != NULL && fread(w, 1, NET_WEIGHTS_BYTES, f) != NET_WEIGHTS_BYTES)
		exit(1);
	if (net_init(&net, memory(NET_ARENA_BYTES), NET_ARENA_BYTES, w,
		NET_WEIGHTS_BYTES) != 0)
		exit(1);
}
static void one(void)
{
	if (net_run(&net@ARGS@) != 0)
		exit(1);
}
"""

LIBRARY = r"""
#include <tenon.h>
static tn_program *p;
static const void *in[16];
static void *out[16];
static void prepare(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;
	tn_onnx *m;
	o.threads = 1;
	if (tn_context_new(&c, &o) < 0 || tn_onnx_open(&m, c, MODEL) < 0)
		exit(1);
	tn_onnx_fold(m, 2); /* as the command does */
	if (tn_onnx_build(&p, m) < 0)
		exit(1);
	for (int i = 0; i < tn_program_n_inputs(p); i++)
		in[i] = calloc(tn_program_input(p, i)->n_bytes + 64, 1);
	for (int i = 0; i < tn_program_n_outputs(p); i++)
		out[i] = calloc(tn_program_output(p, i)->n_bytes + 64, 1);
}
static void one(void)
{
	if (tn_program_run(p, in, out) < 0)
		exit(1);
}
"""


def sh(*command, cwd=None, **words):
    return subprocess.run([str(c) for c in command], cwd=cwd, check=True,
                          capture_output=True, text=True, **words).stdout


# ---- models ----

def perceptron(path):
    import numpy
    import onnx
    from onnx import helper, numpy_helper

    rng, sizes = numpy.random.default_rng(3), (64, 96, 96, 10)
    nodes, weights, x = [], [], "x"
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        w = rng.standard_normal((n, m)) / n ** 0.5
        weights += [numpy_helper.from_array(v.astype("float32"), k + str(i))
                    for k, v in (("w", w), ("b", rng.standard_normal(m)))]
        last = i == len(sizes) - 2
        nodes.append(helper.make_node(
            "Gemm", [x, "w%d" % i, "b%d" % i], ["y" if last else "h%d" % i]))
        if not last:
            nodes.append(helper.make_node("Relu", ["h%d" % i], ["r%d" % i]))
            x = "r%d" % i
    save(path, nodes, weights, [8, 64], [8, 10])


def convolutions(path):
    import numpy
    from onnx import helper, numpy_helper

    rng, nodes, weights, x = numpy.random.default_rng(4), [], [], "x"
    for i, (n, m) in enumerate(((3, 16), (16, 32), (32, 32))):
        w = rng.standard_normal((m, n, 3, 3)) / (9 * n) ** 0.5
        weights += [numpy_helper.from_array(v.astype("float32"), k + str(i))
                    for k, v in (("w", w), ("b", rng.standard_normal(m)))]
        nodes += [helper.make_node("Conv", [x, "w%d" % i, "b%d" % i],
                                   ["c%d" % i], pads=[1] * 4),
                  helper.make_node("Relu", ["c%d" % i], ["r%d" % i]),
                  helper.make_node("MaxPool", ["r%d" % i], ["p%d" % i],
                                   kernel_shape=[2, 2], strides=[2, 2])]
        x = "p%d" % i
    nodes += [helper.make_node("GlobalAveragePool", [x], ["g"]),
              helper.make_node("Flatten", ["g"], ["y"])]
    save(path, nodes, weights, [1, 3, 32, 32], [1, 32])


def save(path, nodes, weights, x, y):
    import onnx
    from onnx import TensorProto, helper

    f = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", f, x)],
        [helper.make_tensor_value_info("y", f, y)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


# ---- programs ----

def own_seconds(*command):
    """Runs it; processor time of the process, without its children's."""
    with subprocess.Popen([str(c) for c in command], text=True,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as p:
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        with open("/proc/%d/stat" % p.pid) as f:
            ticks = f.read().rsplit(")", 1)[1].split()[11:13]
        err = p.stderr.read()
    if p.returncode != 0:
        raise subprocess.CalledProcessError(p.returncode, command, "", err)
    return sum(int(t) for t in ticks) / os.sysconf("SC_CLK_TCK")


def objects(folder, sources, cc, flags):
    """Compiles; seconds of processor time of that."""
    begin = os.times()
    for s in sources:
        sh(cc, *flags, "-fstack-usage", "-c", s, "-o", s + ".o", cwd=folder)
    end = os.times()
    return (end.children_user + end.children_system -
            begin.children_user - begin.children_system)


def link(folder, name, text, sources, more=()):
    with open(os.path.join(folder, name + ".c"), "w") as f:
        f.write(text)
    sh("gcc", *FLAGS, name + ".c", *[s + ".o" for s in sources], *more, "-lm",
       "-o", name, cwd=folder)
    return os.path.join(folder, name)


def needed(folder):
    make = open(os.path.join(folder, "Makefile")).read()
    return re.search("^NEEDED = (.*)$", make, re.M).group(1).split()


def export(tenon, model, folder):
    return own_seconds(tenon, "export", "--c", folder, "--name", "net",
                       "--weights", "file", "--test", "none", model)


def same_twice(tenon, model, folder):
    """Does another export write the same bytes?"""
    again = os.path.join(folder, "again")
    export(tenon, model, again)
    names = sorted(os.listdir(again))
    same = filecmp.cmpfiles(folder, again, names, shallow=False)[0] == names
    shutil.rmtree(again)
    return same and "net.c" in names


def ours(tenon, model, folder):
    took = export(tenon, model, folder)
    about = json.load(open(os.path.join(folder, "net.json")))
    arrays, args = [], []
    for i, x in enumerate(about["inputs"] + about["outputs"]):
        arrays.append("static unsigned char a%d[%d] __attribute__((aligned(64)));"
                      % (i, x["bytes"] + 64))
        args.append(", (void *)a%d" % i)
    cc_took = objects(folder, ["net.c"], "gcc", FLAGS + needed(folder))
    text = OURS.replace("@ARRAYS@", "\n".join(arrays)).replace(
        "@ARGS@", "".join(args))
    return text, about, took, cc_took


def both(tenon, model, folder, text):
    build = os.path.dirname(os.path.realpath(tenon))
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.realpath(__file__))))
    model = "#define MODEL \"%s\"\n" % os.path.realpath(model)
    text = BOTH.replace("@OURS@", text).replace("@LIBRARY@", model + LIBRARY)
    return link(folder, "both", text, ["net.c"], [
        "-I", os.path.join(root, "include"), "-L", build,
        "-Wl,-rpath," + build, "-ltenon"])


def other(kind, tool, model, folder):
    """The program of another generator, or None, and why."""
    c = os.path.join(folder, kind + ".c")
    if kind == "emx":
        sh(tool, "compile", "--model-name", "other", "--large-temp-threshold",
           "0", "--large-weight-threshold", "0", model, c)
    else:
        with open(c, "w") as f:
            f.write(sh(tool, model))
    text = open(c).read()
    entry = "other" if kind == "emx" else "entry"
    args = re.search(r"\bvoid %s\(([^{;]*)\)\s*\{" % entry, text).group(1)
    shapes = [[int(n) for n in re.findall(r"(\d+)\]", a)]
              for a in args.split(",")]
    objects(folder, [kind + ".c"], "gcc", FLAGS)
    arrays, names = [], []
    for i, shape in enumerate(shapes):
        n = 1
        for d in shape:
            n *= d
        arrays.append("static double a%d[%d];" % (i, n + 8))
        names.append("(void *)a%d" % i)
    main = "\n".join(arrays) + """
void %s();
static void prepare(void) { }
static void one(void) { %s(%s); }
""" % (entry, entry, ", ".join(names))
    return link(folder, "run_" + kind, MAIN + main, [kind + ".c"])


# ---- sizes ----

def sections(o, tool="size"):
    text, data, bss = sh(tool, o).splitlines()[1].split()[:3]
    return int(text), int(data), int(bss)


def frames(su):
    return [int(line.split("\t")[1]) for line in open(su)]


def memory(o, su):
    """RAM and ROM of a generator that keeps its tensors itself."""
    text, data, bss = sections(o)
    stack = sorted(frames(su))
    return data + bss + sum(stack[-2:]), text + data


def small(tenon, model, folder):
    """(bytes of code, compiler)"""
    sh(tenon, "export", "--c", folder, "--name", "net", "--weights", "file",
       "--test", "none", "--dialect", "c99", "--small", model)
    arm = shutil.which("arm-none-eabi-gcc")
    cc = ([arm, "-mcpu=cortex-m3", "-mthumb"] if arm else ["gcc"])
    sh(*cc, "-std=c99", "-Os", *needed(folder), "-w", "-c", "net.c", "-o",
       "small.o", cwd=folder)
    o = os.path.join(folder, "small.o")
    size = "arm-none-eabi-size" if arm else "size"
    return sections(o, size)[0], "Cortex-M3" if arm else "host"


# ---- time ----

def user_ms(program, runs):
    return 1000 * float(sh(program, runs, cwd=os.path.dirname(program)))


def runs_for(program):
    return max(1, min(20000, int(300 / max(user_ms(program, 3), 1e-3))))


def rounds_of(programs, n):
    """{name: [ms of each round]}, in turn."""
    runs = {name: runs_for(p) for name, p in programs.items()}
    all_ms = {name: [] for name in programs}
    for i in range(n):
        for name, p in sorted(programs.items(), reverse=i % 2 == 1):
            all_ms[name].append(user_ms(p, runs[name]))
    return all_ms


def ratio(top, bottom):
    return statistics.median(a / b for a, b in zip(top, bottom))


def beside(program, pairs):
    lines = sh(program, pairs, cwd=os.path.dirname(program)).splitlines()
    return ratio(*zip(*(map(float, line.split()) for line in lines)))


def measure(o, tools, model):
    name = os.path.basename(model)[:-5]
    folder = os.path.join(o.folder, name + ".c")
    os.makedirs(os.path.join(folder, "small"), exist_ok=True)
    text, about, took, cc_took = ours(o.tenon, model, folder)
    programs = {"ours": link(folder, "ours", MAIN + text, ["net.c"])}
    pair = both(o.tenon, model, folder, text)
    row = {"model": name, "ram": about["arena_bytes"],
           "plan": about["plan_bytes"] + about["state_bytes"] +
           about["saved_bytes"],
           "same_twice": same_twice(o.tenon, model, folder),
           "rom": sections(os.path.join(folder, "net.c.o"))[0] +
           about["weights_bytes"],
           "stack": max(frames(os.path.join(folder, "net.c.su"))),
           "export_s": took, "cc_s": cc_took}
    row["small"], row["small_for"] = small(
        o.tenon, model, os.path.join(folder, "small"))
    for kind, tool in tools.items():
        try:
            programs[kind] = other(kind, tool, model, folder)
            row[kind + "_ram"], row[kind + "_rom"] = memory(
                os.path.join(folder, kind + ".c.o"),
                os.path.join(folder, kind + ".c.su"))
        except (subprocess.CalledProcessError, AttributeError) as e:
            text = (getattr(e, "stderr", "") or str(e)).strip().splitlines()
            print("%s: %s does not: %s" % (name, kind, text[-1:] or ""),
                  file=sys.stderr)
    ms = rounds_of(programs, o.rounds)
    row["ms"] = statistics.median(ms["ours"])
    row["library"] = beside(pair, 15 * o.rounds)
    for kind in tools:
        if kind in ms:
            row[kind] = ratio(ms[kind], ms["ours"])
    return row


# What is measured, and what it must be below, of a row.
LIMITS = (("ram", lambda row: 1.02 * row["plan"] + 64), ("stack", lambda row: 2048),
          ("small", lambda row: 60000), ("export_s", lambda row: 2),
          ("library", lambda row: 1.03))


def beyond(row):
    said = ["%s is %.4g, and at most %.4g is accepted" % (
        key, row[key], limit(row)) for key, limit in LIMITS
        if row[key] > limit(row)]
    if not row["same_twice"]:
        said.append("two exports differ")
    for text in said:
        print("%s: %s" % (row["model"], text), file=sys.stderr)
    return bool(said)


def show(row, tools):
    print("%-16s ms %.4g  library %.3f" % (row["model"], row["ms"],
                                           row["library"]), end="")
    for kind in tools:
        if kind in row:
            print("  %s %.2f" % (kind, row[kind]), end="")
    print("\n%-16s RAM %d (plan %d)  ROM %d  stack %d  small %d (%s)  "
          "export %.2f s (compiler %.2f s)" % (
              "", row["ram"], row["plan"], row["rom"], row["stack"],
              row["small"], row["small_for"], row["export_s"], row["cc_s"]))
    for kind in tools:
        if kind in row:
            print("%-16s %s: RAM %d  ROM %d" % (
                "", kind, row[kind + "_ram"], row[kind + "_rom"]))
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("tenon")
    p.add_argument("folder")
    p.add_argument("model", nargs="*")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--alone", action="store_true",
                   help="without other generators")
    p.add_argument("--check", action="store_true",
                   help="exit code 1 if a limit is not kept")
    p.add_argument("--json", action="store_true",
                   help="one JSON object a line for each model")
    o = p.parse_args()
    if not os.access(o.tenon, os.X_OK) or o.rounds < 1:
        p.error("TENON is a program, and there is a round at least")
    os.makedirs(o.folder, exist_ok=True)
    o.tenon = os.path.realpath(o.tenon)
    if not o.model:
        perceptron(os.path.join(o.folder, "perceptron.onnx"))
        convolutions(os.path.join(o.folder, "convolutions.onnx"))
        o.model = sorted(glob.glob(os.path.join(o.folder, "*.onnx")))
    found = os.path.join(os.path.dirname(sys.executable), "emx-onnx-cgen")
    tools = {"emx": shutil.which("emx-onnx-cgen") or
             (found if os.path.exists(found) else None),
             "onnx2c": shutil.which("onnx2c")}
    if o.alone:
        tools = {}
    for kind in [k for k in tools if tools[k] is None]:
        print("%s is not there" % kind, file=sys.stderr)
        del tools[kind]
    failed = False
    for model in o.model:
        try:
            row = measure(o, tools, model)
        except subprocess.CalledProcessError as e:
            print("%s: %s" % (model, (e.stderr or str(e)).strip()),
                  file=sys.stderr)
            failed = True
            continue
        print(json.dumps(row)) if o.json else show(row, tools)
        failed = o.check and beyond(row) or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
