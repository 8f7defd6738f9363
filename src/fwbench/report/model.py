"""What a report is made from: runs, read and flattened, whoever wrote them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from fwbench.ceilings import ceilings
from fwbench.ceilings.ceilings import Ceiling
from fwbench.errors import UnreadableRun
from fwbench.gate.verdicts import Comparison
from fwbench.records.stored import checked, parse

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """One measured case.

    Attributes:
        run: number of its run, from 0.
        name: of the case, or of the test.
        group: what it is compared with side by side.
        values_s: seconds for one call: a value for each round, or for each launch.
        of_launches: whether the values are launches.
        facts: what fwbench recorded; empty if it did not write the record.
        identity: what the same case has in common in every run.
        stats: pytest-benchmark's; all that is known of values that were not kept.
    """

    run: int
    name: str
    group: str
    values_s: Sequence[float]
    of_launches: bool
    facts: Facts
    identity: str = ""
    stats: Facts = field(default_factory=dict)

    @cached_property
    def median_s(self) -> float:
        """The median value."""
        return statistics.median(self.values_s)

    @cached_property
    def quartiles_s(self) -> tuple[float, float]:
        """Between which half of the values lie; all of them, where there are few."""
        if not self.values_kept:
            return self.stats.get("q1", self.median_s), self.stats.get("q3", self.median_s)
        if len(self.values_s) < _FEW:
            return min(self.values_s), max(self.values_s)
        low, _, high = statistics.quantiles(self.values_s, n=4, method="inclusive")
        return low, high

    @property
    def values_kept(self) -> bool:
        """Whether the values were stored, and not their statistics alone."""
        return self.of_launches or bool(self.stats.get("data"))

    @property
    def number(self) -> int:
        """How many values were measured."""
        return len(self.values_s) if self.values_kept else int(self.stats.get("rounds", 1))

    def bare(self) -> Self:
        """Without its values."""
        return replace(self, values_s=(), stats={})

    @property
    def measured(self) -> str:
        """What the values are, and how many."""
        one, several = ("round", "rounds")
        if self.of_launches:
            one, several = ("launch", "launches")
        elif "epochs" in self.facts:
            one, several = ("epoch", "epochs")
        return f"{self.number} {one if self.number == 1 else several}"

    def __getattr__(self, name: str) -> Any:
        """A fact, by its name; None where it is not recorded."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.facts.get(name)

    @property
    def series(self) -> str:
        """The line of a chart that it belongs to: framework and execution, and toggles."""
        params = self.facts.get("params", {})
        return " ".join([str(self.framework), str(self.execution), *params.values()])


#: Fewer values have no quartiles worth the name.
_FEW = 8

#: What a case's parameters hold beside the toggles that were asked for.
_PARTS = ("workload", "framework", "device", "execution", "direction", "dtype", "size")


@dataclass(frozen=True)
class Run:
    """One stored run.

    Attributes:
        number: from 0, in the order in which they were given.
        name: of its file.
        records: its cases.
        surroundings: what fwbench recorded of the session; empty if it did not write the run.
        when: when it was measured, as ISO 8601.
        machine: pytest-benchmark's facts of the machine.
        commit: pytest-benchmark's facts of the revision.
        comparison: with a base, where there was one.
        ceilings: of the machine's devices, by what they are called, where these are known.
    """

    number: int
    name: str
    records: Sequence[Record]
    surroundings: Facts = field(default_factory=dict)
    when: str = ""
    machine: Facts = field(default_factory=dict)
    commit: Facts = field(default_factory=dict)
    comparison: Comparison | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.records and not (self.comparison and self.comparison.judgements)

    @property
    def cpu(self) -> str | None:
        """What the CPU is called; None where that is not recorded."""
        cpu = self.machine.get("cpu")
        brand = cpu.get("brand_raw") if isinstance(cpu, Mapping) else None
        return self.surroundings.get("machine", {}).get("cpu") or brand


def read(path: Path, number: int = 0) -> Run:
    """A run from a file.

    Raises:
        UnreadableRun: it cannot be read, is cut off, or is none.
    """
    parsed = parse(path)
    try:
        if isinstance(parsed, dict) and "judgements" in parsed:
            return Run(number, path.name, [], comparison=Comparison.from_json(parsed))
        found = checked(path, parsed)
        run = Run(
            number,
            path.name,
            [_record(entry, number) for entry in found["benchmarks"]],
            found.get("fwbench", {}),
            str(found.get("datetime") or ""),
            _is(dict, found.get("machine_info") or {}, "machine_info"),
            _is(dict, found.get("commit_info") or {}, "commit_info"),
            _comparison(found.get("fwbench", {})),
            ceilings.of_run(found),
        )
        _check(run)
    except UnreadableRun:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableRun(f"{path} is no run as it is written ({error!r})") from error
    return run


