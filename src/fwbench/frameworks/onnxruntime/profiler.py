"""ONNX Runtime's own profiler: the times of nodes, from the files that its sessions write.

It profiles a session from its beginning to its end, and writes one file. So the sessions of a case
are opened again for each profile; a call before the others finds out what memory they need.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Profiler, class_of

#: How the events of nodes are named at their end, and that of a call around them.
_KERNEL, _CALL = "_kernel_time", "model_run"

#: Opens a session; under the profiler if given what the names of its files begin with.
Open = Callable[[str], Any]


class Reopened:
    """A session that is opened again for each profile."""

    def __init__(self, open_session: Open) -> None:
        self._open = open_session
        self._usual = self._session = open_session("")
        self._last: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, *arguments: Any) -> Any:
        """The answers of the session that is open now."""
        self._last = arguments
        return self._session.run(*arguments)

    def begin(self, files: str) -> None:
        """Open it under the profiler, with one call that is in no profile."""
        self._session = self._open(files)
        if self._last:
            self._session.run(*self._last)

    def end(self) -> Path:
        """Close what was opened; the file that it has written."""
        file = Path(self._session.end_profiling())
        self._session = self._usual
        return file


class OnnxRuntimeProfiler(Profiler):
    """Times of nodes by ONNX Runtime's profiler; for sessions that are opened after it was made."""

    def __init__(self) -> None:
        self._sessions: list[Reopened] = []

    def session(self, open_session: Open) -> Reopened:
        """A session that it can profile."""
        self._sessions.append(opened := Reopened(open_session))
        return opened

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """From the events of kernels, by the names of their operators."""
        with tempfile.TemporaryDirectory() as folder:
            for number, opened in enumerate(self._sessions):
                opened.begin(f"{folder}/{number}")
            work()
            events = [event for opened in self._sessions for event in _events(opened.end())]
        trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        classes = profiler.prefixes("onnxruntime")
        nodes = [event for event in events if event["name"].endswith(_KERNEL)]
        named = [(node["args"]["op_name"], node["dur"] * 1e-6) for node in nodes]
        return [Operator(name, class_of(name, classes), time_s, 1) for name, time_s in named]


def _events(file: Path) -> Iterator[dict[str, Any]]:
    """Events of a session after its first call."""
    events = [event for event in json.loads(file.read_text(encoding="utf-8")) if "dur" in event]
    ends = [event["ts"] + event["dur"] for event in events if event["name"] == _CALL]
    return (event for event in events if ends and event["ts"] >= ends[0])
