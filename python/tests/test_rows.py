"""Every row of the table, called from Python: against NumPy on three shapes and in two
dtypes, where NumPy has it, and its gradients against central differences. Most is
interpreted; one shape in f32 is compiled."""
import json
import re

import numpy as np
import pytest

import tenon
from row_cases import ALONE, AS_THEY_ARE, CASES, COUNTED, EXTENTS, LISTS, SHAPES
from tenon import ops
from tenon._tenon import _adjoint

DTYPES = ("f32", "f64")
PROBES, STEP = 4, 1e-5
IN_NUMPY = [n for n in CASES if CASES[n][2]]
TOGETHER = 20
done = {"against NumPy": set(), "compiled": set(), "gradients": set(), "of keys": set()}
compared = {"values": 0, "slopes": 0}


def number(letter, shape):
    if letter.isdigit():
        return int(letter)
    n = EXTENTS[shape][letter.lower()]
    return 2 * n if letter.isupper() else n


def drawn(word, shape, dtype, seed):
    axes, _, what = word.partition(":")
    r = np.random.default_rng(seed)
    size = {"*": SHAPES[shape], "~": SHAPES[shape][-1:], ".": ()}.get(
        axes) if axes in "*~." else tuple(number(a, shape) for a in axes)
    if what == "bool":
        return r.integers(0, 2, size).astype(bool)
    if what == "i8":
        return r.integers(-100, 100, size).astype("int8")
    whole = "int" + dtype[1:]
    if what == "int":
        return np.asarray(r.integers(-3, 4, size), whole)
    if what == "key":
        return np.asarray(r.integers(1, 1000, size), "int64")
    if what.startswith("<"):
        return np.asarray(r.integers(0, number(what[1:], shape), size), whole)
    lo, hi = map(float, what.split(",")) if what else (-2.0, 2.0)
    x = r.uniform(lo, hi, size)
    return np.asarray(np.where(np.abs(x) < 0.05, 0.3, x), "float" + dtype[1:])


def case(name, shape, dtype):
    """Arrays, attributes."""
    words, attrs, _ = CASES[name]
    env = dict(EXTENTS[shape], dtype=dtype)
    attrs = {k: eval(v[1:], {}, env) if isinstance(v, str) and v[0] == "=" else v
             for k, v in attrs.items()}
    return [drawn(w, shape, dtype, 31 * i + shape) for i, w in enumerate(words.split())], attrs


def called(name, operands, attrs):
    """The results, as a list."""
    row = getattr(ops, name)
    r = row(operands, **attrs) if name in LISTS else row(*operands, **attrs)
    return list(r) if isinstance(r, (tuple, list)) else [r]


def is_float(x):
    return "float" in str(np.asarray(x).dtype)


def copied(arrays):
    return [a.copy() for a in arrays]


@pytest.fixture(scope="module", autouse=True)
def counts():
    yield
    print("\n" + ", ".join(f"{len(v)} rows {k}" for k, v in done.items())
          + f"; {compared['values']} results, {compared['slopes']} slopes")


@pytest.fixture
def interpreter():
    with tenon.Context(interp=True):
        yield


def wanted(name, arrays, attrs):
    """What NumPy says, as a list."""
    given = arrays if name in AS_THEY_ARE else [
        a.astype("float64") if is_float(a) else a for a in arrays]
    with np.errstate(all="ignore"):
        want = CASES[name][2](*([given] if name in LISTS else given), **attrs)
    return list(want) if isinstance(want, tuple) else [want]


def compare(name, shape, dtype, got, want):
    assert len(got) == len(want), name
    for g, w in zip(got, want):
        g, w = np.asarray(g), np.asarray(w)
        g = g[:len(w)] if name in COUNTED and g.ndim else g
        assert g.shape == w.shape, name
        rtol = 2e-5 if dtype == "f32" else 1e-11
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol,
                                   err_msg=f"{name}, shape {shape}, {dtype}")
        compared["values"] += 1


def test_every_row_has_a_case():
    assert sorted(CASES) == sorted(ops.__all__)
    assert len(ops.__all__) > 250
    for name in ops.__all__:
        row = getattr(ops, name)
        assert callable(row) and row.__doc__ and row.__text_signature__.startswith("(")
        assert (name in ALONE) != bool(CASES[name][2]) or with_slope(name, case(
            name, 0, "f64")[0]), f"nothing is compared of {name}"


