"""Where a pytest session shows its progress, so that pytest's own lines stay whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from fwbench.plugin.progress.lines import (
    Line,
    LogLines,
    NoLine,
    StatusFile,
    TerminalLine,
    draws_in_place,
)
from fwbench.plugin.progress.status import Status
from fwbench.processes.session import STATUS_VARIABLE


class Display:
    """The line of progress of a session.

    A terminal has it in place; a log (a pipe, CI, ``TERM=dumb``, ``-s``) a line a minute, and none
    with ``-q``. A session that another process has started tells that process.

    Args:
        config: of the session.
        begin_again: called when a line of a log has ended the one that pytest had begun.
    """

    def __init__(self, config: pytest.Config, begin_again: Callable[[], Any]) -> None:
        self._config = config
        self._begin_again = begin_again
        self._chosen: Line | None = None

    def show(self, status: Status) -> None:
        """Show what is being done."""
        if not self._at_edge():
            with self._uncaptured():
                self._line.show(status)

    def clear(self) -> None:
        """Show nothing: pytest or another plugin is about to write."""
        if self._chosen is not None:
            with self._uncaptured():
                self._chosen.clear()

    def announce(self, text: str) -> None:
        """Say what logs are to have, whenever it comes."""
        with self._uncaptured():
            self._line.announce(text)

    @property
    def _line(self) -> Line:
        if self._chosen is None:
            self._chosen = self._choice()
        return self._chosen

    def _choice(self) -> Line:
        file = os.environ.get(STATUS_VARIABLE)
        if file:
            return StatusFile(Path(file))
        reporter = self._reporter
        if reporter is None:
            return NoLine()
        stream = reporter._tw._file  # noqa: SLF001 (pytest offers no stream)
        # With -s workers write to the terminal themselves, whenever they like.
        if draws_in_place(stream, os.environ) and self._config.option.capture != "no":
            return TerminalLine(stream, below=True)
        return LogLines(self._log) if self._config.get_verbosity() >= 0 else NoLine()

    def _log(self, text: str) -> None:
        self._reporter.ensure_newline()
        self._reporter.write_line(f"fwbench: {text}")
        self._begin_again()

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _at_edge(self) -> bool:
        """Whether pytest's line has just filled the terminal: there the cursor cannot return to."""
        if self._reporter is None:
            return False
        writer = self._config.get_terminal_writer()
        width = writer.width_of_current_line
        return width > 0 and width % writer.fullwidth == 0

    def _uncaptured(self) -> AbstractContextManager[None]:
        """What is written within reaches the terminal, also while pytest captures output."""
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        return nullcontext() if capture is None else capture.global_and_fixture_disabled()
