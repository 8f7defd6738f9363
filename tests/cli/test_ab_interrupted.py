"""``fwbench ab`` that is ended, by whatever signal: nothing stays but finished pairs."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from fwbench import cli
from fwbench.gate import patience
from fwbench.records.session_facts import NOT_REACHED
from fwbench.turns import referee
from support.programs import assert_ended
from support.suites import FEW, STEADY, TESTS, Suite, listening

_PATIENCE_S = 60.0

#: From the launch of the given number, from 1, on all go on until they are ended.
_HANGING = """
import os, time
from pathlib import Path
import pytest
from mymath import slowing

@pytest.mark.fwbench(slowing)
def test_it(case):
    with open(os.environ["LAUNCHES"], "a") as launches:
        print(os.getpid(), file=launches)
    if len(Path(os.environ["LAUNCHES"]).read_text().split()) >= int(os.environ["HANGING"]):
        time.sleep(600)
    case.measure()
"""


@contextmanager
def _hanging(
    suite: Suite, launch: int, *more: str
) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A job, with all that it has started, that has come to a launch that hangs."""
    suite.commit(test_it__py=_HANGING)
    launches = suite.temporary.parent / "launches"
    launches.touch()
    process = suite.start(
        *("git:HEAD", "git:HEAD", *FEW, *more), LAUNCHES=str(launches), HANGING=str(launch)
    )
    try:
        until = time.monotonic() + _PATIENCE_S
        while len(launches.read_text(encoding="utf-8").split()) < launch:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 6, "a guard, a session and its worker of each side"
        yield process, below
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ab_that_is_ended(suite: Suite, number: signal.Signals) -> None:
    """A job that is cancelled leaves no worktree, no file and no process: exit status 130."""
    with _hanging(suite, 1) as (process, below):
        process.send_signal(number)
        out, err = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert err.splitlines()[-1] == "fwbench: interrupted"
    assert_ended(below)
    assert suite.kept() == []
    suite.assert_clean()


def test_ab_that_is_ended_and_resumed(suite: Suite) -> None:
    """The verdicts so far are printed and written, and the job goes on where it was."""
    files = ("--json", "figures.json", "--markdown", "verdicts.md", "-o", "x_value=hush")
    with _hanging(suite, 3, *files) as (process, below):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 130, err
    assert_ended(below)
    suite.assert_clean()
    assert out.startswith("interrupted: what follows is what was known by then\n")
    assert "interrupted after 1 pair" in out
    assert suite.figures()["interrupted"] is True
    assert "interrupted after 1 pair" in (suite.path / "verdicts.md").read_text(encoding="utf-8")
    *_, kept, last = err.splitlines()
    assert last == "fwbench: interrupted"
    assert kept.startswith("1 finished pair kept under ")
    assert suite.kept() == ["launch-0001.json"]

    other = (*files[:-1], "x_value=other")  # a value that is not shown, but compared
    status, _, err = suite.ab("git:HEAD", "git:HEAD", *FEW, *other, "--resume")
    assert (status, "pytest_digest: " in err, "pytest: " in err) == (2, True, False), err

    variables = {"LAUNCHES": str(suite.temporary.parent / "launches"), "HANGING": "99"}
    process = suite.start("git:HEAD", "git:HEAD", *FEW, *files, "--resume", **variables)
    out, err = process.communicate(timeout=_PATIENCE_S)
    # Whether two pairs on a busy machine can be judged is not what is tested here.
    assert process.returncode in (0, 10), out + err
    assert "resumed: 1 pair had been measured before" in out
    assert "pair 1: " not in err
    assert err.count("pair 2: ") == 1
    assert suite.figures()["interrupted"] is False
    assert suite.kept() == []
    suite.assert_clean()


