"""Versions of a package that take as long as a test says."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fwbench.gate.lineup import LineupLaunch
from fwbench.gate.since import AT_ONCE, RowOfVersions, Search
from fwbench.gate.verdicts import Rules

_RULES = Rules(margin=0.01, level=0.02)


class Versions:
    """Launches of versions whose cases take as long as a function of their place says.

    Attributes:
        launched: the places and cases of each launch.
        brought: by each launch.
        failing: the last words of versions whose sessions break down, by place.
        missing: cases that versions do not have, by place.
        fitting: versions that memory has room for at once; of more one dies.
        dying: places of versions whose sessions always die, and not for lack of memory.
        flaking: the same of those that die in the first launch alone.
        interrupted_after: so many launches.
    """

    def __init__(
        self, cases: Mapping[str, Callable[[int], float]], deviation: float = 0.01
    ) -> None:
        self.launched: list[tuple[list[int], Sequence[str] | None]] = []
        self.brought: list[LineupLaunch] = []
        self.failing: dict[int, str] = {}
        self.missing: dict[int, str] = {}
        self.fitting = AT_ONCE
        self.dying: set[int] = set()
        self.flaking: set[int] = set()
        self.interrupted_after: int | None = None
        self.now_s = 0.0
        self._cases = cases
        self._deviation = deviation

    def launch(self, places: Sequence[int], cases: Sequence[str] | None, seed: int) -> LineupLaunch:
        """Draw a visit of each, and note the launch."""
        if self.interrupted_after == len(self.launched):
            raise KeyboardInterrupt
        self.launched.append(([*places], cases))
        self.now_s += len(places)
        self.brought.append(self._drawn(places, cases, seed))
        return self.brought[-1]

    def _drawn(self, places: Sequence[int], cases: Sequence[str] | None, seed: int) -> LineupLaunch:
        draw, brought = np.random.default_rng(seed), LineupLaunch(sessions=len(places))
        others = {*self._cases} - {*(self._cases if cases is None else cases)}
        for case in others:
            brought.missing[case] = dict.fromkeys(places, "deselected")
        if len(places) > self.fitting:
            brought.lost[places[-1]], brought.died = "Killed", {places[-1]}
            brought.lacked_memory = True
        flaking = self.flaking if len(self.launched) == 1 else set()
        for place in (self.dying | flaking) & {*places}:
            brought.lost[place] = "Killed"
            brought.died.add(place)
        for place in places:
            if place in brought.lost:
                continue
            if place in self.failing:
                brought.lost[place] = self.failing[place]
                continue
            for case in self._cases if cases is None else cases:
                if self.missing.get(place) == case:
                    brought.missing[case][place] = "failed"
                else:
                    log = math.log(self._cases[case](place))
                    brought.logs[case][place] = np.array([log + draw.normal(0, self._deviation)])
        return brought


def measured(
    versions: Versions,
    number: int,
    prepare: Callable[[int], object] = lambda _: None,
    budget_s: float = 1e9,
    earlier: Sequence[LineupLaunch] = (),
) -> RowOfVersions:
    """A row of so many versions, measured; launches of earlier calls belong to it, if there are."""
    row = RowOfVersions(
        Search(number, _RULES), versions, prepare, budget_s, lambda _: None, lambda: versions.now_s
    )
    row.resume(earlier)
    row.measure(seed=1)
    return row
