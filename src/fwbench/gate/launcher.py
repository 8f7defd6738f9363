"""Measures one launch of one side, as a pytest session in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from fwbench.environments.named import Environments
from fwbench.errors import ComparisonError
from fwbench.gate.samples import SampleSet
from fwbench.gate.sides import Side, variables_of
from fwbench.processes import session
from fwbench.processes.session import SELECTOR
from fwbench.records.stored import load


class Launcher:
    """Measures launches of base and contender.

    Args:
        sides: base and contender, both ready.
        arguments: of pytest, as the user gave them.
        environments: the named environments of the project.
    """

    def __init__(
        self, sides: Sequence[Side], arguments: Sequence[str], environments: Environments
    ) -> None:
        self._sides = sides
        self._arguments = arguments
        self._environments = environments
        self._nodeids: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def __call__(self, side: int, keys: Collection[str] | None, seed: int) -> SampleSet:
        """Measure one launch; see :data:`fwbench.gate.ab.Measure`.

        Raises:
            ComparisonError: the session broke down, or measured nothing.
        """
        name, nodeids = self._sides[side].name, self._nodeids[side]
        with tempfile.TemporaryDirectory(prefix="fwbench-") as folder:
            results = Path(folder) / "results.json"
            selected = None if keys is None else [nodeids[key] for key in keys]
            self._run(self._sides[side], seed, results, selected)
            if keys is not None and not results.is_file():
                # Once they could be measured: that they cannot now is for the job to judge.
                return SampleSet(name, {}, dict.fromkeys(keys, "failed"))
            run = replace(SampleSet.of_stored(load(results)), name=name)
        nodeids.update({key: sample.nodeid for key, sample in run.samples.items()})
        return run

    def _run(self, side: Side, seed: int, results: Path, selected: Sequence[str] | None) -> None:
        done = session.run(
            [
                *("-p", SELECTOR, *self._arguments, *side.arguments),
                *("--fw-launches", "1", "--fw-seed", str(seed)),
            ],
            folder=side.folder,
            results=results,
            variables=variables_of(side, self._environments),
            selected=selected,
        )
        measured = results.is_file() or selected is not None
        if done.status not in session.RAN or not measured:
            what = "measured nothing" if done.status in session.RAN else "broke down"
            raise ComparisonError(
                f"a launch of {side.name} {what} (pytest's exit status is {done.status}); its "
                "last output:\n" + "\n".join(done.last_lines)
            )
