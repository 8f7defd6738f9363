"""Tests that a page names are there."""

from __future__ import annotations

import ast
import re

import pytest

from support.documents import PAGES, ROOT, read

#: A test as pytest names it, without its parameters.
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

_PAGES = [page for page in PAGES if _NAMED.search(read(page))]


def _tests(path: str) -> set[str]:
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("page", _PAGES)
def test_what_a_page_says_is_tested_is_tested(page: str) -> None:
    missing = [
        f"{path}::{name}" for path, name in _NAMED.findall(read(page)) if name not in _tests(path)
    ]
    assert missing == []


def test_a_page_names_tests() -> None:
    assert "docs/gpu.md" in _PAGES
