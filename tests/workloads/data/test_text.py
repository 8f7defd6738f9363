"""Any text becomes sequences of tokens, and what cannot be one is refused by its name."""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fwbench.errors import DataError
from fwbench.workloads import data
from fwbench.workloads.data import DataSet, Found, synthetic, text
from support.data_files import write_tree
from support.tables import tabled

#: Of the training part: b five times, a three times, c and d twice, e once.
PARTS = {
    "ptb.train.txt": b" b a b a b\n c <unk> d b \n d c b a e",
    "ptb.valid.txt": b"a f b\n" * 2,
    "ptb.test.txt": b"c d\n" * 3,
}
UNKNOWN, END, B, A, C, D, E = range(7)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LENGTH", 3)


def read(folder: Path, contents: Mapping[str, bytes]) -> DataSet:
    return data.load(data.find("text", write_tree(folder, dict(contents))))


def test_a_text_becomes_tokens_as_documented(tmp_path: Path) -> None:
    """White space, ends of lines, unknown words, frequencies, ties, what follows, the rest."""
    run = read(tmp_path, PARTS)
    stream = [B, A, B, A, B, END, C, UNKNOWN, D, B, END, D, C, B, A, E, END]
    assert run.train.x.ravel().tolist() == stream[:15]
    assert run.train.y.ravel().tolist() == stream[1:16]
    assert run.validation.x.tolist() == [[A, UNKNOWN, B], [END, A, UNKNOWN]]
    assert run.test.y.tolist() == [[D, END, C], [D, END, C]]
    assert run.train.x.dtype == run.train.y.dtype == np.int32
    assert (len(run.train), run.validation_is_test) == (5, False)
    assert (run.source, run.origin) == ("real", ", ".join(PARTS))


def test_the_rarest_words_become_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "VOCABULARY", 4)
    run = read(tmp_path, PARTS)
    assert {*np.unique(run.train.x)} == {UNKNOWN, END, B, A}


@tabled
def test_the_files_that_people_have(tmp_path: Path, names: tuple[str, ...]) -> None:
    """In the folder that is named or in the one that their archive makes: the same tokens."""
    expected = read(tmp_path / "expected", PARTS)
    for place, name in enumerate(names):
        parts = {name.format(old.split(".")[1]): content for old, content in PARTS.items()}
        assert read(tmp_path / str(place), parts).digest == expected.digest


@pytest.mark.parametrize("compressed", [False, True])
def test_a_single_file_is_divided(tmp_path: Path, compressed: bool) -> None:
    """By its words: nine tenths, and twice a twentieth; the vocabulary is of the first part."""
    words = [f"w{i:03}" for i in range(160)] + ["x"] * 20 + ["w000"] * 19
    content = " ".join(words).encode()
    named = {"text.txt.gz": gzip.compress(content)} if compressed else {"text.txt": content}
    run = read(tmp_path, named)
    assert [len(part) for part in (run.train, run.validation, run.test)] == [59, 3, 3]
    assert run.train.x.max() == text.FIRST_WORD + 160, "and x"
    assert {*np.unique(run.test.y)} <= {text.END, *np.unique(run.train.x)}
    assert run.origin == "".join(named)


def _without(part: str) -> dict[str, bytes]:
    return {name: content for name, content in PARTS.items() if part not in name}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (_without("valid"), r"only a part of a data set: .*not there: .*ptb\.valid\.txt"),
        (
            {**PARTS, "ptb.test.txt": b"a b\n"},
            r"ptb\.test\.txt, .* 'test', has 3 words, .* takes 4",
        ),
        ({"text.txt": b""}, r"text\.txt, .* 'train', has 0 words,"),
        ({"text.txt": b"a b \xff c"}, r"text\.txt is not UTF-8 text \(invalid .* at byte 4\)"),
        ({"text.txt.gz": b"a b c"}, r"cannot read .*text\.txt\.gz"),
        ({"simple-examples.tgz": b""}, r"as an archive, .* put ptb\.train\.txt, .* there"),
    ],
    ids=["part", "short", "empty", "no text", "no gzip", "archive"],
)
def test_what_is_refused(tmp_path: Path, contents: dict[str, bytes], message: str) -> None:
    """By the name of the file, with what is wrong with it."""
    with pytest.raises(DataError, match=message):
        read(tmp_path, contents)


def test_a_text_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_TEXT_BYTES", 8)
    message = f"{re.escape(str(tmp_path / 'text.txt'))} has more than 8 bytes"
    with pytest.raises(DataError, match=message):
        read(tmp_path, {"text.txt": b"a b c d e f"})


def test_how_long_a_text_is_shows_when_it_is_read(tmp_path: Path) -> None:
    assert data.find("text", write_tree(tmp_path, PARTS)).train_examples is None
    assert data.generated("text").train_examples == synthetic.TRAIN_EXAMPLES["text"]


def test_a_generated_text_can_be_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knows what mostly follows on a word tells a third of the words, and by far not most."""
    monkeypatch.undo()
    generated = Found("text", "synthetic", "generated", (), synthetic.TRAIN_EXAMPLES["text"])
    data_set = data.load(generated)
    counts = np.zeros((text.VOCABULARY, text.VOCABULARY), np.uint16)
    np.add.at(counts, (data_set.train.x.ravel(), data_set.train.y.ravel()), 1)
    usual = np.bincount(data_set.train.y.ravel()).argmax()
    by_word = counts.argmax(1)[data_set.test.x]
    assert np.mean(data_set.test.y == usual) < 0.1
    assert 0.15 < np.mean(data_set.test.y == by_word) < 0.4
