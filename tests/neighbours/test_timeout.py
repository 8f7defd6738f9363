"""pytest-timeout: a case that takes too long fails, alone, whatever it hangs in."""

import pytest

from fwbench.plugin import host
from fwbench.records.journal import recover
from support.neighbours import Beside
from support.projects import Project

_HANGING = """
import signal, time
import pytest
from declared import double, doubling

def sleeps(x):
    time.sleep(60)

def heeds_no_signal(x):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as in a call into a library
    time.sleep(60)

OPERATIONS = doubling("sleeps", sleeps, (4,)), doubling("heedless", heeds_no_signal, (4,))

@pytest.mark.fwbench(double)
def test_first(case):
    case.measure()

@pytest.mark.timeout(1)
@pytest.mark.fwbench(*OPERATIONS)
def test_it(case):
    case.measure()

@pytest.mark.timeout(30)
@pytest.mark.fwbench(double)
def test_last(case):
    case.measure()
"""

#: How each method fails a case that sleeps, and one that heeds no signal.
_ENDED = "did not finish the case within 1 s (pytest-timeout) and was ended"
_MESSAGES = {
    "signal": {"sleeps": ["Timeout (>1.0s)", "time.sleep"], "heedless": [_ENDED, "in heeds_no"]},
    "thread": {"sleeps": [_ENDED, "in sleeps"], "heedless": [_ENDED, "in heeds_no"]},
}


def _measured(project: Project) -> list[str]:
    return [entry["name"].split("-")[0] for entry in project.entries("measured.json")]


@pytest.mark.serial
@pytest.mark.parametrize("method", _MESSAGES)
def test_what_hangs_fails_alone(project: Project, beside: Beside, method: str) -> None:
    """A signal fails the test, and where it cannot the worker is ended, as by the other method."""
    beside("timeout")
    project.write("test_it.py", _HANGING)
    result, _ = project.measure(f"--timeout-method={method}", "--junitxml=junit.xml")
    result.assert_outcomes(passed=4, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = project.outcomes()
    for name, message in _MESSAGES[method].items():
        text = outcomes[f"test_it[{name}-numpy-cpu-eager-forward-float32-4]"].text
        assert [part for part in message if part not in text] == [], text
    assert _measured(project) == [*["test_first[double"] * 2, *["test_last[double"] * 2]


@pytest.mark.serial
def test_launches_and_the_command_line(project: Project, beside: Beside) -> None:
    """--timeout holds in every launch, and for ordinary tests in the user's own process."""
    beside("timeout")
    project.write("test_it.py", _HANGING.replace("@pytest.mark.timeout(1)", ""))
    project.write("test_plain.py", "import time\ndef test_plain():\n    time.sleep(60)\n")
    result, _ = project.measure("--fw-launches=2", "--timeout=2", "-k", "first or sleeps or plain")
    result.assert_outcomes(passed=2, failed=2, deselected=3)
    assert _measured(project) == ["test_first[double"] * 2


_ENDS_ALL = """
import time
import pytest
from declared import double

@pytest.mark.fwbench(double)
def test_first(case):
    case.measure()

@pytest.mark.timeout(1, method="thread")
def test_plain():
    time.sleep(60)
"""


@pytest.mark.serial
def test_the_method_that_ends_the_process(project: Project, beside: Beside) -> None:
    """The time limit of an ordinary test ends the session; what was measured is in the journal."""
    beside("timeout")
    project.write("test_it.py", _ENDS_ALL)
    result = project.run("--benchmark-json=measured.json")
    assert result.ret == 1
    assert "Timeout" in str(result.stderr) + str(result.stdout)
    assert not (project.path / "measured.json").exists()
    (journal,) = project.path.glob(".fwbench/journal/*.jsonl")
    assert len(recover(journal, host.with_statistics).run["benchmarks"]) == 2
