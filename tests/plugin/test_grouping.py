"""Groups by a parameter that some tests do not have."""

from __future__ import annotations

import pytest

from support.projects import Project


@pytest.mark.parametrize("grouping", ["param:framework", "param:size,func"])
def test_plain_benchmarks_are_grouped_without_a_case(project: Project, grouping: str) -> None:
    """The option may be there for sessions that have cases: those without one end as well."""
    project.write(
        "test_plain.py", "def test_plain(benchmark):\n    benchmark(lambda: sum(range(9)))\n"
    )
    result = project.run(f"--benchmark-group-by={grouping}", fw=None)
    assert result.ret == pytest.ExitCode.OK
    name = grouping.removeprefix("param:").replace(",func", "")
    result.stdout.fnmatch_lines([f"* benchmark '{name}=none*': 1 tests *"])
