#!/usr/bin/env python3
"""nvrtc.py [BUILD]: compiles the CUDA C of every golden and example to machine code
for sm_80 and sm_90, with NVIDIA's run-time compiler, which needs no GPU; and what the
machine cuda/sm_90a makes of it, for sm_90a, where warps multiply together.

Fails if a text is refused, or has a warning, or if registers are spilled to
memory. The library is looked for as the loader does, and in TENON_NVRTC, the
path of a libnvrtc.so; without it everything is skipped, with exit status 77.
TN_PART, a number, says which quarter of the goldens is compiled.
"""
import concurrent.futures
import ctypes
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARCHS = {"sm_90": ("sm_80", "sm_90"), "sm_90a": ("sm_90a",)}  # by machine
WARPGROUPS = re.compile(rb"^\t+MMA_(?:BY_WARPS|IN_MEMORY)\(", re.MULTILINE)
# An opaque row of the host, a program of several processes, a text that is
# refused: there is no kernel to compile.
FOLDERS = ("schedule", "kern", "fusion", "inplace", "grad", "cuda")


def library():
    """The loaded library, or None."""
    names = [os.environ.get("TENON_NVRTC", "")]
    names += ["libnvrtc.so"] + [f"libnvrtc.so.{v}" for v in (13, 12, "11.2")]
    for name in filter(None, names):
        folder = os.path.dirname(name)
        for helper in glob.glob(os.path.join(folder, "libnvrtc-builtins.so*")) if folder else []:
            ctypes.CDLL(helper, mode=ctypes.RTLD_GLOBAL)
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_text(lib, text, arch):
    """The log of the compiler, and whether it accepted the text."""
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--fmad=false",
               b"--device-as-default-execution-space", b"--ptxas-options=-v"]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None)
    array = (ctypes.c_char_p * len(options))(*options)
    ok = lib.nvrtcCompileProgram(program, len(options), array) == 0
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetProgramLog(program, log)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return ok, log.value.decode(errors="replace")


def ptx_of(lib, text, machine):
    """The PTX of a text that is accepted."""
    arch = machine.replace("sm", "compute")
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--fmad=false",
               b"--device-as-default-execution-space"]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None)
    lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    lib.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetPTX(program, ptx)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode(errors="replace")


def check_counts(lib, golden, text, machine):
    """Messages about the instructions that the golden counts: "# ptx: NAME N, NAME N",
    or "# ptx sm_90a: .."."""
    what = "ptx" if machine == "sm_90" else f"ptx {machine}"
    with open(golden, encoding="utf-8") as f:
        line = re.search(rf"^# {what}: (.*)$", f.read(), re.MULTILINE)
    if line is None:
        return []
    ptx, bad = ptx_of(lib, text, machine), []
    for name, want in (part.split() for part in line[1].split(",")):
        n = len(re.findall(rf"^\s*{re.escape(name)}\b", ptx, re.MULTILINE))
        if n != int(want):
            bad.append(f"{golden}: {n} instructions {name}, not {want}")
    return bad


def text_of(build, golden, machine):
    """The CUDA C of the golden's program; None: it has none."""
    with open(golden, encoding="utf-8") as f:
        source = f.read().split("\n# >>>\n")[0]
    if source.count("\n") == 0:
        return None  # the program of another golden
    done = subprocess.run([os.path.join(build, "tenon"), "explain", f"--target=cuda/{machine}",
                           "--level=text", "-"], input=source.encode(), capture_output=True,
                          check=False)
    return done.stdout if done.returncode == 0 else None


def check(lib, build, golden):
    """Messages about one golden; None: it has no text."""
    bad, known = [], False
    for machine in ARCHS:
        text = text_of(build, golden, machine)
        if text is not None and (machine == "sm_90" or WARPGROUPS.search(text)):
            known = True
            bad += check_text(lib, golden, text, machine)
    return bad if known else None


def check_text(lib, golden, text, machine):
    """Messages about the CUDA C for a machine."""
    bad = check_counts(lib, golden, text, machine)
    for arch in ARCHS[machine]:
        ok, log = compile_text(lib, text, arch)
        if not ok:
            bad.append(f"{golden}: {arch}: refused:\n{log[:2000]}")
            continue
        # .. also where instructions of several warps wait for each other
        for line in re.findall(r".*(?:warning|Performance Loss).*", log):
            bad.append(f"{golden}: {arch}: {line}")
        spilled = [int(n) for n in re.findall(r"(\d+) bytes spill stores", log)]
        if spilled and max(spilled) > 0:
            bad.append(f"{golden}: {arch}: {max(spilled)} bytes of registers are spilled")
    return bad


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    lib = library()
    if lib is None:
        print("nvrtc: skipped: libnvrtc.so is not installed (TENON_NVRTC=PATH names it)")
        return 77
    goldens = sorted(f for d in FOLDERS
                     for f in glob.glob(os.path.join(ROOT, "tests", "golden", d, "*.tn")))
    goldens += sorted(glob.glob(os.path.join(ROOT, "examples", "*.tn")))
    if os.environ.get("TN_PART"):
        part = int(os.environ["TN_PART"]) % 4
        print(f"part {part + 1} of 4")
        goldens = goldens[part::4]
    passed = failed = without = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for bad in pool.map(lambda g: check(lib, build, g), goldens):
            if bad is None:
                without += 1
            elif bad:
                failed += 1
                print("\n".join(bad))
            else:
                passed += 1
    print(f"nvrtc: {passed} passed, {failed} failed; {without} goldens are no programs of kernels")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
