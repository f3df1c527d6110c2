#!/usr/bin/env python3
"""pictures.py: the pictures of README.md, from what tenon prints.

    tenon train --json .. | tools/pictures.py loss >docs/loss.svg
    tenon explain examples/block.tn --level=groups --json |
        tools/pictures.py kernels >docs/kernels.svg

Both follow the colours of the page they stand in, light or dark.
"""
import json
import math
import sys

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #3d4653; }
.soft { fill: #5b6675; font-size: 12px; }
.grid { stroke: #d9d5cb; }
.box { fill: #ffffff; stroke: #1f6fb2; stroke-width: 1.5; }
.arrow { stroke: #5b6675; fill: none; stroke-width: 1.5; }
.head { fill: #5b6675; }
.train { stroke: #1f6fb2; fill: none; stroke-width: 1.5; }
.valid { stroke: #c2571a; fill: none; stroke-width: 2.5; }
.dot { fill: #c2571a; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7ec; } .soft { fill: #9aa5b3; } .grid { stroke: #333a44; }
  .box { fill: #1b2027; stroke: #6db3f2; } .arrow { stroke: #9aa5b3; }
  .head { fill: #9aa5b3; } .train { stroke: #6db3f2; }
  .valid { stroke: #f0965a; } .dot { fill: #f0965a; }
}
</style>"""


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


class Picture:
    def __init__(self, width, height, title):
        self.out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d '
                    '%d" width="%d" height="%d" role="img" aria-label="%s">' %
                    (width, height, width, height, escaped(title)), STYLE]

    def text(self, x, y, text, anchor="middle", cls=""):
        self.out.append('<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' %
                        (x, y, anchor, ' class="%s"' % cls if cls else "",
                         escaped(text)))

    def add(self, text, *values):
        self.out.append(text % values)

    def end(self):
        print("\n".join(self.out + ["</svg>"]))


def ticks(lo, hi, about):
    """Round numbers, 1, 2 or 5 times a power of ten apart."""
    step = 10 ** math.floor(math.log10((hi - lo) / about))
    for k in (1, 2, 5, 10):
        if (hi - lo) / (k * step) <= about:
            step *= k
            break
    at = math.ceil(lo / step) * step
    while at <= hi + 1e-9:
        yield at
        at += step


def loss(lines):
    train, valid = [], []
    for line in lines:
        said = json.loads(line)
        if said.get("event") != "step":
            continue
        train.append((said["step"], said["loss"]))
        if said["validation"] is not None:
            valid.append((said["step"], said["validation"]))
    width, height, left, right, top, bottom = 720, 310, 56, 130, 34, 44
    x1 = max(x for x, _ in train)
    y0 = math.floor(min(y for _, y in train + valid))
    y1 = math.ceil(max(y for _, y in train + valid))

    def at(point):
        return (left + point[0] / x1 * (width - left - right),
                height - bottom - (point[1] - y0) / (y1 - y0) *
                (height - top - bottom))

    p = Picture(width, height, "Training and validation loss by step")
    for y in ticks(y0, y1, 6):
        py = at((0, y))[1]
        p.add('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>',
              left, width - right, py, py)
        p.text(left - 8, py + 4, "%g" % y, "end", "soft")
    for x in ticks(0, x1, 8):
        p.text(at((x, 0))[0], height - bottom + 18, "%g" % x, cls="soft")
    p.text(left + (width - left - right) / 2, height - 8, "step", cls="soft")
    p.text(left - 40, top - 16, "loss, nats a token", "start", "soft")
    for cls, points in (("train", train), ("valid", valid)):
        p.add('<polyline class="%s" points="%s"/>', cls,
              " ".join("%.1f,%.1f" % at(q) for q in points))
    for q in valid:
        p.add('<circle class="dot" cx="%.1f" cy="%.1f" r="3.5"/>', *at(q))
    x, y = width - right + 16, top + 40
    for cls, name in (("train", "training"), ("valid", "validation")):
        p.add('<line class="%s" x1="%d" x2="%d" y1="%d" y2="%d"/>', cls, x,
              x + 24, y, y)
        p.text(x + 32, y + 4, name, "start")
        y += 24
    p.end()


def operations(kernel):
    """The operations of a kernel: those of one call have one prefix."""
    names = []
    for label in kernel["equations"]:
        name = label.split(".")[0]
        if not names or names[-1] != name or "." not in label:
            names.append(name)
    return names


def kernels(plan):
    todo = plan["kernels"]
    of = {t: k["id"] for k in todo for t in k["outputs"]}
    level, width, gap = {}, 250, 46
    p, y, at = None, 40, {}
    for k in todo:
        level[k["id"]] = 1 + max([level[of[t]] for t in k["inputs"]
                                  if t in of] or [-1])
    rows = [[k for k in todo if level[k["id"]] == n]
            for n in range(max(level.values()) + 1)]
    across = max(len(r) for r in rows) * (width + 30) + 130
    heights = [max(34 + 17 * len(operations(k)) for k in r) for r in rows]
    p = Picture(across, sum(heights) + gap * len(rows) + 60,
                "The kernels of a transformer block")
    p.add('<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" '
          'markerWidth="7" markerHeight="7" orient="auto"><path class="head" '
          'd="M0 0L8 4L0 8z"/></marker></defs>%s', "")
    middle = across / 2
    for row, high in zip(rows, heights):
        x = middle - (len(row) * (width + 30) - 30) / 2
        for k in row:
            at[k["id"]] = (x + width / 2, y, high)
            p.add('<rect class="box" x="%.1f" y="%.1f" width="%d" height="%d" '
                  'rx="8"/>', x, y, width, high)
            p.text(x + 12, y + 20, "kernel %d" % k["id"], "start", "soft")
            for i, name in enumerate(operations(k)):
                p.text(x + width / 2, y + 38 + 17 * i, name)
            x += width + 30
        y += high + gap
    for k in todo:
        to = at[k["id"]]
        drawn = {}  # by where it comes from: what is on one arrow
        for t in k["inputs"]:
            drawn.setdefault(of.get(t, t), []).append(t)
        for t in [names[0] for names in drawn.values()]:
            names = ", ".join(drawn[of.get(t, t)])
            near = True
            if t in of:
                a = at[of[t]]
                near = level[k["id"]] == level[of[t]] + 1
                start = (a[0] if near else a[0] + width / 2,
                         a[1] + (a[2] if near else a[2] * 2 / 3))
            elif t == todo[0]["inputs"][0]:
                near = level[k["id"]] == 0
                start = (middle, 40 - gap + 16)
            else:
                continue
            if near:
                p.add('<path class="arrow" marker-end="url(#a)" '
                      'd="M%.1f %.1fL%.1f %.1f"/>', *start, to[0], to[1] - 1)
                p.text((start[0] + to[0]) / 2 + 8, (start[1] + to[1]) / 2 + 4,
                       names, "start", "soft")
            else:
                # around what stands between them, on the right
                edge = to[0] + width / 2
                out = max(start[0], edge) + 10 + \
                    10 * (level[k["id"]] - level.get(of.get(t), -1))
                end = to[1] + to[2] / 3
                p.add('<path class="arrow" marker-end="url(#a)" '
                      'd="M%.1f %.1fH%.1fV%.1fH%.1f"/>', *start, out, end,
                      edge + 1)
                p.text(out + 6, (start[1] + end) / 2 + 4, names,
                       "start", "soft")
    last = todo[-1]
    a = at[last["id"]]
    p.add('<path class="arrow" marker-end="url(#a)" d="M%.1f %.1fL%.1f %.1f"/>',
          a[0], a[1] + a[2], a[0], a[1] + a[2] + 30)
    p.text(a[0] + 8, a[1] + a[2] + 22, last["outputs"][-1], "start", "soft")
    p.end()


def main():
    if sys.argv[1:] == ["loss"]:
        loss(sys.stdin)
    elif sys.argv[1:] == ["kernels"]:
        kernels(json.load(sys.stdin))
    else:
        sys.exit("usage: tools/pictures.py loss|kernels <INPUT >FILE.svg")


if __name__ == "__main__":
    main()
