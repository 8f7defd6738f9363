"""A live line per training loop, on a terminal; nothing in logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tqdm import tqdm


class Progress:
    """The hooks that show how far a training loop is.

    Args:
        config: of the session; its terminal is written to.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._bar: tqdm[Any] | None = None

    def pytest_fwbench_epoch(self, nodeid: str, epoch: Mapping[str, Any]) -> None:
        """Epoch, loss, rate and time left."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not reporter.isatty:
            return
        if self._bar is None:
            # pytest has begun a line with the file's name, which the bar would overwrite.
            reporter.ensure_newline()
            self._bar = tqdm(
                total=epoch["epochs"] * epoch["repetitions"],
                desc=nodeid.partition("[")[2].rstrip("]") or nodeid,
                unit="epoch",
                file=reporter._tw._file,  # noqa: SLF001 (pytest offers no stream)
                leave=False,
                dynamic_ncols=True,
            )
        self._bar.set_postfix_str(
            f"loss {epoch['train_loss']:.4f}, {epoch['rate']:.0f} {epoch['unit']}/s", refresh=False
        )
        self._bar.update()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Clear the line when the case is over."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def pytest_keyboard_interrupt(self) -> None:
        """Clear the line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
