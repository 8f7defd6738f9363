"""Compiled code on disk: cases begin with an empty folder, or with one that they have filled."""

from __future__ import annotations

import sys
from pathlib import Path

from support.projects import QUICKLY, Project, measuring
from support.terminals import OFTEN, Terminal

#: NumPy with a compiler that keeps what it has compiled in a folder, and notes what it finds.
_HOARD = """
import os
from dataclasses import replace
from pathlib import Path
from fwbench.frameworks.numpy.framework import NumPy

FOLDER = os.environ.get("HOARD", "")

class Hoard(NumPy):
    name = "hoard"
    capabilities = replace(
        NumPy.capabilities,
        cached_executions=("eager",),
        cache_variables={"HOARD": "{given}{folder}"},
    )

    def forward(self, implementation, inputs, execution):
        folder = Path(FOLDER)
        with open("found", "a") as file:
            print(os.getpid(), os.environ["FWBENCH_CACHE"], folder, *sorted(os.listdir(folder)),
                  file=file)
        (folder / "below").mkdir(exist_ok=True)
        (folder / f"{inputs[0].size}").touch()
        return super().forward(implementation, inputs, execution)
"""

_CASES = measuring("tanh, sizes=(4, 8)", "from fwbench.workloads import tanh")


def test_folders_are_empty_or_filled_before(project: Project) -> None:
    """In each launch, for each case; nothing is left of a session."""
    project.install("hoard", "hoard_fwbench:Hoard", _HOARD)
    project.write("test_it.py", _CASES)
    result = project.run("--fw-toggle=cache=cold,warm", "--fw-launches=2", fw="hoard")
    result.assert_outcomes(passed=4)
    found = [line.split() for line in Path("found").read_text().splitlines()]
    cold = [files for _, value, _, *files in found if value == "cold"]
    assert cold == [[]] * 4
    warm = [(process, files) for process, value, _, *files in found if value == "warm"]
    filling, measuring = warm[:2], warm[2:]
    assert [files for _, files in filling] == [[], ["4", "below"]]
    assert [files for _, files in measuring] == [["4", "8", "below"]] * 4
    assert len({process for process, _ in warm}) == 4
    assert not any(Path(folder).exists() for _, _, folder, *_ in found)


def test_what_is_compiled_ahead_is_shown(project: Project) -> None:
    """On a terminal with the case, in a log by a line before the first."""
    project.install("hoard", "hoard_fwbench:Hoard", _HOARD)
    project.write("test_it.py", _CASES)
    project.write("packages/often.py", OFTEN)
    given = ["--fw-toggle=cache=warm", "--fw=hoard", "-p", "no:randomly", "-p", "often", *QUICKLY]
    terminal = Terminal(columns=120)
    with project.forking():
        terminal.run([sys.executable, "-m", "pytest", *given], project.path, {})
    for number, size in enumerate((4, 8), start=1):
        case = f"tanh-hoard-cpu-eager-forward-float32-{size}-cache:warm"
        assert f"cache=warm, compiling ahead {number} of 2: {case}" in terminal.written
    assert "cache=warm, compiling" not in "\n".join(terminal.shown)
    result = project.run("--fw-toggle=cache=warm", fw="hoard")
    result.stdout.fnmatch_lines(["fwbench: cache=warm: 2 cases to compile before the first"])


def test_a_framework_that_keeps_nothing_says_why(project: Project) -> None:
    project.write("test_it.py", _CASES)
    result = project.run("--fw-toggle=cache=cold", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*numpy compiles nothing when it is called*"])
