"""Which time rankings use: on a GPU there are several, and the one that ranks is named.

A call on a GPU is over for its user when the result exists: after launch, kernel and wait. The GPU
itself may be busy for a small part of that only, and then a ranking says who launches fastest.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from fwbench.frameworks.device_clock import DEVICE_CLOCKS
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count

COMPLETION = "completion time"


def has_several(device: str) -> bool:
    """Whether the time of a call on a device may mean more than one thing.

    Args:
        device: ``cpu`` or ``gpu:N``.
    """
    return device.startswith("gpu")


def named(text: str, device: str) -> str:
    """A text of times, with the name of the time in brackets: ``operations (completion time)``.

    Args:
        text: a title, or what a table shows.
        device: that the times were measured on; on a CPU the text stays as it is.
    """
    return f"{text} ({COMPLETION})" if has_several(device) else text


def notes(cases: Sequence[CaseFacts]) -> list[str]:
    """For each GPU, which time ranks its cases, and how much of it the GPU needed.

    Args:
        cases: all that were measured.
    """
    by_device: dict[str, list[CaseFacts]] = defaultdict(list)
    for facts in cases:
        if has_several(facts.device):
            by_device[facts.device].append(facts)
    return [
        f"cases on {device} are ranked by {COMPLETION}, until the result exists: launch, kernel "
        f"and wait{_busy(on_device)}"
        for device, on_device in sorted(by_device.items())
    ]


def _busy(cases: Sequence[CaseFacts]) -> str:
    """How much of the time the device itself needed, where its own clock has told."""
    shares = [
        facts.device_s / facts.completion_s
        for facts in cases
        if facts.device_clock in DEVICE_CLOCKS and facts.device_s and facts.completion_s
    ]
    if not shares:
        return ""
    least, typical, most = (
        f"{min(1.0, of(shares)):.0%}".replace("%", " %") for of in (min, statistics.median, max)
    )
    spread = f", {least} to {most}" if len(shares) > 1 else ""
    cases_of = count(len(shares), "case")
    return f"; the GPU itself needed {typical} of it (median of {cases_of}{spread})"
