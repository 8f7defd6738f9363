"""Explanations of changes in words: for a terminal, as Markdown, and as figures."""

import math
from collections.abc import Sequence
from typing import Any

from fwbench.gate.causes import BYTES, ExplainedChange
from fwbench.gate.explanation import Cause, Explanation
from fwbench.gate.verdicts import CHANGES
from fwbench.records.session_facts import StoredCause, StoredExplanation
from fwbench.records.units import signed, time
from fwbench.report import escaping

#: Lines of a case in Markdown, its headline apart.
_LINES = 10

#: From this share on, per cent without a digit behind the point.
_WHOLE = 0.1

#: What is said of a change that nothing accounts for.
NOTHING_FOUND = "no difference found in what was recorded"


def lines(explained: Sequence[ExplainedChange]) -> list[str]:
    """The lines for a terminal: of each case a headline, and an indented line for each cause."""
    texts = [
        text
        for each in explained
        for text in (headline(each), *(f"  {line}" for line in _causes(each)))
    ]
    return [" ".join(text.splitlines()) for text in map(escaping.terminal, texts)]


def markdown(explained: Sequence[ExplainedChange]) -> str:
    """The same as Markdown, with at most ten lines a case; empty without a case."""
    if not explained:
        return ""
    parts = ["### Why it changed", ""]
    for each in explained:
        parts += [f"**{escaping.markdown(headline(each))}**", ""]
        parts += [f"- {escaping.markdown(line)}" for line in _causes(each, _LINES)]
        parts.append("")
    return "\n".join(parts)


def to_json(explained: Sequence[ExplainedChange]) -> list[dict[str, Any]]:
    """The same in JSON's own types, as ``explanations`` of a comparison."""
    return [dict(_stored(each)) for each in explained]


def _stored(each: ExplainedChange) -> StoredExplanation:
    explanation, judgement = each.explanation, each.judgement
    return StoredExplanation(
        key=explanation.key,
        name=explanation.name,
        verdict=judgement.verdict,
        reason=judgement.reason,
        base_s=explanation.base_s,
        contender_s=explanation.contender_s,
        causes=[
            StoredCause(kind=cause.kind, words=cause.text, time_s=cause.time_s)
            for cause in explanation.causes
        ],
        gaps=[*explanation.gaps],
        unexplained_s=explanation.unexplained_s,
        nothing_above=None if each.nothing_above == math.inf else each.nothing_above,
    )


def headline(each: ExplainedChange) -> str:
    """The case and its times: ``gemm: 61 us -> 74 us (+21 %)``; why it is no verdict, if not."""
    explanation, judgement = each.explanation, each.judgement
    parts = [_percent(explanation.difference_s / explanation.base_s)] if explanation.base_s else []
    if judgement.ratio and judgement.metric in BYTES:
        change = _percent(judgement.ratio - 1)
        parts.append(f"{judgement.verdict} in {judgement.metric}: {change}")
    elif judgement.verdict not in CHANGES and each.nothing_above is None:
        parts += filter(None, (judgement.verdict, judgement.reason))
    times = f"{time(explanation.base_s)} -> {time(explanation.contender_s)}"
    return f"{explanation.name}: {times}" + (f" ({'; '.join(parts)})" if parts else "")


def _causes(each: ExplainedChange, most: int | None = None) -> list[str]:
    """A line for each cause, then what is left, and what could not be looked at.

    Args:
        most: number of lines; causes that hold the least are left out.
    """
    explanation, last = each.explanation, _left(each)
    causes = [*explanation.causes]
    if most is not None and len(causes) + len(last) > most:
        kept = most - len(last) - 1
        largest = sorted(causes, key=lambda cause: -abs(cause.time_s or 0.0))[:kept]
        last = [f"and {len(causes) - kept} more", *last]
        causes = [cause for cause in causes if cause in largest]
    shown = [_line(cause, explanation) for cause in causes]
    return [*shown, *last] if each.nothing_above is None else [*last, *shown]


def _left(each: ExplainedChange) -> list[str]:
    """Lines behind the causes: what none of them holds, and what could not be looked at."""
    explanation = each.explanation
    if each.nothing_above == math.inf:
        return [f"whether it has changed cannot be told: {each.judgement.reason}"]
    if each.nothing_above is not None:
        return [f"no difference above {_percent(each.nothing_above).lstrip('+')}"]
    parts = [] if explanation.causes else [NOTHING_FOUND]
    if explanation.unexplained_s is not None:
        parts.append(f"not explained: {signed(explanation.unexplained_s)}")
    if explanation.gaps:
        parts.append(f"not looked at: {'; '.join(explanation.gaps)}")
    return parts


def _line(cause: Cause, explanation: Explanation) -> str:
    text = f"{cause.kind}: {cause.text}"
    if cause.time_s is None:
        return text
    share = cause.time_s / explanation.difference_s if explanation.difference_s else 0.0
    return f"{text}: {signed(cause.time_s)} ({share:.0%} of it)"


def _percent(share: float) -> str:
    return f"{100 * share:+.{0 if abs(share) >= _WHOLE else 1}f} %"
