"""Blocks of the documents, and the commands in these and in the text."""

import contextlib
import io
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fwbench import cli

ROOT = Path(__file__).parents[2]

#: The documents that people read, by their paths in the repository.
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md")))

#: What a command in the text begins with; its program alone is a name, not a command.
_SPAN = re.compile(r"`((?:pytest|fwbench|make|python|pip|uv) [^`]+)`")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: A command whose output, or a picture of it, is shown: see samples.py.
_SAMPLED = re.compile(r"^<!-- (?:sample|picture)[^:]*: (.+) -->$", re.MULTILINE)

_SHELL = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document; ``before`` is the last line before it that is not empty."""

    page: str
    language: str
    text: str
    before: str


@dataclass(frozen=True)
class Command:
    """A command that a document shows, as it is written there and as a shell splits it.

    The first argument is the program; variables that are set for it are left out.
    """

    page: str
    text: str
    arguments: tuple[str, ...]

    @property
    def program(self) -> str:
        """The command that is run."""
        return self.arguments[0]


def read(page: str) -> str:
    """The text of a document."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a document, in its order."""
    text = read(page)
    return [
        Block(page, match[1], match[2], _last_line(text[: match.start()]))
        for match in _BLOCK.finditer(text)
    ]


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def commands(page: str) -> list[Command]:
    """The commands of a document: of its shell blocks, of its samples, then of the text."""
    shown = [block.text for block in blocks(page) if block.language in _SHELL]
    shown += _SAMPLED.findall(read(page))
    prose = _BLOCK.sub("", read(page))
    spans = [" ".join(span.split()) for span in _SPAN.findall(prose)]
    return [command for text in [*shown, *spans] for command in split(page, text)]


def split(page: str, text: str) -> Iterator[Command]:
    """The commands of a shell script, without pipes and redirections."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;>")
        lexer.whitespace_split = True
        part: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;"):
                yield from _command(page, line, part)
                part = []
            else:
                part.append(word)


def _command(page: str, line: str, words: Sequence[str]) -> Iterator[Command]:
    if ">" in words:
        words = words[: words.index(">")]
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if words:
        yield Command(page, line.strip(), tuple(words))


#: What a calculation with damaged numbers ends in.
NO_NUMBER = re.compile(r"(?<![\w.])[+-]?(nan|inf)(?!\w)", re.IGNORECASE)

#: What moves a cursor, or cannot be shown.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_REFUSED = 2
_ERRORS = (_REFUSED, 3)


@dataclass(frozen=True)
class Ended:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


def run(*arguments: str) -> Ended:
    """Run a command as a terminal would, which takes UTF-8 and nothing else."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main(arguments)
        except SystemExit as refused:  # by argparse
            status = int(str(refused.code))
    return Ended(status, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def unchanged(*paths: Path) -> Iterator[None]:
    """Assert that these files stay as they are in the block."""
    before = [path.read_bytes() for path in paths]
    yield
    assert [path.read_bytes() for path in paths] == before


def assert_ended(ended: Ended, statuses: Collection[int]) -> None:
    """A command ended as it is documented, and said nothing that was not measured."""
    assert "Traceback" not in ended.err, ended.err
    assert ended.status in statuses, ended
    assert ended.status not in _ERRORS or "fwbench: error: " in ended.err, ended
    assert not _CONTROL.search(ended.out + ended.err), ended
    if ended.status == 0:
        assert not NO_NUMBER.search(ended.out), ended.out


def assert_whole(ended: Ended, written: Iterable[Path]) -> None:
    """Files that had ``earlier`` in them have it still after a refusal, and else a whole result."""
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert (text == "earlier") == (ended.status == _REFUSED), ended
        assert ended.status != 0 or path.suffix == ".html" or not NO_NUMBER.search(text), text