@pytest.mark.parametrize("name", IN_NUMPY)
def test_numpy(name, interpreter):
    for dtype in DTYPES:
        for shape in range(3):
            arrays, attrs = case(name, shape, dtype)
            compare(name, shape, dtype, called(name, copied(arrays), attrs),
                    wanted(name, arrays, attrs))
    done["against NumPy"].add(name)


@pytest.mark.parametrize("first", range(0, len(IN_NUMPY), TOGETHER))
def test_compiled(first):
    """Some rows as one recorded program: its kernels are compiled together."""
    names = IN_NUMPY[first:first + TOGETHER]
    given = {n: case(n, 0, "f32") for n in names}
    got = {n: called(n, copied(arrays), attrs) for n, (arrays, attrs) in given.items()}
    for n, (arrays, attrs) in given.items():
        compare(n, 0, "f32", got[n], wanted(n, arrays, attrs))
        done["compiled"].add(n)


@pytest.mark.parametrize("name", sorted(ALONE))
def test_the_same_key_gives_the_same(name, interpreter):
    for dtype in DTYPES:
        for shape in range(3):
            arrays, attrs = case(name, shape, dtype)
            one, two = (called(name, copied(arrays), attrs) for _ in range(2))
            for x, y in zip(one, two):
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    done["of keys"].add(name)


def with_slope(name, arrays):
    """Numbers of the operands that the table says a gradient for."""
    floats = [i for i, a in enumerate(arrays) if is_float(a)]
    if name in LISTS or name in ("split", "unbind"):  # the table has no example of these
        return floats
    told = json.loads(_adjoint(name.rstrip("_")))["operands"]
    return [i for i in floats if "row" in told[i]]


def counted_results(name, n):
    """Results that are weighed: next versions are what counts only if there is no other
    (running statistics stand behind a stop)."""
    head = re.search(r"-> ([^{]*)\{", getattr(ops, name).__doc__).group(1)
    names = head.split(",")
    if n != len(names) or all("'" in m for m in names):
        return range(n)
    return [i for i, m in enumerate(names) if "'" not in m]


def weighed(name, results, weights):
    total = 0.0
    for i, w in weights.items():
        total += (np.where(w == 0, 0, np.asarray(results[i])) * w).sum()
    return total


ROUNDS = {"tf32"}  # the gradient is that of what is rounded


@pytest.mark.parametrize("name", [n for n in CASES if n not in ALONE])
def test_gradient(name, interpreter):
    arrays, attrs = case(name, 0, "f64")
    at = with_slope(name, arrays)
    results = [np.asarray(r) for r in called(name, copied(arrays), attrs)]
    r = np.random.default_rng(5)
    weights = {i: np.where(np.isfinite(results[i]), r.uniform(0.5, 2, results[i].shape), 0)
               for i in counted_results(name, len(results)) if is_float(results[i])}
    if not at or not weights:
        return
    leaves = [tenon.tensor(a).requires_grad_() if i in at else tenon.tensor(a)
              for i, a in enumerate(arrays)]
    # copies: some rows write to their operands
    out = called(name, [ops.copy(t) if i in at else t for i, t in enumerate(leaves)], attrs)
    total = None
    for i, w in weights.items():
        part = ops.where(tenon.tensor(w != 0), out[i], 0.0) * tenon.tensor(w)
        total = part.sum() if total is None else total + part.sum()
    grads = tenon.grad(total, [leaves[i] for i in at])
    for i, g in zip(at, grads):
        g = np.asarray(g)
        assert g.shape == arrays[i].shape
        if name in ROUNDS:  # differences are those of steps
            np.testing.assert_array_equal(g, weights[0])
            continue
        places = r.permutation(arrays[i].size)[:PROBES]
        for k in places:
            side = []
            for step in (STEP, -STEP):
                moved = copied(arrays)
                moved[i].flat[k] += step
                side.append(weighed(name, called(name, moved, attrs), weights))
            want = (side[0] - side[1]) / (2 * STEP)
            np.testing.assert_allclose(g.flat[k], want, rtol=1e-4, atol=1e-6,
                                       err_msg=f"operand {i}, element {k}")
            compared["slopes"] += 1
    done["gradients"].add(name)
