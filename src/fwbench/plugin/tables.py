"""Makes pytest-benchmark's tables compare what may be compared, and mark what is in doubt."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.report.ranking.condition import marked
from fwbench.report.ranking.contests import split

#: A name, and rows as pytest-benchmark shows them.
Group = tuple[str | None, list[dict[str, Any]]]


#: pytest-benchmark's options that are about its tables, or about what it prints with them, with
#: their defaults.
_ABOUT_TABLES = {
    **dict.fromkeys(("compare", "compare_fail", "histogram", "cprofile", "columns", "time_unit")),
    "verbose": False,
    "group_by": "group",
    "sort": "min",
}


def asked(config: pytest.Config) -> bool:
    """Whether tables of cases are to be shown: with ``-v``, and by options that are about them.

    Args:
        config: of the session.
    """
    given = ((config.getoption(f"benchmark_{n}"), usual) for n, usual in _ABOUT_TABLES.items())
    return config.get_verbosity() > 0 or any(value and value != usual for value, usual in given)


class Tables:
    """The hook that groups the rows of pytest-benchmark's tables.

    Args:
        shown: whether cases have tables; other benchmarks always have.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    @pytest.hookimpl(wrapper=True)
    def pytest_benchmark_group_stats(
        self, benchmarks: Sequence[dict[str, Any]]
    ) -> Generator[None, list[Group], list[Group]]:
        """Split groups that mix views with copies, and mark rows whose numbers are in doubt."""
        groups = yield
        if not self._shown:
            return _without_cases(groups)
        # What is saved has been written already: these are copies, to be shown.
        for row in benchmarks:
            _mark(row)
        return [part for group in groups for part in _split(*group)]


def _without_cases(groups: Iterable[Group]) -> list[Group]:
    plain = [(name, [row for row in rows if not _facts(row)]) for name, rows in groups]
    return [(name, rows) for name, rows in plain if rows]


def _facts(row: dict[str, Any]) -> CaseFacts:
    return CaseFacts.unchecked(row["extra_info"].get("fwbench", {}))


def _mark(row: dict[str, Any]) -> None:
    facts = _facts(row)
    if facts and row["path"] is None:  # not of a run to compare with, whose facts are elsewhere
        for name in ("name", "fullname"):
            row[name] = marked(row[name], facts)


def _split(name: str | None, rows: Sequence[dict[str, Any]]) -> list[Group]:
    """The group itself, or its parts where cases of the same work are not to be compared."""
    if not all(map(_facts, rows)):
        return [(name, [*rows])]
    return [(f"{name or ''}{label}" or None, part) for label, part in split(rows, _facts).items()]
