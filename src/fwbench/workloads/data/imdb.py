"""IMDB: film reviews, good or bad (Maas et al. 2011), as the archive or the folder ``aclImdb``.

Tokens (n, 500) of int32; labels 0, negative, and 1, positive; 25,000 to train and 25,000 to test
with, in the order of the numbers in their files' names, negative before positive.

A text becomes tokens like this, the same everywhere:

1. ``<br />`` becomes a space, apostrophes go, A to Z become lower case.
2. Words match ``[a-z0-9]+``.
3. The tokens, numbered as in Keras: 0 padding, 1 start, 2 a word that is not in the vocabulary,
   and from 3 on the 4,997 most frequent words of the training part, the most frequent one first,
   of equally frequent ones the alphabetically first.
4. The last 500 of start and words are kept, and shorter texts are padded in front: the last
   token is always one of the text.
"""

import contextlib
import hashlib
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError
from fwbench.workloads.data import files
from fwbench.workloads.data.dataset import FileLayout, Split, Splits

TRAIN_EXAMPLES = 25_000

WANTED = "aclImdb_v1.tar.gz"
OTHER_FORMS: Mapping[str, str] = {
    "imdb.npz": "as Keras' numbers of words",
    "IMDB Dataset.csv": "as CSV",
}

#: Reviews of each label in each part.
CLASS_EXAMPLES = 12_500

#: The number of tokens, and the length of a review.
VOCABULARY = 5_000
LENGTH = 500

#: Tokens with a meaning, and the first that is a word.
PADDING, START, UNKNOWN, FIRST_WORD = range(4)

#: Raised whenever the same text gives other tokens than before.
_VERSION = 1

#: The longest review has 14 thousand.
_REVIEW_BYTES = 2**20

_PARTS = ("train", "test")
_LABELS = ("neg", "pos")
_CLASSES = tuple(f"{part}/{label}" for part in _PARTS for label in _LABELS)

_FOLDER = "aclImdb"
_FILE = re.compile(r"([0-9]{1,9})_[0-9]{1,2}\.txt")
_MEMBER = re.compile(rf"{_FOLDER}/({'|'.join(_CLASSES)})/{_FILE.pattern}")

FOLDERS: Sequence[str] = ("", "imdb", "IMDB")

#: Every byte that is not of a word becomes a space: splitting there is matching [a-z0-9]+.
_WORDS = bytes(
    ord(char) if char.isascii() and char.isalnum() else ord(" ")
    for char in map(str.lower, map(chr, range(256)))
)

#: A review: its class (of ``_CLASSES``), the number in its name, its text.
_Review = tuple[str, int, bytes]

#: The numbers of a review's words in a lexicon, by class and by the number in the review's name.
_Numbers = Mapping[str, Mapping[int, NDArray[np.int32]]]


@dataclass(frozen=True, eq=False)
class _ReviewTokens:
    """The tokens of all reviews, without padding: the training part, then the test part."""

    #: Uint16, one review after the other.
    tokens: NDArray[np.uint16]
    #: Int32, of each review.
    lengths: NDArray[np.int32]
    #: Int32, of each review.
    labels: NDArray[np.int32]


def layouts(folder: Path) -> Iterator[FileLayout]:
    """The folder ``aclImdb``, or the archive that it comes in."""
    folders = [folder / name for name in FOLDERS]
    for where in [folder.parent, *folders] if folder.name == _FOLDER else folders:
        root = where / _FOLDER
        yield FileLayout(tuple((root / name,) for name in _CLASSES), folder=root)
    for where in folders:
        yield FileLayout(((where / "aclImdb_v1.tar.gz",),))


def read(paths: Sequence[Path], cache: Path | None) -> Splits:
    """Read the reviews as tokens.

    Args:
        paths: the four folders of reviews in the order of :data:`_CLASSES`, or the archive.
        cache: a folder to keep the tokens in, created if it is not there; None to keep nothing.

    Raises:
        DataError: a file is missing, cut off or another one.
    """
    stored = None if cache is None else cache / f"imdb-{_key(paths)}.npz"
    tokens = None if stored is None else _recall(stored)
    if tokens is None:
        tokens = _tokens(_archive(paths[0]) if len(paths) == 1 else _folders(paths), paths)
        if stored is not None:
            _keep(stored, tokens)
    train = 2 * CLASS_EXAMPLES
    x = np.full((len(tokens.lengths), LENGTH), PADDING, np.int32)
    x[np.arange(LENGTH) >= LENGTH - tokens.lengths[:, None]] = tokens.tokens
    return Split(x[:train], tokens.labels[:train]), None, Split(x[train:], tokens.labels[train:])


def _archive(path: Path) -> Iterator[_Review]:
    for name, text in files.members(path, _MEMBER, _REVIEW_BYTES):
        yield name[1], int(name[2]), text


