"""Stored runs, as comparisons need them: a sample of launches for each case."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fwbench.errors import DifferentSettings, UsageError
from fwbench.options.values import FACTS
from fwbench.records.facts import CaseFacts, GangFacts, GpuFacts
from fwbench.records.measurement import MEDIAN, MEMORY, MEMORY_BEFORE, MINIMUM, SLOW, Measurement
from fwbench.records.session_facts import FAILED, SessionFacts
from fwbench.records.stored import StoredRun, files_of, from_json, load
from fwbench.records.units import count
from fwbench.terms.names import without_environment


@dataclass(frozen=True)
class SampleSet:
    """The samples of one or several sessions of the same suite: one side of a comparison.

    Attributes:
        failures: why this run can be no baseline; empty if it can.
        sessions: those that it is made of; empty for one alone.
    """

    name: str
    samples: Mapping[str, Measurement]
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[str] = ()
    interrupted: bool = False
    sessions: Sequence[SampleSet] = ()
    unknown: Sequence[str] = ()

    @classmethod
    def from_json(cls, name: str, output_json: Mapping[str, Any]) -> SampleSet:
        """The samples in what pytest-benchmark writes."""
        return cls.of_stored(from_json(name, output_json))

    @classmethod
    def of_stored(cls, run: StoredRun) -> SampleSet:
        """The samples of a stored run."""
        unmeasured = {
            without_environment(case.nodeid, case.framework): case.why
            for case in run.session.missing or ()
        }
        samples: dict[str, Measurement] = {}
        for record in run.records:
            if unmeasured.get(record.key) in _UNSOUND:
                continue
            if record.key in samples:
                both = samples[record.key].facts.framework, record.facts.framework
                raise UsageError(
                    f"{run.name} has {record.label} of {both[0]} and of {both[1]}, and a "
                    "comparison takes one; measure them in sessions of their own (--fw)"
                )
            samples[record.key] = record
        return cls(
            run.name,
            samples,
            unmeasured,
            _failures(run.session),
            bool(run.session.outcome and run.session.outcome.interrupted),
            unknown=run.unknown,
        )


#: A plain test may fail for what its function returned: the time is of something else then.
_UNSOUND = (*FAILED, "skipped")


def read(path: Path) -> SampleSet:
    """The samples in a file, or in a folder of files of several sessions."""
    return together(path.name, each_once(files_of(path)))


def each_once(files: Iterable[Path]) -> list[SampleSet]:
    """The sessions in files.

    Raises:
        UsageError: one is there twice: between it and itself there would be no difference.
    """
    runs: dict[Path, StoredRun] = {}
    for file in files:
        run = load(file)
        for other, earlier in runs.items():
            if run.when and _identity(run) == _identity(earlier):
                raise UsageError(f"{file} is the same session as {other}: give each once")
        runs[file] = run
    return [*map(SampleSet.of_stored, runs.values())]


def _identity(run: StoredRun) -> tuple[str, list[float]]:
    """Moment and times of a session: no two have them in common."""
    return run.when, [record.median_s for record in run.records]


def together(name: str, sessions: Sequence[SampleSet]) -> SampleSet:
    """Several sessions as one run, in which each has a median over its launches."""
    samples: dict[str, Measurement] = {}
    for session in sessions:
        for key, sample in session.samples.items():
            median = sample.of_session()
            samples[key] = samples[key].joined(median) if key in samples else median
    return SampleSet(
        name,
        samples,
        {k: why for session in sessions for k, why in session.unmeasured.items()},
        [f"{session.name}: {why}" for session in sessions for why in session.failures],
        any(session.interrupted for session in sessions),
        sessions,
        unknown=list(dict.fromkeys(key for session in sessions for key in session.unknown)),
    )


def _failures(session: SessionFacts) -> list[str]:
    outcome = session.outcome
    if outcome is None:
        return ["it does not say how its session ended: fwbench did not write it, or recovered it"]
    failures = [f"{count(outcome.failed, 'test')} failed"] if outcome.failed else []
    if outcome.interrupted:
        failures.append("it was interrupted")
    verdicts = (session.gate.verdicts if session.gate else None) or {}
    return failures + [f"its gate says: {n} {v}" for v, n in verdicts.items() if v == "regressed"]


def _settings(measurement: Measurement) -> dict[str, Any]:
    """Settings of a case, by the names of :data:`FACTS`."""
    facts, machine = measurement.facts, measurement.machine
    on_gpu = bool(facts) and facts.device.startswith("gpu")
    return {
        "cpu": machine.cpu,
        "gpu": _gpu(facts) if on_gpu else None,
        "driver": machine.gpu_driver if on_gpu else None,
        "threads": facts.threads,
        "framework": facts.framework_version,
        "toggles": _toggles(facts),
        "data": facts.data.digest if facts.data else None,
        "schedule": [facts.steps_per_epoch, facts.warmup_epochs],
        "precision": facts.precision,
        **_gang(facts.gang),
    }


def _toggles(facts: CaseFacts) -> dict[str, Any] | None:
    """The toggles of a case, without the variables that only say again how many threads it has."""
    threads = str(facts.threads)
    return facts.toggles and {
        name: value
        for name, value in facts.toggles.items()
        if not (name.endswith("_NUM_THREADS") and value == threads)
    }


def _gang(gang: GangFacts | None) -> dict[str, str | None]:
    """Engine, network and places of the replicas of a case; None of a single process."""
    if gang is None:
        return {"engine": None, "network": None, "places": None}
    return {"engine": gang.engine, "network": gang.network, "places": gang.places}


def _gpu(facts: CaseFacts) -> str:
    """The model, and the settings that change its speed, as far as NVML knows them."""
    gpu = facts.gpu or GpuFacts()
    ecc = None if gpu.ecc is None else f"ECC {'on' if gpu.ecc else 'off'}"
    limit = None if gpu.power_limit_w is None else gpu.text("power_limit_w")
    return ", ".join(filter(None, (facts.device_name, gpu.mig, ecc, limit)))


def unequal_work(base: Measurement, contender: Measurement) -> str:
    """Why the times of a case are not those of equal work; empty if they are."""
    sides = base.facts, contender.facts
    views = [facts.result_is_view for facts in sides]
    if None not in views and views[0] != views[1]:
        names = ["a view" if view else "a copy" for view in views]
        return f"not equal work: the base's result is {names[0]}, the contender's {names[1]}"
    if not any(base.values(time) and contender.values(time) for time in (MINIMUM, MEDIAN)):
        return "not comparable: one side has the smallest rounds only, the other the median ones"
    bits = [facts.precision_bits for facts in sides]
    if None not in bits and bits[0] != bits[1]:
        return f"not equal work: the base computed in {bits[0]} bits, the contender in {bits[1]}"
    digests = [facts.inputs_digest for facts in sides]
    if None not in digests and digests[0] != digests[1]:
        return "not equal work: the inputs of the function differ, so its results are not compared"
    waits = [facts.gang is None or facts.gang.equal_work for facts in sides]
    if waits[0] != waits[1]:
        names = ["wait" if is_waiting else "do not wait" for is_waiting in waits]
        return (
            f"not equal work: the base's workers {names[0]} for each other, the other's {names[1]}"
        )
    return ""


def different_results(base: Measurement, contender: Measurement) -> str:
    """Difference between the sides' results of a function; empty where there is none."""
    sides = base.facts, contender.facts
    return next((why for facts in sides if (why := facts.different_results)), "")


