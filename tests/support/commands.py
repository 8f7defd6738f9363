"""Commands of fwbench in this process, and what they leave."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fwbench import cli

#: What a calculation with damaged numbers ends in.
NO_NUMBER = re.compile(r"(?<![\w.])[+-]?(nan|inf)(?!\w)", re.IGNORECASE)

#: What moves a cursor, or cannot be shown.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_REFUSED = 2
_ERRORS = (_REFUSED, 3)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status, and what it printed."""

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
    """Whatever happens meanwhile, these files stay as they are."""
    before = [path.read_bytes() for path in paths]
    yield
    assert [path.read_bytes() for path in paths] == before


def assert_ended(ended: Ended, statuses: Collection[int]) -> None:
    """A command ended as it is documented, and said nothing that was not measured.

    Args:
        ended: how it ended.
        statuses: those that it has.
    """
    assert "Traceback" not in ended.err, ended.err
    assert ended.status in statuses, ended
    assert ended.status not in _ERRORS or "fwbench: error: " in ended.err, ended
    assert not _CONTROL.search(ended.out + ended.err), ended
    if ended.status == 0:
        assert not NO_NUMBER.search(ended.out), ended.out


def assert_whole(ended: Ended, written: Iterable[Path]) -> None:
    """Files that had ``earlier`` in them have it still after a refusal, and else a whole result.

    Args:
        ended: how the command ended that was to write them.
        written: the files.
    """
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert (text == "earlier") == (ended.status == _REFUSED), ended
        assert ended.status != 0 or path.suffix == ".html" or not NO_NUMBER.search(text), text