def _folders(paths: Sequence[Path]) -> Iterator[_Review]:
    for name, folder in zip(_CLASSES, paths, strict=True):
        for entry in _listed(folder):
            number = _FILE.fullmatch(entry.name)
            if number is not None:
                path = Path(entry.path)
                text = files.content(path, _REVIEW_BYTES)
                if len(text) > _REVIEW_BYTES:
                    raise DataError(
                        f"{path} has more than {_REVIEW_BYTES:,} bytes: it is not a review; "
                        "get the data set again"
                    )
                yield name, int(number[1]), text


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """The files in a folder by name; no links, which could lead anywhere."""
    with files.reading(folder), os.scandir(folder) as entries:
        return sorted(
            (entry for entry in entries if entry.is_file(follow_symlinks=False)),
            key=lambda entry: entry.name,
        )


def _tokens(reviews: Iterator[_Review], paths: Sequence[Path]) -> _ReviewTokens:
    where = paths[0] if len(paths) == 1 else paths[0].parents[1]
    # Words are numbered as they come, and renumbered when their frequencies are known: as arrays
    # of numbers, all reviews fit into memory, as lists of words they would take a gigabyte.
    lexicon: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)
    numbers: dict[str, dict[int, NDArray[np.int32]]] = {name: {} for name in _CLASSES}
    for name, number, text in reviews:
        if number in numbers[name]:
            raise DataError(
                f"{where} has two reviews with the number {number} in {name}: it was put together "
                "from two archives; get the data set again"
            )
        what = f"review {number} in {name} of {where}"
        files.check_utf8(text, what, ": it is damaged; get the data set again")
        words = _words(text)
        numbers[name][number] = np.fromiter(
            map(lexicon.__getitem__, words), np.int32, count=len(words)
        )
    _check_counts(numbers, where)
    return _renumbered(numbers, _vocabulary(lexicon, numbers))


def _words(text: bytes) -> list[bytes]:
    return text.replace(b"<br />", b" ").translate(_WORDS, b"'").split()


def _check_counts(numbers: _Numbers, where: Path) -> None:
    for name, reviews in numbers.items():
        if len(reviews) != CLASS_EXAMPLES:
            raise DataError(
                f"{where} has {len(reviews):,} reviews in {name}, expected {CLASS_EXAMPLES:,}: "
                "it is cut off, or some were lost; get the data set again"
            )


def _vocabulary(lexicon: Mapping[bytes, int], numbers: _Numbers) -> NDArray[np.uint16]:
    train = np.concatenate([words for name in _CLASSES[:2] for words in numbers[name].values()])
    chosen = files.most_frequent(lexicon, train, VOCABULARY - FIRST_WORD)
    table = np.full(len(lexicon), UNKNOWN, np.uint16)
    table[chosen] = np.arange(FIRST_WORD, FIRST_WORD + len(chosen))
    return table


def _renumbered(numbers: _Numbers, table: NDArray[np.uint16]) -> _ReviewTokens:
    tokens, labels = [], []
    for part in _PARTS:
        reviews = [
            (number, label, words)
            for label, name in enumerate(_LABELS)
            for number, words in numbers[f"{part}/{name}"].items()
        ]
        for _, label, words in sorted(reviews, key=lambda review: review[:2]):
            labels.append(label)
            tokens.append(np.append(np.uint16(START), table[words])[-LENGTH:])
    lengths = np.array([len(review) for review in tokens], np.int32)
    return _ReviewTokens(np.concatenate(tokens), lengths, np.array(labels, np.int32))


def _key(paths: Sequence[Path]) -> str:
    """Short name of the tokens: the same for the same files."""
    digest = hashlib.blake2b(repr((_VERSION, VOCABULARY, LENGTH)).encode(), digest_size=8)
    for path in paths:
        with files.reading(path):
            listed = _listed(path) if path.is_dir() else [path]
            for entry in listed:
                stat = entry.stat()
                line = (os.fspath(entry), stat.st_size, stat.st_mtime_ns)
                digest.update(repr(line).encode())
    return digest.hexdigest()


def _recall(path: Path) -> _ReviewTokens | None:
    """Values that :func:`_keep` wrote; None where there are none that can be used."""
    most = 4 * CLASS_EXAMPLES
    try:
        tokens = _ReviewTokens(
            *files.arrays(path, ("tokens", "lengths", "labels"), most * LENGTH * 2)
        )
    except DataError:
        return None
    return tokens if _fits(tokens, most) else None


def _fits(stored: _ReviewTokens, reviews: int) -> bool:
    """True if these can be the tokens of this many reviews."""
    tokens, lengths, labels = stored.tokens, stored.lengths, stored.labels
    return (
        [array.dtype.name for array in (tokens, lengths, labels)] == ["uint16", "int32", "int32"]
        and (tokens.ndim, lengths.shape, labels.shape) == (1, (reviews,), (reviews,))
        and lengths.min() >= 1
        and lengths.max() <= LENGTH
        and lengths.sum() == tokens.size
        and tokens.max() < VOCABULARY
        and set(np.unique(labels).tolist()) == {0, 1}
    )


def _keep(path: Path, tokens: _ReviewTokens) -> None:
    """Write the tokens as a whole or not at all; that they cannot be kept is not an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                np.savez(file, tokens=tokens.tokens, lengths=tokens.lengths, labels=tokens.labels)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
