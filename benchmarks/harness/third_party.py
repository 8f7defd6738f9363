"""``fwbench ab`` on benchmark tests of other projects, unchanged, from their source distributions.

Each project's wheel is installed into an environment of its own, beside this fwbench; its source
distribution is unpacked into a git repository. Then a selection of its tests is compared twice:
with itself, where every verdict but "unchanged" and "inconclusive" is a false alarm; and with a
plugin that makes the functions of one side take 20 % longer, where everything should have
regressed.

    python benchmarks/harness/third_party.py --budget 2min
    python benchmarks/harness/third_party.py --only tblib --budget 30s
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

#: How much longer the functions of one side take.
SHARE = 0.2

#: Wraps what is benchmarked on both sides. On one of them calls wait for a share of their own time;
#: where that is too short for a clock, one call in so many is made twice.
_PLUGIN = """
import functools, time
from pytest_benchmark.fixture import BenchmarkFixture

SHARE, SHORT_NS, TRIED = {share}, 1_000, 5

def _slowed(function):
    clock, calls, shortest_ns = time.perf_counter_ns, 0, float("inf")
    each = round(1 / SHARE) if SHARE else 10**18
    def call(*args, **kwargs):
        nonlocal calls, shortest_ns
        calls += 1
        if calls > TRIED and shortest_ns < SHORT_NS:
            if calls % each == 0:
                function(*args, **kwargs)
            return function(*args, **kwargs)
        start = clock()
        result = function(*args, **kwargs)
        took_ns = clock() - start
        shortest_ns = min(shortest_ns, took_ns) if calls <= TRIED else shortest_ns
        end = start + (1 + SHARE) * took_ns
        while clock() < end:
            pass
        return result
    return call

def _with(method):
    @functools.wraps(method)
    def replaced(self, function, *args, **kwargs):
        return method(self, _slowed(function), *args, **kwargs)
    return replaced

BenchmarkFixture._raw = _with(BenchmarkFixture._raw)
BenchmarkFixture._raw_pedantic = _with(BenchmarkFixture._raw_pedantic)
"""

#: What a suite needs to know of pytest's settings: none of the project's own.
_INI = "[pytest]\n"


@dataclass(frozen=True)
class Suite:
    """A project whose source distribution has benchmark tests.

    Attributes:
        tests: pytest's arguments that select some of them.
        needs: further packages.
    """

    name: str
    tests: Sequence[str]
    needs: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """The arguments of a comparison, but for its sides."""
        return [*self.tests, "-p", "no:cacheprovider", "--rootdir=.", "-c", "fwbench-suite.ini"]


#: In the order of their size; a few tests of each, since every one takes a share of the level.
SUITES = (
    Suite("tblib", ("tests/test_perf.py",), ("six", "twisted")),
    Suite("lazy-object-proxy", ("tests/test_perf.py",)),
    Suite("cattrs", ("bench/test_primitives.py", "-k", "structure_int or structure_float")),
)


@dataclass(frozen=True)
class Answer:
    """The verdicts of one comparison, and how long it took."""

    counts: Counter[str]
    took_s: float
    error: str = ""


def main() -> None:
    """Compare each suite with itself, and with a slowed side; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of suites, with commas")
    parser.add_argument("--budget", default="2min", help="of each comparison")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else [suite.name for suite in SUITES]
    failed = False
    with tempfile.TemporaryDirectory() as name:
        for suite in (suite for suite in SUITES if suite.name in wanted):
            folder = Path(name, suite.name)
            python, version = install(suite, folder / "environment")
            tree = unpacked(suite, folder, python)
            same = compared(suite, tree, python, given.budget, share=None)
            slowed = compared(suite, tree, python, given.budget, share=SHARE)
            print(f"{suite.name} {version}, equal sides: {said(same)}")
            print(f"{suite.name} {version}, {SHARE:.0%} slower: {said(slowed)}", flush=True)
            alarms = same.counts["regressed"] + same.counts["improved"]
            failed |= bool(same.error or slowed.error or alarms or not slowed.counts["regressed"])
    sys.exit(failed)


def install(suite: Suite, environment: Path) -> tuple[Path, str]:
    """An environment with a suite's wheel, on top of this one; its interpreter, and the version."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    _run(python, "-m", "pip", "install", "-q", "--only-binary=:all:", suite.name, *suite.needs)
    site = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # Of this environment: fwbench, pytest and what they need, behind the suite's own.
    own = [entry for entry in sys.path if entry.endswith(("site-packages", "src"))]
    Path(site, "zz-own.pth").write_text("\n".join(own) + "\n", encoding="utf-8")
    shown = _run(python, "-m", "pip", "show", suite.name)
    version = next(line for line in shown.splitlines() if line.startswith("Version: "))
    return python, version.removeprefix("Version: ")


def unpacked(suite: Suite, folder: Path, python: Path) -> Path:
    """A git repository with a suite's source distribution, but for the package's own sources.

    These would be imported in the place of the wheel, and may lack compiled modules.
    """
    download = ("-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite.name)
    _run(python, *download, "--dest", str(folder), suite.name)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder / "tree", filter="data")
    (tree,) = (folder / "tree").iterdir()
    for sources in ("src", suite.name.replace("-", "_")):
        shutil.rmtree(tree / sources, ignore_errors=True)
    (tree / "fwbench-suite.ini").write_text(_INI, encoding="utf-8")
    (tree / ".gitignore").write_text("__pycache__\n.fwbench\n", encoding="utf-8")
    write_plugin(tree, 0.0)
    for command in (
        ("init", "-q"),
        ("add", "-A", "-f"),
        ("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "as it is"),
    ):
        _run("git", "-C", str(tree), *command)
    return tree


def write_plugin(tree: Path, share: float) -> None:
    """Write the plugin that slows one side."""
    (tree / "fwbench_slowing.py").write_text(_PLUGIN.format(share=share), encoding="utf-8")


def compared(suite: Suite, tree: Path, python: Path, budget: str, share: float | None) -> Answer:
    """Compare the revision with the working tree.

    Args:
        share: how much longer calls take in the tree; None without the plugin on either side.
    """
    write_plugin(tree, share or 0.0)
    plugin = [] if share is None else ["-p", "fwbench_slowing"]
    start_s = time.monotonic()
    done = subprocess.run(
        [
            *(
                str(python),
                "-P",
                "-m",
                "fwbench",
                "ab",
                "git:HEAD",
                ".",
                *suite.arguments(),
                *plugin,
            ),
            *("--budget", budget, "--json", "figures.json"),
        ],
        cwd=tree,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    took_s = time.monotonic() - start_s
    figures = tree / "figures.json"
    if not figures.is_file():
        return Answer(Counter(), took_s, done.stderr[-2000:])
    counts = Counter(json.loads(figures.read_text(encoding="utf-8"))["verdicts"])
    figures.unlink()
    return Answer(counts, took_s)


def said(answer: Answer) -> str:
    """The verdicts in words."""
    if answer.error:
        return f"could not be compared: {answer.error}"
    counts = ", ".join(f"{number} {verdict}" for verdict, number in answer.counts.items())
    return f"{counts}; {answer.took_s:.0f} s"


def _run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    print(f"fwbench {metadata.version('fwbench')}, pytest {metadata.version('pytest')}")
    main()
