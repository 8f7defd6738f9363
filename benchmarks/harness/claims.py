"""Check the errors and the power of claims in a test, on a machine that changes its speed.

Functions of made-up times on a made-up machine, whose speed changes by 1.6 every 15 ms to 4 s. With
a true ratio that is the claimed one, and at the edge of the margin beside it, either verdict must
be as rare as the level says. Then how many claims are decided, and how soon, where the ratio is
another one; and limits that a function keeps, or does not.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections import Counter
from unittest import mock

from bounds import Finding, arguments, conclude

from fwbench.claims import Claim, ClaimTest, Limit
from fwbench.errors import CannotTell, ClaimFailed
from support.two_speeds import TwoSpeeds

_CALL_S, _WITHIN_S, _LEVEL = 0.7e-3, 5.0, 0.01

_HOLDS, _FAILS, _OPEN = "holds", "fails", "cannot tell"


def verdict(claim: Claim, ratio: float, shapes: tuple[str, str], seed: int) -> tuple[str, float]:
    """The outcome of a claim about two functions, and the seconds that it took.

    Args:
        ratio: of the second function's time to the first one's.
        shapes: of their times.
    """
    machine = TwoSpeeds(seed)
    functions = {"f": machine.function(_CALL_S, shapes[0])}
    if not isinstance(claim, Limit):
        functions["g"] = machine.function(_CALL_S * ratio, shapes[1])
    try:
        ClaimTest(claim, functions, (), machine, random.Random(seed)).outcome()  # noqa: S311
    except ClaimFailed:
        return _FAILS, machine.now_s
    except CannotTell:
        return _OPEN, machine.now_s
    return _HOLDS, machine.now_s


def _finding(
    cases: int, claim: Claim, ratio: float, shapes: tuple[str, str], wrong: str
) -> Finding:
    outcomes = [verdict(claim, ratio, shapes, seed) for seed in range(cases)]
    counts = Counter(outcome for outcome, _ in outcomes)
    shares = ", ".join(f"{counts[it] / cases:.1%} {it}" for it in (_HOLDS, _FAILS, _OPEN))
    took_s = statistics.median(took for _, took in outcomes)
    kept = all(counts[it] <= _LEVEL * cases for it in wrong.split(",")) if wrong else None
    return Finding(
        f"{claim.text}, true {ratio:g}, {' and '.join(shapes)}",
        f"{shares}; median {took_s:.2f} s",
        f"at most {_LEVEL:.0%} {' or '.join(wrong.split(','))}" if wrong else "",
        kept,
    )


def main() -> int:
    """Make the claims, and print the table."""
    cases = arguments(__doc__, rounds=1_000).rounds
    even, skewed, preempted = ("even",) * 2, ("skewed", "even"), ("preempted", "even")
    by = Claim("faster by 1.5", 1.5, True, _LEVEL, _WITHIN_S)
    alike = Claim("faster", 1.0, True, _LEVEL, _WITHIN_S)
    no_slower = Claim("no slower by 1.03", 1.03, False, _LEVEL, _WITHIN_S)
    both = f"{_HOLDS},{_FAILS}"
    findings = [
        *(_finding(cases, by, 1.5, shapes, both) for shapes in (even, skewed, preempted)),
        *(_finding(cases, alike, edge, even, both) for edge in (1.0, 1 / 1.01, 1.01)),
        *(_finding(cases, alike, ratio, even, _FAILS) for ratio in (1.02, 1.03, 1.1, 1.5)),
        *(_finding(cases, alike, 1.1, shapes, _FAILS) for shapes in (skewed, preempted)),
        _finding(cases, by, 1.4, even, _HOLDS),
        _finding(cases, by, 1.6, even, _FAILS),
        _finding(cases, no_slower, 1.0, even, _FAILS),
        _finding(cases, no_slower, 1 / 1.1, even, _HOLDS),
    ]
    for limit in (0.4, 0.6, 0.9, 0.95, 1.05, 1.5, 1.7):
        claim = Limit(f"limit {limit:g} of the time", limit * _CALL_S, False, _LEVEL, _WITHIN_S)
        findings.append(_finding(cases, claim, 1.0, even, _FAILS if limit > 1 else _HOLDS))
    return conclude(findings)


if __name__ == "__main__":
    with mock.patch("fwbench.claims.is_contended", return_value=False):  # that is this machine's
        sys.exit(main())