def _comparison(surroundings: Facts) -> Comparison | None:
    stored = (surroundings.get("gate") or {}).get("comparison")
    return Comparison.from_json(stored) if stored else None


def labels(runs: Sequence[Run]) -> list[str]:
    """What runs are called, so that two of one name are told apart."""
    names = [run.name for run in runs]
    return [
        f"{name} #{names[: number + 1].count(name)}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def _check(run: Run) -> None:
    """Look at whatever a report takes for granted.

    Raises:
        ValueError: it is not so.
    """
    around = run.surroundings
    for name in ("machine", "absent", "frameworks"):
        _is(dict, around.get(name, {}), name)
    for one in _is(list, around.get("missing", []), "missing"):
        _is(str, _is(dict, one, "missing").get("why"), "why")
    for record in run.records:
        _check_times(record)
        if record.facts:
            _check_facts(record)
            _check_training(record)


def _check_times(record: Record) -> None:
    quartiles = [record.stats[name] for name in ("q1", "q3") if name in record.stats]
    for one in (*record.values_s, *quartiles):
        if not 0 < _is(float | int, one, "a time") < math.inf:
            raise ValueError(f"times of {record.name}: {one}")
    _is(int, record.stats.get("rounds", 1), "rounds")


def _check_facts(record: Record) -> None:
    for name in ("workload", "framework", "device", "execution", "direction", "dtype"):
        _is(str | None, record.facts.get(name), name)
    for name in ("dispatch_s", "completion_s", "flops", "bytes", "attainable_share"):
        _is(float | int | None, record.facts.get(name), name)
    if record.dispatch_s and _is(float | int, record.completion_s, "completion_s") <= 0:
        raise ValueError(f"completion_s is {record.completion_s}")
    if (record.dispatch_s or 0) < 0:
        raise ValueError(f"dispatch_s is {record.dispatch_s}")
    if record.attainable_share:
        _is(float | int, record.flops, "flops")
        _is(float | int, record.bytes, "bytes")
    if _is(int, record.size, "size") < 1:
        raise ValueError(f"size {record.size}")


def _check_training(record: Record) -> None:
    _is(str | None, _is(dict, record.data or {}, "data").get("digest"), "digest")
    _is(int | None, record.steps_per_epoch, "steps_per_epoch")
    for epoch in _is(list, record.epochs or [], "epochs"):
        for name in ("seconds", "train_loss", "repetition"):
            _is(float | int, _is(dict, epoch, "epoch").get(name), name)
    for tested in _is(list, record.test_accuracy or [], "test_accuracy"):
        for name in ("repetition", "accuracy"):
            _is(float | int, _is(dict, tested, "test_accuracy").get(name), name)


def _is(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}")
    return value


def _record(entry: Mapping[str, Any], number: int) -> Record:
    facts = dict((entry.get("extra_info") or {}).get("fwbench") or {})
    params = entry.get("params") or {}
    facts["params"] = {
        name: f"{name}={value}" for name, value in params.items() if facts and name not in _PARTS
    }
    stats = entry["stats"]
    launches = facts.get("launches")
    values_s = stats.get("data") or [stats.get("median", stats["min"])]
    if launches:
        values_s = [one["value_s"] for one in launches]
    return Record(
        number,
        str(entry.get("param") or entry.get("name") or entry["fullname"]),
        str(entry.get("group") or ""),
        values_s,
        bool(launches),
        facts if "workload" in facts else {},
        str(entry["fullname"]),
        stats,
    )


def operations(records: Iterable[Record]) -> list[Record]:
    """Those of fwbench's operations, steps and loaders."""
    return [one for one in records if one.facts and not one.facts.get("epochs")]


def trainings(records: Iterable[Record]) -> list[Record]:
    """Those of whole training loops."""
    return [one for one in records if one.facts.get("epochs")]


def foreign(records: Iterable[Record]) -> list[Record]:
    """Those that fwbench did not write."""
    return [one for one in records if not one.facts]
