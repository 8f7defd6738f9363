"""Error rates of ``fwbench ab`` on this machine, and the changes that it finds.

A suite of NumPy operations is launched many times, unchanged; some operations are in it in slowed
forms, too. Comparisons are then drawn from stretches of consecutive launches: two in a row are a
pair, one of them the base's as a real job would draw it, and the same code decides.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.gate.ab import Pair, PairedComparison, PairPlan
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import CHANGES, Comparison, Rules, Verdict
from fwbench.records.facts import CaseFacts
from fwbench.records.launches import is_contended
from fwbench.records.measurement import MEDIAN, MINIMUM, Measurement
from fwbench.records.stored import from_json

#: Short, because many launches tell more than long ones.
SHORT = ("--fw-warmup", "0.05", "--benchmark-max-time=0.05")

#: Of a session that measures the suite.
ARGUMENTS = ("--fw", "numpy", *SHORT)

_SLOWED = re.compile(r"_slowed_(\d+)")


@dataclass(frozen=True)
class ErrorRates:
    """Verdicts of many comparisons of one kind, counted.

    Attributes:
        percent: by how much one case was slowed; 0 if none was.
        false_alarms: in how many of them an unchanged case was called regressed or improved.
        detected: slowed cases that were called regressed.
        overlooked: slowed cases that were called unchanged.
        claimed: slowed cases of which it was said that a change as large would have shown.
        kept: how many of these were found.
        cost: launches of cases, as a multiple of those of the first pairs.
    """

    what: str
    percent: int
    comparisons: int
    false_alarms: int
    detected: int
    overlooked: int
    claimed: int
    kept: int
    cost: float


class Pool:
    """Launches of the self-test's suite.

    Args:
        samples: of every case, slowed forms among them; as many launches of each.
        contended: for each launch, the keys that had to share their processors.
    """

    def __init__(
        self, samples: Sequence[Measurement], contended: Sequence[Collection[str]]
    ) -> None:
        self.launches = len(contended)
        self.contended = contended
        self.cases = {s.key: s for s in samples if not _SLOWED.search(s.key)}
        self.slowed = {s.key: s for s in samples if _SLOWED.search(s.key)}

    @property
    def percents(self) -> list[int]:
        """By how much some cases are slowed."""
        matches = (_SLOWED.search(key) for key in self.slowed)
        return sorted({5 * int(match[1]) for match in matches if match})

    def forms(self, percent: int) -> dict[str, Measurement]:
        """The slowed forms, by the case that they are forms of."""
        mark = f"_slowed_{percent // 5}"
        return {k.replace(mark, ""): s for k, s in self.slowed.items() if mark in k}

    def run(
        self, launch: int, slowed: dict[str, Measurement], selected: Collection[str] | None
    ) -> SampleSet:
        """One launch as the samples of one side.

        Args:
            launch: which of the pool, from 0.
        """
        samples = {
            key: dataclasses.replace(
                sample,
                facts=sample.facts
                | CaseFacts(contended=slowed.get(key, sample).key in self.contended[launch]),
                figures=[slowed.get(key, sample).launches[launch]],
            )
            for key, sample in self.cases.items()
            if selected is None or key in selected
        }
        return SampleSet("self-test", samples)

    def part(self, first: int, launches: int) -> Pool:
        """Some consecutive launches as a pool of their own."""
        chosen = slice(first, first + launches)
        samples = [
            dataclasses.replace(sample, figures=sample.launches[chosen])
            for sample in (*self.cases.values(), *self.slowed.values())
        ]
        return Pool(samples, self.contended[chosen])


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


#: Limit of consecutive launches of a comparison; a noisy case would go on without one.
_IN_A_ROW_AT_MOST = 80


def outcomes(
    pool: Pool, plan: PairPlan, rules: Rules, comparisons: int, seed: int
) -> list[ErrorRates]:
    """Compare many times: nothing changed, then one case slowed.

    Args:
        plan: of every comparison, but for its budget: that is the pool.
    """
    draw = random.Random(seed)  # noqa: S311 (no secret)
    outcomes = [_outcome("nothing changed", pool, plan, rules, comparisons, draw, {}, 0)]
    for percent in pool.percents:
        what = f"one case of {len(pool.cases)} slowed by {percent} %"
        forms = pool.forms(percent)
        outcomes.append(_outcome(what, pool, plan, rules, comparisons, draw, forms, percent))
    return outcomes


def _outcome(
    what: str,
    pool: Pool,
    plan: PairPlan,
    rules: Rules,
    comparisons: int,
    draw: random.Random,
    forms: dict[str, Measurement],
    percent: int,
) -> ErrorRates:
    tally: Counter[str] = Counter()
    for _ in range(comparisons):
        slowed = dict([draw.choice(sorted(forms.items()))]) if forms else {}
        comparison, launches = _compare(pool, plan, rules, draw, slowed)
        tally["launches"] += launches
        tally["false alarms"] += any(
            verdict in CHANGES and key not in slowed for key, verdict in comparison.verdicts.items()
        )
        for key in slowed:
            verdict = comparison.verdicts[key]
            tally[verdict] += 1
            if _claims(comparison, key, percent / 100):
                tally["claimed"] += 1
                tally["kept"] += verdict is Verdict.REGRESSED
    return ErrorRates(
        what,
        percent,
        comparisons,
        tally["false alarms"],
        tally[Verdict.REGRESSED],
        tally[Verdict.UNCHANGED],
        tally["claimed"],
        tally["kept"],
        tally["launches"] / (comparisons * 2 * plan.pairs * len(pool.cases)),
    )


def _claims(comparison: Comparison, key: str, change: float) -> bool:
    """True if a comparison says of a case that such a change of its time would have shown."""
    visible = [
        judgement.visible
        for judgement in comparison.judgements
        if judgement.key == key and judgement.metric in (MINIMUM, MEDIAN)
    ]
    return all(share is not None and share <= change for share in visible)


def _compare(
    pool: Pool, plan: PairPlan, rules: Rules, draw: random.Random, slowed: dict[str, Measurement]
) -> tuple[Comparison, int]:
    """One comparison, and how many launches of cases it took."""
    length = min(pool.launches, _IN_A_ROW_AT_MOST) // 2 * 2
    start = draw.randrange(pool.launches - length + 1)
    used, launched = 0, 0

    def pair(selected: Collection[str] | None, _: int) -> Pair:
        nonlocal used, launched
        base, contender = (
            pool.run(start + used + side, slowed if side else {}, selected) for side in (0, 1)
        )
        used += 2
        launched += len(base.samples) + len(contender.samples)
        return base, contender

    job_plan = dataclasses.replace(plan, budget_s=length, seed=draw.randrange(2**32))
    # Time is counted in launches.
    job = PairedComparison(pair, job_plan, rules, clock=lambda: used)
    return job.compare(("base", "contender")), launched
