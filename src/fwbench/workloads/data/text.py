"""A text, for models that predict the next word: that of any files, cut into sequences.

Tokens (n, 35) of int32, and as labels the tokens that follow on each of them, (n, 35). Read are, as
they are found first:

- ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``: the Penn Treebank as Mikolov et al.
  prepared it, in the folder itself or in ``simple-examples/data``;
- ``wiki.train.tokens``, ``wiki.valid.tokens`` and ``wiki.test.tokens``: WikiText (Merity et al.
  2016), there or in ``wikitext-2``;
- ``text.txt``, any text in UTF-8: the first nine tenths of its words are to train, a twentieth to
  validate and the last twentieth to test with.

A text becomes tokens like this: words are separated by white space, and every line ends
with one more. The tokens are 0, a word that is not in the vocabulary (also one that is written
``<unk>``), 1, the end of a line, and from 2 on the 9,998 most frequent words of the training part,
the most frequent one first, of equally frequent ones the one that comes first in the order of
bytes.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError
from fwbench.workloads.data import files
from fwbench.workloads.data.dataset import FileLayout, Split, Splits

#: Different texts have different lengths.
TRAIN_EXAMPLES = None

WANTED = "ptb.train.txt, ptb.valid.txt and ptb.test.txt"
OTHER_FORMS: Mapping[str, str] = {
    "simple-examples.tgz": "as an archive",
    "wikitext-2-v1.zip": "as an archive",
}

FOLDERS: Sequence[str] = ("", "text", "ptb", "simple-examples/data", "wikitext-2")

#: The number of tokens, and the length of a sequence: those of Zaremba et al. 2014.
VOCABULARY = 10_000
LENGTH = 35

#: Tokens with a meaning, and the first that is a word.
UNKNOWN, END, FIRST_WORD = range(3)

#: An unknown word in texts that have been prepared.
_UNKNOWN = b"<unk>"

_PARTS = ("train", "valid", "test")

#: The positions at which a text of one file is divided, as shares.
_SHARES = (0.9, 0.95)

#: More than the 104 MB of the longest text that is common (text8).
_TEXT_BYTES = 2**27

#: Number of a line's end in a lexicon; no word is the empty one.
_LINE_END = b""

#: The words of a text as numbers in a lexicon.
_Numbers = NDArray[np.int32]


def layouts(folder: Path) -> Iterator[FileLayout]:
    """Three files that are parts of a text, or one file."""
    for name in FOLDERS:
        where = folder / name
        yield FileLayout(tuple((where / f"ptb.{part}.txt",) for part in _PARTS))
        yield FileLayout(tuple((where / f"wiki.{part}.tokens",) for part in _PARTS))
        yield FileLayout(((where / "text.txt", where / "text.txt.gz"),))


def read(paths: Sequence[Path], _: Path | None) -> Splits:
    """Read a text as tokens.

    Raises:
        DataError: a file is missing, cut off, no text, or too short.
    """
    lexicon: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)
    parts = [_numbers(path, lexicon) for path in paths]
    if len(parts) == 1:
        (whole,) = parts
        parts = np.split(whole, [int(share * whole.size) for share in _SHARES])
        paths = [*paths] * len(parts)
    table = _vocabulary(lexicon, parts[0])
    train, validation, test = (
        _sequences(table[part], f"{path}, of which this is the part {name!r},")
        for name, path, part in zip(_PARTS, paths, parts, strict=True)
    )
    return train, validation, test


def _numbers(path: Path, lexicon: defaultdict[bytes, int]) -> _Numbers:
    """The words of a file, and the ends of its lines."""
    text = files.content(path, _TEXT_BYTES)
    if len(text) > _TEXT_BYTES:
        raise DataError(
            f"{path} has more than {_TEXT_BYTES:,} bytes, which are not read into memory; cut it"
        )
    files.check_utf8(text, str(path), "; save it as UTF-8")
    words = (word for line in text.splitlines() for word in (*line.split(), _LINE_END))
    return np.fromiter(map(lexicon.__getitem__, words), np.int32)


def _vocabulary(lexicon: Mapping[bytes, int], train: _Numbers) -> NDArray[np.int32]:
    words = {word: lexicon[word] for word in lexicon.keys() - {_UNKNOWN, _LINE_END}}
    chosen = files.most_frequent(words, train, VOCABULARY - FIRST_WORD)
    table = np.full(len(lexicon), UNKNOWN, np.int32)
    table[chosen] = np.arange(FIRST_WORD, FIRST_WORD + len(chosen))
    if _LINE_END in lexicon:
        table[lexicon[_LINE_END]] = END
    return table


def _sequences(tokens: NDArray[np.int32], what: str) -> Split:
    """Consecutive sequences, and the token that follows on each of theirs."""
    examples = (tokens.size - 1) // LENGTH
    if examples < 1:
        raise DataError(
            f"{what} has {tokens.size} words, and a sequence with the next word takes "
            f"{LENGTH + 1}; give a longer text"
        )
    cut = examples * LENGTH
    x, y = (tokens[begin : begin + cut].reshape(examples, LENGTH) for begin in (0, 1))
    return Split(x.copy(), y.copy())
