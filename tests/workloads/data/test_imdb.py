"""IMDB's reviews become tokens, which are kept, and are never silently wrong."""

import contextlib
import gzip
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DataError
from fwbench.workloads import data
from fwbench.workloads.data import Found, files, imdb
from support.data_files import Mnist, changed, same, tar_gz, write_tree


def raw_tar_gz(path: Path, *blocks: bytes) -> Path:
    padded = b"".join(block.ljust(-len(block) // 512 * -512, b"\0") for block in blocks)
    path.write_bytes(gzip.compress(padded + bytes(1024)))
    return path


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of a member that claims to be of any size."""
    info = special(name, kind)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def imdb_archive(folder: Path, contents: dict[str, bytes], *more: Any) -> Path:
    members = [(f"aclImdb/{name}", text) for name, text in contents.items()]
    return tar_gz(folder / "aclImdb_v1.tar.gz", [*members, *more])


def test_reviews_become_tokens_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """Order, case, breaks, apostrophes, frequencies, ties, unknown words, padding in front."""
    monkeypatch.setattr(imdb, "VOCABULARY", 10)
    monkeypatch.setattr(imdb, "LENGTH", 8)
    imdb_archive(tmp_path, reviews)
    data_set = data.load(data.find("imdb", tmp_path))
    # In the training part: film 26 times, bad and train 6, a caf good its 3 each: "its" comes last
    # and is the eighth word, for which a token is lacking.
    film, bad, train, a, caf, good, its = 3, 4, 5, 6, 7, 8, 9
    unknown = imdb.UNKNOWN
    assert data_set.train.x[:3].tolist() == [
        [0, 0, imdb.START, its, bad, bad, train, film],
        [0, 0, imdb.START, a, caf, good, train, film],
        [0, imdb.START, its, bad, bad, train, film, film],
    ]
    assert data_set.train.x[-1].tolist() == [film] * 8
    assert data_set.test.x[0].tolist() == [0, 0, imdb.START, its, bad, bad, unknown, film]
    assert data_set.train.y.tolist() == data_set.test.y.tolist() == [0, 1] * 3
    assert data_set.train.x.dtype == data_set.train.y.dtype == np.int32
    assert data_set.validation is data_set.test


def test_words_are_what_the_expression_matches() -> None:
    """The fast way to split makes the same of all bytes as the documented one."""
    text = b"".join(bytes([byte]) + b"x" for byte in range(256)) + b"a<br /><br />B'c D1\n"
    plain = re.sub(rb"<br />", b" ", text).replace(b"'", b"")
    assert imdb._words(text) == re.findall(rb"[a-z0-9]+", plain.lower())


def test_a_full_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """No token reaches the size of the vocabulary: the rarest words become unknown."""
    monkeypatch.setattr(imdb, "VOCABULARY", 5)
    imdb_archive(tmp_path, reviews)
    x = data.load(data.find("imdb", tmp_path)).train.x
    assert x.shape == (6, 500)
    assert set(np.unique(x)) == {imdb.PADDING, imdb.START, imdb.UNKNOWN, 3, 4}


def test_reviews_from_archive_and_folder_are_the_same(
    tmp_path: Path, reviews: dict[str, bytes]
) -> None:
    """In any order in the archive, with any files beside the reviews."""
    beside = {"README": b"?", "train/unsup/0_0.txt": b"?", "train/pos/notes.md": b"?"}
    names = np.random.default_rng(1).permutation(list(reviews)).tolist()
    folders = [tmp_path / name for name in "abc"]
    imdb_archive(folders[0], reviews)
    imdb_archive(folders[1], {**beside, **{name: reviews[name] for name in names}})
    write_tree(folders[2] / "aclImdb", {**beside, **reviews})
    first, *others = [data.load(data.find("imdb", folder)) for folder in folders]
    assert all(same(first, other) for other in others)


def test_hostile_members_are_passed_over(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    """Names that lead elsewhere, links and devices change nothing and write nothing."""
    plain, hostile = tmp_path / "plain", tmp_path / "a" / "b" / "hostile"
    imdb_archive(plain, reviews)
    review = "aclImdb/train/pos/77_9.txt"
    imdb_archive(
        hostile,
        reviews,
        ("../evil.txt", b"evil"),
        ("../../aclImdb/train/pos/7_9.txt", b"evil"),
        ("aclImdb/train/pos/../pos/7_9.txt", b"evil"),
        (f"/{review}", b"evil"),
        (str(tmp_path / "absolute.txt"), b"evil"),
        (special(review, tarfile.SYMTYPE, "/etc/passwd"), b""),
        (special(review, tarfile.LNKTYPE, "aclImdb/train/pos/1_9.txt"), b""),
        (special(review, tarfile.CHRTYPE), b""),
        (special(review, tarfile.FIFOTYPE), b""),
        (special(review, tarfile.DIRTYPE), b""),
    )
    before = sorted(tmp_path.rglob("*"))
    loaded = [data.load(data.find("imdb", folder)) for folder in (plain, hostile)]
    assert same(*loaded)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([header("aclImdb/train/pos/0_9.txt", 2**40)], "claims to have 1,099,511,627,776 bytes"),
        ([header("aclImdb/train/pos/0_9.txt", 2000), b"x" * 512], "it ends within"),
        ([header("first", 0), header("other", -512)], "impossible size"),
        ([header("aclImdb/train/pos/0_9.txt", -512)], "claims to have -512 bytes"),
        ([header("pax", 2**33, tarfile.XHDTYPE)], "claims to have 8,589,"),
        ([header("pax", -512, tarfile.XHDTYPE)], "claims to have -"),
        ([header("././@LongLink", 2**33, tarfile.GNUTYPE_LONGNAME)], "claims to have 8,589,"),
        ([b"no archive"], "cannot read .*get it again"),
        ([], "expected 3"),
    ],
)
@pytest.mark.usefixtures("reviews")
def test_archives_that_lie_about_sizes(tmp_path: Path, blocks: list[bytes], message: str) -> None:
    """A size without measure, or below zero, is refused for what the header says alone."""
    raw_tar_gz(tmp_path / "aclImdb_v1.tar.gz", *blocks)
    with pytest.raises(DataError, match=message) as error:
        data.load(data.find("imdb", tmp_path))
    assert "aclImdb_v1.tar.gz" in str(error.value)


def test_an_archive_that_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """The size that an archive may decompress to is bounded."""
    monkeypatch.setattr(files, "_ARCHIVE_BYTES", 2**20)
    imdb_archive(tmp_path, reviews, ("large", bytes(2**21)))
    with pytest.raises(DataError, match=r"decompressed, claims to have .* at most 1,048,576"):
        data.load(data.find("imdb", tmp_path))


def test_an_archive_of_a_million_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """The number of members that are looked at is bounded, and none is stored."""
    monkeypatch.setattr(files, "_MEMBERS", len(reviews) + 20)
    folders = [tmp_path / name for name in ("full", "more")]
    for folder, beside in zip(folders, (8, 100), strict=True):
        imdb_archive(folder, reviews, *[(f"beside/{n}", b"") for n in range(beside)])
    assert data.load(data.find("imdb", folders[0])).train.y.size
    with pytest.raises(DataError, match=r"more\S*gz has more than 32 members: .*get it again"):
        data.load(data.find("imdb", folders[1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train/neg/1_2.txt": None}, "has 2 reviews in train/neg, expected 3"),
        ({"test/pos/3_9.txt": b"more"}, "has 4 reviews in test/pos, expected 3"),
        ({"train/neg/1_3.txt": b"again"}, "two reviews with the number 1 in train/neg"),
        ({"train/neg/1_2.txt": b"caf\xe9"}, "review 1 in train/neg .* is not UTF-8 text"),
    ],
)
def test_reviews_that_are_not_all_there(
    tmp_path: Path, reviews: dict[str, bytes], change: dict[str, bytes | None], message: str
) -> None:
    """A wrong number, one number twice or no text: refused, in the archive and in the folder."""
    now = {name: text for name, text in {**reviews, **change}.items() if text is not None}
    imdb_archive(tmp_path / "archive", now)
    write_tree(tmp_path / "folder" / "aclImdb", now)
    for place in ("archive", "folder"):
        with pytest.raises(DataError, match=message) as error:
            data.load(data.find("imdb", tmp_path / place))
        assert "aclImdb" in str(error.value)


def test_an_imdb_folder_without_a_class(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    kept = {name: text for name, text in reviews.items() if not name.startswith("test/neg")}
    write_tree(tmp_path / "aclImdb", kept)
    with pytest.raises(DataError, match=r"aclImdb.test.neg"):
        data.find("imdb", tmp_path)


def test_a_review_of_a_folder_that_is_none(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    """A gigantic file is not read, and a link is not followed."""
    folder = write_tree(tmp_path / "aclImdb", reviews)
    with (folder / "train/pos/1_9.txt").open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(DataError, match=r"1_9\.txt has more than 1,048,576 bytes"):
        data.load(data.find("imdb", tmp_path))
    (folder / "train/pos/1_9.txt").unlink()
    (folder / "train/pos/1_9.txt").symlink_to(folder / "train/pos/2_9.txt")
    with pytest.raises(DataError, match="has 2 reviews in train/pos"):
        data.load(data.find("imdb", tmp_path))


@pytest.mark.parametrize("keep", [0, 5, 100, -4, -8, -12])
def test_cut_off_archives(tmp_path: Path, reviews: dict[str, bytes], keep: int) -> None:
    """Wherever an archive ends too early, also within the checksum alone, it is refused."""
    path = imdb_archive(tmp_path, reviews)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"cannot read .*aclImdb_v1\.tar\.gz"):
        data.load(data.find("imdb", tmp_path))


def test_every_damage_is_a_data_error(
    tmp_path: Path, small_mnist: Mnist, reviews: dict[str, bytes]
) -> None:
    """Wrong bytes of a file, in the packing or within, give the data or a data error."""
    small_mnist.npz()
    imdb_archive(tmp_path, reviews)
    rng = np.random.default_rng(3)
    for name, file in (("mnist", "mnist.npz"), ("imdb", "aclImdb_v1.tar.gz")):
        path, data_set = tmp_path / file, data.find(name, tmp_path)
        good, packed = data.load(data_set), path.read_bytes()
        for _ in range(150):
            path.write_bytes(damaged(packed, name == "imdb" and rng.random() < 0.5, rng))
            with contextlib.suppress(DataError):
                loaded = data.load(data_set)
                # Only a byte that says nothing may be another: MNIST is held to its checksums.
                assert name == "imdb" or same(loaded, good)


def damaged(packed: bytes, within: bool, rng: np.random.Generator) -> bytes:
    """Up to three bytes are others, of a compressed file or within what it decompresses to."""
    content = gzip.decompress(packed) if within else packed
    for _ in range(rng.integers(1, 4)):
        content = changed(content, int(rng.integers(len(content))), int(rng.integers(1, 256)))
    return gzip.compress(content, 1) if within else content


@pytest.fixture
def unread(tmp_path: Path, reviews: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Found:
    """A found archive, and a count of how often it is read in ``imdb.reads``."""
    imdb_archive(tmp_path, reviews)
    monkeypatch.setattr(imdb, "reads", 0, raising=False)
    members = files.members

    def counted(*args: Any) -> Iterator[Any]:
        imdb.reads += 1
        return members(*args)

    monkeypatch.setattr(files, "members", counted)
    return data.find("imdb", tmp_path)


def test_tokens_are_kept(tmp_path: Path, unread: Found) -> None:
    """The second time the archive is not read, the data is the same, and one file is there."""
    cache = tmp_path / "new" / "cache"
    first, second = data.load(unread, cache), data.load(unread, cache)
    assert same(first, second)
    assert imdb.reads == 1
    assert [path.suffix for path in cache.iterdir()] == [".npz"]
    assert same(first, data.load(unread))
    assert imdb.reads == 2


@pytest.mark.parametrize("change", ["archive", "time", "vocabulary", "length", "version", "path"])
def test_what_is_kept_is_for_the_same_archive_alone(
    tmp_path: Path, unread: Found, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A change of anything that the tokens depend on makes another file."""
    cache = tmp_path / "cache"
    data.load(unread, cache)
    path = unread.paths[0]
    if change == "archive":
        path.write_bytes(path.read_bytes() + bytes(512))
    elif change == "time":
        os.utime(path, ns=(0, 1))
    elif change == "path":
        (tmp_path / "imdb").mkdir()
        path.rename(tmp_path / "imdb" / path.name)
        unread = data.find("imdb", tmp_path)
    else:
        name = change.upper() if change != "version" else "_VERSION"
        monkeypatch.setattr(imdb, name, getattr(imdb, name) - 1)
    data.load(unread, cache)
    assert imdb.reads == 2
    assert len(list(cache.iterdir())) == 2


def test_a_changed_file_in_the_folder_is_read_anew(
    tmp_path: Path, reviews: dict[str, bytes]
) -> None:
    """The tokens of a folder depend on each of its files."""
    folder = write_tree(tmp_path / "aclImdb", reviews)
    cache = tmp_path / "cache"
    data_set = data.find("imdb", tmp_path)
    first = data.load(data_set, cache)
    (folder / "train/pos/1_9.txt").write_text("another text of another length")
    assert not same(first, data.load(data_set, cache))


#: Damages a cache's whole content, or some of its arrays.
_DAMAGE: dict[str, Callable[[Any, Any], Any]] = {
    "empty": lambda whole, _: b"",
    "cut off": lambda whole, _: whole[:-10],
    "flipped": lambda whole, arrays: changed(whole, whole.index(arrays["tokens"].tobytes())),
    "objects": lambda _, arrays: {"tokens": arrays["tokens"].astype(object)},
    "token": lambda _, arrays: {"tokens": arrays["tokens"] + np.uint16(imdb.VOCABULARY)},
    "lengths": lambda _, arrays: {"lengths": arrays["lengths"] + np.int32(1)},
}


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_a_damaged_cache_is_written_again(
    tmp_path: Path, unread: Found, damage: Callable[[Any, Any], Any]
) -> None:
    cache = tmp_path / "cache"
    first = data.load(unread, cache)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    with np.load(kept) as stored:
        arrays = dict(stored)
    damaged = damage(whole, arrays)
    if isinstance(damaged, bytes):
        kept.write_bytes(damaged)
    else:
        np.savez(kept, **{**arrays, **damaged})
    assert same(first, data.load(unread, cache))
    assert imdb.reads == 2
    assert kept.read_bytes()[-200:] == whole[-200:]


@pytest.mark.parametrize("obstacle", ["file", "read-only", "full"])
def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, unread: Found, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    """The data is read all the same, and nothing half written is left."""
    cache = tmp_path / "cache"
    if obstacle == "file":
        cache.touch()
    else:
        failing = "open" if obstacle == "read-only" else "replace"

        def refuse(*_: Any) -> None:
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(Path, failing, refuse)
    assert len(data.load(unread, cache).train.y) == 6
    assert cache.is_file() if obstacle == "file" else not list(cache.iterdir())
