"""A row of versions in words: as lines, as Markdown and as figures."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.errors import some
from fwbench.gate.since import Change, RowOfVersions, VersionRow
from fwbench.gate.verdicts import Verdict
from fwbench.records.units import count, duration, time
from fwbench.report import escaping

#: Cases and gaps that are named, at most.
_NAMED = 5

#: A change is taken back if what is left of it is less than this part.
_MUCH = 4

_WORDS = {Verdict.REGRESSED: "slower", Verdict.IMPROVED: "faster"}


@dataclass(frozen=True)
class MeasuredRow:
    """A row that was measured, and its words.

    Attributes:
        asked: what was asked for: ``numpy>=1.26``.
        versions: their names, by place.
        gaps: why other versions are not among them.
    """

    asked: str
    versions: Sequence[str]
    gaps: Mapping[str, str]
    measured: RowOfVersions
    interrupted: bool = False

    def _sorted(self) -> tuple[dict[str, list[Change]], list[str], dict[str, str]]:
        """Cases with their changes, cases without one, and why others were not told."""
        search = self.measured.search
        changed, flat, untold = {}, [], {}
        for case, row in search.rows.items():
            if changes := search.changes(row):
                changed[case] = changes
            if not row.steps:
                untold[case] = "; ".join(dict.fromkeys(row.missing.values()))
            elif steps := search.untold(row):
                untold[case] = ", ".join(map(self._step, steps))
            elif not changes:
                flat.append(case)
        return changed, flat, untold

    def _step(self, step: tuple[int, int]) -> str:
        return f"{self.versions[step[0]]} to {self.versions[step[1]]}"

    def table(self) -> list[str]:
        """The lines for a terminal: cases that have changed, then the others, then what is left."""
        changed, _, _ = self._sorted()
        lines = ["interrupted: what follows is what was known by then"] * self.interrupted
        for case, changes in changed.items():
            lines += [f"{case}: {self._sentence(changes)}"]
            rows = [*self._rows(self.measured.search.rows[case], changes)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for version, took, change, bounds in rows:
                cells = version.ljust(widths[0]), took.rjust(widths[1]), change.rjust(widths[2])
                lines.append("  " + "  ".join([*cells, bounds]).rstrip())
        return [*map(escaping.terminal, [*lines, *self._notes()])]

    def markdown(self) -> str:
        """The same as Markdown, for an issue or a pull request."""
        changed, _, _ = self._sorted()
        lines = [f"### fwbench since: {escaping.markdown(self.asked)}", ""]
        for case, changes in changed.items():
            head = ["version", "time", "change", "bounds, launches"]
            rows = self._rows(self.measured.search.rows[case], changes)
            sentence = escaping.markdown(f"{case}: {self._sentence(changes)}")
            lines += [f"**{sentence}**", ""]
            lines += [escaping.markdown_row(cells) for cells in (head, ["---"] * 4, *rows)]
            lines.append("")
        return (
            "\n".join([*lines, *(f"- {escaping.markdown(line)}" for line in self._notes())]) + "\n"
        )

    def _sentence(self, changes: Sequence[Change]) -> str:
        """Since when it is slower or faster, and whether that was taken back."""
        words: list[str] = []
        level = 0.0
        for change in changes:
            before, level = level, level + math.log(change.ratio)
            word = f"{_WORDS[change.verdict]} since"
            if before and abs(level) < abs(before) / _MUCH:
                is_better = change.verdict is Verdict.IMPROVED
                word = "fixed in" if is_better else f"{_WORDS[change.verdict]} again since"
            words.append(f"{word} {self._since(change)} ({change.ratio - 1:+.1%})")
        return ", ".join(words)

    def _since(self, change: Change) -> str:
        """The version that brought it; of a step that could not be narrowed down, where it was."""
        first, last = change.step
        within = [
            place for place in range(first + 1, last) if place not in self.measured.search.lost
        ]
        version = self.versions[last]
        return f"{version} or a version after {self.versions[first]}" if within else version

    def _rows(self, row: VersionRow, changes: Sequence[Change]) -> Iterator[tuple[str, ...]]:
        """Each version that was measured: its time, and what changed at it."""
        by_place = {change.step[1]: change for change in changes}
        for place, took_s in self._times_s(row).items():
            change, bounds = by_place.get(place), ""
            if change is not None:
                bounds = f"{change.low - 1:+.1%} to {change.high - 1:+.1%}"
                bounds += f", {count(change.launches, 'launch', 'launches')}"
            shown = "" if change is None else f"{change.ratio - 1:+.1%}"
            yield self.versions[place], time(took_s), shown, bounds

    def _times_s(self, row: VersionRow) -> dict[int, float]:
        """Seconds by place: the first one's, and after it by the ratios of the steps."""
        if not row.places:
            return {}
        times_s = {row.places[0]: statistics.median(row.times_s[row.places[0]])}
        for before, place in row.steps:
            looks = row.looks[before, place]
            ratio = math.exp(statistics.median(looks)) if looks else math.nan
            times_s[place] = times_s[before] * ratio
        return times_s

    def _notes(self) -> list[str]:
        search, measured = self.measured.search, self.measured
        _, flat, untold = self._sorted()
        notes = []
        if flat:
            largest = max(search.largest(search.rows[case]) for case in flat) - 1
            names = some(flat, _NAMED)
            notes.append(
                f"{count(len(flat), 'case')} without a change above {largest:.1%}: {names}"
            )
        notes += [f"{case}: cannot tell: {why}" for case, why in untold.items()]
        by_reason: dict[str, list[str]] = {}
        for version, why in (
            *self.gaps.items(),
            *((self.versions[place], why) for place, why in search.lost.items()),
        ):
            by_reason.setdefault(why, []).append(version)
        notes += [
            f"not measured: {some(versions, _NAMED)}: {why}" for why, versions in by_reason.items()
        ]
        launches = count(measured.launches, "launch", "launches")
        sessions = count(measured.sessions, "session")
        return [*notes, f"took {duration(measured.took_s)}: {launches}, {sessions}"]

    def to_json(self) -> dict[str, Any]:
        """All figures, in JSON's own types."""
        search = self.measured.search
        return {
            "row": self.asked,
            "interrupted": self.interrupted,
            "versions": [*self.versions],
            "gaps": {**self.gaps, **{self.versions[p]: why for p, why in search.lost.items()}},
            "cases": {case: self._case(row) for case, row in search.rows.items()},
            "launches": self.measured.launches,
            "sessions": self.measured.sessions,
            "took_s": self.measured.took_s,
        }

    def _case(self, row: VersionRow) -> dict[str, Any]:
        search = self.measured.search
        return {
            "times_s": {self.versions[p]: took for p, took in self._times_s(row).items()},
            "missing": {self.versions[p]: why for p, why in row.missing.items()},
            "changes": [
                {
                    "after": self.versions[change.step[0]],
                    "since": self.versions[change.step[1]],
                    "verdict": change.verdict,
                    "ratio": change.ratio,
                    "bounds": [change.low, change.high],
                    "launches": change.launches,
                }
                for change in search.changes(row)
            ],
            "untold": [[self.versions[p] for p in step] for step in search.untold(row)],
        }
