"""``--benchmark-group-by=param:NAME`` in sessions with tests that lack the parameter."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest


class Grouping:
    """The hook that keeps pytest-benchmark from failing where a test has no such parameter.

    It helps sessions without cases, too: the option may be in an ini file for those that have some.
    """

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_benchmark_group_stats(
        self, benchmarks: Sequence[dict[str, Any]]
    ) -> Generator[None, Any, Any]:
        """Let every parameter of every test have a value."""
        for row in benchmarks:
            row["params"] = _Params(row.get("params") or {})
        return (yield)


class _Params(dict[str, Any]):
    """Parameters of a test; one that it does not have is ``none``."""

    def __missing__(self, name: str) -> str:
        return "none"
