"""A flame graph of the difference between two sides: red took longer, blue shorter.

It grows downwards from the call. A function is as wide as it and its callees take on the contender;
its colour is that of the difference of its own time (Gregg, Differential flame graphs, 2014).
Widths are shares of the page, so that labels are as large on a phone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from fwbench.records.facts import SEPARATOR
from fwbench.records.units import signed, time
from fwbench.report import escaping
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import Chart

_WIDTH, _ROW, _GAP = 880, 18, 1

#: Narrower functions have no label, or are not drawn; shares of the width.
_LABELLED, _DRAWN = 0.02, 0.001

#: Rows that are drawn.
_ROWS = 40

_SAME = "var(--faint)"

#: Opacity of what is the same, of a barely visible difference, and of the largest one: the page's
#: text has enough contrast on all of them.
_PALE, _FAINT, _FULL = 0.22, 0.28, 0.6

#: Functions that the description names.
_NAMED = 5


@dataclass
class _Node:
    """A function in a place of the tree, with seconds of a call on both sides.

    Attributes:
        own_s: on the base, and on the contender; base and contender are one where there is one run.
    """

    name: str
    own_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    inclusive_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    callees: dict[str, "_Node"] = field(default_factory=dict)

    @property
    def difference_s(self) -> float:
        before_s, after_s = self.own_s
        return after_s - before_s

    def walk(self) -> Iterator["_Node"]:
        yield self
        for callee in self.callees.values():
            yield from callee.walk()


#: A side: own samples by stack, and seconds of a call.
Side = tuple[Mapping[str, float], float]


def draw(title: str, base: Side, contender: Side, allowed_s: Mapping[str, float]) -> Chart:
    """The picture of two sides; with one side given twice, of a run alone.

    Args:
        allowed_s: by function, the difference that has no colour: samples cannot tell it.
    """
    root = _tree((base, contender))
    real = [n for n in root.walk() if abs(n.difference_s) > allowed_s.get(n.name, 0.0)]
    largest_s = max((abs(node.difference_s) for node in real), default=0.0)
    coloured = {id(node): node.difference_s / largest_s for node in real}
    rows = [*_rows(root, 0.0, 0, coloured)]
    height = _ROW * (1 + max(depth for depth, _ in rows))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'style="height:{height}px" font-family="system-ui, sans-serif" font-size="12">'
        f"{''.join(drawn for _, drawn in rows)}</svg>"
    )
    if base is contender:
        largest = sorted(root.walk(), key=lambda node: -node.own_s[1])[:_NAMED]
        words = [f"{node.name} {time(node.own_s[1])}" for node in largest]
    else:
        largest = sorted(real, key=lambda node: -abs(node.difference_s))[:_NAMED]
        words = [f"{node.name} {signed(node.difference_s)}" for node in largest]
    text = "; ".join(words) or "no difference that samples can tell"
    return Chart(title, f"{title}: {text}", escaping.terminal(svg), size=(_WIDTH, height))


def _tree(sides: Sequence[Side]) -> _Node:
    """Both sides' stacks as one tree."""
    root = _Node("")
    for side, (stacks, call_s) in enumerate(sides):
        sample_s = call_s / sum(stacks.values())
        for stack, samples in stacks.items():
            node = root
            for name in stack.split(SEPARATOR):
                node = node.callees.setdefault(name, _Node(name))
                node.inclusive_s[side] += samples * sample_s
            node.own_s[side] += samples * sample_s
    (call,) = root.callees.values()  # where all stacks begin
    return call


def _rows(
    node: _Node, left: float, depth: int, coloured: Mapping[int, float], whole_s: float = 0.0
) -> Iterator[tuple[int, str]]:
    """A function and its callees, the widest first, each with the number of its row."""
    whole_s = whole_s or node.inclusive_s[1]
    width = node.inclusive_s[1] / whole_s
    if width < _DRAWN or depth >= _ROWS:
        return
    yield depth, _box(node, left, width, depth, coloured.get(id(node), 0.0))
    for callee in sorted(node.callees.values(), key=lambda n: (-n.inclusive_s[1], n.name)):
        yield from _rows(callee, left, depth + 1, coloured, whole_s)
        left += callee.inclusive_s[1] / whole_s


def _box(node: _Node, left: float, width: float, depth: int, change: float) -> str:
    """A function as a rectangle with its name, and all its figures for a pointer.

    Args:
        change: of its own time, as a share of the largest change; 0 for none.
    """
    colour = palette.LONGER if change > 0 else palette.SHORTER if change < 0 else _SAME
    opacity = _FAINT + (_FULL - _FAINT) * abs(change) if change else _PALE
    across, high = f"{100 * width:.3f}%", _ROW - _GAP
    place = f'x="{100 * left:.3f}%" y="{_ROW * depth}" width="{across}" height="{high}"'
    label = ""
    if width >= _LABELLED:
        # A picture of its own cuts the name off; as a style, since pages have one size for all.
        name = escape(node.name.rpartition(":")[2])
        label = (
            f'<svg {place} style="width:{across};height:{high}px" overflow="hidden">'
            f'<text x="3" y="13" fill="var(--ink)">{name}</text></svg>'
        )
    return (
        f"<g><title>{escape(_figures(node))}</title>"
        f'<rect {place} fill="{colour}" fill-opacity="{opacity:.2f}" stroke="var(--paper)" '
        f'stroke-width=".5"/>{label}</g>'
    )


def _figures(node: _Node) -> str:
    own, inclusive = (
        time(before_s) if before_s == after_s else f"{time(before_s)} -> {time(after_s)}"
        for before_s, after_s in (node.own_s, node.inclusive_s)
    )
    change = f" ({signed(node.difference_s)})" if node.difference_s else ""
    return f"{node.name}: own {own}{change}, with its callees {inclusive}"
