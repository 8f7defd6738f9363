"""Pages that are written from the code are up to date, and tests that a page names are there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench_extras import pages
from fwbench_extras.idioms import page as idioms
from fwbench_extras.idioms.table import Idiom
from support.documents import PAGES, ROOT, read


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    """If this fails: make pages."""
    assert pages.PAGES[name]() == read(f"docs/{name}.md")


def test_every_alternative_is_measured() -> None:
    """If this fails: make idioms ARGS='--select OPERATION --frameworks FRAMEWORK'."""
    declared = {
        (*row, other): idiom.called
        for row, idiom in idioms.declared().items()
        for other in idiom.alternatives
    }
    assert {way: found.called for way, found in idioms.measured().items()} == declared


def test_a_way_that_is_slower_than_another_has_a_reason() -> None:
    assert idioms.unexplained() == []


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that measures ways."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "harness"))
    return importlib.import_module("idioms")


def test_the_ratio_of_two_ways_is_the_median_of_three_binds(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = SimpleNamespace(run=list, verify=lambda _: None)
    turns = iter([[[1.0, 1.0]], [[3.0, 1.0]], [[2.0, 1.0]]])
    monkeypatch.setattr(harness, "bind", lambda *_: work)
    monkeypatch.setattr(harness, "_bound", lambda *_: work)
    monkeypatch.setattr(harness, "_in_turns", lambda *_: next(turns))
    (row,) = harness._compared(
        SimpleNamespace(cell=None, framework=None), Idiom("called", "", {"other": "path"})
    )
    assert (row["ratio"], row["called_us"]) == (2.0, 2e6)


def test_a_framework_is_recorded_before_the_next_one_is_measured(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(framework: str, _select: str) -> list[dict[str, str]]:
        if framework == "torch":
            raise SystemExit("torch: exit status 1")
        return [dict.fromkeys(harness.COLUMNS, "") | {"framework": framework}]

    monkeypatch.setattr(harness, "RECORDED", tmp_path / "idioms.csv")
    monkeypatch.setattr(harness, "_measured", measured)
    monkeypatch.setattr("sys.argv", ["idioms.py", "--frameworks=numpy,torch", "--record=1"])
    with pytest.raises(SystemExit, match="torch"):
        harness.main()
    assert (tmp_path / "idioms.csv").read_text().splitlines()[1].startswith("numpy,")


def test_the_page_of_commands_shows_what_a_command_needs() -> None:
    usages = read("docs/commands.md").splitlines()
    assert "fwbench recover --output FILE [journal]" in usages
    assert "fwbench env add [options] name REQUIREMENT [REQUIREMENT ...]" in usages


def test_the_page_has_every_option_that_fwbench_adds_to_pytest(pytestconfig: pytest.Config) -> None:
    group = pytestconfig._parser.getgroup("fwbench")
    page = read("docs/options.md")
    flags = [flag for option in group.options for flag in option.names()]
    assert "--fw-size" in flags
    assert [flag for flag in flags if f"| `{flag}" not in page] == []


#: A test as pytest names it, without its parameters.
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

_NAMING = [page for page in PAGES if _NAMED.search(read(page))]


def _tests(path: str) -> set[str]:
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("page", _NAMING)
def test_what_a_page_says_is_tested_is_tested(page: str) -> None:
    missing = [
        f"{path}::{name}" for path, name in _NAMED.findall(read(page)) if name not in _tests(path)
    ]
    assert missing == []
    assert "docs/gpu.md" in _NAMING
