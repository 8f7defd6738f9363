"""Live lines, on a terminal: how far a launch is, and a training loop. Logs get a line a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tqdm import tqdm

from fwbench.records.units import count


class Progress:
    """The hooks that show how far things are.

    Args:
        config: of the session; its terminal is written to.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cases: tqdm[Any] | None = None
        self._epochs: tqdm[Any] | None = None

    def pytest_fwbench_launch(self, launch: int, launches: int, cases: int) -> None:
        """Which launch it is; on a terminal a bar."""
        reporter = self._reporter
        if reporter is None:
            return
        reporter.ensure_newline()
        self._close()
        text = f"launch {launch + 1} of {launches}"
        if reporter.isatty:
            self._cases = self._bar(cases, text, "case")
        else:
            reporter.write_line(f"{text}: {count(cases, 'case')}")

    def pytest_fwbench_launched(self, nodeid: str) -> None:
        """One more case is done."""
        if self._epochs is not None:
            self._epochs.close()
            self._epochs = None
        if self._cases is not None:
            self._cases.update()

    def pytest_fwbench_epoch(self, nodeid: str, epoch: Mapping[str, Any]) -> None:
        """Epoch, loss, rate and time left."""
        reporter = self._reporter
        if reporter is None or not reporter.isatty:
            return
        if self._epochs is None:
            # pytest has begun a line with the file's name, which the bar would overwrite.
            reporter.ensure_newline()
            name = nodeid.partition("[")[2].rstrip("]") or nodeid
            self._epochs = self._bar(epoch["epochs"] * epoch["repetitions"], name, "epoch")
        self._epochs.set_postfix_str(
            f"loss {epoch['train_loss']:.4f}, {epoch['rate']:.0f} {epoch['unit']}/s", refresh=False
        )
        self._epochs.update()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Clear the lines when a case is over."""
        self._close()

    def pytest_keyboard_interrupt(self) -> None:
        """Clear the lines when the session is interrupted."""
        self._close()

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _bar(self, total: int, text: str, unit: str) -> tqdm[Any]:
        return tqdm(
            total=total,
            desc=text,
            unit=unit,
            file=self._reporter._tw._file,  # noqa: SLF001 (pytest offers no stream)
            leave=False,
            dynamic_ncols=True,
        )

    def _close(self) -> None:
        for bar in (self._epochs, self._cases):
            if bar is not None:
                bar.close()
        self._epochs = self._cases = None
