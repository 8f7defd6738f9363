"""Colours: one for each framework, apart for everyone, seen on white and on black."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from fwbench.report import writers
from fwbench.report.drawing import palette
from support.tables import tabled

#: sRGB to XYZ over the white of D65, row by row.
_XYZ = ((0.43395, 0.37622, 0.18983), (0.21267, 0.71516, 0.07218), (0.01776, 0.10946, 0.87278))


def _linear(colour: str) -> list[float]:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]


def _times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _lab(colour: str, seen: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """CIELAB of a colour as it is seen."""
    visible = [min(max(share, 0.0), 1.0) for share in _times(seen, _linear(colour))]
    x, y, z = (
        t ** (1 / 3) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29
        for t in _times(_XYZ, visible)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@tabled
def test_frameworks_are_told_apart(seen: Sequence[Sequence[float]]) -> None:
    """By at least 20 in CIELAB, of which 2 is just noticeable, with each kind of cone missing."""
    for first, other in itertools.combinations(palette.COLOURS.values(), 2):
        apart = sum((a - b) ** 2 for a, b in zip(_lab(first, seen), _lab(other, seen), strict=True))
        assert apart**0.5 >= 20, (first, other)


#: The colours of the page by their names, light and dark.
_SCHEMES = [
    dict(re.findall(r"--(\w+): (#\w{6})", line))
    for line in (Path(writers.__file__).parent / "templates" / "report.css").open(encoding="utf-8")
    if "--paper:" in line
]


def _contrast(*colours: str) -> float:
    low, high = sorted(_times(_XYZ[1:2], _linear(colour))[0] for colour in colours)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", _SCHEMES, ids=["light", "dark"])
def test_colours_are_seen(scheme: dict[str, str]) -> None:
    """Lines have a contrast of 3 to 1 (WCAG 2.2, 1.4.11), and text of 4.5 to 1 (1.4.3)."""
    for colour in (*palette.COLOURS.values(), *palette.SPARE):
        assert _contrast(colour, scheme["paper"]) >= 3.0
    for ink in ("ink", "link", "warn"):
        for paper in ("paper", "shade"):
            assert _contrast(scheme[ink], scheme[paper]) >= 4.5


def test_a_framework_has_its_colour_among_whichever_others() -> None:
    several = palette.colours(["numpy", "torch", "numpy@2.3", "mine"])
    assert several["torch"] == palette.colours(["torch"])["torch"]
    assert [several["mine"], several["numpy@2.3"]] == [*palette.SPARE[:2]]
    assert len({*several.values()}) == 4


def test_what_is_no_framework_has_no_framework_s_colour() -> None:
    looks = palette.neutral(map(str, range(20)))
    assert {look.colour for look in looks.values()}.isdisjoint(palette.COLOURS.values())


def test_executions_have_dashes_and_runs_have_tones() -> None:
    """No two lines look alike: by colour, by dash, or by tone."""
    contestants = {
        "torch eager": ("torch", "eager"),
        "torch compile": ("torch", "compile"),
        "tensorflow graph": ("tensorflow", "graph"),
        "tensorflow xla": ("tensorflow", "xla"),
        "torch eager (second)": ("torch", "eager"),
        "mine odd": ("mine", "odd"),
    }
    looks = palette.looks(contestants, palette.colours(name for name, _ in contestants.values()))
    assert len({(look.colour, look.dash, look.opacity) for look in looks.values()}) == 6
    eager, second = looks["torch eager"], looks["torch eager (second)"]
    assert (eager.dash, eager.filled, eager.opacity) == ("", True, 1.0)
    assert (second.colour, second.opacity < 1.0) == (eager.colour, True)
    assert eager.lighter.colour == eager.colour
    assert eager.lighter.opacity < second.opacity
