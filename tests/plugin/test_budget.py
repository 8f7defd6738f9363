"""The time of a launch is known in later sessions with the same settings."""

from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.gate.budget import Budget, History, Precise, Result
from fwbench.plugin.race import BudgetHooks
from fwbench.plugin.session import Session
from support.tables import tabled


class Cache(dict[str, Any]):
    def set(self, key: str, value: Any) -> None:
        self[key] = value


class Sessions:
    """Sessions of one project, one after the other."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self._cache = Cache()

    def hooks(self, *arguments: str, ini: str = "") -> BudgetHooks:
        """The hooks of a new session with this command line and these ini settings."""
        self._pytester.makeini(f"[pytest]\n{ini}")
        configured = self._pytester.parseconfig(*arguments)
        config: Any = SimpleNamespace(cache=self._cache, option=configured.option)
        runner: Any = SimpleNamespace(history=History(), session=Session(configured))
        store: Any = SimpleNamespace()
        return BudgetHooks(config, runner, store, Precise(Budget(60.0), 0.03))

    def measure(self, *arguments: str, launch_s: float | None = 10.0) -> None:
        """A session of two cases, of a second and of two, in one launch; None: interrupted."""
        hooks = self.hooks(*arguments)
        history = hooks.runner.history
        for case, took_s in (("a", 1.0), ("b", 2.0)):
            history.add(case, Result(took_s, time_s=0.1))
        if launch_s is not None:
            history.end_launch(launch_s)
        hooks._keep_times()


@pytest.fixture
def sessions(pytester: pytest.Pytester) -> Sessions:
    return Sessions(pytester)


def test_a_launch_takes_its_cases_and_what_is_beyond_them(sessions: Sessions) -> None:
    assert sessions.hooks()._earlier_s(["a"]) is None
    sessions.measure()
    hooks = sessions.hooks()
    assert hooks._earlier_s(["a", "b"]) == 10.0
    assert hooks._earlier_s(["b"]) == 9.0
    assert hooks._earlier_s(["a", "c"]) is None


def test_a_launch_that_was_interrupted_has_cases_alone(sessions: Sessions) -> None:
    """Nobody knows what it would have taken beyond them: the launch before it tells."""
    sessions.measure(launch_s=None)
    assert sessions.hooks()._earlier_s(["a", "b"]) == 3.0
    sessions.measure()
    sessions.measure(launch_s=None)
    assert sessions.hooks()._earlier_s(["a", "b"]) == 10.0


@tabled
def test_other_settings_take_another_time(sessions: Sessions, argument: str, ini: str) -> None:
    sessions.measure()
    assert sessions.hooks(argument)._earlier_s(["a"]) is None
    assert sessions.hooks(ini=ini)._earlier_s(["a"]) is None
    sessions.measure(argument)
    assert sessions.hooks(ini=ini)._earlier_s(["a"]) == 8.0
