"""Attacks on files that fwbench reads, and on the arguments of its commands: in this process."""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any

import bounds
import numpy as np

from fwbench import cli
from fwbench.errors import DataError
from fwbench.workloads import data
from fwbench.workloads.data import cifar, imdb, mnist
from support import documents
from support.data_files import REVIEWS, Mnist, damaged, idx, same, tar_gz, write_tree

_STORED = bounds.REPOSITORY / "tests" / "records" / "stored" / "current"
_RUNS = {path.name: path.read_bytes() for path in sorted(_STORED.glob("*.json"))}
_JOURNAL = (_STORED / "journal.jsonl").read_bytes()

#: Exit statuses of a gate that does not pass.
_NOT_GREEN = (1, 2, 10, 11)


def damage(source: random.Random, path: Path) -> None:
    """Damage a file; one in eight becomes something else than a file of its own."""
    content = path.read_bytes()
    if source.random() < 0.875:
        path.write_bytes(damaged(source, content))
        return
    path.unlink()
    ways: Sequence[Callable[[], Any]] = (
        lambda: path.symlink_to(path.name),
        lambda: path.symlink_to("nowhere"),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to("/dev/null"),
        lambda: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**40),
        path.mkdir,
    )
    source.choice(ways)()


def _scaled(values: Any, factor: float) -> Any:
    """Values of a run with all that is in seconds multiplied."""
    if isinstance(values, dict):
        return {
            name: _times(inner, factor)
            if name.endswith("_s") or name in ("min", "max", "mean", "median", "data", "total")
            else _scaled(inner, factor)
            for name, inner in values.items()
        }
    return [_scaled(inner, factor) for inner in values] if isinstance(values, list) else values


def _times(values: Any, factor: float) -> Any:
    if isinstance(values, list):
        return [_times(value, factor) for value in values]
    return values * factor if isinstance(values, float) else values


def _session(path: Path, number: int, factor: float) -> Path:
    """A session's run at a time of its own."""
    run = _scaled(json.loads(_RUNS["base.json"]), factor)
    run["datetime"] = f"2026-11-{1 + number % 28:02}T{number // 28 % 24:02}:18:25+00:00"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run), encoding="utf-8")
    return path


def gate(folder: Path, source: random.Random) -> None:
    """A contender that is 50 % slower never passes, whichever of the four sessions is damaged."""
    sides = {"base": 1.0, "slow": 1.5}
    paths = [
        _session(folder / side / f"{n}.json", n, factor * (1 + n / 1000))
        for side, factor in sides.items()
        for n in (1, 2)
    ]
    damage(source, source.choice(paths))
    written = [folder / "verdicts.md", folder / "figures.json"]
    for path in written:
        path.write_text("earlier", encoding="utf-8")
    options = ("--markdown", str(written[0]), "--json", str(written[1]))
    ended = documents.run("gate", *(str(folder / side) for side in sides), *options)
    documents.assert_ended(ended, _NOT_GREEN)
    documents.assert_whole(ended, written)


_FORMATS = {"--markdown": "report.md", "--csv": "report.csv", "-o": "report.html"}


def report(folder: Path, source: random.Random) -> None:
    """A report of a damaged run, alone or beside a whole one, is written whole or not at all."""
    bad = folder / "bad.json"
    bad.write_bytes(_RUNS[source.choice([*_RUNS])])
    damage(source, bad)
    runs = [str(bad), *[str(_STORED / "base.json")] * source.randrange(2)]
    names = [name for name in _FORMATS if source.random() < 0.5] or ["--csv"]
    written = {name: folder / _FORMATS[name] for name in names}
    for path in written.values():
        path.write_text("earlier", encoding="utf-8")
    ended = documents.run("report", *runs, *(str(w) for pair in written.items() for w in pair))
    documents.assert_ended(ended, (0, 1, 2))
    documents.assert_whole(ended, [*written.values()])
    assert "bad.json" in ended.err or ended.status == 0, ended


def history(folder: Path, source: random.Random) -> None:
    """A history names the damaged runs, and shows the others."""
    paths = [_session(folder / "runs" / f"{n}.json", n, 1 + n / 50) for n in range(12)]
    victims = source.sample(paths, source.randint(1, 4))
    for path in victims:
        damage(source, path)
    html = folder / "history.html"
    html.write_text("earlier", encoding="utf-8")
    ended = documents.run("report", "--history", str(folder / "runs"), "-o", str(html))
    documents.assert_ended(ended, (0, 1, 2))
    documents.assert_whole(ended, [html])
    assert ended.status == 0 or any(path.name in ended.err for path in victims), ended


