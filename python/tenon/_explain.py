"""tenon.explain: what was made of a program, as text, and as a page in notebooks."""
import html

from ._tenon import Error, Program, _parse

LEVELS = ("program", "groups", "loops", "schedule", "kern", "plan", "c")


class Explained(str):
    """The text of one level. A notebook shows all levels, each of which unfolds."""

    of = None

    def _repr_html_(self):
        return "".join(
            f"<details><summary>{name}</summary><pre>{html.escape(text)}</pre></details>"
            for name, text in _levels(self.of))


def _levels(x):
    """(name, text) of each level of a program or a compiled function."""
    if not isinstance(x, Program):
        yield "function", x.text("function")
        try:
            x = _parse(x.text("program"), None)
        except Error as e:  # with conditions or loops there is no program of it
            yield "program", str(e)
            return
    for level in LEVELS:
        yield level, x.explain(level)


def explain(x, level=None):
    """What was made of a program or of a compiled function that has been called.

    Levels of a program: program, system, groups, loops, schedule, kern, plan, c. Of a
    compiled function: function, dot, program; the others show its program, which is
    forward and backward together. A notebook shows the result as a page with all levels.
    """
    if isinstance(x, Program):
        text = x.explain(level or "loops")
    elif level in (None, "function", "dot", "program"):
        text = x.text(level or "function")
    else:
        text = _parse(x.text("program"), None).explain(level)
    text = Explained(text)
    text.of = x
    return text
