"""tenon.compile, and conditions and loops whose bodies are functions of Python."""
import functools
import sys

from ._tenon import (Tensor, _cond, _eval, _Function, _grad, _in, _scan, _while,
                     current_context)
from ._tree import flatten, unflatten


class _Body:
    """A function of flat tensors, made of one of nested values."""

    def __init__(self, f, structure):
        self.f, self.structure, self.result = f, structure, None

    def __call__(self, *tensors):
        args, kwargs = unflatten(self.structure, iter(tensors))
        leaves = []
        self.result = flatten(self.f(*args, **kwargs), leaves)
        return tuple(leaves)


class Compiled:
    """A function that is recorded once for each kind of arguments, then one call."""

    def __init__(self, f, donate=()):
        functools.update_wrapper(self, f)
        self._f = f
        self._donate = (donate,) if isinstance(donate, int) else tuple(donate)
        self._kinds = {}
        self._last = None

    def _flags(self, args):
        """Which of the flat tensors are in arguments that are given away."""
        flags = []
        for i, a in enumerate(args):
            leaves = []
            flatten(a, leaves)
            flags += [i in self._donate] * len(leaves)
        return flags

    def __call__(self, *args, **kwargs):
        tensors = []
        structure = flatten((args, kwargs), tensors)
        key = (id(current_context()), structure)
        kind = self._kinds.get(key)
        if kind is None:
            body = _Body(self._f, structure)
            kind = self._kinds[key] = [
                body, _Function(body, len(tensors), 1, self.__name__)]
        self._last = kind
        flags = None
        if self._donate:
            flags = self._flags(args)
            flags += [False] * (len(tensors) - len(flags))
        out = kind[1].call(tensors, flags)
        if isinstance(out, int):  # it has so many results: once more
            kind[1] = _Function(kind[0], len(tensors), out, self.__name__)
            out = kind[1].call(tensors, flags)
        return unflatten(kind[0].result, iter(out))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        """By its name, if it is found there, as functions are; else by its function's."""
        found = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (Compiled, (self._f, self._donate))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    @property
    def n_recorded(self):
        """How often the function was recorded, over all kinds of arguments."""
        return sum(f.n_recorded for _, f in self._kinds.values())

    def text(self, level="function"):
        """What the last call has become: "function" (slots, forward, backward),
        "dot" (a picture of it) or "program" (forward and backward as one program
        in the .tn language)."""
        if self._last is None:
            raise ValueError("it has not been called yet")
        return self._last[1].text(level)


def compile(f=None, *, donate=()):
    """Records a function once for each kind of arguments; it is one call from then on.

    f may take and return tensors, and lists, tuples and dictionaries of them. All
    other arguments are constants: other ones make another recording. f may write to
    tensors, take gradients and update parameters, but not look at elements. donate:
    numbers of arguments that are given away: they are dead after the call, and it may
    use their memory.

        @tenon.compile
        def step(x, y):
            loss = model(x, y)
            loss.backward()
            optimizer.step()
            return loss
    """
    if f is None:
        return lambda g: Compiled(g, donate)
    return Compiled(f, donate)


def _again(call, *n):
    """call(n): the number of results is not known before the body has run."""
    out = call(*n)
    while isinstance(out, int):
        out = call(out)
    return out


def cond(test, then, otherwise, *args):
    """then(*args) if test, a tensor with one truth value, is true, else otherwise(*args).

    It is decided when the result is computed; both return the same shapes and dtypes.
    """
    tensors = []
    structure = flatten((args, {}), tensors)
    a, b = _Body(then, structure), _Body(otherwise, structure)
    out = _again(lambda n: _cond(test, a, b, tensors, n), 1)
    return unflatten(a.result, iter(out))


def while_loop(test, body, *carried, rounds=0):
    """While test(*carried) is true, carried = body(*carried); returns the last ones.

    rounds: most rounds, which a gradient needs; 0: as many as it takes.
    """
    def bodies(*tensors):
        out = body(*tensors)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    out = _while(lambda *t: (test(*t),), bodies, list(carried), rounds)
    if isinstance(out, int):
        raise ValueError(
            f"the body returns {out} tensors and carries {len(carried)}, or the "
            "test returns more than one")
    return out if len(out) != 1 else out[0]


def scan(body, carried, rows):
    """A round for each row: carried, y = body(carried, row).

    carried: a tensor, or nested ones. rows: the same, whose axis 0 is the round.
    Returns the carried values in the end, and y of all rounds along a new axis 0
    (None, if body returns None for it). It has a gradient.
    """
    first, each = [], []
    head, tail = flatten(carried, first), flatten(rows, each)
    if not each:
        raise ValueError("scan needs rows: their axis 0 is the number of rounds")
    structure = ((tuple, (head, tail)), (dict, ()))
    shape = {}

    def whole(c, r):
        c, y = body(c, r)
        state, out = [], []
        after = flatten(c, state)
        if after != head:
            raise ValueError("what is carried has another structure after a round")
        shape["y"] = flatten(y, out)
        return state + out

    b = _Body(whole, (tuple, structure))
    n = len(first)
    out = _again(
        lambda k: _scan(b, first + each, each[0].shape[0], n, k - n), n)
    return (unflatten(head, iter(out[:n])),
            unflatten(shape["y"], iter(out[n:])))


def grad(outputs, inputs, seeds=None):
    """Gradients of outputs (a number, or seeds for each) with respect to inputs.

    They are tensors with gradients of their own; zeros where nothing leads.
    """
    one = isinstance(inputs, Tensor)
    outs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    ins = [inputs] if one else list(inputs)
    if isinstance(seeds, Tensor):
        seeds = [seeds]
    out = _grad(outs, None if seeds is None else list(seeds), ins)
    return out[0] if one else out


class _Part:
    def __init__(self, name):
        self._name, self._open = name, []

    def __enter__(self):
        c = current_context()
        _in(c, self._name)
        self._open.append(c)
        return self

    def __exit__(self, kind, *error):
        fails = kind is not None and self._name == "step"
        _in(self._open.pop(), self._name + (" fails" if fails else " end"))

    def __call__(self, f):
        @functools.wraps(f)
        def inside(*args, **kwargs):
            with _Part(self._name):
                return f(*args, **kwargs)
        return inside


def no_grad():
    """`with no_grad():`, or a decorator: calls inside have no gradient."""
    return _Part("no_grad")


def step():
    """`with step():` writes inside belong together: if one of them fails when it is
    computed, or an exception leaves the block, all are undone."""
    return _Part("step")


def eval(*tensors):
    """Computes all of these tensors (nested ones, too) in one go."""
    leaves = []
    flatten(tensors, leaves)
    _eval(leaves)
