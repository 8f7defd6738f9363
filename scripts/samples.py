"""Sample output in documents, written by the commands that it is a sample of.

    make samples                                      all samples
    make samples ARGS="README.md 'fwbench list'"      those of a page, or whose command has a text
    make samples ARGS=--draw                          pictures alone, of the runs that are stored

A sample is a block after a comment with its command. Of a session that measures only fwbench's own
section may be shown, and of each only some lines at its beginning, and some at its end or the
paragraph that begins with a word:

    <!-- sample: fwbench list --family overhead -->
    <!-- sample (section): pytest benchmarks -->
    <!-- sample (section 2+Fastest): pytest benchmarks -->
    <!-- sample (5+0): fwbench ab git:main . tests/bench -->

A picture is the report's chart with this name, on white and dark, of the session of a command; its
run is kept in ``tests/records/stored``:

    <!-- picture (lenet_step): pytest benchmarks/test_training.py -k lenet_step -->

The commands run in a folder that has the suite, its settings, two stored runs, ``main.json`` and
``branch.json``, and the files that the README shows; it is a repository whose branch ``main`` is
older than its files. The terminal has 100 columns and no colours. Most commands measure: run them
on an idle machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from fwbench.report import sections
from fwbench.report.drawing.chart import Chart, on_page
from fwbench.report.model import read as read_run
from support.documents import PAGES, ROOT, blocks, read

COLUMNS = 100

_SAMPLE = re.compile(
    r"^<!-- sample(?: \((?P<section>section)?(?: ?(?P<first>\d+)\+(?P<last>\w+))?\))?: "
    r"(?P<command>.+?) -->\n"
    r"(?P<fence>```text\n)(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

_PICTURE = re.compile(r"^<!-- picture \((?P<name>\w+)\): (?P<command>.+?) -->$", re.MULTILINE)

#: Stands for lines that are left out.
_LEFT_OUT = "[...]"

#: The line that begins fwbench's section of a session.
_HEADING = re.compile(r"^-+ fwbench -+$", re.MULTILINE)

#: The exit statuses of what has done its work: nothing to report, failed cases, and verdicts of a
#: comparison.
_DONE = (0, 1, 10, 11)

_RUNS = ROOT / "tests" / "records" / "stored"

_STORED = {"main.json": "launches-base.json", "branch.json": "launches-contender.json"}

#: What a stored run has at length of frameworks, and no picture shows.
_UNDRAWN = ("operations", "gaps", "toggle_gaps", "gang_gaps", "composed", "sources")

#: The README's pull request: a function, its change, and its benchmarks.
_FUNCTION = """\
def top(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return max(counts, key=counts.get)


def long(text):
    return max(text.split(), key=len)
"""
_CHANGE = ("in text.split()", 'in text.translate({ord(","): None}).split()')
_BENCHMARKS = """\
import random

import words

TEXT = " ".join(random.Random(1).choices(["Call", "me", "Ishmael", "some", "years", "ago"], k=500))


def test_top(benchmark):
    benchmark(words.top, TEXT)


def test_long(benchmark):
    benchmark(words.long, TEXT)
"""

#: The README's question to releases of NumPy.
_OF_NUMPY = """\
import numpy as np


def test_unique(benchmark):
    benchmark(np.unique, np.random.default_rng(1).integers(50_000, size=100_000))
"""


@dataclass(frozen=True)
class Sample:
    """A sample of a document.

    Attributes:
        page: the path of the document in the repository.
        command: a line for a shell.
        section: whether only fwbench's section of a session is shown.
        ends: how many lines are shown at its beginning, and how many at its end, or the word with
            which a paragraph begins; None for all.
        text: what is shown.
        span: where that is in the document.
    """

    page: str
    command: str
    section: bool
    ends: tuple[int, str] | None
    text: str
    span: tuple[int, int]

    def cut(self, output: str) -> str:
        """The parts of an output that are shown.

        Raises:
            ValueError: it is empty, or has no section of fwbench's.
        """
        if not output.strip():
            raise ValueError(f"{self.command} printed nothing")
        if self.section:
            heading = _HEADING.search(output)
            if heading is None:
                raise ValueError(f"{self.command} printed no section of fwbench's:\n{output}")
            output = output[heading.start() :]
        lines = [line.rstrip() for line in output.strip("\n").splitlines()]
        if self.ends is not None:
            first, last = self.ends
            end = _end(lines[first:], last)
            left_out = [_LEFT_OUT] * (len(lines) > first + len(end))
            lines = [*lines[:first], *left_out, *end]
        return "\n".join(lines) + "\n"


def _end(lines: list[str], last: str) -> list[str]:
    """So many lines, or the paragraph from the line on that begins with a word."""
    if last.isdecimal():
        return lines[max(0, len(lines) - int(last)) :]
    begin = next((i for i, line in enumerate(lines) if line.startswith(last)), None)
    if begin is None:
        raise ValueError(f"no line begins with {last}:\n" + "\n".join(lines))
    return [*takewhile(bool, lines[begin:])]


def samples(page: str) -> list[Sample]:
    """The samples of a document, in its order."""
    return [
        Sample(
            page,
            match["command"],
            match["section"] is not None,
            (int(match["first"]), match["last"]) if match["first"] else None,
            match["text"],
            match.span("text"),
        )
        for match in _SAMPLE.finditer(read(page))
    ]


@dataclass(frozen=True)
class Picture:
    """A picture of a document.

    Attributes:
        page: the path of the document in the repository.
        name: of the report's chart, and of the files.
        command: a session of pytest whose run is drawn.
    """

    page: str
    name: str
    command: str

    @property
    def run(self) -> Path:
        """The stored run."""
        return _RUNS / f"{self.name}.json"

    def measure(self, folder: Path) -> None:
        """Run the command, and keep its run, without the machine's name and full manifests."""
        output(f"{self.command} --benchmark-json=run.json", folder)
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        run["machine_info"]["node"] = ""
        run["commit_info"] = {}
        run["fwbench"]["missing"] = []
        for manifest in run["fwbench"]["frameworks"].values():
            manifest.update({key: [] for key in _UNDRAWN})
        self.run.write_text(json.dumps(run) + "\n", encoding="utf-8")

    def drawn(self) -> dict[Path, str]:
        """The pictures of the stored run, by their files.

        Raises:
            ValueError: the report has no such chart.
        """
        every = [
            chart for part in sections.details([read_run(self.run, 0)]) for chart in part.charts
        ]
        charts = [chart for chart in every if chart.title.startswith(f"{self.name} ")]
        if not charts:
            raise ValueError(f"{self.name}: there are {[chart.title for chart in every]}")
        suffixes = {"white": "", "dark": "-dark"}
        return {
            ROOT / "docs" / f"{self.name}{suffix}.svg": _named(charts[0], self.name, background)
            for background, suffix in suffixes.items()
        }


def _named(chart: Chart, name: str, background: str) -> str:
    """A chart on a background, named by its picture instead of at random."""
    return on_page(chart, background).replace(chart.uuid, name) + "\n"


def pictures(page: str) -> list[Picture]:
    """The pictures of a document, in its order."""
    return [
        Picture(page, match["name"], match["command"]) for match in _PICTURE.finditer(read(page))
    ]


def prepare(folder: Path) -> None:
    """Put into a folder what the commands of samples need."""
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name, stored in _STORED.items():
        shutil.copy(_RUNS / stored, folder / name)
    for block in blocks("README.md"):
        if block.language == "python":
            name = re.findall(r"`(\w+\.py)`", block.before)[0]
            (folder / name).write_text(block.text, encoding="utf-8")
    _change(folder)


def _change(folder: Path) -> None:
    """Make a repository of a folder, with the README's tests and pull request in its tree."""
    (folder / "tests" / "bench").mkdir(parents=True)
    (folder / "tests" / "bench" / "test_text.py").write_text(_BENCHMARKS, encoding="utf-8")
    (folder / "tests" / "test_unique.py").write_text(_OF_NUMPY, encoding="utf-8")
    module = folder / "tests" / "words.py"
    module.write_text(_FUNCTION, encoding="utf-8")
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    for words in (
        ("init", "-b", "main"),
        ("add", "tests", "pyproject.toml", "conftest.py"),
        (*author, "commit", "-m", "Count words"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    module.write_text(_FUNCTION.replace(*_CHANGE), encoding="utf-8")


def output(command: str, folder: Path) -> str:
    """The output of a command.

    Raises:
        CalledProcessError: its exit status is none of :data:`_DONE`: it did not do its work.
    """
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, **_variables()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in _DONE:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout + done.stderr)
    return done.stdout


def _variables() -> Mapping[str, str]:
    """Programs of this interpreter's environment, and a terminal that is the same everywhere."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PATH": path}


def _chosen(words: list[str]) -> Iterator[Sample]:
    """The samples that are named, from the end of each page.

    To write one moves only those below it, which have been written then.
    """
    for page in PAGES:
        for sample in reversed(samples(page)):
            if not words or any(word == page or word in sample.command for word in words):
                yield sample


def _write(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        text = sample.cut(output(sample.command, Path(folder)))
    document = read(sample.page)
    start, end = sample.span
    (ROOT / sample.page).write_text(document[:start] + text + document[end:], encoding="utf-8")


def _chosen_pictures(words: list[str]) -> Iterator[Picture]:
    for page in PAGES:
        for picture in pictures(page):
            if not words or any(word == page or word in picture.command for word in words):
                yield picture


def _draw(picture: Picture, *, again: bool) -> None:
    if again:
        with tempfile.TemporaryDirectory() as folder:
            prepare(Path(folder))
            picture.measure(Path(folder))
    for file, text in picture.drawn().items():
        file.write_text(text, encoding="utf-8")


def main() -> int:
    """Write the samples that the command line names, all without it; returns the exit status.

    Each as soon as it is printed. One that cannot be is left as it is.
    """
    words = sys.argv[1:]
    only_draw = words == ["--draw"]
    chosen: list[Sample | Picture] = [*_chosen_pictures([] if only_draw else words)]
    chosen += [] if only_draw else _chosen(words)
    if not chosen:
        print(f"no sample is of a page or a command named {' or '.join(words)}")
    failed = 0
    for sample in chosen:
        print(f"{sample.page}: {sample.command}", flush=True)
        try:
            if isinstance(sample, Picture):
                _draw(sample, again=not only_draw)
            else:
                _write(sample)
        except (ValueError, subprocess.CalledProcessError) as error:
            print(f"left as it is: {error}\n{getattr(error, 'stdout', '')}", flush=True)
            failed += 1
    return 0 if chosen and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
