"""What training loops showed: rates, first epochs, accuracy, how far loss curves lie apart."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Data
from fwbench.records.session_facts import BreakEven, LossCurves
from fwbench.records.units import count, mebibytes, time
from fwbench.report.deviation import largest_deviation
from fwbench.report.ranking.condition import marks
from fwbench.toggles import TOGGLES, Toggle

Entry = Mapping[str, Any]
Known = Mapping[str, Toggle]


@dataclass(frozen=True)
class _Loop:
    """A training loop.

    Attributes:
        facts: what fwbench recorded of it.
        name: framework, execution, and the toggles asked for that do not change the work.
        work: what loops must have in common for their losses to be comparable.
        settings: the value of every toggle that does not change the work.
    """

    facts: CaseFacts
    name: str
    work: tuple[Any, ...]
    settings: Mapping[str, Any]

    @classmethod
    def of_entry(cls, entry: Entry, known: Known) -> _Loop:
        """From pytest-benchmark's entry; an unknown toggle becomes part of the name."""
        facts = CaseFacts.unchecked(entry["extra_info"]["fwbench"])
        values = facts.toggles or {}
        work = [toggle.name for toggle in known.values() if toggle.changes_work]
        asked = {
            name: value
            for name, value in (entry.get("params") or {}).items()
            if name in values and name not in work
        }
        neutral = [toggle.name for toggle in known.values() if not toggle.changes_work]
        return cls(
            facts,
            " ".join(_named(facts, asked)),
            equality.work(facts, known),
            {name: values[name] for name in (*neutral, *asked) if name in values},
        )


def _named(facts: CaseFacts, asked: Mapping[str, str]) -> Iterator[str]:
    yield from (facts.framework, facts.execution)
    yield from (f"{name}={value}" for name, value in asked.items())


def section(records: Sequence[Entry], known: Known = TOGGLES) -> list[str]:
    """A few lines for each group of loops that did the same work.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    lines = []
    for title, loops in _groups(records, known):
        first = loops[0].facts
        data = first.data or Data()
        lines.append(
            f"{title}: {data.name} ({data.source}), "
            f"{len(equality.curve(first))} epochs of {count(first.steps_per_epoch or 0, 'step')}, "
            f"the first {first.warmup_epochs} outside the statistics"
        )
        width = max(len(loop.name) for loop in loops)
        lines += [f"  {loop.name:<{width}}  {_figures(loop.facts)}" for loop in loops]
        said = (*_deviation(loops), *_unequal(loops), *_break_even(loops))
        lines += [f"  {line}" for line in said]
    return lines


def loss_curves(records: Sequence[Entry], known: Known = TOGGLES) -> list[LossCurves]:
    """How far the loss curves of each group lie apart, for the stored run.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.

    Returns:
        One for each group of at least two.
    """
    deviations = []
    for title, loops in _groups(records, known):
        largest = _largest_deviation(loops)
        if largest is not None:
            deviation, epoch, between = largest
            deviations.append(
                LossCurves(group=title, max_deviation=deviation, epoch=epoch, between=[*between])
            )
    return deviations


def break_even(records: Sequence[Entry], known: Known = TOGGLES) -> list[BreakEven]:
    """After how many steps each execution that compiles breaks even, for the stored run.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    return [
        BreakEven(
            group=title,
            name=compiled.name,
            compile_s=compiled.facts.compile_s or 0.0,
            steps=break_even_steps(compiled.facts, eager.facts),
        )
        for title, loops in _groups(records, known)
        for compiled, eager in _compiled(loops)
    ]


def _groups(records: Sequence[Entry], known: Known) -> list[tuple[str, list[_Loop]]]:
    """Loops that did the same work, in whatever framework and execution, with a title."""
    groups = defaultdict(list)
    for entry in records:
        if "epochs" in entry["extra_info"].get("fwbench", {}):
            loop = _Loop.of_entry(entry, known)
            groups[loop.work].append(loop)
    return [(_title(loops[0].facts), loops) for loops in groups.values()]


def _title(facts: CaseFacts) -> str:
    return " ".join(map(str, (facts.workload, facts.device, facts.dtype, facts.size)))


