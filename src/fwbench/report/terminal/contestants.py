"""Records as contestants: who is in which column, and which works are rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fwbench.records.facts import CaseFacts
from fwbench.report.ranking.condition import is_exchange
from fwbench.report.ranking.contests import Timed
from fwbench.toggles import TOGGLES, Toggle

Entry = Mapping[str, Any]

#: Framework, execution, and each toggle that was asked for and leaves the work as it is.
Column = tuple[str, ...]


def facts_of(entry: Entry) -> CaseFacts:
    """What fwbench recorded of a case.

    Args:
        entry: pytest-benchmark's.
    """
    return CaseFacts.unchecked(entry["extra_info"]["fwbench"])


def timed(entry: Entry) -> Timed:
    """A case under the name of its framework and execution, and toggles that were asked for.

    Args:
        entry: pytest-benchmark's.
    """
    facts, params = facts_of(entry), entry.get("params") or {}
    asked = {name: params[name] for name in facts.toggles or {} if name in params}
    return Timed(_name(facts, asked), completion_s(facts), facts)


def failed(facts: CaseFacts) -> Timed:
    """A case that was not measured, with no time that anybody would wait for.

    Args:
        facts: what tells it from others; its toggles are those that were asked for.
    """
    return Timed(_name(facts, facts.toggles or {}), math.inf, facts)


def _name(facts: CaseFacts, asked: Mapping[str, str]) -> str:
    toggles = (f"{name}={value}" for name, value in asked.items())
    return " ".join([facts.framework, facts.execution, *toggles])


def completion_s(facts: CaseFacts) -> float:
    """The median time until a result existed, of a case that was just measured."""
    assert facts.completion_s is not None  # noqa: S101 (it was just measured)
    return facts.completion_s


def column(contestant: Timed) -> Column:
    """The column that a case stands in."""
    toggles = _toggles(contestant, changes_work=False)
    if is_exchange(contestant.facts):  # the row says how many replicas there are
        toggles = [toggle for toggle in toggles if not toggle.startswith("replicas=")]
    return (*_part_names(contestant), *toggles)


def variant(contestant: Timed) -> str:
    """The toggles that make its work another one: `` decay=on``; mostly empty."""
    return "".join(f" {toggle}" for toggle in _toggles(contestant, changes_work=True))


def in_order(columns: Iterable[Column]) -> list[Column]:
    """Columns by framework, ``eager`` before what compiles."""
    return sorted({*columns}, key=lambda names: (names[0], names[1] != "eager", names[1:]))


def _part_names(contestant: Timed) -> tuple[str, str]:
    return contestant.facts.framework, contestant.facts.execution


def _toggles(contestant: Timed, *, changes_work: bool) -> list[str]:
    given = contestant.name.removeprefix(" ".join(_part_names(contestant))).split()
    return [toggle for toggle in given if _changes_work(toggle) == changes_work]


def _changes_work(toggle: str) -> bool:
    known: Toggle | None = TOGGLES.get(toggle.partition("=")[0])
    return known is not None and known.changes_work
