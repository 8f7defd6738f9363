"""What a child process has written, and how it ended, for the message that says so."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from types import TracebackType
from typing import Any, Self

#: How much of the output a message shows at most.
_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 30

#: Frames of pytest and of the worker at the foot of every traceback, and what follows them.
_HARNESS_FRAME = re.compile(
    r"""\s*File\ "
        (.*[/\\](_pytest|pluggy|pytest_benchmark|fwbench[/\\](plugin|processes|gangs))[/\\]|<string>)
    |Extension\ modules:""",
    re.VERBOSE,
)


class Output:
    """A file that a child process writes to, and nobody else sees.

    Attributes:
        file: for the child's standard error.
    """

    def __init__(self) -> None:
        self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this)
        self._mark = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def mark(self) -> None:
        """Let the tail begin here."""
        self._mark = os.fstat(self.file.fileno()).st_size

    def tail(self) -> str:
        """The last lines that were written since the mark, ready to append to a message."""
        # Not by seeking: the child writes at the offset that it shares with this file.
        descriptor = self.file.fileno()
        end = os.fstat(descriptor).st_size
        start = max(self._mark, end - _TAIL_BYTES)
        written = os.pread(descriptor, end - start, start)
        lines = [
            line
            for line in written.decode(errors="replace").rstrip().splitlines()
            if not _HARNESS_FRAME.match(line)
        ]
        if not lines:
            return "; it wrote nothing to its standard error"
        return "; the end of what it wrote:\n" + "\n".join(lines[-_TAIL_LINES:])

    def close(self) -> None:
        """Forget what was written."""
        self.file.close()


def ending(status: int | None) -> str:
    """How a process ended, as a clause; None for one that has not."""
    if status is None:
        return "closed its connection"
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    if name == "SIGKILL":
        return "was killed by SIGKILL (often the kernel's, for lack of memory)"
    return f"was ended by {name}"
