"""A child process that computes what its parent must not: it imports what the parent does without.

It answers one question after another, so that what it imports is imported once, and ends with its
parent: its input ends then.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

from fwbench.errors import IsolationError

#: What the process runs.
_MAIN = "from fwbench.processes.helper import serve; serve({!r})"

#: How long a process gets to end by itself.
_GRACE_S = 2.0

#: What reading or writing may raise once the process has ended.
_ENDED = (EOFError, OSError, pickle.UnpicklingError)


class Helper:
    """A child process that calls one function; it is started with the first call.

    Args:
        function: ``package.module:name``; its argument and its result can be pickled.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: Any) -> Any:
        """What the function returns for a question.

        Args:
            question: the argument of the function.

        Raises:
            IsolationError: the process could not be started, or has ended without an answer.
            PicklingError: the question cannot be sent to another process.
        """
        try:
            sent = pickle.dumps(question)
        except (AttributeError, TypeError) as error:  # as pickle says of some objects
            raise pickle.PicklingError(str(error)) from None
        try:
            questions, answers = self._pipes()
            questions.write(sent)
            questions.flush()
            return pickle.load(answers)  # noqa: S301 (of a process of our own)
        except _ENDED as error:
            raise IsolationError(
                f"the process that calls {self._function} has ended without an answer (status "
                f"{self.end()}, {type(error).__name__}); what it wrote to standard error says why"
            ) from None

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """The process's input and output; starts it if there is none."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN.format(self._function)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None  # noqa: S101 (a pipe was asked for)
        assert answers is not None  # noqa: S101 (likewise)
        return questions, answers

    def end(self) -> int | None:
        """The exit status of the process, which ends; the next question starts another one.

        Returns:
            None if there is no process.
        """
        process, self._process = self._process, None
        if process is None:
            return None
        try:
            process.communicate(timeout=_GRACE_S)  # its input ends, and so it does
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
        return process.wait()


def serve(function: str) -> None:
    """Answer questions from standard input until it ends.

    What the function prints goes to standard error: standard output is for answers.

    Args:
        function: ``package.module:name``.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer = _named(function)
    for question in _questions(sys.stdin.buffer):
        pickle.dump(answer(question), answers)
        answers.flush()


def _questions(pipe: IO[bytes]) -> Iterator[Any]:
    while True:
        try:
            question = pickle.load(pipe)  # noqa: S301 (of the parent)
        except EOFError:
            return
        yield question


def _named(function: str) -> Callable[[Any], Any]:
    module, _, name = function.partition(":")
    named: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return named
