"""A launch is measured, kept, and repeated once if it dies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import ComparisonError, DifferentSettings, UsageError
from fwbench.gate import resume
from fwbench.gate.ab import Launcher, refuse_launching
from fwbench.gate.resume import ComparisonJob
from fwbench.gate.sides import Installed
from fwbench.plugin.options import from_config
from fwbench.processes import session
from fwbench.processes.command import Finished
from fwbench.workers.environments import Environments
from support.launched_runs import entry, output

_STATUSES = {"killed": -9, "terminated": -15, "crashed": 3, "interrupted": 2}


class Sessions:
    """Sessions of pytest that only end.

    Attributes:
        endings: exit status and last line of those to come; later ones pass.
        started: how many there were.
        facts: what is recorded of the case.
        arguments: of the latest one.
    """

    def __init__(self) -> None:
        self.arguments: Sequence[str] = ()
        self.endings: list[tuple[int, str]] = []
        self.started = 0
        self.facts: dict[str, Any] = {}

    def run(self, arguments: Sequence[str], *, results: Path, **__: Any) -> Finished:
        """One session, which writes its results if it passes."""
        self.started += 1
        self.arguments = arguments
        status, line = self.endings.pop(0) if self.endings else (0, "1 passed")
        if status == 0 and "no results" not in line:
            results.write_text(json.dumps(output([entry(**self.facts)])), encoding="utf-8")
        elif status == 2:
            results.write_text("{half of", encoding="utf-8")
        return Finished(status, ["...", line])


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    made = Sessions()
    monkeypatch.setattr(session, "run", made.run)
    return made


@pytest.fixture
def job(tmp_path: Path) -> Iterator[ComparisonJob]:
    with resume.job(tmp_path, {"seed": 0}, resume=False) as begun:
        yield begun


def _launcher(job: ComparisonJob, message: list[str] | None = None) -> Launcher:
    both = (Installed("numpy", ["numpy"]), Installed("default", ["numpy"]))
    say = [].append if message is None else message.append
    return Launcher(both, ["-k", "gemm"], Environments(job.folder), job, say)


@pytest.mark.parametrize("how", _STATUSES)
def test_a_launch_that_dies_is_repeated(job: ComparisonJob, sessions: Sessions, how: str) -> None:
    sessions.endings = [(_STATUSES[how], "!!! KeyboardInterrupt !!!")]
    message: list[str] = []
    run = _launcher(job, message)(0, None, 1)
    assert len(run.samples) == 1
    assert (sessions.started, job.launches) == (2, 1)
    assert [line.startswith("a launch of numpy has died (") for line in message] == [True]


def test_a_launch_that_dies_twice_ends_the_job(job: ComparisonJob, sessions: Sessions) -> None:
    launcher = _launcher(job)
    launcher(0, None, 1)
    sessions.endings = [(-11, "once"), (-9, "twice")]
    with pytest.raises(ComparisonError, match=r"default broke down \(by SIGKILL\)") as raised:
        launcher(1, None, 1)
    assert str(raised.value).endswith("...\ntwice")
    assert (sessions.started, job.launches) == (3, 1)


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ((2, "Interrupted: 1 error during collection"), "broke down (pytest's exit status is 2)"),
        ((4, "unrecognized arguments"), "broke down (pytest's exit status is 4)"),
        ((0, "no results"), "measured nothing (pytest's exit status is 0)"),
    ],
)
def test_what_would_only_happen_again_is_not_repeated(
    job: ComparisonJob, sessions: Sessions, ending: tuple[int, str], message: str
) -> None:
    sessions.endings = [ending]
    with pytest.raises(ComparisonError) as raised:
        _launcher(job)(0, None, 1)
    assert message in str(raised.value)
    assert (sessions.started, job.launches) == (1, 0)


@pytest.mark.parametrize("ending", [(5, "2 deselected"), (4, "file or directory not found: x.py")])
def test_a_side_without_benchmarks_is_empty(
    job: ComparisonJob, sessions: Sessions, ending: tuple[int, str]
) -> None:
    """The base of a change that brings the first ones; if both sides are, nothing was asked for."""
    launcher = _launcher(job)
    sessions.endings = [ending]
    assert not launcher(0, None, 1).samples
    sessions.endings = [ending]
    with pytest.raises(UsageError, match="neither side has a benchmark that the arguments select"):
        launcher(1, None, 1)
    assert (sessions.started, job.launches) == (2, 1)


def test_cases_that_fail_when_they_are_measured_again(
    job: ComparisonJob, sessions: Sessions
) -> None:
    launcher = _launcher(job)
    (key,) = launcher(0, None, 1).samples
    sessions.endings = [(1, "1 failed")]
    run = launcher(0, [key], 2)
    assert (run.samples, run.unmeasured) == ({}, {key: "failed"})
    assert job.launches == 2


def test_a_launch_is_one_whatever_the_project_sets(
    job: ComparisonJob, sessions: Sessions, pytester: pytest.Pytester
) -> None:
    _launcher(job)(0, None, 7)
    pytester.makeini("[pytest]\nfw_race = true\nfw_budget = 5min\nfw_gate = 5%\nfw_launches = 9")
    options = from_config(pytester.parseconfig("-o", "fw_race=true", *sessions.arguments))
    assert (options.race, options.budget_s, options.gate) == (False, None, None)
    assert (options.launches, options.seed) == (1, 7)


def test_a_launch_is_one_whatever_addopts_say(
    job: ComparisonJob,
    sessions: Sessions,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _launcher(job)(0, None, 7)
    pytester.makeini("[pytest]\naddopts = --fw-race --fw-launches=9 --fw-threads=3")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--fw-budget=5min --fw-gate=5%")
    options = from_config(pytester.parseconfigure(*sessions.arguments))
    assert (options.race, options.budget_s, options.gate) == (False, None, None)
    assert (options.launches, options.seed, options.threads) == (1, 7, 3)


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("--fw-race", "pytest --fw-race"),
        ("--fw-budget=5min", "--budget MINUTES"),
        ("--fw-gate", "--threshold"),
        ("--fw-launches=5", "--pairs N"),
        ("--fw-seed", "--seed N"),
    ],
)
def test_launches_are_the_comparisons_own(argument: str, instead: str) -> None:
    flag = argument.partition("=")[0]
    with pytest.raises(UsageError, match=f"^{flag} cannot be passed on .*{instead}"):
        refuse_launching(["-k", "gemm", argument])
    refuse_launching(["-k", "gemm", "--fw-threads=2", "--fw-threshold", "1%"])


def _resumed(job: ComparisonJob) -> ComparisonJob:
    return ComparisonJob(job.folder, job.seed)


def test_kept_launches_are_not_measured_again(job: ComparisonJob, sessions: Sessions) -> None:
    before = [_launcher(job)(0, None, 1)]
    launcher = _launcher(_resumed(job))
    run = launcher(0, None, 1)
    assert run == before[0]
    assert sessions.started == 1
    launcher(0, [*run.samples], 2)
    assert sessions.started == 2


def test_kept_launches_of_another_framework(job: ComparisonJob, sessions: Sessions) -> None:
    _launcher(job)(0, None, 1)
    sessions.facts = {"framework_version": "9.9"}
    launcher = _launcher(_resumed(job))
    launcher(0, None, 1)
    launcher(1, None, 1)  # of the other side nothing was kept
    with pytest.raises(DifferentSettings, match=r"kept launches of numpy.*9\.9.*--resume"):
        launcher(0, None, 2)
