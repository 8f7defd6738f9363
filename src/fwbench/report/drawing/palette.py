"""Looks of contestants: a colour for each framework, a dash for each execution.

The only tables of colours and dashes are in ``palette.toml``: lines, bars, legends and the page
take them from here.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from fwbench.packaged import read_table
from fwbench.records.measurement import Measurement

_TABLES = read_table(__package__, "palette.toml")

#: Of frameworks.
COLOURS: Mapping[str, str] = _TABLES["colours"]

#: Of other frameworks, of other versions, and of series that are not a framework's.
SPARE: Sequence[str] = _TABLES["others"]["spare"]

#: Of what takes longer than before, and of what takes less.
LONGER, SHORTER = _TABLES["changes"]["longer"], _TABLES["changes"]["shorter"]

#: Of verdicts, by their words.
VERDICTS: Mapping[str, str] = _TABLES["verdicts"]

#: Of executions that the table does not know.
_OTHER_DASH = "5 2 1 2"

#: How much of its colour the lighter tone of a series keeps.
_LIGHT = 0.45

#: Opacity of the parts that every contestant has a bar of.
_STEPS = (1.0, 0.6, 0.35)

#: How much paler each further line of the same contestant is, and the palest.
_PALER, _PALEST = 0.3, 0.4


@dataclass(frozen=True)
class Look:
    """Look of a series."""

    #: As ``#rrggbb``.
    colour: str
    #: Of its line, as in SVG; empty for a solid line.
    dash: str = ""
    #: 0 to 1.
    opacity: float = 1.0
    filled: bool = True
    #: Whether it has any; a line without them is thin, as nothing on it was measured.
    has_dots: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def paint(self) -> str:
        """Its colour as a style of SVG."""
        faded = f";opacity:{self.opacity:g}" if self.opacity < 1 else ""
        return f"fill:{self.colour};stroke:{self.colour}{faded}"

    @property
    def line(self) -> str:
        """Style of its line in SVG."""
        dash = f"stroke-dasharray:{self.dash}" if self.dash else ""
        return ";".join(filter(None, [dash, "" if self.has_dots else "stroke-width:1.5"]))

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of an element of this look, for the page's filters."""
        return {f"data-{name}": value for name, value in self.keys.items()}

    @property
    def lighter(self) -> Self:
        """The same in a lighter tone."""
        return replace(self, opacity=self.opacity * _LIGHT)


def colours(frameworks: Iterable[str]) -> dict[str, str]:
    """A colour for each framework; of those that are not in the table, by their sorted names."""
    names = sorted({*frameworks})
    spare = itertools.cycle(SPARE)
    return {name: COLOURS.get(name) or next(spare) for name in names}


def looks(
    contestants: Mapping[str, tuple[str, str]], colours: Mapping[str, str]
) -> dict[str, Look]:
    """Looks of contestants, by the names of their lines.

    Args:
        contestants: framework and execution, by the name of the line; where several lines have the
            same, as of several runs, the later ones are paler.
    """
    dressed: dict[str, Look] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for name, contestant in contestants.items():
        framework, execution = contestant
        dash = _TABLES["dashes"].get(execution, _OTHER_DASH)
        keys = {"framework": framework, "execution": execution, "line": name}
        opacity = max(_PALEST, 1 - _PALER * seen[contestant])
        dressed[name] = Look(colours[framework], dash, opacity, filled=not dash, keys=keys)
        seen[contestant] += 1
    return dressed


def looks_of(
    lines: Iterable[tuple[str, Measurement]], colours: Mapping[str, str]
) -> dict[str, Look]:
    """Looks of records, by the names of their lines."""
    contestants = {name: (record.facts.framework, record.facts.execution) for name, record in lines}
    return looks(contestants, colours)


def neutral(names: Iterable[str]) -> dict[str, Look]:
    """Looks of series that are not contestants, in their order: in no framework's colour."""
    return {name: Look(colour) for name, colour in zip(names, itertools.cycle(SPARE))}


def steps(names: Iterable[str]) -> dict[str, Look]:
    """Looks of at most three parts, each paler than the one before: grey stands for all colours."""
    return {
        name: Look("var(--faint)", opacity=opacity)
        for name, opacity in zip(names, _STEPS, strict=False)
    }


def parts(names: Iterable[str]) -> dict[str, Look]:
    """Looks of the parts of bars, in their order: a colour each, the frameworks' for later ones."""
    colours = (*SPARE, *COLOURS.values())
    return {name: Look(colour) for name, colour in zip(names, itertools.cycle(colours))}