def agreement(pairs: Iterable[tuple[Measurement, Measurement]]) -> list[str]:
    """A note on the functions whose results were the same on both sides."""
    errors = []
    for sides in pairs:
        known = [error for side in sides if (error := side.facts.side_error) is not None]
        if known and not different_results(*sides):
            errors.append(max(known))
    to = f" to {max(errors):.2g}" if any(errors) else ""
    return [f"results agree{to} ({count(len(errors), 'case')})"] if errors else []


def refuse_differences(
    base: SampleSet, contender: SampleSet, allowed: Iterable[str], option: str = "--allow-different"
) -> list[str]:
    """Refuse two runs that differ in what is not compared, and return what differs and may."""
    differences: dict[str, str] = {}
    sides = base.sessions or [base], contender.sessions or [contender]
    several = max(map(len, sides)) > 1
    for pair in itertools.product(*sides):
        differences = {**_differences(*pair, is_one_of_several=several), **differences}
    refused = [text for name, text in sorted(differences.items()) if name not in {*allowed}]
    if refused:
        names = " ".join(f"{option} {n}" for n in sorted(differences) if n not in {*allowed})
        raise DifferentSettings(
            f"{base.name} and {contender.name} differ in more than their times:\n  "
            + "\n  ".join(refused)
            + f"\nmeasure both alike; or, if that is what is compared: {names}"
        )
    return [text for _, text in sorted(differences.items())]


