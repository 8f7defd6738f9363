"""A launch of several versions at once, and of what cannot take turns one after the other."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import ComparisonError
from fwbench.gate import resume
from fwbench.gate.lineup import Lineup, RowJob
from fwbench.gate.patience import Patience
from fwbench.gate.sides import Installed
from fwbench.processes import session
from fwbench.processes.session import FinishedSession
from fwbench.turns import visits
from fwbench.turns.referee import Referee
from fwbench.workers.environments import Environments
from support.launched_runs import entry, output
from support.tables import tabled

_ENTRY = entry()
_KEY: str = _ENTRY["fullname"]


class Sessions:
    """Sessions of the same case, of which some fail.

    Attributes:
        failing: numbers of the sessions by turns whose test fails, of those of a launch.
        always: whether it fails alone, too.
        endings: exit status and last lines of sessions without results, and whether they had no
            tests, by number.
        in_turns: of each session, whether it takes turns.
    """

    def __init__(self) -> None:
        self.failing: Sequence[int] = ()
        self.always = False
        self.endings: dict[int, tuple[int, list[str], bool]] = {}
        self.in_turns: list[bool] = []

    @contextmanager
    def begin(
        self, _: Sequence[str], *, results: Path, variables: Mapping[str, str], **more: Any
    ) -> Iterator[session.ChildSession]:
        """One session, with the case if it is selected."""
        number = int(results.stem)
        self.in_turns.append(visits.VARIABLE in variables)
        is_run = more["selected"] is None or _KEY in more["selected"]
        fails = is_run and number in self.failing and (self.in_turns[-1] or self.always)
        why = {"nodeid": _KEY, "framework": "numpy", "why": "call failed"}
        written = output([_ENTRY] * (is_run and not fails), missing=[why] * fails)
        child = session.ChildSession()
        ending = self.endings.get(number, (int(fails), ["..."], False))
        child.done = FinishedSession(*ending)
        if number not in self.endings:
            results.write_text(json.dumps(written), encoding="utf-8")
        yield child


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    made = Sessions()
    monkeypatch.setattr(session, "started", made.begin)
    monkeypatch.setattr(Referee, "serve", lambda *_: None)
    monkeypatch.setattr(Patience, "wait", lambda *_: None)
    return made


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def lineup(tmp_path: Path, said: list[str]) -> Iterator[Lineup]:
    sides = [Installed(f"1.{place}", ["numpy"]) for place in range(3)]
    with resume.job(tmp_path, {"seed": 0}, RowJob, resume=False) as job:
        yield Lineup(sides, [], Environments(tmp_path), job, said.append)


def test_a_case_that_fails_beside_others_is_measured_alone(
    lineup: Lineup, sessions: Sessions, said: list[str]
) -> None:
    """Such as one that binds a port: in all versions, from the launch on that has found it."""
    sessions.failing = [1, 2]
    first = lineup.launch([0, 1, 2], None, 1)
    assert ({*first.logs[_KEY]}, first.missing) == ({0, 1, 2}, {})
    assert sessions.in_turns == [True] * 3 + [False] * 5
    assert first.sessions == 8
    second = lineup.launch([0, 2], [_KEY], 2)
    assert ({*second.logs[_KEY]}, second.missing) == ({0, 2}, {})
    assert sessions.in_turns[8:] == [False] * 2
    assert second.sessions == 2
    (line,) = said
    assert line.startswith(f"{_KEY} cannot take turns: call failed while other versions had it")


def test_a_case_that_fails_alone_too_is_missing(
    lineup: Lineup, sessions: Sessions, said: list[str]
) -> None:
    """It is tried once, and where it fails in every version not at all."""
    sessions.failing, sessions.always = [1], True
    for seed in (1, 2):
        brought = lineup.launch([0, 1, 2], None, seed)
        assert {*brought.logs[_KEY]} == {0, 2}
        assert brought.missing[_KEY] == {1: "call failed"}
    assert sessions.in_turns == [*[True] * 3, False, *[True] * 3]
    sessions.failing = [0, 1, 2]
    assert lineup.launch([0, 1, 2], None, 3).logs == {}
    assert (len(sessions.in_turns), said) == (10, [])


def test_a_case_that_stalls_is_measured_alone(
    lineup: Lineup, sessions: Sessions, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first launch has measured it alone already."""
    monkeypatch.setattr(Referee, "serve", lambda referee, _: referee.stalled.add(_KEY))
    for seed, cases in enumerate((None, [_KEY])):
        assert {*lineup.launch([0, 1], cases, seed).logs[_KEY]} == {0, 1}
    assert sessions.in_turns == [True] * 2 + [False] * 2
    assert [
        line.startswith(f"{_KEY} cannot take turns: a side computed nothing") for line in said
    ] == [True]
    assert _resumed(lineup).apart == lineup.apart
    assert [*lineup.apart] == [_KEY]


def _resumed(lineup: Lineup) -> Lineup:
    """The same in another call, with the launches of the first."""
    sides, job = lineup.sides, lineup.job
    again = Lineup(sides, [], Environments(job.folder), RowJob(job.folder, job.seed), [].append)
    assert again.earlier(lambda _: True)
    return again


@pytest.mark.usefixtures("sessions")
def test_results_that_are_not_whole(lineup: Lineup, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, perhaps; fwbench ab says the same."""
    monkeypatch.setattr("json.dumps", lambda *_, **__: "{half of")
    with pytest.raises(ComparisonError, match=r"a launch of 1\.0 has not written all .* TMPDIR"):
        lineup.launch([0, 1], None, 1)


@tabled
def test_a_session_without_results_has_a_reason(
    lineup: Lineup,
    sessions: Sessions,
    said: list[str],
    ending: tuple[int, list[str], bool],
    why: str,
    *,
    has_died: bool,
) -> None:
    """The error rather than pytest's last line; a signal, and whose session it ended."""
    sessions.endings = {1: ending}
    brought = lineup.launch([0, 1, 2], None, 1)
    assert brought.lost == {1: why}
    assert brought.died == ({1} if has_died else set())
    assert brought.lacked_memory is ("SIGKILL" in why)
    assert [line.startswith("a session of 1.1 has died (") for line in said] == [True] * has_died
