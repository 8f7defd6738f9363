"""Sample output in documents, written by the commands that it is a sample of.

    make samples                                      all samples
    make samples ARGS="README.md 'fwbench list'"      those of a page, or whose command has a text

A sample is a block after a comment with its command. Of a session that measures only fwbench's own
section may be shown:

    <!-- sample: fwbench list --family overhead -->
    <!-- sample (section): pytest benchmarks -->

The commands run in a folder that has the suite, its settings, and two stored runs, ``main.json``
and ``branch.json``; on a terminal of 100 columns without colours. Most of them measure: run them on
an idle machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.documents import PAGES, ROOT, read

COLUMNS = 100

_SAMPLE = re.compile(
    r"^<!-- sample(?P<section> \(section\))?: (?P<command>.+?) -->\n"
    r"(?P<fence>```text\n)(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

#: The line that begins fwbench's section of a session.
_HEADING = re.compile(r"^-+ fwbench -+$", re.MULTILINE)

#: The exit statuses of what has done its work: nothing to report, failed cases, and verdicts of a
#: comparison.
_DONE = (0, 1, 10, 11)

_STORED = {"main.json": "launches-base.json", "branch.json": "launches-contender.json"}


@dataclass(frozen=True)
class Sample:
    """A sample of a document.

    Attributes:
        page: the path of the document in the repository.
        command: a line for a shell.
        section: whether only fwbench's section of a session is shown.
        text: what is shown.
        span: where that is in the document.
    """

    page: str
    command: str
    section: bool
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
        return "\n".join(lines) + "\n"


def samples(page: str) -> list[Sample]:
    """The samples of a document, in its order."""
    return [
        Sample(
            page, match["command"], match["section"] is not None, match["text"], match.span("text")
        )
        for match in _SAMPLE.finditer(read(page))
    ]


def prepare(folder: Path) -> None:
    """Put into a folder what the commands of samples need."""
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name, stored in _STORED.items():
        shutil.copy(ROOT / "tests" / "records" / "stored" / stored, folder / name)


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


def main() -> int:
    """Write the samples that the command line names, all without it; returns the exit status.

    Each as soon as it is printed. One that cannot be is left as it is.
    """
    words = sys.argv[1:]
    chosen = [*_chosen(words)]
    if not chosen:
        print(f"no sample is of a page or a command named {' or '.join(words)}")
    failed = 0
    for sample in chosen:
        print(f"{sample.page}: {sample.command}", flush=True)
        try:
            _write(sample)
        except (ValueError, subprocess.CalledProcessError) as error:
            print(f"left as it is: {error}\n{getattr(error, 'stdout', '')}", flush=True)
            failed += 1
    return 0 if chosen and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