def _figures(facts: CaseFacts) -> str:
    rate, unit = facts.images_per_s, "images"
    if rate is None:
        rate, unit = facts.tokens_per_s, "tokens"
    tested = (facts.test_accuracy or [])[-1:]
    first = 100 * (facts.first_epoch_excess or 0)
    parts = [
        f"{time(facts.epoch_s or 0.0)} an epoch (first {first:+.0f} %)",
        f"{rate or 0:,.0f} {unit}/s",
        *(f"accuracy {100 * test.accuracy:.2f} %{_of(facts)}" for test in tested),
        f"{100 * (facts.cpu_utilization or 0):.0f} % of {count(facts.threads or 1, 'CPU')}",
    ]
    above = facts.memory_above_bytes
    if above is not None:
        parts.append(f"peak memory {mebibytes(above)} above {memory_before(facts)}")
    return ", ".join([*parts, *filter(None, [marks(facts)])])


def _of(facts: CaseFacts) -> str:
    """Of how many examples the test accuracy is, where that is recorded."""
    return f" of {facts.tested_examples:,}" if facts.tested_examples else ""


def memory_before(facts: CaseFacts) -> str:
    """What the process held before the model was built, and how much of it is the data set."""
    data = facts.data_memory_bytes
    share = f", data set {mebibytes(data)}" if data is not None else ""
    return f"{mebibytes(facts.host_memory_before_bytes or 0)} held before{share}"


def _largest_deviation(loops: Sequence[_Loop]) -> tuple[float, int, tuple[str, str]] | None:
    return largest_deviation({loop.name: equality.curve(loop.facts) for loop in loops})


def _deviation(loops: Sequence[_Loop]) -> list[str]:
    largest = _largest_deviation(loops)
    if largest is None:
        return []
    deviation, epoch, (name, other) = largest
    where = f"{name} and {other}, epoch {epoch}"
    return [f"loss curves lie at most {deviation:.2g} nats apart ({where})"]


def _unequal(loops: Sequence[_Loop]) -> list[str]:
    """The loops that trained otherwise than most, and so are not ranked."""
    return [
        f"unequal: {loop.name}: {unequal_text(loop.facts)}" for loop in loops if loop.facts.unequal
    ]


def unequal_text(facts: CaseFacts) -> str:
    """Why a training is not ranked; empty if it is equal to the others of its work."""
    why = facts.unequal
    if why is None:
        return ""
    return (
        f"its loss curve lies {why.nats:.2g} nats from that of {why.to} (epoch {why.epoch}), and "
        f"{why.allowed:.2g} are allowed: it is not the same training, and left out of rankings"
    )


def _break_even(loops: Sequence[_Loop]) -> list[str]:
    """After how many steps each execution has gained what compiling it cost."""
    lines = []
    for compiled, eager in _compiled(loops):
        steps = break_even_steps(compiled.facts, eager.facts)
        pays = "does not pay: no faster than eager"
        if steps is not None:
            pays = f"breaks even after {count(steps, 'step')}"
        lines.append(f"{compiled.name}: compiling ({time(compiled.facts.compile_s or 0.0)}) {pays}")
    return lines


def _compiled(loops: Sequence[_Loop]) -> Iterator[tuple[_Loop, _Loop]]:
    """Each loop in an execution that compiles, with the same loop in ``eager``."""
    for compiled, eager in itertools.permutations(loops, 2):
        if (
            compiled.settings == eager.settings
            and compiled.facts.framework == eager.facts.framework
            and eager.facts.execution == "eager" != compiled.facts.execution
        ):
            yield compiled, eager


def break_even_steps(compiled: CaseFacts, eager: CaseFacts) -> int | None:
    """After how many steps an execution has gained what compiling it cost.

    Args:
        compiled: the facts of a loop in that execution.
        eager: those of the same loop in ``eager``.

    Returns:
        The number of steps; None if a step is no faster than in ``eager``.
    """
    gained_s = (eager.step_s or 0.0) - (compiled.step_s or 0.0)
    return math.ceil((compiled.compile_s or 0.0) / gained_s) if gained_s > 0 else None
