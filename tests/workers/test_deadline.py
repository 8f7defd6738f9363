"""How long a case may take: --fw-timeout, which epochs restart, and what its worker asks for."""

import pytest

from fwbench.workers import pool
from fwbench.workers.pool import _Deadline


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the machine; a test may change it."""
    time_s = [100.0]
    monkeypatch.setattr(pool.time, "monotonic", lambda: time_s[0])
    return time_s


@pytest.mark.usefixtures("now")
def test_the_earlier_one_holds() -> None:
    """What the worker has set, until it is lifted, unless --fw-timeout comes first."""
    deadline = _Deadline(600.0)
    own = (700.0, "did not finish the case within 600 s (--fw-timeout)")
    assert deadline.first == own
    deadline.set_by_worker(5.0, "was late")
    assert deadline.first == (105.0, "was late")
    deadline.set_by_worker(5_000.0, "was late")
    assert deadline.first == own
    deadline.set_by_worker(5.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first == own


def test_an_epoch_restarts_the_sessions_own(now: list[float]) -> None:
    """And not what a plugin has set for the whole test."""
    deadline = _Deadline(600.0)
    deadline.set_by_worker(550.0, "was late")
    now[0] = 400.0
    deadline.restart()
    assert deadline.first == (650.0, "was late")
    deadline.set_by_worker(None, "")
    assert deadline.first[0] == 1000.0
