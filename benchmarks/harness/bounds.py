"""Shared by the scripts of this folder: sessions in fresh processes, taking turns, verdicts."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fwbench.processes.session import JOURNAL_VARIABLE

T = TypeVar("T")

REPOSITORY = Path(__file__).resolve().parents[2]

#: Some scripts share parts with the tests.
sys.path.append(str(REPOSITORY / "tests"))

_KEPT = {True: "kept", False: "BROKEN", None: "-"}
_HEADINGS = ("what", "figure", "bound", "")
_TAIL_LINES = 40

#: How often a journal is read: seldom, as reading it takes time from what is measured.
_POLL_S = 2.0

#: The load average of a machine that does nothing else.
_QUIET = 0.5


@dataclass(frozen=True)
class Finding:
    """One line of a script's table.

    Attributes:
        what: was measured.
        figure: what came out, with its unit.
        bound: what it must keep; empty where the figure only explains another.
        kept: whether it did; None where that is not asked, or not known.
    """

    what: str
    figure: str
    bound: str = ""
    kept: bool | None = None


def at_most(what: str, figure: float, bound: float, unit: str) -> Finding:
    """A figure with an upper bound."""
    return Finding(what, f"{figure:.2f} {unit}", f"at most {bound:g} {unit}", figure <= bound)


def conclude(findings: Sequence[Finding]) -> int:
    """Print the table.

    Returns:
        The exit status: 1 when a bound was broken.
    """
    table([_HEADINGS, *((f.what, f.figure, f.bound, _KEPT[f.kept]) for f in findings)])
    return int(any(finding.kept is False for finding in findings))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows, their columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def arguments(
    doc: str | None,
    rounds: int,
    files: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    **defaults: int,
) -> argparse.Namespace:
    """The options of a script: files, texts, and whole numbers.

    Args:
        doc: the script's docstring, which becomes its help.
        rounds: the default of ``--rounds``, how often everything is measured.
        files: what further options that name files are for, by name.
        texts: what further options that are texts are for, by name; empty where they are not given.
        defaults: of further options.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in {"rounds": rounds, **defaults}.items():
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"default: {default}"
        )
    for name, what in (files or {}).items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=what)
    for name, what in (texts or {}).items():
        parser.add_argument(f"--{name}", default="", metavar="TEXT", help=what)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    if load > _QUIET:
        print(f"The machine is busy (load average {load:.1f}): expect noise.", file=sys.stderr)
    return given


def in_turn(rounds: int, measurements: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Measure A, B, A, B ... so that a machine that drifts moves all of them alike.

    Everything is done once before, uncounted: it fills the caches of files and manifests.
    """
    results: dict[str, list[T]] = {name: [] for name in measurements}
    for round_ in range(rounds + 1):
        for name, measure in measurements.items():
            figure = measure()
            if round_:
                results[name].append(figure)
    return results


def medians(results: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each measurement."""
    return {name: statistics.median(figures) for name, figures in results.items()}


def spread(figures: Sequence[float]) -> float:
    """The spread of the figures, as a share of their median."""
    return (max(figures) - min(figures)) / statistics.median(figures)


def python(*command: str, folder: Path = REPOSITORY, **variables: str) -> tuple[float, str]:
    """Run a Python interpreter that must succeed.

    Args:
        command: its arguments.
        folder: the current folder.
        variables: of the environment, in addition to this process's.

    Returns:
        Seconds from start to end, and its output.
    """
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if ended.returncode:
        tail = "\n".join(ended.stdout.splitlines()[-_TAIL_LINES:])
        raise SystemExit(f"{' '.join(command)}: exit status {ended.returncode}\n{tail}")
    return seconds, ended.stdout


def pytest_s(*options: str, folder: Path) -> float:
    """Seconds that a whole pytest session takes."""
    return python("-m", "pytest", "-q", *options, folder=folder)[0]


def records(path: Path, *options: str, **variables: str) -> list[dict[str, Any]]:
    """Run a session that measures, and give what it recorded.

    Args:
        path: where to keep its JSON.
        options: of pytest.
        variables: of the environment.
    """
    command = ("-m", "pytest", "-q", *options, f"--benchmark-json={path}")
    python(*command, folder=REPOSITORY, **{"PYTHONPATH": _import_path(), **variables})
    kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    return kept


def _import_path() -> str:
    """Scripts that are test files, too, import this module in pytest, and in workers."""
    return os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


def stream(folder: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Run a session that measures, and give each record as soon as it is in its journal.

    Args:
        folder: where to keep journal and output, empty.
        options: of pytest.

    Raises:
        SystemExit: the session has failed; what it recorded before was given.
    """
    command = [sys.executable, "-m", "pytest", "-q", *options]
    variables = {"PYTHONPATH": _import_path(), JOURNAL_VARIABLE: str(folder / "journal")}
    output, read, ended = folder / "output.txt", 0, False
    with (
        output.open("wb") as file,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as session,
    ):
        while not ended:
            ended = session.poll() is not None  # before the journal is read: nothing comes later
            lines, read = _lines(folder / "journal", read)
            yield from (values for values in map(json.loads, lines) if "extra_info" in values)
            time.sleep(0 if ended else _POLL_S)
    if session.returncode:
        tail = "\n".join(output.read_text().splitlines()[-_TAIL_LINES:])
        raise SystemExit(f"{' '.join(command)}: exit status {session.returncode}\n{tail}")


def _lines(journal: Path, start: int) -> tuple[list[bytes], int]:
    """Complete lines of a session's journal from a byte on, and the byte behind them."""
    text = b""
    for path in journal.glob("*.jsonl"):
        with path.open("rb") as file:
            file.seek(start)
            text = file.read()
    end = text.rfind(b"\n") + 1
    return text[:end].splitlines(), start + end
