"""Is it possible at all? Work that was faster than the machine can be has not been done."""

from __future__ import annotations

from fwbench.errors import ImpossibleRate
from fwbench.measure.limits import Limits
from fwbench.names import product_precision
from fwbench.records.facts import CaseFacts
from fwbench.records.units import four_digits, time

_REMEDY = (
    "its calls do not do the work, or the operation declares more than there is to do; if the peak "
    "was measured on a busy machine, measure it again"
)


def check(facts: CaseFacts, limits: Limits) -> CaseFacts:
    """Check that the declared work can have been done in the median time of its rounds.

    Of a result that is a view, or may be one, no bytes are claimed to have moved.

    Args:
        facts: of the case, with its times.
        limits: of its device.

    Returns:
        The limits that it was held against, for the record.

    Raises:
        ImpossibleRate: it was faster.
    """
    dtype = product_precision(facts.dtype, facts.toggles or {})
    flops_per_s = limits.flops_per_s.get(dtype) if facts.flops else None
    moves = facts.bytes and facts.result_is_view is False
    bytes_per_s = limits.bytes_per_s if moves else None
    source = limits.source
    _hold(facts, facts.flops, flops_per_s, "GFLOP", source.get(dtype, ""))
    _hold(facts, facts.bytes, bytes_per_s, "GB", source.get("bytes", ""))
    held = CaseFacts()
    if flops_per_s:
        held |= CaseFacts(limit_flops_per_s=flops_per_s)
    return held | CaseFacts(limit_bytes_per_s=bytes_per_s) if bytes_per_s else held


def _hold(
    facts: CaseFacts, work: float | None, limit_per_s: float | None, unit: str, source: str
) -> None:
    seconds = facts.completion_s
    if not (work and limit_per_s and seconds) or work / seconds <= limit_per_s:
        return
    raise ImpossibleRate(
        f"{four_digits(work / 1e9)} {unit} in {time(seconds)} are "
        f"{four_digits(work / seconds / 1e9)} {unit}/s, and no more than "
        f"{four_digits(limit_per_s / 1e9)} are possible here ({source}): {_REMEDY}"
    )
