"""Null steps and sparse reads of gangs with servers: right ones pass, and cheats are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fwbench.errors import WrongResult
from fwbench.gangs import checks
from fwbench.gangs.gang import Gang
from support.projects import Project

_PATIENCE_S = 300.0
_CHECKED, _TIMED = 3, 10
_OTHER = "before the timing, worker [01] fetched other numbers than "

#: Builds a case of a workload and a size in a gang, as its framework executes it.
Bind = Callable[[Gang, str, int], None]

#: Workloads, sizes, and the bytes that a step of one worker moves at least: all parameters both
#: ways, and of a table some rows.
HONEST = pytest.mark.parametrize(
    ("name", "size", "bytes_each"),
    [("null_step", 16 * 250, 2 * 4 * 16 * 250), ("sparse_read", 500, 4 * 32 * 64)],
)

#: Sizes for which :func:`support.cheats.served_cheats` has a mistake.
CHEATING = pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("null_step", 32, _OTHER + "the updates of"),
        ("null_step", 48, _OTHER + "the updates of"),
        ("sparse_read", 96, _OTHER + "32 rows of the table"),
    ],
    ids=["fetches nothing", "loses an update", "reads the step before"],
)


def are_right(gang: Gang, bind: Bind, name: str, size: int, bytes_each: int) -> None:
    """Steps are, before the timing and after it, twice, and they have moved what they must."""
    bind(gang, name, size)
    for _ in range(2):
        before = gang.usage()
        answers = gang.ask("check", _CHECKED, limit_s=_PATIENCE_S, doing="checking")
        checks.fetched(answers, "before the timing")
        _have_moved(checks.sent(answers, before, gang.usage()), _CHECKED, bytes_each)
        before = gang.usage()
        rounds = gang.ask("round", _TIMED, limit_s=_PATIENCE_S, doing="stepping")
        _have_moved(checks.sent(rounds, before, gang.usage()), _TIMED, bytes_each)
        left = gang.ask("verify_last", limit_s=_PATIENCE_S, doing="verifying")
        checks.fetched(left, "after the timing")


def _have_moved(sent: int | None, steps: int, bytes_each: int) -> None:
    """The traffic of both workers, where the system counts it."""
    if sent is not None and sent < steps * 2 * bytes_each:
        pytest.fail(f"{steps} steps have sent {sent:,} bytes, at least {steps * 2 * bytes_each:,}")


def are_found(gang: Gang, bind: Bind, name: str, size: int, said: str) -> None:
    """Steps that leave something out are, by what is checked before anything is timed."""
    bind(gang, name, size)
    answers = gang.ask("check", _CHECKED, limit_s=_PATIENCE_S, doing="checking")
    with pytest.raises(WrongResult, match=said):
        checks.fetched(answers, "before the timing")


_LOOPS = """
import pytest
from fwbench.workloads import lenet, mlp

@pytest.mark.fwbench(lenet, mlp)
def test_it(case):
    case.measure()
"""

_STEPS = 3

#: Of generated data, so that nothing has to be found; batches of eight examples.
_ASKED = (
    *("--fw-size=8", f"--fw-steps={_STEPS}", "--fw-epochs=2", "--fw-warmup-epochs=1"),
    *("--fw-replicas=1,2", "--fw-device=cpu", "--fw-threads=1"),
)


def assert_alike(project: Project, fw: str, *asked: str) -> None:
    """Two replicas have one worker's losses in every epoch, and what they learned is alike."""
    project.write("test_it.py", _LOOPS)
    result, records = project.measure(*_ASKED, *asked, fw=fw)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    facts = [entry["extra_info"]["fwbench"] for entry in records.values()]
    assert [each["replicas"] for each in facts] == ["1", "1", "2", "2"]
    for alone, shared in zip(facts[:2], facts[2:], strict=True):
        assert shared["workload"] == alone["workload"]
        assert shared["steps_per_epoch"] == shared["gang"]["steps_per_round"] == _STEPS
        assert shared["gang"]["verified"]["weights_equal"]
        assert [each["warmup"] for each in shared["epochs"]] == [True, False]
        for ours, theirs in zip(shared["epochs"], alone["epochs"], strict=True):
            np.testing.assert_allclose(ours["train_losses"], theirs["train_losses"], rtol=1e-5)
            assert ours["validation_loss"] == pytest.approx(theirs["validation_loss"], rel=1e-5)
            assert ours["validation_accuracy"] == theirs["validation_accuracy"]
            assert ours["validation_s"] > 0.0
        assert shared["test_accuracy"] == alone["test_accuracy"]
        assert shared["images_per_s"] * shared["epoch_s"] == pytest.approx(8 * _STEPS)
        assert shared["cpu_utilization"] > 0.0
        assert len(shared["gang"]["ranks"]) == 2
