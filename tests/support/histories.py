"""Histories that are made up, and what is read of them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from fwbench.records.session_facts import (
    StoredBudget,
    StoredContestant,
    StoredGroup,
    StoredRace,
    StoredUnsettled,
)
from fwbench.report.drawing.chart import Chart
from fwbench.report.history import HistoryLine, Moment
from support.launched_runs import output
from support.reports import Node, case, parsed


def when(number: int) -> str:
    """The noon a number of days after the first of January."""
    return (datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=number)).isoformat()


def day(number: int) -> str:
    return when(number)[:10]


def saved(
    path: Path,
    *entries: Mapping[str, Any],
    at: int | str | None = 0,
    revision: str = "",
    **session: Any,
) -> Path:
    """Save a run.

    Args:
        at: the day, or the time as ISO 8601; None leaves out when it was measured.
    """
    made = output(entries, **{"threads": 2, **session})
    if at is not None:
        made["datetime"] = when(at) if isinstance(at, int) else at
    if revision:
        made["commit_info"] = {"id": revision, "branch": "main"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def statistics_of(made: dict[str, Any], median_s: float = 2.0, rounds: int = 137) -> dict[str, Any]:
    """The same entry as ``--benchmark-save`` writes it: without its values."""
    factors = {"min": 0.25, "q1": 0.5, "median": 1.0, "q3": 2.0, "max": 9.0, "mean": 3.0}
    times_s = {name: factor * median_s for name, factor in factors.items()}
    made["stats"] = {**times_s, "rounds": rounds, "iterations": 1}
    return made


def levels(*runs_at_levels: tuple[int, float], noise: float = 0.01, seed: int = 0) -> list[float]:
    """Seconds of runs around each level (number of runs, time), with log-normal noise."""
    centers = np.concatenate([np.full(runs, seconds) for runs, seconds in runs_at_levels])
    random = np.random.default_rng(seed)
    return [
        float(center) for center in centers * np.exp(noise * random.standard_normal(len(centers)))
    ]


def line(
    times_s: Sequence[float],
    name: str = "gemm-numpy",
    versions: Sequence[tuple[int, str]] = ((0, "1.0"),),
    framework: str = "numpy",
    machine: str = "Fake CPU, 2 threads",
) -> HistoryLine:
    """A case with a run a day.

    Args:
        versions: of the framework, each with the first run that has it, in their order.
    """
    moments = [
        Moment(
            when(number),
            time_s,
            time_s / 1.1,
            time_s * 1.1,
            [version for first, version in versions if first <= number][-1],
            f"revision{number}",
        )
        for number, time_s in enumerate(times_s)
    ]
    keys = {"workload": "gemm", "framework": framework, "device": "cpu", "execution": "eager"}
    return HistoryLine(name, machine, "gemm", keys, moments)


def nightly(folder: Path, times_s: Sequence[float], upgraded: int | None = None) -> Path:
    """A folder of runs of one case, whose files are named against the order of time."""
    for number, time_s in enumerate(times_s):
        version = "2.0" if upgraded is not None and number >= upgraded else "1.0"
        made = case(values_s=(time_s, time_s, time_s * 1.01), framework_version=version)
        path = folder / "Linux-CPython-3.11-64bit" / f"{9999 - number}_nightly.json"
        saved(path, made, at=number, revision=f"{number:040x}"[::-1])
    return folder


def only(lines: Sequence[HistoryLine]) -> HistoryLine:
    (single,) = lines
    return single


def dots(chart: Chart) -> list[Node]:
    return parsed(chart.svg).all("circle")


def change(path: Path, **facts: Any) -> None:
    """Change a stored run by hand."""
    made = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**made, **facts}), encoding="utf-8")


def contestant(name: str, standing: str, time_s: float | None, **facts: Any) -> StoredContestant:
    """A contestant that was launched twelve times."""
    given: dict[str, Any] = {"case": f"test.py::test_it[{name}]", "launches": 12, "contended": 0}
    return StoredContestant(**{**given, **facts}, name=name, standing=standing, time_s=time_s)


def group(title: str, verdict: str, *contestants: StoredContestant, **facts: Any) -> StoredGroup:
    """A group with a threshold of 3 %."""
    return StoredGroup(
        title=title, verdict=verdict, threshold=0.03, contestants=[*contestants], **facts
    )


WON = group(
    "gemm cpu forward float32 256",
    "fastest",
    contestant("torch eager", "fastest", 12.3e-6),
    contestant("numpy eager", "slower", 13.8e-6, behind=0.122, why="slower than torch eager"),
    contestant("mxnet eager", "slower", 60e-6, behind=3.9, why="slower than torch eager"),
    contestant("jax jit", "lost", None, launches=0, why="failed"),
)

TIED = group(
    "exp cpu forward float32 100",
    "tie",
    contestant("numpy eager", "tied", 1e-6),
    contestant("torch eager", "tied", 1.01e-6, behind=0.01),
)

OPEN = group(
    "sum cpu forward float32 100",
    "undecided",
    contestant("numpy eager", "open", 2e-6),
    contestant("torch eager", "open", 2.1e-6, behind=0.05, contended=4),
    more_launches=14,
    more_s=126.0,
)

RACE = StoredRace(level=0.01, groups=[WON, TIED, OPEN])


def budget(**facts: Any) -> StoredBudget:
    """A budget of five minutes, of which all but a little was spent."""
    given: dict[str, Any] = {"budget_s": 300.0, "took_s": 290.0, "launches": 12, "cases": 8}
    return StoredBudget(**{"launch_s": 24.0, **given, **facts})


def unsettled(name: str, uncertainty: float | None) -> StoredUnsettled:
    """A case whose time is uncertain by this share; None after a single launch."""
    return StoredUnsettled(case=f"test.py::test_it[{name}]", name=name, uncertainty=uncertainty)
