"""Measures one launch of one side, as a pytest session in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path

from fwbench.environments.named import Environments
from fwbench.errors import ComparisonError
from fwbench.gate.samples import Run
from fwbench.gate.sides import Side, environment_of
from fwbench.plugin import selected
from fwbench.records.stored import load

_SHOWN_LINES = 25

#: pytest's exit status when all tests ran, whether or not some have failed.
_RAN = (0, 1)


class Launcher:
    """Measures launches.

    Args:
        sides: base and contender, both ready.
        arguments: of pytest, as the user gave them.
        environments: of the project.
    """

    def __init__(
        self, sides: Sequence[Side], arguments: Sequence[str], environments: Environments
    ) -> None:
        self._sides = sides
        self._arguments = arguments
        self._environments = environments
        self._nodeids: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def __call__(self, side: int, keys: Collection[str] | None, seed: int) -> Run:
        """Measure one launch; see :data:`fwbench.gate.ab.Measure`.

        Raises:
            ComparisonError: the session broke down, or measured nothing.
        """
        with tempfile.TemporaryDirectory(prefix="fwbench-") as folder:
            results = Path(folder) / "results.json"
            variables = environment_of(self._sides[side], self._environments)
            if keys is not None:
                file = Path(folder) / "selected.json"
                file.write_text(json.dumps([self._nodeids[side][key] for key in keys]))
                variables[selected.VARIABLE] = str(file)
            self._run(self._sides[side], seed, results, variables)
            if keys is not None and not results.is_file():
                # Once they could be measured: that they cannot now is for the job to judge.
                return Run(self._sides[side].name, {}, dict.fromkeys(keys, "failed"))
            run = Run.of(self._sides[side].name, load(results))
        self._nodeids[side].update({key: s.nodeid for key, s in run.samples.items()})
        return run

    def _run(self, side: Side, seed: int, results: Path, variables: dict[str, str]) -> None:
        command = [
            *(sys.executable, "-P", "-m", "pytest", "-p", selected.__name__),
            *(*self._arguments, *side.arguments),
            *("--fw-launches", "1", "--fw-seed", str(seed), "--benchmark-json", str(results)),
        ]
        done = subprocess.run(
            command,
            cwd=side.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        failed = results.is_file() or variables.get(selected.VARIABLE)
        if done.returncode not in _RAN or not failed:
            what = "measured nothing" if done.returncode in _RAN else "broke down"
            last = "\n".join(deque(done.stdout.splitlines(), _SHOWN_LINES))
            raise ComparisonError(
                f"a launch of {side.name} {what} (pytest's exit status is {done.returncode}); it "
                f"said last:\n{last}"
            )
