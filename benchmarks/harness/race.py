"""A race names the right winner, and takes at most half the time of launching everything.

The quick operations are launched 60 times, which takes about an hour on two processors (``--pool
FILE`` keeps the launches, or takes those of an earlier run). Races are then run over stretches of
them by fwbench's own code: as they were recorded, and on a quiet machine with each of the noise
models of `noise.py` on top. A race takes 60 launches at most, and none of them twice. The winner of
a group is the contestant with the smallest median over all launches, of the noise models over all
launches of the quiet machine.

Bounds: the right winner or a tie in 99 % of all groups that were decided, and of all groups of the
quiet machine; never a winner that is slower by more than 3 %; for decided groups, half of the
launches of cases that their contestants would have had with as many launches as the closest pair
took; and once the medians of two contestants are the same, one of them takes more than twice as
long in half of the launches at most, as races assume.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import bounds
import noise

from fwbench.gate.budget import Budget, History, Result
from fwbench.gate.race import GroupVerdict, Race, RaceGroup
from fwbench.records.facts import Launch
from fwbench.records.measurement import Measurement
from fwbench.records.stored import from_json
from fwbench.report.ranking import contests
from fwbench_extras import self_test
from fwbench_extras.self_test import Pool

#: What is launched, briefly: many launches tell more than long ones.
_SUITE = ("benchmarks", "--ignore=benchmarks/harness", "--ignore=benchmarks/test_training.py")
_BRIEFLY = ("--fw-warmup=0.03", "--benchmark-max-time=0.02")

_THRESHOLD = 0.03
_LAUNCHES_AT_MOST = 60
_RIGHT_AT_LEAST = 0.99
_COST_AT_MOST = 0.5
_FAR = 2.0
_FAR_AT_MOST = 0.5

_MODELS = {**noise.MODELS, **noise.WITHIN_LAUNCHES}

#: Launches of a simulated machine.
_SIMULATED = 150


@dataclass(frozen=True)
class Work:
    """The contestants of a group, by their keys, and what to call it."""

    title: str
    cases: Sequence[str]


def _record(launches: int) -> dict[str, Any]:
    """The JSON of a session that launches the quick operations."""
    path = Path("race-pool.json").absolute()
    arguments = (*_SUITE, *_BRIEFLY, f"--fw-launches={launches}", "--fw=numpy,torch,mxnet")
    bounds.records(path, *arguments, OMP_WAIT_POLICY="PASSIVE")
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return stored


def _works(stored: Mapping[str, Any]) -> list[Work]:
    """The groups of at least two contestants of a session."""
    records = from_json("pool", stored).records
    measured = [record for record in records if record.facts]
    return [Work(c.title, [entrant.nodeid for entrant in c.entrants]) for c in contests(measured)]


def _times_s(sample: Measurement) -> list[float]:
    """The figure of each launch of a case."""
    return [launch["minimum"] for launch in sample.launches]


def _centres(pool: Pool) -> dict[str, float]:
    """The median of each case over all launches that were not contended, if there are such."""
    centres = {}
    for key, sample in pool.cases.items():
        times_s = _times_s(sample)
        clean = [t for t, keys in zip(times_s, pool.contended, strict=True) if key not in keys]
        centres[key] = median(clean or times_s)
    return centres


def _machine(pool: Pool) -> Pool:
    """Launches for one simulation, drawn from a pool; none of them is contended."""
    draw = random.Random(0)  # noqa: S311 (no secret)
    chosen = draw.choices(range(pool.launches), k=_SIMULATED)
    samples = [
        dataclasses.replace(sample, figures=[sample.launches[i] for i in chosen])
        for sample in pool.cases.values()
    ]
    return Pool(samples, [()] * _SIMULATED)


def _raced(pool: Pool, works: Sequence[Work], first: int) -> tuple[Race, History]:
    """A race over consecutive launches of a pool, from one on."""
    groups = [RaceGroup(w.title, {c: c for c in w.cases}, _THRESHOLD) for w in works]
    race = Race(lambda _: groups, Budget(float("inf"), lambda: 0.0))
    times_s = {key: _times_s(sample) for key, sample in pool.cases.items()}
    cases, history = [c for w in works for c in w.cases], History()
    # A launch that comes again would be taken for new evidence.
    at_most = min(_LAUNCHES_AT_MOST, pool.launches)
    while history.launches < at_most and (selected := race.select(cases, history)):
        number = (first + history.launches) % pool.launches
        for case in selected:
            contended = case in pool.contended[number]
            history.add(case, Result(1.0, times_s[case][number], contended))
        history.end_launch(len(selected))
    race.drop_losers(history)
    return race, history


def _judged(race: Race, history: History, truth: Mapping[str, float]) -> Counter[str]:
    """Counts of the verdicts of races."""
    counts: Counter[str] = Counter()
    for group in race.groups:
        outcome = group.verdict(history)
        counts[outcome] += 1
        behind = truth[group.racing(history)[0]] / min(truth[c] for c in group.contestants) - 1
        if outcome is GroupVerdict.FASTEST:
            counts["right"] += behind == 0
            counts["wrong by more than 3 %"] += behind > _THRESHOLD
        if outcome is GroupVerdict.TIE:
            counts["right"] += 1
            tied = [truth[c] for c in group.racing(history)]
            spread = max(tied) / min(truth[c] for c in group.contestants) - 1
            counts["ties of more than 3 %"] += spread > _THRESHOLD
    return counts


def _simulated(
    name: str, pool: Pool, works: Sequence[Work], truth: Mapping[str, float], repeats: int
) -> list[bounds.Finding]:
    """Several races on one machine."""
    draw = random.Random(name)  # noqa: S311 (no secret)
    counts: Counter[str] = Counter()
    for _ in range(repeats):
        race, history = _raced(pool, works, draw.randrange(pool.launches))
        counts += _judged(race, history, truth)
        decided = [g for g in race.groups if g.verdict(history) is not GroupVerdict.UNDECIDED]
        launches = [[history.number(c) for c in group.contestants] for group in decided]
        longest = max((max(numbers) for numbers in launches), default=0)
        counts["launched"] += sum(map(sum, launches))
        counts["everything"] += longest * sum(map(len, launches))
    return [*_verdicts(name, counts), *_cost(name, counts)]


def _verdicts(name: str, counts: Counter[str]) -> Iterable[bounds.Finding]:
    undecided = counts[GroupVerdict.UNDECIDED]
    decided = counts[GroupVerdict.FASTEST] + counts[GroupVerdict.TIE]
    total = decided + undecided if name == "quiet" else decided
    yield bounds.Finding(
        f"{name}: right winner or tie",
        f"{counts['right']} of {total} ({counts[GroupVerdict.TIE]} ties, {undecided} undecided)",
        f"at least {_RIGHT_AT_LEAST:.0%}",
        counts["right"] >= _RIGHT_AT_LEAST * total,
    )
    for what in ("wrong by more than 3 %", "ties of more than 3 %"):
        bound = "none" if what.startswith("wrong") else "at most 1%"
        kept = counts[what] <= (0 if bound == "none" else 0.01 * decided)
        yield bounds.Finding(f"{name}: {what}", str(counts[what]), bound, kept)


def _cost(name: str, counts: Counter[str]) -> Iterable[bounds.Finding]:
    """Known only where most groups were decided: the closest pair is among the others otherwise."""
    cost = counts["launched"] / max(1, counts["everything"])
    what = f"{name}: launches of cases, against all with as many as the closest pair"
    if counts[GroupVerdict.UNDECIDED] > counts[GroupVerdict.FASTEST] + counts[GroupVerdict.TIE]:
        yield bounds.Finding(what, f"{cost:.2f} x")
    else:
        yield bounds.at_most(what, cost, _COST_AT_MOST, "x")


def _far(name: str, pool: Pool, works: Sequence[Work]) -> bounds.Finding:
    """The share of simulations in which one of two equal medians takes twice as long."""
    far = pairs = 0
    for first, second in (pair for work in works for pair in itertools.permutations(work.cases, 2)):
        both = [_times_s(pool.cases[case]) for case in (first, second)]
        ratios = [a / b for a, b in zip(*both, strict=True)]
        kept = [
            ratio
            for ratio, keys in zip(ratios, pool.contended, strict=True)
            if first not in keys and second not in keys
        ]
        pairs += len(kept)
        far += sum(ratio > _FAR * median(kept) for ratio in kept)
    share = far / max(1, pairs)
    what = f"{name}: one of two equal contestants is twice as slow"
    if "contended" in name:  # why these are left out of races
        return bounds.Finding(what, f"{share:.2%} of {pairs}")
    bound = f"at most {_FAR_AT_MOST:.0%}"
    return bounds.Finding(what, f"{share:.2%} of {pairs}", bound, share <= _FAR_AT_MOST)


def _pool(file: Path | None, launches: int) -> tuple[Pool, list[Work]]:
    """The launches of a file, or new ones; those are kept in it."""
    if file is not None and file.is_file():
        stored = json.loads(file.read_text(encoding="utf-8"))
    else:
        stored = _record(launches)
        if file is not None:
            file.write_text(json.dumps(stored), encoding="utf-8")
    complete = max(len(_launches(entry)) for entry in stored["benchmarks"])
    stored["benchmarks"] = [e for e in stored["benchmarks"] if len(_launches(e)) == complete]
    return self_test.pool(stored), _works(stored)


def _launches(entry: Mapping[str, Any]) -> Sequence[Launch]:
    launches: Sequence[Launch] = entry["extra_info"]["fwbench"].get("launches", ())
    return launches


def main() -> int:
    """Record, race, and compare with the bounds."""
    files = {"pool": "keep the launches in it, or take them from it"}
    arguments = bounds.arguments(__doc__, rounds=10, files=files, launches=_LAUNCHES_AT_MOST)
    pool, works = _pool(arguments.pool, arguments.launches)
    print(f"{len(works)} groups, {len(pool.cases)} cases, {pool.launches} launches", flush=True)
    machine = _machine(pool)
    truth = _centres(noise.MODELS["quiet"](machine))
    findings: list[bounds.Finding] = []
    machines = {name: model(machine) for name, model in _MODELS.items()}
    machines["as recorded"] = pool
    machines["as recorded, contended launches too"] = Pool(
        list(pool.cases.values()), [()] * pool.launches
    )
    for name, raced in machines.items():
        centres = _centres(raced) if "recorded" in name else truth
        results = [
            *_simulated(name, raced, works, centres, arguments.rounds),
            _far(name, raced, works),
        ]
        for finding in results:
            print(f"{finding.what}: {finding.figure} {finding.bound}", flush=True)
        findings += results
    return bounds.conclude(findings)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(main())