def test_ab_that_is_killed(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    """Its launches end with it; what it had no time to remove goes with the next command."""
    with _hanging(suite, 3) as (process, below):
        process.kill()
        process.communicate()
    assert_ended(below)
    with pytest.raises(AssertionError):
        suite.assert_clean()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(suite.path)
        patch.setattr("tempfile.tempdir", str(suite.temporary))
        assert cli.main(["env", "list"]) == 0
    assert "there is no environment" in capsys.readouterr().out
    suite.assert_clean()
    assert suite.kept() == ["launch-0001.json"]


def test_ab_of_a_launch_that_is_killed(suite: Suite) -> None:
    tests = TESTS.replace("import pytest", "import os, pathlib, pytest, signal") + (
        "\n@pytest.fixture(autouse=True, scope='session')\n"
        "def killed():\n"
        "    once = pathlib.Path(os.environ['ONCE'])\n"
        "    if not once.exists():\n"
        "        once.touch()\n"
        "        os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    suite.commit(test_it__py=tests)
    least = (*FEW, "--pairs", "1", "-k", "steady")
    process = suite.start("git:HEAD", "git:HEAD", *least, ONCE=str(suite.temporary.parent / "once"))
    out, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode in (0, 10), out + err
    assert STEADY in out
    died = r"a launch of git:HEAD has died \(by SIGKILL, at .*steady.*\): its pair is repeated, "
    assert len(re.findall(died, err)) == 1
    suite.assert_clean()


def test_ab_that_there_is_nothing_to_resume_of(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.path)
    assert cli.main(["ab", "git:HEAD", ".", *FEW, "--resume"]) == 2
    error = capfd.readouterr().err
    assert "--resume: no interrupted comparison is kept under " in error
    suite.assert_clean()


def test_ab_of_a_test_that_hangs_until_the_budget_is_over(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended with its pair, a minute (which is a second here) later; the first pair counts."""
    suite.commit(test_it__py=_HANGING)
    launches = suite.temporary.parent / "launches"
    launches.touch()
    monkeypatch.setenv("LAUNCHES", str(launches))
    monkeypatch.setenv("HANGING", "3")
    monkeypatch.setattr(referee, "LONG_S", 1.0)
    monkeypatch.chdir(suite.path)
    more = ("--budget", "25s", "--json", "figures.json")
    status = cli.main(["ab", "git:HEAD", "git:HEAD", *FEW, *more])
    out, err = capfd.readouterr()
    assert status in (0, 10), out + err
    assert "; if it hangs, Ctrl-C or the end of the budget ends the launch" in err
    assert "pair 2 does not count: git:HEAD" in out
    assert "when the budget was over, so the launch was ended" in out
    assert {len(figure["contender"]) for figure in suite.figures()["judgements"]} == {1}
    suite.assert_clean()


_TWO = """
import os, signal, time

def test_fast(benchmark):
    benchmark(sum, range(300))

def test_last(benchmark):
    {last}
    while True:
        time.sleep(0.01)
"""

#: Compares two tests, of which the last one does what it is given; returns the exit status, the
#: judgements by test, and the output.
Compare = Callable[..., tuple[int, dict[str, Any], str, str]]


@pytest.fixture
def compare(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Compare]:
    def compare(last: str, *more: str) -> tuple[int, dict[str, Any], str, str]:
        suite.commit(test_it__py=_TWO.replace("{last}", last))
        both = ("git:HEAD", "git:HEAD", "--seed", "2", "--json", "figures.json", "test_it.py")
        status = cli.main(["ab", *both, *more])
        names = (figure["name"].partition("::")[2] for figure in suite.figures()["judgements"])
        figures = dict(zip(names, suite.figures()["judgements"], strict=True))
        return status, figures, *capfd.readouterr()

    monkeypatch.setenv("JOB", str(os.getpid()))
    monkeypatch.setattr(referee, "LONG_S", 1.0)
    monkeypatch.setattr(patience, "LONG_S", 1.0)
    monkeypatch.setattr(patience, "_POLL_S", 0.2)
    monkeypatch.chdir(suite.path)
    yield compare
    assert suite.kept() == []
    suite.assert_clean()


def test_ab_of_a_test_that_hangs_in_the_first_pair(compare: Compare) -> None:
    """The test has a sentence, and what both sides have measured before it is judged."""
    status, figures, out, err = compare("pass", "--budget", "8s")
    assert status == 11, out + err
    assert len(figures["test_fast"]["contender"]) == 1
    assert (figures["test_last"]["verdict"], figures["test_last"]["base"]) == ("missing", [])
    assert "git:HEAD: at test_it.py::test_last for " in figures["test_last"]["reason"]
    assert "pair 1 was cut short: git:HEAD and git:HEAD: at test_it.py::test_last" in out


#: Once, by the launch that comes there last: the other one has measured the first test by then.
_INTERRUPTS = """with open(os.environ["LAUNCHES"], "a") as launches:
        print("one", file=launches)
    if len(open(os.environ["LAUNCHES"]).readlines()) == 2:
        os.kill(int(os.environ["JOB"]), signal.SIGINT)"""


def test_ab_that_is_ended_in_the_first_pair(
    compare: Compare, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tests before that are shown, and the exit status is that of an interruption."""
    monkeypatch.setenv("LAUNCHES", str(suite.temporary.parent / "launches"))
    with listening():
        status, figures, out, err = compare(_INTERRUPTS)
    assert status == 130, out + err
    assert len(figures["test_fast"]["contender"]) == 1
    assert figures["test_last"]["reason"] == f"{NOT_REACHED}, on both sides"
    assert "interrupted in the first pair" in out


def test_ab_of_a_test_that_hangs_where_no_turns_are_taken(compare: Compare) -> None:
    """The first pair has no turns once a launch has died; its budget ends all the same."""
    last = "'FWBENCH_TURNS' in os.environ and os.abort()"
    status, figures, out, err = compare(last, "--budget", "5s")
    assert status == 11, out + err
    assert len(figures["test_fast"]["contender"]) == 1
    assert figures["test_last"]["verdict"] == "missing"
    assert "git:HEAD measured nothing for 1 s after the end of the budget, and was ended" in out


#: Beyond so many launches, the first pair's or none.
_ABORTS = """with open(os.environ["LAUNCHES"], "a") as launches:
        print("one", file=launches)
    if len(open(os.environ["LAUNCHES"]).readlines()) <= {sound}:
        return benchmark(print, end="")
    os.abort()"""


@pytest.mark.parametrize("sound", [0, 2])
def test_ab_of_a_test_that_ends_each_launch(
    compare: Compare, suite: Suite, monkeypatch: pytest.MonkeyPatch, sound: int
) -> None:
    """It is left out, and its last output is shown; the other test has the pairs that it needs."""
    monkeypatch.setenv("LAUNCHES", str(suite.temporary.parent / "launches"))
    last = _ABORTS.replace("{sound}", str(sound))
    status, figures, out, err = compare(last, "--pairs", "1", "--budget", "15s")
    assert status in ((0, 10) if sound else (11,)), out + err
    assert len(figures["test_fast"]["contender"]) > 1
    assert figures["test_last"]["verdict"] == ("inconclusive" if sound else "missing")
    reason = "a launch of git:HEAD broke down (by SIGABRT, at test_it.py::test_last)"
    assert f"{'then ' * bool(sound)}left out, since {reason}" in figures["test_last"]["reason"]
    assert "cut short" not in out
    assert f"{reason}; its last output:" in err
    assert err.count("is left out: the pair is measured again without it") == 1
