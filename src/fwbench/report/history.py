"""Cases over time: every stored run of a folder, framework upgrades, and shifts that last.

A shift is a change point of the logarithms of a case's times, found by PELT (Killick, Fearnhead and
Eckley, Journal of the American Statistical Association 107, 2012) as in the library ruptures, with
the squared error as cost. So that neither single runs nor noise make one, the times are smoothed by
a running median and measured in units of their own noise; where a shift is, is then looked for in
the times themselves, and either level must have lasted for as many runs as the median's window.
Runs on its two sides must differ in rank (Mann and Whitney), too: a case that has two speeds, of
which each run has one by chance, has no shift, though its noise seems to be that of one speed.
docs/figures.md says how well that works.
"""

import gc
import hashlib
import itertools
import math
import signal
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import UnreadableRun, UsageError
from fwbench.machine import usable_cpus
from fwbench.measure.condition import CONTENDED
from fwbench.records.files import read as content_of
from fwbench.records.files import write_atomically
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import count, time
from fwbench.report.condition import is_contended
from fwbench.report.drawing import lines, palette
from fwbench.report.drawing.chart import Chart, Point
from fwbench.report.model import Run, read
from fwbench.report.section import Section, columns, row_keys

#: Runs of the running median, and the fewest between two shifts.
_WINDOW = 5

#: The penalty of a shift is this, times the logarithm of the number of runs, in units of noise.
_PENALTY = 4.0

#: Smaller changes do not count as shifts (a share); noise is taken to be at least a tenth of it.
_SMALLEST = 0.03

#: At most this many cases have a chart, those with shifts before others.
_DRAWN = 300


@dataclass(frozen=True)
class Shift:
    """From one run on, a case took longer or less long."""

    at: int
    before_s: float
    after_s: float

    @property
    def change(self) -> float:
        """Change as a share: 0.1 is 10 % longer."""
        return self.after_s / self.before_s - 1


