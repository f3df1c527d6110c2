#!/usr/bin/env python3
"""small_net.py IN.onnx OUT.onnx N: a net with an N-th of its channels.

IN.onnx is a net as the ONNX project publishes it, light_NAME.onnx: weights are
ConstantOfShape nodes, whose shapes are initializers. Shapes of weights, vectors
and Reshapes get an N-th of the channels, convolutions of single channels as many
groups. Sizes of pictures and filters, the 3 channels of a picture and the 1000
classes stay.
"""
import struct
import sys

CLASSES = 1000
MODEL_GRAPH = 7
NODE, INITIALIZER, INPUT = 1, 5, 11  # of a graph
F32, I64 = 1, 7


def varint(b, i):
    n = shift = 0
    while True:
        c = b[i]
        i += 1
        n |= (c & 127) << shift
        shift += 7
        if c < 128:
            return n, i


def encoded(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def parse(b):
    """A message: [[number, type, value]]"""
    out, i = [], 0
    while i < len(b):
        key, i = varint(b, i)
        kind = key & 7
        if kind == 0:
            v, i = varint(b, i)
        else:
            if kind == 2:
                n, i = varint(b, i)
            else:
                n = {1: 8, 5: 4}[kind]
            v = b[i:i + n]
            i += n
        out.append([key >> 3, kind, v])
    return out


def text(m):
    out = bytearray()
    for number, kind, v in m:
        out += encoded(number << 3 | kind)
        if kind == 0:
            out += encoded(v)
        else:
            out += (encoded(len(v)) if kind == 2 else b'') + v
    return bytes(out)


def get(m, number):
    return [v for k, _, v in m if k == number]


class Shrink:
    def __init__(self, n):
        self.n = n

    def part(self, d):
        if d in (1, 3, CLASSES):
            return d
        if d % self.n != 0:
            raise SystemExit(f'small_net: {d} channels are no multiple of {self.n}')
        return d // self.n

    def weight(self, dims):
        """[C], [C, C], [C, C, filter, filter], [1, 1, C, C]"""
        return [self.part(d) if i < 2 or dims[:2] == [1, 1] else d
                for i, d in enumerate(dims)]

    def reshape(self, dims):
        """[1, N], [1, C, H, W], [1, groups, C / groups, H, W]"""
        at = 2 if len(dims) == 5 else 1
        return [self.part(d) if i == at else d for i, d in enumerate(dims)]

    def initializer(self, v, is_reshape):
        m = parse(v)
        dtype = get(m, 2)[0]
        raw = get(m, 9)[0]
        if dtype == I64:
            dims = list(struct.unpack(f'<{len(raw) // 8}q', raw))
            dims = self.reshape(dims) if is_reshape else self.weight(dims)
            raw = struct.pack(f'<{len(dims)}q', *dims)
        elif len(get(m, 1)) == 1:
            n = self.part(get(m, 1)[0])
            raw = raw[:4 * n]
            m = [[k, t, n if k == 1 else x] for k, t, x in m]
        return text([[k, t, raw if k == 9 else x] for k, t, x in m])

    def node(self, v):
        """Convolutions of single channels have as many groups as channels."""
        m = parse(v)
        for f in m:
            if f[0] != 5:
                continue
            a = parse(f[2])
            if get(a, 1)[0] == b'group' and get(a, 3)[0] > 4:
                f[2] = text([[k, t, x // self.n if k == 3 else x] for k, t, x in a])
        return text(m)

    def input(self, v):
        """A vector's: name, type { tensor { f32, shape { dim { n } } } }"""
        m = parse(v)
        for f in m:
            if f[0] == 2:
                t = parse(f[2])
                tensor = parse(t[0][2])
                shape = parse(get(tensor, 2)[0])
                if get(tensor, 1)[0] != F32 or len(shape) != 1:
                    return v
                n = get(parse(shape[0][2]), 1)[0]
                shape[0][2] = text([[1, 0, self.part(n)]])
                t[0][2] = text([[k, w, text(shape) if k == 2 else x]
                                for k, w, x in tensor])
                f[2] = text(t)
        return text(m)

    def graph(self, g):
        m = parse(g)
        reshapes = {get(parse(v), 1)[1] for v in get(m, NODE)
                    if get(parse(v), 4)[0] == b'Reshape'}
        for f in m:
            if f[0] == NODE:
                f[2] = self.node(f[2])
            elif f[0] == INITIALIZER:
                f[2] = self.initializer(f[2], get(parse(f[2]), 8)[0] in reshapes)
            elif f[0] == INPUT:
                f[2] = self.input(f[2])
        return text(m)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    shrink = Shrink(int(sys.argv[3]))
    with open(sys.argv[1], 'rb') as f:
        model = parse(f.read())
    for f in model:
        if f[0] == MODEL_GRAPH:
            f[2] = shrink.graph(f[2])
    with open(sys.argv[2], 'wb') as f:
        f.write(text(model))


main()
