"""Imports as cases: a call is the import, in an interpreter that has started and done no more.

The interpreter is started before each round, outside its time; then it is told to import, and says
when it has. From the second call on files are in the system's page cache. The breakdown is of
further processes, which ``-X importtime`` slows down.
"""

import os
import re
import socket
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from fwbench.cases.case import Case
from fwbench.cases.timing import IS_EXAMINED
from fwbench.cases.work import NO_TURNS, Turns, Work
from fwbench.errors import WrongResult
from fwbench.measure.resources import resident_bytes
from fwbench.processes import command
from fwbench.processes.process import Process
from fwbench.records.facts import CaseFacts

#: Runs in an interpreter of its own, which ends with the process at the other end of a connection.
#: It may use every CPU that a case may, wherever its parent is while it takes turns.
_MAIN = """
import os, sys
{cpus} and os.sched_setaffinity(0, {cpus})
connection, before = int(sys.argv[1]), len(sys.modules)
os.write(connection, b"started")
os.read(connection, 1) or os._exit(0)
{statement}
os.write(connection, b"imported")
module = sys.modules["{module}"]
answer = module.__version__, module.__file__, str(len(sys.modules) - before)
os.read(connection, 1) and os.write(connection, "\\n".join(answer).encode())
os.read(connection, 1)
os._exit(0)
"""

_ANSWER_BYTES = 2**16

#: What ``-X importtime`` writes of a module: its own microseconds, all of them, its name; and where
#: the lines begin that are not of the interpreter's own start.
_LINE = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")
_BEGIN = "fwbench imports"

#: Processes that are broken down, of which the shortest time of each part counts.
_TRACED = 2

#: The most parts that a record has, the name of all others, and of the standard library.
_PARTS = 40
OTHERS = "others"
PYTHON = "Python's own"


class _Importer:
    """An interpreter that imports a module when it is told to.

    Raises:
        WrongResult: it has ended instead.
    """

    def __init__(self, statement: str, module: str, cpus: set[int]) -> None:
        self._module = module
        main = _MAIN.format(statement=statement, module=module, cpus=cpus or None)
        self._connection, other_end = socket.socketpair()
        with other_end:
            arguments = [sys.executable, "-P", "-c", main, str(other_end.fileno())]
            self._process = Process(arguments, os.environ, connection=other_end)
        try:
            self._answer()
        except BaseException:
            self.close()
            raise
        self._before_bytes = resident_bytes(self._process.pid)

    def run(self) -> None:
        """Import it."""
        self._connection.send(b"!")
        self._answer()

    def describe(self) -> tuple[str, str, CaseFacts]:
        """Version and file of the module that was imported, and what came with it."""
        before_bytes, after_bytes = self._before_bytes, resident_bytes(self._process.pid)
        taken = None if before_bytes is None or after_bytes is None else after_bytes - before_bytes
        self._connection.send(b"?")
        version, file, modules = self._answer().split("\n")
        return version, file, CaseFacts(imported_modules=int(modules), imported_bytes=taken)

    def _answer(self) -> str:
        if answer := self._connection.recv(_ANSWER_BYTES):
            return answer.decode()
        ending = self._process.ending(1.0) or "closed its connection"
        raise WrongResult(
            f"a process that was to import {self._module} {ending}{self._process.tail()}"
        )

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()


class Importing(Work):
    """The import of a module, each time in a process of its own.

    Args:
        statement: what users write, and whatever has to come before it.
        module: its name.
        version: that it must have.
        file: the one of the module in this process.
    """

    def __init__(self, statement: str, module: str, version: str, file: str) -> None:
        self._statement, self._module = statement, module
        self._expected = version, file
        self._cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._ready: list[_Importer] = []
        self._over: list[_Importer] = []
        self.run = self._import
        self.before = self._prepare

    def _started(self) -> _Importer:
        return _Importer(self._statement, self._module, self._cpus)

    def _prepare(self) -> None:
        """Have one interpreter wait, and no other process be there."""
        while self._over:
            self._over.pop().close()
        self._ready = self._ready or [self._started()]

    def _import(self) -> _Importer:
        # Of several calls in a round only the first finds an interpreter that has started.
        self._over.append(self._ready.pop() if self._ready else self._started())
        self._over[-1].run()
        return self._over[-1]

    def verify(self, result: Any) -> CaseFacts:
        """The module is the one that this process has, in its version.

        Raises:
            WrongResult: it is another.
        """
        *found, facts = result.describe()
        if tuple(found) != self._expected:
            raise WrongResult(
                f"a new process imports {self._module} {' from '.join(found)}, and this one has "
                f"{' from '.join(self._expected)}: both must find the same installation "
                "(PYTHONPATH, .pth files)"
            )
        return facts

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """The same of the last import that was timed; none leaves anything for another."""
        return self.verify(last)

    def close(self) -> None:
        """End all processes."""
        for importer in (*self._ready, *self._over):
            importer.close()
        self._ready, self._over = [], []

    def parts(self) -> dict[str, float]:
        """Seconds of each part of the import under ``-X importtime``, the largest first."""
        traces = [self._trace() for _ in range(_TRACED)]
        shortest = {part: min(t.get(part, s) for t in traces) for part, s in traces[0].items()}
        largest = sorted(shortest.items(), key=lambda part: -part[1])
        rest_s = sum(seconds for _, seconds in largest[_PARTS:])
        return dict(largest[:_PARTS]) | ({OTHERS: rest_s} if rest_s else {})

    def _trace(self) -> Mapping[str, float]:
        main = f"import os, sys\nsys.stderr.write('{_BEGIN}\\n')\n{self._statement}\nos._exit(0)"
        done = command.capture([sys.executable, "-X", "importtime", "-P", "-c", main])
        return seconds_by_part(done.errors, self._module)


def seconds_by_part(trace: str, module: str) -> Mapping[str, float]:
    """Seconds by part of an import, of what ``-X importtime`` has written.

    Parts are the module's own submodules, with all that is below them, and other packages as a
    whole. Of each it is the time without what it imports in turn, so that they add up.
    """
    seconds: dict[str, float] = defaultdict(float)
    for microseconds, name in _LINE.findall(trace.rpartition(_BEGIN)[2]):
        package, *below = name.split(".")
        is_python = package in sys.stdlib_module_names
        part = PYTHON if is_python else ".".join([package, *below[: package == module]])
        seconds[part] += int(microseconds) / 1e6
    return dict(seconds)


class ImportCase(Case):
    """The case of a framework's import."""

    _work: Importing | None = None

    def measure(self) -> Any:
        """Time it, and leave no process behind."""
        try:
            return super().measure()
        finally:
            if self._work is not None:
                self._work.close()

    def bind(self) -> Work:
        """The import of the module that the framework's manifest names."""
        module, before = self._manifest.imports, self._manifest.imports_after
        file = str(sys.modules[module].__file__)
        statement = f"{before}\nimport {module}"
        self._work = Importing(statement, module, self.framework.version, file)
        return self._work

    def _record(self, facts: CaseFacts) -> None:
        """With the parts of the import; later launches of a comparison have those of the first."""
        if self._work is not None and self._benchmark.timed and not IS_EXAMINED:
            with self._benchmark.alone("import by part"):
                facts |= CaseFacts(import_parts=self._work.parts())
        super()._record(facts)