def _differences(
    base: SampleSet, contender: SampleSet, *, is_one_of_several: bool
) -> dict[str, str]:
    """Differences of the settings of two sessions, by their names.

    Args:
        is_one_of_several: whether to say which sessions of their sides they are.
    """
    differences: dict[str, str] = {}
    for key in base.samples.keys() & contender.samples.keys():
        before, after = _settings(base.samples[key]), _settings(contender.samples[key])
        for name in FACTS:
            if before[name] != after[name] and name not in differences:
                label = contender.samples[key].label
                where = [label] if name not in ("cpu", "driver") else []
                where += [f"{base.name} and {contender.name}"] if is_one_of_several else []
                said = f" ({'; '.join(where)})" if where else ""
                differences[name] = f"{name}: {_change(before[name], after[name])}{said}"
    return differences


def _change(before: Any, after: Any) -> str:
    """From what to what; of several settings those that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
        return ", ".join(f"{n} {before.get(n)!s} -> {after.get(n)!s}" for n in names)
    return " -> ".join("not recorded" if x is None else str(x) for x in (before, after))


#: What a clock, a compiler without work, and an allocator differ by.
_DISPATCH_S = 1e-6
_COMPILE_S = 1e-3
_MEMORY_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Metric:
    """One figure of a launch that has a verdict of its own.

    Attributes:
        threshold: the smallest change that is worth a verdict, as a share; None for the
            comparison's own, which is that of times.
        least: what is added to both sides, so that ratios of next to nothing are near 1.
    """

    name: str
    weight: float
    threshold: float | None = None
    least: float = 0.0

    def raised(self, values: Sequence[float]) -> list[float]:
        """Figures of launches as they are compared."""
        return [value + self.least for value in values]

    def looks_changed(self, ratio: float, factor: float) -> bool:
        """True if a ratio is beyond a factor; of other figures than times, only growth does.

        Args:
            factor: above 1.
        """
        return ratio > factor or (self.is_time and 1 / ratio > factor)

    @property
    def option(self) -> str:
        """Its name where users give thresholds."""
        return self.name.replace(" ", "-")

    @property
    def is_time(self) -> bool:
        """True if it stands for the time of a call, of which ``unchanged`` takes evidence."""
        return self.threshold is None


#: All of them. The first two have most of the level; the others look for what has grown by far.
METRICS = (
    Metric(MINIMUM, 0.4),
    Metric(MEDIAN, 0.36),
    Metric(SLOW, 0.04, 0.25),
    Metric("dispatch", 0.04, 0.5, _DISPATCH_S),
    Metric("first call", 0.04, 1.0),
    Metric("compilation", 0.04, 1.0, _COMPILE_S),
    Metric(MEMORY, 0.04, 0.5, _MEMORY_BYTES),
    Metric(MEMORY_BEFORE, 0.04, 0.5, _MEMORY_BYTES),
)

#: The thresholds of those that have their own, by name.
THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {metric.name: metric.threshold for metric in METRICS if metric.threshold is not None}
)
