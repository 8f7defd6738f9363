"""What training loops showed: rates, first epochs, accuracy, how far loss curves lie apart."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.report.deviation import largest_deviation
from fwbench.report.units import count, time
from fwbench.toggles import TOGGLES, Toggle

Entry = Mapping[str, Any]
Facts = Mapping[str, Any]
Known = Mapping[str, Toggle]

_GIB = 2**30


@dataclass(frozen=True)
class _Loop:
    """A training loop.

    Attributes:
        facts: what fwbench recorded of it.
        name: framework, execution, and the toggles asked for that do not change the work.
        work: what loops must have in common for their losses to be comparable.
        settings: the value of every toggle that does not change the work.
    """

    facts: Facts
    name: str
    work: tuple[Any, ...]
    settings: Mapping[str, Any]

    @classmethod
    def of_entry(cls, entry: Entry, known: Known) -> _Loop:
        """From pytest-benchmark's entry; a toggle that nobody here knows is a part of the name."""
        facts = entry["extra_info"]["fwbench"]
        values = facts["toggles"]
        work = [toggle.name for toggle in known.values() if toggle.changes_work]
        asked = {
            name: value
            for name, value in (entry.get("params") or {}).items()
            if name in values and name not in work
        }
        others = [toggle.name for toggle in known.values() if not toggle.changes_work]
        return cls(
            facts,
            " ".join(_named(facts, asked)),
            _work(facts, [values.get(name) for name in work]),
            {name: values[name] for name in (*others, *asked) if name in values},
        )


def _named(facts: Facts, asked: Mapping[str, str]) -> Iterator[str]:
    yield from (facts["framework"], facts["execution"])
    yield from (f"{name}={value}" for name, value in asked.items())


def _work(facts: Facts, toggles: Sequence[Any]) -> tuple[Any, ...]:
    return (
        *(facts[part] for part in ("workload", "device", "dtype", "size")),
        facts["data"]["digest"],
        facts["steps_per_epoch"],
        len(_curve(facts)),
        *toggles,
    )


def section(records: Sequence[Entry], known: Known = TOGGLES) -> list[str]:
    """A few lines for each group of loops that did the same work.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.
    """
    lines = []
    for title, loops in _groups(records, known):
        first = loops[0].facts
        data = first["data"]
        lines.append(
            f"{title}: {data['name']} ({data['source']}), "
            f"{len(_curve(first))} epochs of {count(first['steps_per_epoch'], 'step')}, "
            f"the first {first['warmup_epochs']} beside the statistics"
        )
        width = max(len(loop.name) for loop in loops)
        lines += [f"  {loop.name:<{width}}  {_figures(loop.facts)}" for loop in loops]
        lines += [f"  {line}" for line in (*_deviation(loops), *_break_even(loops))]
    return lines


def loss_curves(records: Sequence[Entry], known: Known = TOGGLES) -> list[dict[str, Any]]:
    """How far the loss curves of each group lie apart, for the stored run.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.

    Returns:
        For each group of at least two: ``group``, ``max_deviation`` (nats), ``epoch`` (from 1) and
        ``between`` (two names).
    """
    deviations = []
    for title, loops in _groups(records, known):
        largest = _largest_deviation(loops)
        if largest is not None:
            deviation, epoch, between = largest
            deviations.append(
                {"group": title, "max_deviation": deviation, "epoch": epoch, "between": [*between]}
            )
    return deviations


def break_even(records: Sequence[Entry], known: Known = TOGGLES) -> list[dict[str, Any]]:
    """After how many steps each execution that compiles breaks even, for the stored run.

    Args:
        records: pytest-benchmark's entries.
        known: the toggles of the session, by name.

    Returns:
        For each: ``group``, ``name``, ``compile_s`` and ``steps`` (None for never).
    """
    return [
        {
            "group": title,
            "name": compiled.name,
            "compile_s": compiled.facts["compile_s"],
            "steps": break_even_steps(compiled.facts, eager.facts),
        }
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
    return [(" ".join(map(str, work[:4])), loops) for work, loops in groups.items()]


def _figures(facts: Facts) -> str:
    unit = next(name for name in ("images", "tokens") if f"{name}_per_s" in facts)
    tested = facts["test_accuracy"][-1]
    parts = [
        f"{time(facts['epoch_s'])} an epoch (first {100 * facts['first_epoch_excess']:+.0f} %)",
        f"{facts[f'{unit}_per_s']:,.0f} {unit}/s",
        f"accuracy {100 * tested['accuracy']:.2f} %",
        f"{100 * facts['cpu_utilization']:.0f} % of {count(facts['threads'] or 1, 'CPU')}",
    ]
    if facts["peak_host_memory_bytes"]:
        parts.append(f"peak {facts['peak_host_memory_bytes'] / _GIB:.2f} GiB")
    return ", ".join(parts)


def _curve(facts: Facts) -> list[float]:
    """The training loss after each epoch of the first repetition."""
    return [epoch["train_loss"] for epoch in facts["epochs"] if epoch["repetition"] == 1]


def _largest_deviation(loops: Sequence[_Loop]) -> tuple[float, int, tuple[str, str]] | None:
    return largest_deviation({loop.name: _curve(loop.facts) for loop in loops})


def _deviation(loops: Sequence[_Loop]) -> list[str]:
    largest = _largest_deviation(loops)
    if largest is None:
        return []
    deviation, epoch, (name, other) = largest
    where = f"{name} and {other}, epoch {epoch}"
    return [f"loss curves lie at most {deviation:.2g} nats apart ({where})"]


def _break_even(loops: Sequence[_Loop]) -> list[str]:
    """After how many steps each execution has gained what compiling it cost."""
    lines = []
    for compiled, eager in _compiled(loops):
        steps = break_even_steps(compiled.facts, eager.facts)
        pays = "does not pay: no faster than eager"
        if steps is not None:
            pays = f"has paid after {count(steps, 'step')}"
        lines.append(f"{compiled.name}: compiling ({time(compiled.facts['compile_s'])}) {pays}")
    return lines


def _compiled(loops: Sequence[_Loop]) -> Iterator[tuple[_Loop, _Loop]]:
    """Each loop in an execution that compiles, with the same loop in ``eager``."""
    for compiled, eager in itertools.permutations(loops, 2):
        if (
            compiled.settings == eager.settings
            and compiled.facts["framework"] == eager.facts["framework"]
            and eager.facts["execution"] == "eager" != compiled.facts["execution"]
        ):
            yield compiled, eager


def break_even_steps(compiled: Facts, eager: Facts) -> int | None:
    """After how many steps an execution has gained what compiling it cost.

    Args:
        compiled: the facts of a loop in that execution.
        eager: those of the same loop in ``eager``.

    Returns:
        The number of steps; None if a step is no faster than in ``eager``.
    """
    gained_s = eager["step_s"] - compiled["step_s"]
    return math.ceil(compiled["compile_s"] / gained_s) if gained_s > 0 else None
