"""Pages that are written from the code are up to date."""

from __future__ import annotations

import pytest

from fwbench_extras import pages
from support.documents import read


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    """If this fails: make pages."""
    assert pages.PAGES[name]() == read(f"docs/{name}.md")


def test_the_page_of_commands_shows_what_a_command_needs() -> None:
    usages = read("docs/commands.md").splitlines()
    assert "fwbench recover --output FILE [journal]" in usages
    assert "fwbench env add [options] name REQUIREMENT [REQUIREMENT ...]" in usages


def test_the_page_has_every_option_that_fwbench_adds_to_pytest(
    pytestconfig: pytest.Config,
) -> None:
    group = pytestconfig._parser.getgroup("fwbench")
    page = read("docs/options.md")
    flags = [flag for option in group.options for flag in option.names()]
    assert "--fw-size" in flags
    assert [flag for flag in flags if f"| `{flag}" not in page] == []
