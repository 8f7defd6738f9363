"""What training loops showed: rates, first epochs, accuracy, how far loss curves lie apart."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fwbench.report.units import count, time

Entry = Mapping[str, Any]
Facts = Mapping[str, Any]

_GIB = 2**30


def section(records: Sequence[Entry]) -> list[str]:
    """A few lines for each group of loops that did the same work.

    Args:
        records: pytest-benchmark's entries.
    """
    lines = []
    for group, loops in _groups(records).items():
        first = loops[0]
        data = first["data"]
        lines.append(
            f"{' '.join(map(str, group[:4]))}: {data['name']} ({data['source']}), "
            f"{len(_curve(first))} epochs of {count(first['steps_per_epoch'], 'step')}, "
            f"the first {first['warmup_epochs']} beside the statistics"
        )
        width = max(len(_name(facts)) for facts in loops)
        lines += [f"  {_name(facts):<{width}}  {_loop(facts)}" for facts in loops]
        lines += [f"  {line}" for line in (*_apart(loops), *_paid(loops))]
    return lines


def loss_curves(records: Sequence[Entry]) -> list[dict[str, Any]]:
    """How far the loss curves of each group lie apart, for the stored run.

    Returns:
        For each group of at least two: ``group``, ``max_deviation`` (nats), ``epoch`` (from 1) and
        ``between`` (two names).
    """
    found = []
    for group, loops in _groups(records).items():
        worst = largest_deviation({_name(one): _curve(one) for one in loops})
        if worst is not None:
            deviation, epoch, between = worst
            name = " ".join(map(str, group[:4]))
            found.append(
                {"group": name, "max_deviation": deviation, "epoch": epoch, "between": [*between]}
            )
    return found


def break_even(records: Sequence[Entry]) -> list[dict[str, Any]]:
    """After how many steps each execution that compiles has paid, for the stored run.

    Returns:
        For each: ``group``, ``name``, ``compile_s`` and ``steps`` (None for never).
    """
    return [
        {
            "group": " ".join(map(str, group[:4])),
            "name": _name(compiled),
            "compile_s": compiled["compile_s"],
            "steps": break_even_steps(compiled, eager),
        }
        for group, loops in _groups(records).items()
        for compiled, eager in _compiled(loops)
    ]


def _groups(records: Sequence[Entry]) -> dict[tuple[Any, ...], list[Facts]]:
    """Loops that did the same work, whoever did it: their facts."""
    groups = defaultdict(list)
    for entry in records:
        facts = entry["extra_info"].get("fwbench", {})
        if "epochs" in facts:
            groups[_work(facts)].append(facts)
    return dict(groups)


def _work(facts: Facts) -> tuple[Any, ...]:
    toggles = facts["toggles"]
    return (
        *(facts[part] for part in ("workload", "device", "dtype", "size")),
        facts["data"]["digest"],
        facts["steps_per_epoch"],
        len(_curve(facts)),
        *(toggles.get(name) for name in ("sparse", "decay")),
    )


def _name(facts: Facts) -> str:
    """Framework, execution, and the toggles that do not change the work."""
    asked = (f"{name}={facts[name]}" for name in ("workers", "onednn") if name in facts)
    return " ".join([facts["framework"], facts["execution"], *asked])


def _loop(facts: Facts) -> str:
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


def largest_deviation(
    curves: Mapping[str, Sequence[float]],
) -> tuple[float, int, tuple[str, str]] | None:
    """How far any two of several loss curves lie apart, over the epochs that both have.

    Args:
        curves: losses after each epoch, by name.

    Returns:
        The deviation in nats, the epoch (from 1) and the two names; None for fewer than two curves.
    """
    apart = [
        (abs(ours - theirs), number, (one, other))
        for (one, first), (other, second) in itertools.combinations(curves.items(), 2)
        for number, (ours, theirs) in enumerate(zip(first, second, strict=False), 1)
    ]
    return max(apart, key=lambda found: found[0], default=None)


def _apart(loops: Sequence[Facts]) -> list[str]:
    worst = largest_deviation({_name(one): _curve(one) for one in loops})
    if worst is None:
        return []
    deviation, epoch, (one, other) = worst
    where = f"{one} and {other}, epoch {epoch}"
    return [f"loss curves lie at most {deviation:.2g} nats apart ({where})"]


def _paid(loops: Sequence[Facts]) -> list[str]:
    """After how many steps an execution has earned what compiling it cost."""
    lines = []
    for compiled, eager in _compiled(loops):
        steps = break_even_steps(compiled, eager)
        paid = "does not pay: no faster than eager"
        if steps is not None:
            paid = f"has paid after {count(steps, 'step')}"
        lines.append(f"{_name(compiled)}: compiling ({time(compiled['compile_s'])}) {paid}")
    return lines


def _compiled(loops: Sequence[Facts]) -> Iterator[tuple[Facts, Facts]]:
    """Each loop in an execution that compiles, with the same loop in ``eager``."""
    for compiled, eager in itertools.permutations(loops, 2):
        alike = all(
            compiled["toggles"].get(part) == eager["toggles"].get(part)
            for part in ("workers", "onednn")
        )
        if (
            alike
            and compiled["framework"] == eager["framework"]
            and eager["execution"] == "eager" != compiled["execution"]
        ):
            yield compiled, eager


def break_even_steps(compiled: Facts, eager: Facts) -> int | None:
    """After how many steps an execution has earned what compiling it cost.

    Args:
        compiled: the facts of a loop in that execution.
        eager: those of the same loop in ``eager``.

    Returns:
        The number of steps; None if a step is no faster than in ``eager``.
    """
    gained_s = eager["step_s"] - compiled["step_s"]
    return math.ceil(compiled["compile_s"] / gained_s) if gained_s > 0 else None
