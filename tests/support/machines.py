"""Machines to describe."""

from __future__ import annotations

import pytest

from fwbench import cli


def out(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What a command that must exit with this status prints."""
    assert cli.main(arguments) == status
    captured = capsys.readouterr()
    printed, silent = (captured.err, captured.out) if status else (captured.out, captured.err)
    assert silent == ""
    return printed
