"""``--fw-launches`` and ``--fw-budget`` for plain benchmarks: further sessions measure them again.

The session itself is their first launch; each further one is a session of pytest in a process of
its own.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fwbench.gate.budget import Budget, Fixed, History, Precise, Result
from fwbench.options.options import Options
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.plain import is_plain
from fwbench.processes import scratch, session
from fwbench.processes.session import SELECTOR
from fwbench.records import launches
from fwbench.records.launches import Entry
from fwbench.records.stored import parse


class PlainLaunches:
    """The hooks that measure plain benchmarks in further launches, and keep what they add up to."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        least = options.launches or 1
        self._chooser: Fixed | Precise = Fixed(least)
        if options.budget_s is not None:
            self._chooser = Precise(Budget(options.budget_s), options.threshold, least)
        self._seed = random.randrange(10**6) if options.seed is None else options.seed  # noqa: S311
        self._history = History()
        self._took_s: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._entries: dict[str, list[dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what a test takes, and whether it failed."""
        self._took_s[report.nodeid] += report.duration
        self._failed |= {report.nodeid} if report.failed else set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Measure again what has been measured, before anybody compares or stores it."""
        self._chooser.select((), self._history)  # a budget begins now
        start_s = time.monotonic()
        result = yield
        plain = {item.nodeid for item in session.items if is_plain(item)} - self._failed
        measured = BenchmarkSession(self._config).plain_entries(0)[0]
        self._add((entry for entry in measured if entry["fullname"] in plain), start_s)
        while self._entries and (keys := self._chooser.select([*self._entries], self._history)):
            start_s = time.monotonic()
            self._say(f"launch {self._history.launches + 1}: {len(keys)} plain benchmarks")
            self._add(self._measured(keys), start_s)
        self._merge()
        if isinstance(self._chooser, Precise) and self._entries:
            unsettled = self._chooser.unsettled([*self._entries], self._history)
            within = f"{100 * self._chooser.resolution:.3g} %"
            self._say(
                f"{len(unsettled)} of {len(self._entries)} plain benchmarks not known to {within}"
            )
        return result

    def _add(self, entries: Iterable[Entry], start_s: float) -> None:
        """Add the results of a launch that began then."""
        number = self._history.launches
        for entry in entries:
            key, info = entry["fullname"], entry.get("extra_info") or {}
            facts = {**info.get("fwbench", {}), "plain_test": True, "statistic": "min"}
            marked = {**entry, "extra_info": {**info, "fwbench": facts}}
            self._entries.setdefault(key, []).append(launches.mark(marked, number))
            time_s = launches.launch_of(marked).value_s
            self._history.add(key, Result(self._took_s[key], time_s))
        self._history.end_launch(time.monotonic() - start_s)

    def _measured(self, keys: Sequence[str]) -> Sequence[Entry]:
        """The entries of one more launch; none of tests that fail now."""
        arguments = map(str, self._config.invocation_params.args)
        with scratch.folder() as folder:
            results = folder / "launch.json"
            session.run(
                [
                    *("-p", SELECTOR, *arguments, "-o", "fw_budget=", "-o", "fw_race=false"),
                    *("-o", "fw_profile=false"),  # the first launch has done so
                    *("-o", "fw_resume=false"),
                    *("--fw-launches", "1", "--fw-seed", str(self._seed)),
                ],
                folder=Path(self._config.invocation_params.dir),
                results=results,
                variables=dict(os.environ),
                selected=keys,
            )
            return parse(results)["benchmarks"] if results.is_file() else ()

    def _merge(self) -> None:
        benchmarks = BenchmarkSession(self._config)
        for key, entries in self._entries.items():
            if len(entries) > 1:
                benchmarks.remove(key)
                benchmarks.add({"entry": launches.merge(entries), "cprofile": None})

    def _say(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"fwbench: {text}")
