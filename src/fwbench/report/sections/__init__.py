"""What a report shows at length: a part for each operation and device, each training, the rest."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from fwbench.report.model import Run, labels
from fwbench.report.sections import comparisons, operations, others, roofline, training
from fwbench.report.sections.table import Cell, Part, Row

__all__ = ["Cell", "Part", "Row", "details", "linkable"]

_MAKERS = (comparisons.parts, operations.parts, roofline.parts, training.parts, others.parts)


def details(runs: Sequence[Run]) -> list[Part]:
    """All parts, in the order in which they are shown, without ids."""
    names = labels(runs)
    return [part for make in _MAKERS for part in make(runs, names)]


def linkable(found: Sequence[Part]) -> list[Part]:
    """With ids of their own, also where titles differ in signs alone."""
    taken: set[str] = set()
    linked = []
    for part in found:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"part-{part.title}").strip("-")
        numbered = (f"{stem}-{number}" for number in itertools.count(2))
        free = next(name for name in itertools.chain([stem], numbered) if name not in taken)
        taken.add(free)
        linked.append(replace(part, id=free))
    return linked
