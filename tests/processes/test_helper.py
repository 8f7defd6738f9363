"""A helper answers question after question in one process, and says when that has ended."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fwbench.errors import IsolationError
from fwbench.processes.helper import Helper

_ANSWERS = """
import os
import sys

def double(number):
    print("what a framework prints")
    return 2 * number

def process(_):
    return os.getpid()

def end(status):
    os._exit(status)

def read(_):
    raise EOFError
"""


#: Makes a helper that calls a function by its name.
Calls = Callable[[str], Helper]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Helpers of a module of these functions; they end with the test."""
    (tmp_path / "answers.py").write_text(_ANSWERS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made: list[Helper] = []

    def make(name: str) -> Helper:
        made.append(Helper(f"answers:{name}"))
        return made[-1]

    yield make
    for helper in made:
        helper.end()


def test_one_process_answers_every_question(calls: Calls) -> None:
    """So what it imports is imported once; it is not this process."""
    helper = calls("process")
    first = helper.ask(None)
    assert helper.ask(None) == first != os.getpid()


def test_what_is_printed_is_no_answer(calls: Calls) -> None:
    """Frameworks print to standard output."""
    assert calls("double").ask(21) == 42


def test_large_answers_arrive(calls: Calls) -> None:
    """Larger than a pipe holds."""
    large = b"12" * 2**20
    assert calls("double").ask(large) == 2 * large


@pytest.mark.parametrize(
    ("name", "question", "status"), [("end", 3, 3), ("read", None, 1), ("nothing", None, 1)]
)
def test_a_process_that_ends_has_no_answer(
    calls: Calls, name: str, question: object, status: int
) -> None:
    """By itself, by an exception, or because there is no such function; every time."""
    helper = calls(name)
    for _ in range(2):
        with pytest.raises(IsolationError) as caught:
            helper.ask(question)
        said = f"the process that calls answers:{name} has ended without an answer (status {status}"
        assert said in str(caught.value)


def test_after_its_end_another_process_answers(calls: Calls) -> None:
    """Whoever asks again may ask for something else."""
    helper = calls("process")
    first = helper.ask(None)
    assert helper.end() == 0
    assert helper.ask(None) != first
    assert Helper("answers:process").end() is None


@pytest.mark.parametrize("question", [lambda: None, (lambda: None for _ in ())])
def test_what_cannot_be_sent_is_refused(calls: Calls, question: object) -> None:
    """Before anything of it is sent: the process can still be asked."""
    helper = calls("double")
    assert helper.ask(1) == 2
    with pytest.raises(pickle.PicklingError):
        helper.ask(question)
    assert helper.ask(2) == 4
