"""Layers: objects with parameters, called with tensors.

A module is any object whose attributes are parameters, other modules, or lists and
dictionaries of them. `parameters()` finds them in the order in which they were set.
"""
import math

from . import ops
from ._tenon import Tensor, load_safetensors, parameter, random_key, save_safetensors

__all__ = ["Module", "Linear", "Embedding", "LayerNorm", "RMSNorm", "Conv2d",
           "Dropout", "Sequential"]


def _walk(x, path, seen):
    if isinstance(x, Tensor):
        if id(x) not in seen:
            seen.add(id(x))
            yield path, x
    elif isinstance(x, Module):
        for name, value in vars(x).items():
            yield from _walk(value, f"{path}.{name}" if path else name, seen)
    elif isinstance(x, (list, tuple)):
        for i, value in enumerate(x):
            yield from _walk(value, f"{path}.{i}" if path else str(i), seen)
    elif isinstance(x, dict):
        for name, value in x.items():
            yield from _walk(value, f"{path}.{name}" if path else str(name), seen)


class Module:
    """Something with parameters; subclasses define forward."""

    training = True

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def named_parameters(self):
        """A dictionary of parameters by name, such as "layers.0.weight"."""
        return dict(_walk(self, "", set()))

    def parameters(self):
        """A list of all parameters."""
        return list(self.named_parameters().values())

    def train(self, training=True):
        """Layers that train in another way than they infer do so from now on."""
        def visit(x):
            if isinstance(x, Module):
                x.training = training
                x = list(vars(x).values())
            if isinstance(x, dict):
                x = list(x.values())
            if isinstance(x, (list, tuple)):
                for e in x:
                    visit(e)
        visit(self)
        return self

    def eval(self):
        """The opposite of train()."""
        return self.train(False)

    def save(self, path):
        """Writes the parameters to a .safetensors file."""
        save_safetensors(path, self.named_parameters())

    def load(self, path, strict=True):
        """Reads the parameters from a .safetensors file, all or none."""
        load_safetensors(path, self.named_parameters(), strict)


def _uniform(shape, bound, dtype):
    return parameter(ops.uniform(random_key(), shape=list(shape), lo=-bound,
                                 hi=bound, dtype=dtype))


class Linear(Module):
    """x @ weight.T + bias; weight is [n_out, n_in]."""

    def __init__(self, n_in, n_out, bias=True, dtype="f32"):
        bound = 1 / math.sqrt(n_in)
        self.weight = _uniform((n_out, n_in), bound, dtype)
        self.bias = _uniform((n_out,), bound, dtype) if bias else None

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """Rows of a table by their numbers."""

    def __init__(self, n, width, dtype="f32"):
        self.weight = parameter(ops.normal(random_key(), shape=[n, width], dtype=dtype))

    def forward(self, ids):
        return ops.embedding(ids, self.weight)


class LayerNorm(Module):
    """The last axis brought to mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, width, eps=1e-5, dtype="f32"):
        self.weight = parameter(ops.fill(shape=[width], value=1.0, dtype=dtype))
        self.bias = parameter(ops.fill(shape=[width], value=0.0, dtype=dtype))
        self.eps = eps

    def forward(self, x):
        return ops.layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """The last axis divided by the root of its mean square, then scaled."""

    def __init__(self, width, eps=1e-5, dtype="f32"):
        self.weight = parameter(ops.fill(shape=[width], value=1.0, dtype=dtype))
        self.eps = eps

    def forward(self, x):
        return ops.rms_norm(x, self.weight, eps=self.eps)


class Conv2d(Module):
    """Convolution of [n, channels, h, w]; weight is [n_out, n_in / groups, k, k]."""

    def __init__(self, n_in, n_out, kernel, stride=1, padding=0, groups=1, bias=True,
                 dtype="f32"):
        bound = 1 / math.sqrt(n_in // groups * kernel * kernel)
        self.weight = _uniform((n_out, n_in // groups, kernel, kernel), bound, dtype)
        self.bias = _uniform((n_out, 1, 1), bound, dtype) if bias else None
        self.stride, self.padding, self.groups = stride, padding, groups

    def forward(self, x):
        pads = [self.padding, self.padding]
        y = ops.conv(x, self.weight, stride=[self.stride, self.stride], lo=pads,
                     hi=pads, groups=self.groups)
        return y if self.bias is None else y + self.bias


class Dropout(Module):
    """Elements are 0 with probability p while training, the others scaled by 1/(1-p)."""

    def __init__(self, p=0.5):
        self.p = p

    def forward(self, x):
        return ops.dropout(x, random_key(), p=self.p) if self.training else x


class Sequential(Module):
    """Modules or functions, one after the other."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
