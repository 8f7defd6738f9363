"""The deadline of a case: --fw-timeout, which epochs restart, or its worker's own."""

import json

import pytest

from fwbench.workers import pool
from fwbench.workers.pool import _Deadline
from support.projects import Project, measuring


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the machine; a test may change it."""
    time_s = [100.0]
    monkeypatch.setattr(pool.time, "monotonic", lambda: time_s[0])
    return time_s


@pytest.mark.usefixtures("now")
def test_the_earlier_one_holds() -> None:
    """The worker's own, until it is lifted, unless --fw-timeout comes first."""
    deadline = _Deadline(600.0)
    case_deadline = (700.0, "did not finish the case within 600 s (--fw-timeout)")
    assert deadline.first == case_deadline
    deadline.set_by_worker(5.0, "was late")
    assert deadline.first == (105.0, "was late")
    deadline.set_by_worker(5_000.0, "was late")
    assert deadline.first == case_deadline
    deadline.set_by_worker(5.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first == case_deadline


def test_an_epoch_restarts_the_sessions_own(now: list[float]) -> None:
    """And not what a plugin has set for the whole test."""
    deadline = _Deadline(600.0)
    deadline.set_by_worker(550.0, "was late")
    now[0] = 400.0
    deadline.restart()
    assert deadline.first == (650.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first[0] == 1000.0


def test_the_first_case_of_a_process_is_marked(project: Project) -> None:
    """Its first call starts what a framework, and a GPU, start once: later ones do not compare."""
    project.write("test_it.py", measuring("double, sizes=(4, 5)"))
    project.run("--fw-direction=forward", "--benchmark-json=run.json").assert_outcomes(passed=2)
    run = json.loads((project.path / "run.json").read_text(encoding="utf-8"))
    facts = [entry["extra_info"]["fwbench"] for entry in run["benchmarks"]]
    assert [(answer["size"], answer["first_in_process"]) for answer in facts] == [
        (4, True),
        (5, False),
    ]