def shifts(times_s: Sequence[float]) -> list[Shift]:
    """Where the level of a case changes, and stays changed."""
    if len(times_s) < 2 * _WINDOW:
        return []
    logs = np.log(times_s)
    # Of the differences from run to run: a shift is in one of them alone.
    noise = 1.4826 * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2)
    padded = np.pad(logs, _WINDOW // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, _WINDOW), axis=1)
    scaled = (smooth - np.median(smooth)) / max(noise, _SMALLEST / 10)
    search = _ruptures().KernelCPD(kernel="linear", min_size=_WINDOW).fit(scaled.reshape(-1, 1))
    bounds = [0, *search.predict(pen=_PENALTY * math.log(len(times_s)))]
    for place in range(1, len(bounds) - 1):
        bounds[place] = _place(logs, *bounds[place - 1 : place + 2])
    bounds = _without_chance(logs, bounds)
    levels = zip(bounds, bounds[1:], bounds[2:], strict=False)
    candidates = (_shift(times_s, *level) for level in levels)
    return [shift for shift in candidates if shift is not None]


def _without_chance(logs: NDArray[Any], bounds: Sequence[int]) -> list[int]:
    """The bounds of levels, without those that chance could explain, the least clear first.

    Each is clearer than the clearest of as many places is by chance, as a rule.
    """
    kept, places = [*bounds], len(logs) - 2 * _WINDOW + 1
    while len(kept) > 2:  # noqa: PLR2004 (both ends)
        levels = (logs[first:last] for first, last in itertools.pairwise(kept))
        clear = [_clearness(*neighbours) for neighbours in itertools.pairwise(levels)]
        if min(clear) >= math.sqrt(2 * math.log(places)):
            break
        del kept[clear.index(min(clear)) + 1]
    return kept


def _clearness(before: NDArray[Any], after: NDArray[Any]) -> float:
    """Mann and Whitney's statistic of two levels, in standard deviations."""
    share = float(np.sign(after[:, None] - before[None, :]).mean())
    return abs(share) * math.sqrt(3 * before.size * after.size / (before.size + after.size + 1))


def _shift(times_s: Sequence[float], first: int, middle: int, last: int) -> Shift | None:
    """The change between two levels; None where one is too short, or the change too small."""
    if min(middle - first, last - middle) < _WINDOW:
        return None
    before_s = statistics.median(times_s[first:middle])
    after_s = statistics.median(times_s[middle:last])
    large = abs(after_s / before_s - 1) >= _SMALLEST
    return Shift(middle, before_s, after_s) if large else None


def _place(logs: NDArray[Any], first: int, middle: int, last: int) -> int:
    """Where two levels meet, near where the smoothed times say so."""

    def misfit(place: int) -> float:
        levels = logs[first:place], logs[place:last]
        return sum(float(np.abs(level - np.median(level)).sum()) for level in levels)

    near = range(max(first + 1, middle - _WINDOW // 2), min(last, middle + _WINDOW // 2 + 1))
    return min(near, key=misfit)


def _ruptures() -> Any:
    try:
        import ruptures
    except ImportError:
        raise UsageError(
            "--history looks for shifts with the library ruptures, which is not installed: "
            "pip install 'fwbench[history]'"
        ) from None
    return ruptures


@dataclass(frozen=True)
class Moment:
    """A case in one run.

    Attributes:
        when: the run was measured, as ISO 8601 in UTC.
        low_s: where the middle half of its launches, or rounds, begins.
        version: of the framework; empty if it is not recorded.
        revision: of the project, abbreviated.
        is_contended: whether its times are upper bounds.
    """

    when: str
    median_s: float
    low_s: float
    high_s: float
    version: str
    revision: str
    is_contended: bool = False

    @property
    def day(self) -> str:
        """The day, as YYYY-MM-DD."""
        return self.when[:10]


@dataclass(frozen=True)
class HistoryLine:
    """One case on one machine."""

    name: str
    machine: str
    group: str
    keys: Mapping[str, str]
    moments: Sequence[Moment]

    @property
    def upgrades(self) -> dict[int, str]:
        """By the number of the first run with it: the framework's new version."""
        known = [
            (number, moment.version) for number, moment in enumerate(self.moments) if moment.version
        ]
        return {
            number: f"{before} -> {after}"
            for (_, before), (number, after) in itertools.pairwise(known)
            if before != after
        }


@dataclass(frozen=True, eq=False)
class _FollowedCase:
    """A case with its lasting shifts."""

    line: HistoryLine
    shifts: Sequence[Shift]

    @property
    def moments(self) -> Sequence[Moment]:
        return self.line.moments

    @property
    def runs(self) -> int:
        return len(self.moments)

    @property
    def change(self) -> float | None:
        """From the first run to the last, as a share; None where there is one alone."""
        first, last = self.moments[0], self.moments[-1]
        return None if first is last else last.median_s / first.median_s - 1

    @property
    def clean(self) -> int:
        """The number of runs that were not contended."""
        return sum(not moment.is_contended for moment in self.moments)

    @property
    def contended(self) -> str:
        """The number of its contended runs; empty for none."""
        number = self.runs - self.clean
        return f"{number} of {self.runs}" if number else ""

    @property
    def last_s(self) -> float | None:
        """Seconds in the last of several runs."""
        return self.moments[-1].median_s if self.runs > 1 else None

    @property
    def upgrades(self) -> str:
        return "; ".join(self.line.upgrades.values())

    @property
    def listed(self) -> str:
        """The shifts."""
        return "; ".join(f"{self.moments[s.at].day} {s.change:+.1%}" for s in self.shifts)


class _Lasting(NamedTuple):
    """A shift of a case."""

    line: HistoryLine
    shift: Shift

    @property
    def moment(self) -> Moment:
        """The first run with the new level."""
        return self.line.moments[self.shift.at]

    @property
    def upgrade(self) -> str:
        """An upgrade near the shift, whose place is only known to within a run."""
        upgrades = self.line.upgrades.items()
        near = [upgrade for number, upgrade in upgrades if abs(number - self.shift.at) <= 1]
        return f"{self.line.keys.get('framework', '')} {near[0]}" if near else ""


_SHIFTS = columns("shifts")

_CASES = columns("history")


def sections(lines: Sequence[HistoryLine]) -> list[Section]:
    """The shifts of all cases, then every case with its chart."""
    cases = [_FollowedCase(line, _shifts_of(line.moments)) for line in lines]
    several = [case for case in cases if case.runs > 1]
    drawn = {*sorted(several, key=lambda case: not case.shifts)[:_DRAWN]}
    groups = group_by(cases, lambda case: f"{case.line.group}, {case.line.machine}")
    return [_shifts(cases), *(_section(group, members, drawn) for group, members in groups.items())]


def _shifts_of(moments: Sequence[Moment]) -> list[Shift]:
    """The shifts of a case; its contended runs, whose times are upper bounds, do not count."""
    numbers = [number for number, moment in enumerate(moments) if not moment.is_contended]
    found = shifts([moments[number].median_s for number in numbers])
    return [replace(shift, at=numbers[shift.at]) for shift in found]


def _section(
    group: str, cases: Sequence[_FollowedCase], drawn: Collection[_FollowedCase]
) -> Section:
    left_out = sum(case.runs > 1 and case not in drawn for case in cases)
    note = f"{count(left_out, 'more case')} without a chart: -k NAME selects fewer cases."
    charts = [_chart(case.line, case.shifts) for case in cases if case in drawn]
    colours = {_colour(case.line) for case in cases if case in drawn}
    colour = colours.pop() if len(colours) == 1 else "var(--ink)"
    return Section.from_items(
        f"history of {group}",
        _CASES,
        cases,
        lambda case: case.line.keys,
        charts=charts,
        page_notes=[note] if left_out else [],
        legend=lines.legend_over_time(charts, colour=colour),
        group="history",
    )


def _shifts(cases: Sequence[_FollowedCase]) -> Section:
    every = [_Lasting(case.line, shift) for case in cases for shift in case.shifts]
    every.sort(key=lambda row: -row.shift.change)
    few = sum(case.clean < 2 * _WINDOW for case in cases)
    notes = [_extent(cases)]
    notes += [f"Shifts of {_SMALLEST:.0%} and more that lasted for {_WINDOW} runs at least (PELT)."]
    is_contended = any(case.contended for case in cases)
    if is_contended:
        notes.append("Contended runs, whose times are upper bounds, are left out of these.")
    if few:
        runs = f"{2 * _WINDOW} runs" + " that were not contended" * is_contended
        notes.append(f"{count(few, 'case')} had fewer than {runs}: too few to tell.")
    if not every and few < len(cases):
        notes.append("No shift was found.")
    return Section.from_items(
        "Lasting shifts", _SHIFTS, every, lambda row: row.line.keys, notes=notes, group="history"
    )


def _extent(cases: Sequence[_FollowedCase]) -> str:
    """The number of cases and of their runs, the days of these, and their machines."""
    days = sorted({moment.day for case in cases for moment in case.moments})
    machines = "; ".join(dict.fromkeys(case.line.machine for case in cases))
    period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    runs = count(max(case.runs for case in cases), "run")
    return f"{count(len(cases), 'case')} in up to {runs}, {period}, on {machines}."


def _chart(line: HistoryLine, lasting: Iterable[Shift]) -> Chart:
    marks = {number: f"upgrade {upgrade}" for number, upgrade in line.upgrades.items()}
    for shift in lasting:
        event = f"{shift.change:+.1%} ({time(shift.before_s)} -> {time(shift.after_s)})"
        marks[shift.at] = f"{marks[shift.at]}, {event}" if shift.at in marks else event
    points = [
        Point(number, m.median_s, m.low_s, m.high_s, " ".join(filter(None, known)), m.is_contended)
        for number, m in enumerate(line.moments)
        for known in [(m.when[:16], m.version, m.revision, CONTENDED * m.is_contended)]
    ]
    labels = _labels(line.moments)
    return lines.draw_over_time(line.name, labels, points, marks, colour=_colour(line))


def _colour(line: HistoryLine) -> str:
    """The colour of its framework; empty where that has none."""
    return palette.COLOURS.get(line.keys.get("framework", ""), "")


def _labels(moments: Sequence[Moment]) -> list[str]:
    """A label for each run, none of them twice: pygal tells labels apart by their text."""
    days = Counter(moment.day for moment in moments)
    labels: list[str] = []
    for moment in moments:
        day = moment.day
        label = day if days[day] == 1 else moment.when[:16].replace("T", " ")
        repeats = sum(other.partition(" #")[0] == label for other in labels[-days[day] :])
        labels.append(f"{label} #{repeats + 1}" if repeats else label)
    return labels


#: Records and their moments, by node id and machine.
_Records: TypeAlias = "dict[tuple[str, str], tuple[Measurement, list[Moment]]]"

#: A process starts in the time in which another reads about this many files.
_WORTH_A_PROCESS = 5

#: More would have merging to wait for, and each has tens of megabytes of its own.
_PROCESSES = 4


def collect(folder: Path, only: str = "") -> tuple[list[HistoryLine], list[str]]:
    """The cases of all runs in a folder and in those below, and why other files are no runs."""
    files = sorted(folder.rglob("[!.]*.json")) if folder.is_dir() else []
    cases: _Records = {}
    problems: list[str] = []
    for records, unreadable in _each_part(files, only):
        problems += unreadable
        for key, (record, moments) in records.items():
            cases.setdefault(key, (record, []))[1].extend(moments)
    if not cases:
        raise _no_run(folder, only, problems)
    return [
        _line(record, machine, moments) for (_, machine), (record, moments) in cases.items()
    ], problems


def add(folder: Path, runs: Iterable[Path]) -> list[Path]:
    """Keep runs in a folder, each once: one that is there already, under any name, is not added.

    Returns:
        The new files, whose names are the time of the run (UTC) and the digest of its content.

    Raises:
        UnreadableRun: one is not a run, or has no case; then none is added.
        StorageError: it cannot be written.
    """
    kept = {_digest(content_of(path)) for path in folder.rglob("[!.]*.json")}
    new = {}
    for path in runs:
        content = content_of(path)
        run = read(path)
        if not run.records:
            raise UnreadableRun(f"{path} has no case of a session, and cannot be one of a history")
        when = datetime.fromisoformat(_when(run.when, path))
        digest = _digest(content)
        new[digest] = folder / f"{when:%Y-%m-%dT%H-%M-%S}-{digest[:12]}.json", content
    added = dict(new[digest] for digest in new if digest not in kept)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in added.items():
        write_atomically(path, content.decode())
    return [*added]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _each_part(files: Sequence[Path], only: str) -> Iterable[tuple[_Records, list[str]]]:
    """Contents of files, as many at once as there are CPUs; in their order."""
    processes = min(usable_cpus(), _PROCESSES, len(files) // _WORTH_A_PROCESS)
    if processes <= 1:
        return [_read(files, only)]
    starts = [len(files) * number // processes for number in range(processes + 1)]
    parts = [files[start:end] for start, end in itertools.pairwise(starts)]
    ignore = (signal.SIGINT, signal.SIG_IGN)  # interrupts are the parent's
    with ProcessPoolExecutor(processes, initializer=signal.signal, initargs=ignore) as pool:
        return [*pool.map(_read, parts, itertools.repeat(only))]


def _read(files: Iterable[Path], only: str) -> tuple[_Records, list[str]]:
    """The cases in files, and why files are not valid runs."""
    cases: _Records = {}
    problems: list[str] = []
    # What is read has no cycles, and to look for some in it takes a third of the time.
    gc.disable()
    try:
        for file in files:
            try:
                run = read(file)
            except UnreadableRun as error:
                problems.append(str(error))
                continue
            when = _when(run.when, file)
            for record in run.records:
                if only in record.name:
                    # Without its values: a case has thousands.
                    key = record.nodeid, _machine(run, record)
                    _, moments = cases.setdefault(key, (record.without_values(), []))
                    moments.append(_moment(record, run, when))
    finally:
        gc.enable()
    return cases, problems


def _no_run(folder: Path, only: str, problems: Iterable[str]) -> UsageError:
    said = "".join(f"\n  {problem}" for problem in problems)
    if not folder.is_dir():
        return UsageError(f"--history: {folder} is not a directory; name the one that runs are in")
    if only and any(folder.rglob("[!.]*.json")):
        return UsageError(
            f"--history: no case under {folder} has {only!r} in its name; give -k another text, or "
            f"leave it out{said}"
        )
    return UsageError(
        f"--history: there is no run under {folder}; --benchmark-autosave and --benchmark-save "
        f"keep runs in .benchmarks{said}"
    )


def _line(record: Measurement, machine: str, moments: Iterable[Moment]) -> HistoryLine:
    return HistoryLine(
        record.name,
        machine,
        record.facts.workload if record.facts else "other benchmarks",
        row_keys(record),
        sorted(moments, key=lambda moment: moment.when),
    )


def _when(recorded: str, file: Path) -> str:
    """When a run was measured, as UTC; when its file was written, if it does not say so."""
    try:
        when = datetime.fromisoformat(recorded)
    except ValueError:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _machine(run: Run, record: Measurement) -> str:
    """Machine and number of threads of a case."""
    own = record.facts.get("threads")
    threads = run.session.threads if own is None else own
    used = "unknown threads" if threads is None else count(threads, "thread")
    on_gpu = bool(record.facts) and record.facts.device.startswith("gpu")
    gpu = [str(record.facts.device_name)] if on_gpu else []
    return ", ".join([run.cpu or "unknown CPU", *gpu, used])


def _moment(record: Measurement, run: Run, when: str) -> Moment:
    low_s, high_s = record.quartiles_s
    version = record.facts.framework_version or ""
    revision = str(run.commit_info.get("id") or "")
    known = "" if revision == "unversioned" else revision[:9]
    contended = is_contended(record.facts)
    return Moment(when, record.median_s, low_s, high_s, version, known, contended)
