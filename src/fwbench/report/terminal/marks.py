"""What is in doubt about a number, as signs in a table, with a legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fwbench.measure.condition import DRIFTING
from fwbench.records.facts import CaseFacts
from fwbench.report.ranking.condition import condition_of, is_after_leak, is_contended
from fwbench.report.ranking.precision import reduced_bits

#: Stands where a mean lacks some of the sizes or operations that others have.
PARTIAL = "<"

_SIGNS: dict[str, tuple[Callable[[CaseFacts], bool], str]] = {
    "!": (is_contended, "contended (not ranked)"),
    "~": (lambda facts: condition_of(facts) == DRIFTING, "drifting"),
    "*": (lambda facts: bool(facts.spinning), "spinning"),
    "m": (is_after_leak, "memory leaked before"),
    "b": (lambda facts: reduced_bits(facts) is not None, "computed in fewer bits"),
    "#": (lambda facts: facts.unequal is not None, "another training (not ranked)"),
}

_MEANINGS = {
    **{sign: meaning for sign, (_, meaning) in _SIGNS.items()},
    PARTIAL: "over some of them only",
}


def signs(cases: Iterable[CaseFacts]) -> str:
    """The signs of what is in doubt about some of these cases; often empty."""
    cases = list(cases)
    return "".join(sign for sign, (holds, _) in _SIGNS.items() if any(map(holds, cases)))


def legend(used: Iterable[str]) -> str:
    """What the signs that were used mean; empty where there are none."""
    used = {*used}
    return "  ".join(f"{sign} {what}" for sign, what in _MEANINGS.items() if sign in used)
