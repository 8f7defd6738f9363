"""Training loops that did the same work: how far loss curves lie apart, when compiling pays."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.records import equality
from fwbench.records.facts import CaseFacts
from fwbench.records.session_facts import BreakEven, LossCurves
from fwbench.report.deviation import largest_deviation
from fwbench.toggles import TOGGLES, Toggle

Entry = Mapping[str, Any]
Known = Mapping[str, Toggle]


@dataclass(frozen=True)
class Loop:
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
    def of_entry(cls, entry: Entry, known: Known) -> Loop:
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


def loss_curves(records: Sequence[Entry], known: Known = TOGGLES) -> list[LossCurves]:
    """How far the loss curves of each group lie apart, for the stored run.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.

    Returns:
        One for each group of at least two.
    """
    deviations = []
    for title, loops in groups(records, known):
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
        for title, loops in groups(records, known)
        for compiled, eager in _compiled(loops)
    ]


def groups(records: Sequence[Entry], known: Known) -> list[tuple[str, list[Loop]]]:
    """Loops that did the same work, in whatever framework and execution, with a title.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    by_work = defaultdict(list)
    for entry in records:
        if "epochs" in entry["extra_info"].get("fwbench", {}):
            loop = Loop.of_entry(entry, known)
            by_work[loop.work].append(loop)
    return [(_title(loops[0].facts), loops) for loops in by_work.values()]


def _title(facts: CaseFacts) -> str:
    return " ".join(map(str, (facts.workload, facts.device, facts.dtype, facts.size)))


def _largest_deviation(loops: Sequence[Loop]) -> tuple[float, int, tuple[str, str]] | None:
    return largest_deviation({loop.name: equality.curve(loop.facts) for loop in loops})


def _compiled(loops: Sequence[Loop]) -> Iterator[tuple[Loop, Loop]]:
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
