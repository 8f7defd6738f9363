"""How often ``fwbench ab`` errs on this machine, and what it can see.

A suite of NumPy operations is launched many times, unchanged; some operations are in it in slowed
forms, too. Comparisons are then drawn from stretches of consecutive launches, each launch given to
one side or the other as a real job would, and decided by the same code.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.errors import TooFewLaunches
from fwbench.gate.ab import StagedComparison, Stages
from fwbench.gate.samples import Sample, SampleSet
from fwbench.gate.verdicts import Comparison, Rules, Verdict
from fwbench.processes import session
from fwbench.records.replication import is_contended
from fwbench.records.stored import from_json

#: Short, because many launches tell more than long ones.
_ARGUMENTS = ("--fw", "numpy", "--fw-warmup", "0.05", "--benchmark-max-time=0.05")

_SLOWED = re.compile(r"_slowed_(\d+)")

_PROGRESS = re.compile(r"launch \d+ of \d+")


@dataclass(frozen=True)
class Outcome:
    """What many comparisons of one kind came to.

    Attributes:
        what: was compared.
        comparisons: how many.
        detected: in how many of them a change was found: wrongly, if nothing was changed.
        extra: launches of cases in the second stage, as a share of those in the first.
    """

    what: str
    comparisons: int
    detected: int
    extra: float


class Pool:
    """Launches of the self-test's suite.

    Args:
        samples: of every case, slowed forms among them; as many launches of each.
        contended: for each launch, the keys that had to share their processors.
    """

    def __init__(self, samples: Sequence[Sample], contended: Sequence[Collection[str]]) -> None:
        self.launches = len(contended)
        self.contended = contended
        self.cases = {s.key: s for s in samples if not _SLOWED.search(s.key)}
        self.slowed = {s.key: s for s in samples if _SLOWED.search(s.key)}

    @property
    def percents(self) -> list[int]:
        """By how much some cases are slowed."""
        matches = (_SLOWED.search(key) for key in self.slowed)
        return sorted({5 * int(match[1]) for match in matches if match})

    def forms(self, percent: int) -> dict[str, Sample]:
        """The slowed forms, by the case that they are forms of."""
        mark = f"_slowed_{percent // 5}"
        return {k.replace(mark, ""): s for k, s in self.slowed.items() if mark in k}

    def run(
        self, launch: int, slowed: dict[str, Sample], selected: Collection[str] | None
    ) -> SampleSet:
        """One launch as the samples of one side.

        Args:
            launch: which of the pool, from 0.
            slowed: the slowed forms that stand in for cases, by the keys of these.
            selected: the keys of the cases to measure; None for all.
        """
        samples = {
            key: dataclasses.replace(
                sample,
                values_s=(slowed.get(key, sample).values_s[launch],),
                contended=slowed.get(key, sample).key in self.contended[launch],
            )
            for key, sample in self.cases.items()
            if selected is None or key in selected
        }
        return SampleSet("self-test", samples)

    def part(self, first: int, launches: int) -> Pool:
        """Some consecutive launches as a pool of their own.

        Args:
            first: the number of the first one, from 0.
            launches: how many.
        """
        chosen = slice(first, first + launches)
        samples = [
            dataclasses.replace(sample, values_s=sample.values_s[chosen])
            for sample in (*self.cases.values(), *self.slowed.values())
        ]
        return Pool(samples, self.contended[chosen])


def measure(launches: int, seed: int, say: Callable[[str], Any]) -> Pool:
    """Measure the suite of the self-test in many launches.

    Args:
        launches: how many.
        seed: of the order of cases within launches.
        say: called with each line of progress.

    Raises:
        SuiteError: it could not be measured.
    """
    arguments = [*_ARGUMENTS, "--fw-launches", str(launches), "--fw-seed", str(seed)]

    def progress(line: str) -> None:
        if _PROGRESS.match(line):
            say(line)

    return pool(session.measure_suite("fwbench.gate.self_test_suite", arguments, progress))


def pool(output_json: dict[str, Any]) -> Pool:
    """A pool from the JSON of a session of the suite."""
    stored = from_json("self-test", output_json)
    run = SampleSet.of_stored(stored)
    contended: dict[int, set[str]] = {}
    for record in stored.records:
        for launch in record.facts.launches or ():
            keys = contended.setdefault(launch.launch, set())
            if is_contended(launch):
                keys.add(record.nodeid)
    return Pool(list(run.samples.values()), [contended[number] for number in sorted(contended)])


def refuse_too_few(launches: int, stages: Stages) -> None:
    """Refuse a pool that holds no whole comparison.

    Args:
        launches: of the pool.
        stages: of a comparison.

    Raises:
        TooFewLaunches: it is one.
    """
    needed = _in_a_row(stages)
    if launches < needed:
        raise TooFewLaunches(
            f"{launches} launches are too few: a comparison may need {needed} in a row"
        )


def _in_a_row(stages: Stages) -> int:
    return 2 * (stages.launches + stages.fresh)


def outcomes(
    pool: Pool, stages: Stages, rules: Rules, comparisons: int, seed: int
) -> list[Outcome]:
    """Compare many times: nothing changed, then one case slowed.

    Args:
        pool: of launches.
        stages: of every comparison.
        rules: of every comparison.
        comparisons: of each kind.
        seed: of what is drawn.

    Raises:
        TooFewLaunches: the pool has fewer than one comparison may need.
    """
    refuse_too_few(pool.launches, stages)
    draw = random.Random(seed)  # noqa: S311 (no secret)
    outcomes = [_outcome("nothing changed", pool, stages, rules, comparisons, draw, {})]
    for percent in pool.percents:
        what = f"one case of {len(pool.cases)} slowed by {percent} %"
        forms = pool.forms(percent)
        outcomes.append(_outcome(what, pool, stages, rules, comparisons, draw, forms))
    return outcomes


def _outcome(
    what: str,
    pool: Pool,
    stages: Stages,
    rules: Rules,
    comparisons: int,
    draw: random.Random,
    forms: dict[str, Sample],
) -> Outcome:
    hits, extra = 0, 0
    for _ in range(comparisons):
        slowed = dict([draw.choice(sorted(forms.items()))]) if forms else {}
        comparison, measured = _compare(pool, stages, rules, draw, slowed)
        regressed = {j.key for j in comparison.judgements if j.verdict is Verdict.REGRESSED}
        hits += bool(regressed & slowed.keys() if slowed else regressed)
        extra += measured
    of_first = comparisons * 2 * stages.launches * len(pool.cases)
    return Outcome(what, comparisons, hits, extra / of_first)


def _compare(
    pool: Pool, stages: Stages, rules: Rules, draw: random.Random, slowed: dict[str, Sample]
) -> tuple[Comparison, int]:
    """One comparison, and how many cases were launched in its second stage."""
    start = draw.randrange(pool.launches - _in_a_row(stages) + 1)
    launches = iter(range(start, pool.launches))
    again = 0

    def launch(side: int, selected: Collection[str] | None, _: int) -> SampleSet:
        nonlocal again
        again += len(selected or ())
        return pool.run(next(launches), slowed if side == 1 else {}, selected)

    own = dataclasses.replace(stages, seed=draw.randrange(2**32))
    return StagedComparison(launch, own, rules).compare(("base", "contender")), again
