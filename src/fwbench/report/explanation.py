"""Explanations of changes: as lines, as Markdown, as figures, and as sections of a report."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fwbench.gate.causes import BYTES, ExplainedChange
from fwbench.gate.explanation import Cause, Explanation
from fwbench.gate.verdicts import CHANGES
from fwbench.records.session_facts import StoredCause, StoredExplanation
from fwbench.records.units import signed, time
from fwbench.report import escaping
from fwbench.report.section import Section, TableCell, columns, quantity, share

#: Lines of a case in Markdown, its headline apart.
_LINES = 10

#: Causes with seconds that come before facts where not all have a line.
_LARGEST = 4

#: From this share on, per cent without a digit behind the point.
_WHOLE = 0.1

#: Less than this share of a change is nothing.
_NOTHING_OF_IT = 0.05

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
        causes=[*map(_stored_cause, explanation.causes)],
        gaps=[*explanation.gaps],
        unexplained_s=explanation.unexplained_s,
        nothing_above=None if each.nothing_above == math.inf else each.nothing_above,
    )


def _stored_cause(cause: Cause) -> StoredCause:
    stored = StoredCause(kind=cause.kind, words=cause.text, time_s=cause.time_s)
    if cause.sides_s is None:
        return stored
    # As in the words: less than nothing, between operators that overlap, is nothing.
    base_s, contender_s = (max(0.0, time_s) for time_s in cause.sides_s)
    return StoredCause(**stored, base_s=base_s, contender_s=contender_s)


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
        most: number of lines; of more causes smaller ones are left out.
    """
    explanation, last = each.explanation, _left(each)
    causes = [*explanation.causes]
    if most is not None and len(causes) + len(last) > most:
        kept = _kept(causes, most - len(last) - 1)
        last = [_more([causes[place] for place in {*range(len(causes))} - {*kept}]), *last]
        causes = [causes[place] for place in kept]
    shown = [_line(cause, explanation) for cause in causes]
    return [*shown, *last] if each.nothing_above is None else [*last, *shown]


def _more(left_out: Sequence[Cause | StoredCause]) -> str:
    """The line for causes without one of their own, with the seconds that they hold together."""
    held_s = [cause.time_s for cause in left_out if cause.time_s is not None]
    together = f", {signed(sum(held_s))} together" * bool(held_s)
    return f"and {len(left_out)} more{together}"


def _kept(causes: Sequence[Cause | StoredCause], number: int) -> list[int]:
    """The places of so many causes, in their order: the largest, then facts, then smaller ones."""
    timed = [place for place, cause in enumerate(causes) if cause.time_s is not None]
    timed.sort(key=lambda place: -abs(causes[place].time_s or 0.0))
    facts = [place for place in range(len(causes)) if place not in timed]
    return sorted([*timed[:_LARGEST], *facts, *timed[_LARGEST:]][:number])


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
    if cause.time_s is None or _is_cost_alone(_stored_cause(cause), explanation.difference_s):
        return text
    share = cause.time_s / explanation.difference_s if explanation.difference_s else 0.0
    return f"{text}: {signed(cause.time_s)} ({share:.0%} of it)"


def _is_cost_alone(cause: StoredCause, difference_s: float) -> bool:
    """True if a profiler's cost is all that either side has, and makes nothing of a difference.

    Operators that overlap leave less than nothing between them, too, and that may be a change.
    """
    is_nothing = abs(cause.time_s or 0.0) < _NOTHING_OF_IT * abs(difference_s)
    return cause.base_s == cause.contender_s == 0 and is_nothing


def _percent(share: float) -> str:
    return f"{100 * share:+.{0 if abs(share) >= _WHOLE else 1}f} %"


# As a section


class _Shown(NamedTuple):
    """A cause of a change of a call by so much."""

    cause: StoredCause
    difference_s: float


def _what(row: _Shown) -> TableCell:
    is_rest = row.cause.kind == _REST
    return TableCell("" if is_rest else _name(row.cause), hint=row.cause.words)


def _difference(row: _Shown) -> TableCell:
    if _is_cost_alone(row.cause, row.difference_s):
        return TableCell("about 0", 0.0)
    return quantity(row.cause.time_s, signed)


def _of_it(row: _Shown) -> TableCell:
    time_s = None if _is_cost_alone(row.cause, row.difference_s) else row.cause.time_s
    return share(time_s / row.difference_s if time_s is not None and row.difference_s else None)


_COLUMNS = columns("explanation", _what, _difference, _of_it)

#: Bars that are drawn, and characters of their names, with which a chart fits onto a phone.
_DRAWN, _LABEL = 20, 26

#: The kind of what no cause holds.
_REST = "not explained"


def section(explained: StoredExplanation, suffix: str = "") -> Section:
    """The times of a call on both sides by cause, and bars of the differences, largest first.

    In Markdown it has ten lines at most, and smaller causes are left out.

    Args:
        suffix: of the title.
    """
    from fwbench.report.drawing import bars

    title = f"why it changed: {explained.name}{suffix}"
    change_s = explained.contender_s - explained.base_s
    notes = [*_notes(explained)]
    causes = [*explained.causes, *_not_explained(explained)]
    left = [*range(len(explained.causes), len(causes))]
    most = _LINES - len(notes)
    brief, rest = None, ""
    if len(causes) > most:
        brief = [*_kept(explained.causes, most - len(left) - 1), *left]
        rest = _more([cause for place, cause in enumerate(causes) if place not in brief])
    differences_s = _differences_s(causes, change_s)
    return Section.from_items(
        title,
        _COLUMNS,
        [_Shown(cause, change_s) for cause in causes],
        charts=[bars.draw_differences(f"{title}: extra time of a call", differences_s)]
        if differences_s
        else [],
        notes=notes,
        brief=brief,
        rest=rest,
    )


def _notes(explained: StoredExplanation) -> Iterator[str]:
    """The times of a call, and what could not be looked at."""
    parts = []
    if explained.base_s:
        parts.append(_percent((explained.contender_s - explained.base_s) / explained.base_s))
    if explained.verdict not in CHANGES:
        parts += filter(None, (explained.verdict, explained.reason))
    times = f"{time(explained.base_s)} -> {time(explained.contender_s)}"
    yield f"A call: {times} ({'; '.join(parts)})." if parts else f"A call: {times}."
    if not explained.causes:
        yield f"{NOTHING_FOUND.capitalize()}."
    if explained.gaps:
        yield f"Not looked at: {'; '.join(explained.gaps)}."


def _not_explained(explained: StoredExplanation) -> Iterator[StoredCause]:
    """The rest that no cause holds, as one more."""
    if explained.unexplained_s is not None:
        yield StoredCause(kind=_REST, words=_REST, time_s=explained.unexplained_s)


def _name(cause: StoredCause) -> str:
    """The words of a cause, without its times where these are known beside them."""
    name, _, times = cause.words.rpartition(": ")
    return name if name and times and cause.base_s is not None else cause.words


def _differences_s(causes: Sequence[StoredCause], change_s: float) -> dict[str, float]:
    """Seconds by cause, the largest first; the second of one label has all its words."""
    differences_s: dict[str, float] = {}
    for cause in sorted(causes, key=lambda cause: -abs(cause.time_s or 0.0))[:_DRAWN]:
        if cause.time_s and not _is_cost_alone(cause, change_s):
            name = _name(cause)
            label = name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
            differences_s[cause.words if label in differences_s else label] = cause.time_s
    return differences_s
