"""``fwbench ab`` tells what has changed in ten plain tests, and in how many seconds.

Ten functions of plain Python, which take 5 to 100 us, are in a git repository of their own; its
last commit makes some of them longer by a share of their work. Jobs of each row are run as a user
would run them; the bounds are those of fwbench's own aims.

    python benchmarks/harness/plain.py --rounds 3
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bounds

from support.suites import run_git

_TESTS = """
import pytest

LONGER = {longer}
WORDS = [f"word{{i % 37}}" for i in range(600)]


def counts(words):
    found = {{}}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def loop(words):
    total = 0
    for n in range(10 * len(words)):
        total += n & 3
    return total


def of_numbers(make):
    return lambda words: [make(n) for n in range(len(words))]


FUNCTIONS = {{
    "counts": counts,
    "loop": loop,
    "join": lambda words: ",".join([word.upper() for word in words]),
    "filter": lambda words: [word for word in words if len(word) > 5],
    "prefixes": lambda words: {{word[:5] for word in words}},
    "sorted": sorted,
    "squares": of_numbers(lambda n: n * n),
    "texts": of_numbers(str),
    "digits": of_numbers(lambda n: f"{{n:05d}}"),
    "pairs": of_numbers(lambda n: (n, n)),
}}


@pytest.mark.parametrize("name", FUNCTIONS)
def test(benchmark, name):
    benchmark(FUNCTIONS[name], WORDS[: round(300 * (1 + LONGER.get(name, 0)))])
"""

#: Functions that take longer by the share by which their work grows.
_HALF = ("counts", "loop", "join", "squares", "digits")


@dataclass(frozen=True)
class _Row:
    """Jobs of one kind.

    Attributes:
        longer: shares by which the functions of the contender do more.
        options: of ``fwbench ab``.
        within_s: how long the usual job may take.
        share: of the jobs that must have the right verdicts for all their tests; none may have a
            wrong one.
        shown: the change that each unchanged test must say it would have shown.
    """

    what: str
    longer: Mapping[str, float]
    options: Sequence[str]
    within_s: float
    share: float = 1.0
    shown: float | None = None


_ONE = ("-k", "loop")
_FINE = ("--threshold", "1%", "--margin", "0.5%", "--resolution", "2%", *_ONE)
_FINEST = ("--threshold", "0.4%", "--budget", "3min", *_ONE)
_SHOWING = ("--threshold", "2%", "--resolution", "2%")
_ROWS = (
    _Row("one test, 10 % more", {"loop": 0.1}, _ONE, 10.0),
    _Row("ten tests, 5 % more in five", dict.fromkeys(_HALF, 0.05), (), 60.0),
    _Row("ten equal tests", {}, (), 60.0),
    _Row("ten equal tests, to show 3 %", {}, _SHOWING, 90.0, 0.8, 0.03),
    _Row("one test, 2 % more", {"loop": 0.02}, _FINE, 60.0, 0.9),
    _Row("one test, 1 % more", {"loop": 0.01}, _FINEST, 180.0, 0.9),
    _Row("one equal test", {}, _FINEST, 180.0, 0.8),
)

#: Of the bounds that are shown, which are found to a twentieth of a per cent.
_PRECISION = 5e-4


def main() -> int:
    """Run the jobs, and print the table."""
    given = bounds.arguments(__doc__, rounds=3)
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for row in _ROWS:
            findings += _judged(row, Path(folder), given.rounds)
            print(f"{row.what}: done", file=sys.stderr, flush=True)
    return bounds.conclude(findings)


def _judged(row: _Row, folder: Path, jobs: int) -> list[bounds.Finding]:
    tree = Path(tempfile.mkdtemp(dir=folder))
    run_git(tree, "init", "-q")
    for longer in ({}, row.longer):
        (tree / "test_plain.py").write_text(_TESTS.format(longer=dict(longer)), encoding="utf-8")
        run_git(tree, "add", "-A")
        run_git(tree, "commit", "-q", "--allow-empty", "-m", "some functions")
    done = [_job(row, tree) for _ in range(jobs)]
    wrong = sum(counts["wrong"] for counts, _ in done)
    right = sum(set(counts) == {"right"} for counts, _ in done)
    return [
        bounds.Finding(f"{row.what}: wrong verdicts", f"{wrong}", "none", wrong == 0),
        bounds.Finding(
            f"{row.what}: jobs that told all",
            f"{right} of {jobs}",
            f"at least {row.share:.0%}",
            right >= row.share * jobs,
        ),
        bounds.at_most(
            f"{row.what}: the usual job", statistics.median(s for _, s in done), row.within_s, "s"
        ),
    ]


def _job(row: _Row, tree: Path) -> tuple[Counter[str], float]:
    """Count tests with a right verdict, a wrong one or none; and the seconds it took."""
    command = ["-m", "fwbench", "ab", "git:HEAD~1", "git:HEAD", *row.options, "test_plain.py"]
    start_s = time.monotonic()
    bounds.python(*command, "--fail-on", "missing", "--json", "figures.json", folder=tree)
    took_s = time.monotonic() - start_s
    figures = json.loads((tree / "figures.json").read_text(encoding="utf-8"))["judgements"]
    (tree / "figures.json").unlink()
    tests: dict[str, list[dict[str, Any]]] = {}
    for figure in figures:
        tests.setdefault(figure["name"].partition("[")[2].rstrip("]"), []).append(figure)
    return Counter(_told(row, name, those) for name, those in tests.items()), took_s


def _told(row: _Row, name: str, figures: Sequence[Mapping[str, Any]]) -> str:
    """Judge what was said of a test, by metric: right, wrong or neither."""
    found = {figure["verdict"] for figure in figures}
    if found & {"regressed", "improved"}:
        is_right = name in row.longer and "improved" not in found
        return "right" if is_right else "wrong"
    if found != {"unchanged"}:
        return "open"
    if name in row.longer:
        return "wrong"
    visible = [figure["visible"] for figure in figures if figure["metric"] == "median"]
    shown = row.shown is None or all(x and x < row.shown + _PRECISION for x in visible)
    return "right" if shown else "open"


if __name__ == "__main__":
    sys.exit(main())
