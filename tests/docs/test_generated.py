"""Pages that are written from the code are up to date, and tests that a page names are there."""

import ast
import re

import pytest

from fwbench.options.options import PARTS
from fwbench_extras import pages
from support.documents import PAGES, ROOT, read


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    """If this fails: make pages."""
    assert pages.PAGES[name]() == read(f"docs/{name}.md")


def test_the_page_of_commands_shows_what_a_command_needs() -> None:
    usages = read("docs/commands.md").splitlines()
    assert "fwbench recover --output FILE [options] [journal]" in usages
    assert "fwbench env add [options] name REQUIREMENT [REQUIREMENT ...]" in usages


def test_the_page_has_every_option_that_fwbench_adds_to_pytest(pytestconfig: pytest.Config) -> None:
    groups = [pytestconfig._parser.getgroup(f"fwbench {part}") for part in PARTS]
    page = read("docs/options.md")
    flags = [flag for group in groups for option in group.options for flag in option.names()]
    assert "--fw-size" in flags
    assert len(flags) <= 30
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