def baseline(folder: Path, source: random.Random) -> None:
    """A refused baseline leaves the earlier one; an accepted one never passes a slower run."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    kept = _session(folder / ".fwbench" / "baseline" / "earlier.json", 0, 1.0)
    bad, other, slow = (
        _session(folder / f"{name}.json", n, factor)
        for n, (name, factor) in enumerate({"bad": 1.0, "other": 1.001, "slow": 1.5}.items(), 1)
    )
    damage(source, bad)
    anyway = ["--anyway"] * source.randrange(2)
    ended = documents.run("baseline", "set", str(bad), str(other), *anyway)
    documents.assert_ended(ended, (0, 2))
    names = sorted(path.name for path in kept.parent.iterdir())
    assert names == ([bad.name, other.name] if ended.status == 0 else [kept.name]), ended
    if ended.status == 0:
        documents.assert_ended(documents.run("baseline", "show"), (0,))
        documents.assert_ended(documents.run("gate", str(slow)), _NOT_GREEN)


def recover(folder: Path, source: random.Random) -> None:
    """Whole records of a damaged journal are recovered, or it is said why none is."""
    journal, output = folder / "bad.jsonl", folder / "recovered.json"
    lines = _JOURNAL.splitlines(keepends=True)
    place, way = source.randrange(len(lines)), source.randrange(8)
    if way == 0:
        journal.write_bytes(_JOURNAL)
        damage(source, journal)
    else:
        line = damaged(source, lines[place].rstrip(b"\n")) + b"\n"
        put = {1: [line, line], 2: [lines[place], line], 3: [lines[place]] * 2}.get(way, [line])
        journal.write_bytes(b"".join([*lines[:place], *put, *lines[place + 1 :]]))
    ended = documents.run("recover", str(journal), "-o", str(output))
    documents.assert_ended(ended, (0, 2))
    intact = [line for line in lines[1:] if way and line in journal.read_bytes().splitlines(True)]
    if ended.status == 0:
        kept = {entry["fullname"] for entry in json.loads(output.read_bytes())["benchmarks"]}
        assert kept >= {json.loads(line)["fullname"] for line in intact}, ended
        csv = str(folder / "recovered.csv")
        documents.assert_ended(documents.run("report", str(output), "--csv", csv), (0, 1))
    else:
        assert not output.exists(), ended
        assert str(journal) in ended.err, ended
        assert not intact, ended


# Data sets: small ones, which the modules are told to take for whole ones


def _small_mnist() -> Mapping[str, bytes]:
    rng = np.random.default_rng(1)
    payloads, parts = {}, list[mnist.Part]()
    for part in mnist.PARTS:
        shape = (12 if "train" in part.name else 5, *part.shape[1:])
        payload = idx(rng.integers(0, 256 if len(shape) > 1 else 10, shape, np.uint8))
        payloads[part.name] = payload
        digest = md5(payload, usedforsecurity=False).hexdigest()
        parts.append(replace(part, shape=shape, md5=digest))
    mnist.PARTS, mnist.TRAIN_EXAMPLES = tuple(parts), 8  # type: ignore[assignment]
    return payloads


def _small_cifar() -> Mapping[str, bytes]:
    cifar.FILE_EXAMPLES = 20
    rng = np.random.default_rng(2)
    batches = {}
    for name in cifar._NAMES:
        labels = rng.permutation(20).astype(np.uint8)[:, None] % 10
        batches[name] = np.hstack([labels, rng.integers(0, 256, (20, 3072), np.uint8)]).tobytes()
    return batches


@functools.cache
def _contents() -> Mapping[str, Mapping[str, bytes]]:
    imdb.CLASS_EXAMPLES = 3
    os.environ.pop(data.VARIABLE, None)  # what is there is no affair of these attacks
    return {"mnist": _small_mnist(), "cifar10": _small_cifar(), "imdb": REVIEWS}


def _write(name: str, folder: Path, source: random.Random) -> list[Path]:
    """A data set in one of its forms; returns its files."""
    contents, archived = _contents()[name], source.random() < 0.5
    folder.mkdir()
    if name == "mnist":
        small = Mnist(folder, dict(contents))
        _ = small.npz() if archived else small.write(gz=source.choice(("", ".gz")))
    else:
        root, archive = {
            "cifar10": ("cifar-10-batches-bin", cifar.WANTED),
            "imdb": ("aclImdb", imdb.WANTED),
        }[name]
        if archived:
            tar_gz(folder / archive, [(f"{root}/{n}", c) for n, c in contents.items()])
        else:
            write_tree(folder / root, dict(contents))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def data_sets(folder: Path, source: random.Random) -> None:
    """A damaged data set is refused by the name of its file, or has all of its labels."""
    name = source.choice([*_contents()])
    where, cache = folder / "data", folder / "cache"
    victims = _write(name, where, source)
    good = data.load(data.find(name, where), cache)
    victims += sorted(cache.rglob("*.npz")) * 2
    damage(source, source.choice(victims))
    found, refused = None, ""
    try:
        found = data.load(data.find(name, where), cache)
    except DataError as error:
        refused = str(error)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    if found is None:
        assert str(where) in refused, refused
        return
    labels = [np.array_equal(getattr(found, p).y, getattr(good, p).y) for p in ("train", "test")]
    # MNIST has checksums; of the others only labels and numbers of examples can be checked.
    assert same(found, good) if name == "mnist" else all(labels), "read as something else"


# Command lines

#: Commands with arguments that they cannot do anything with, or that do nothing that takes long.
_LEAST: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("gate", "baseline set", "report", "recover"), ("nowhere.json",)),
    **dict.fromkeys(("env show", "env remove"), ("nothing",)),
    **dict.fromkeys(("baseline show", "env list", "list"), ()),
    "ab": ("git:nowhere", "git:HEAD"),
}

#: Texts that hardly any option takes.
WORDS = (
    *("", " ", "-", "=", "nan", "inf", "-inf", "1e400", "1e-400", "-1", "0", "1.5", "true"),
    *("None", "null", "%(x)s", "%s", "{}", "[]", "a,,b", ",", "1,2", "..", "/", "/dev/null/x"),
    *("\u0661", "\u221e", "\udcff", "x\ny", "\x1b[31m", "a" * 5000, "9" * 5000, "cpu,gpu:99999"),
    *("git:", "5%%", "100%%", "-5%", "1h1h", "gpu:-1", "memory=", "=5%"),
)


#: How argparse names a command in its errors.
_OWN = re.compile(r"fwbench [a-z ]+: error: ")

_ANY = (0, 1, 2, 3)


@functools.cache
def _parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parsers of the commands, by the words that lead to them."""

    def below(parser: argparse.ArgumentParser, name: str) -> dict[str, argparse.ArgumentParser]:
        subs = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        inner = {f"{name} {n}".strip(): p for sub in subs for n, p in sub.choices.items()}
        return {k: v for n, p in inner.items() for k, v in (below(p, n) or {n: p}).items()}

    return below(cli.build_parser(), "")


def command_lines(folder: Path, source: random.Random) -> None:
    """A command refuses wrong values, unknown options and too many arguments in its own words."""
    name = source.choice([*_LEAST])
    actions = [
        a for a in _parsers()[name]._actions if a.option_strings and a.dest not in ("help", "json")
    ]
    line = [*name.split(), *_LEAST[name]]
    for _ in range(source.randint(1, 3)):
        flag = source.choice([f for a in actions for f in a.option_strings] or ["--unknown"])
        flag = source.choice((flag, flag, flag, flag[:-1], f"{flag}x"))
        line += source.choice(([flag, source.choice(WORDS)], [f"{flag}={source.choice(WORDS)}"]))
    (folder / "line.txt").write_text(repr(line), encoding="utf-8")
    ended = documents.run(*line)
    documents.assert_ended(replace(ended, err=_OWN.sub("fwbench: error: ", ended.err)), _ANY)


CLASSES: Mapping[str, Callable[[Path, random.Random], None]] = {
    "gate": gate,
    "report": report,
    "history": history,
    "baseline": baseline,
    "recover": recover,
    "data sets": data_sets,
    "command lines": command_lines,
}
