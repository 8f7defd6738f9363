"""``--fw-launches`` and ``--fw-budget`` for plain benchmarks: further sessions measure them again.

The session itself is their first launch; each further one is a session of pytest in a process of
its own.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import some
from fwbench.gate.budget import Budget, Fixed, History, Precise, Result
from fwbench.options.options import Options
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.plain import is_plain
from fwbench.processes import scratch, session
from fwbench.processes.session import SELECTOR
from fwbench.records import launches
from fwbench.records.launches import Entry
from fwbench.records.measurement import group_by
from fwbench.records.stored import parse
from fwbench.records.units import count


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
        entries = BenchmarkSession(self._config).plain_entries(0)[0]
        measured = {entry["fullname"]: entry for entry in entries if entry["fullname"] in plain}
        # No further launch runs tests that measure nothing.
        others_s = sum(self._took_s[nodeid] for nodeid in self._took_s.keys() - measured.keys())
        self._add(measured, {}, time.monotonic() - start_s - others_s)
        while self._entries and (keys := self._chooser.select([*self._entries], self._history)):
            start_s = time.monotonic()
            self._say(f"launch {self._number}: {count(len(keys), 'plain benchmark')}")
            measured, lost = self._measured(keys)
            session.testsfailed += sum(not reason.startswith("skipped") for reason in lost.values())
            self._add(measured, lost, time.monotonic() - start_s)
        self._merge()
        if isinstance(self._chooser, Precise) and self._entries:
            unsettled = self._chooser.unsettled([*self._entries], self._history)
            within = f"{100 * self._chooser.resolution:.3g} %"
            every = count(len(self._entries), "plain benchmark")
            self._say(f"{len(unsettled)} of {every} not known to {within}")
        return result

    @property
    def _number(self) -> int:
        """Number of the launch that comes, from 1."""
        return self._history.launches + 1

    def _add(self, measured: Mapping[str, Entry], lost: Mapping[str, str], took_s: float) -> None:
        """Add the results of a launch, and what it has lost, with the reasons."""
        number = self._history.launches
        for key, reason in lost.items():
            self._history.add(key, Result(self._took_s[key], lost=reason))
        for key, entry in measured.items():
            info = entry.get("extra_info") or {}
            facts = {**info.get("fwbench", {}), "plain_test": True, "statistic": "min"}
            marked = {**entry, "extra_info": {**info, "fwbench": facts}}
            self._entries.setdefault(key, []).append(launches.mark(marked, number))
            time_s = launches.launch_of(marked).value_s
            self._history.add(key, Result(self._took_s[key], time_s))
        self._history.end_launch(took_s)

    def _measured(self, keys: Sequence[str]) -> tuple[dict[str, Entry], dict[str, str]]:
        """The entries of one more launch by node id, and why it has none of the other tests."""
        arguments = map(str, self._config.invocation_params.args)
        with scratch.folder() as folder:
            results = folder / "launch.json"
            done = session.run(
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
            run = parse(results) if results.is_file() else {"benchmarks": []}
        missing = run.get("fwbench", {}).get("missing") or ()
        why = {fact["nodeid"]: fact["why"] for fact in missing}
        entries = {entry["fullname"]: entry for entry in run["benchmarks"]}
        measured = {key: entries[key] for key in entries.keys() - why.keys()}
        ended = f"its process ended with exit status {done.status}"
        lost = {key: why.get(key, ended) for key in keys if key not in measured}
        if lost:
            reasons = group_by(lost, lost.__getitem__)
            named = "; ".join(f"{some(those)} ({reason})" for reason, those in reasons.items())
            output = "\n".join(done.last_lines)
            self._say(f"launch {self._number} does not count for {named}; its output:\n{output}")
        return measured, lost

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
