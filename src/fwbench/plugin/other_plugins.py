"""Facts about other pytest plugins, none of which need be installed."""

from __future__ import annotations

import os

import pytest

from fwbench.errors import UsageError

#: The outcome that pytest-rerunfailures gives the report of a test that it is about to run again.
RERUN: str = "rerun"

#: What coverage sets where it measures the processes that a session starts, too.
_COVERING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


def notices(config: pytest.Config) -> list[str]:
    """Lines on what other plugins do not do for cases in processes of their own."""
    # pytest-cov registers this with --cov alone.
    if not config.pluginmanager.hasplugin("_cov") or any(map(os.environ.get, _COVERING)):
        return []
    missed = "pytest-cov does not see what runs in frameworks' processes"
    return [f"  {missed}: add patch = subprocess under [run] to coverage's settings"]


def check_benchmark(config: pytest.Config) -> None:
    """See that pytest-benchmark is there.

    Raises:
        UsageError: it is switched off.
    """
    if not config.pluginmanager.hasplugin("benchmark"):
        raise UsageError(
            "cases need pytest-benchmark, and -p no:benchmark has switched it off: leave that out, "
            "or ignore the files with tests marked fwbench"
        )


def check_cases(config: pytest.Config) -> None:
    """See that cases get the fixture of pytest-benchmark.

    Raises:
        pytest.UsageError: another plugin has taken its place.
    """
    codspeed = config.pluginmanager.get_plugin("codspeed_plugin")
    if getattr(codspeed, "is_codspeed_enabled", False):
        raise pytest.UsageError(
            "cases need pytest-benchmark, and pytest-codspeed takes its place: leave out "
            "--codspeed (and unset CODSPEED_ENV), or deselect the tests marked fwbench "
            '(-m "not fwbench")'
        )
