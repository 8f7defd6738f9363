"""``fwbench doctor`` says what a machine can do at most; ``fwbench recover`` tells records."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fwbench import ceilings, cli, machine
from fwbench.ceilings import Ceiling, Ceilings
from fwbench.cli import doctor
from fwbench.errors import SuiteError
from fwbench.frameworks import registry
from fwbench.processes.session import Watching
from fwbench.records.journal import Journal, journal_folder
from support.fakes import entry as entry_of_journal
from support.fakes import manifest
from support.peaks import (
    BY,
    FOUND,
    MACHINE,
    NONSENSE,
    attainable_of,
    product_entry,
    stored_ceilings,
)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project's folder on a machine of known facts, and a folder in it, which is the current."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pytest.ini").write_text("", encoding="utf-8")
    monkeypatch.chdir(inner)
    monkeypatch.setattr(registry, "registered", lambda: {"fake": None})
    monkeypatch.setattr(doctor, "describe", lambda *_: {"fake": manifest()})
    monkeypatch.setattr(machine, "cpu_model", lambda: "Fake CPU")
    monkeypatch.setattr(machine, "machine", lambda cpu: {**MACHINE, "cpu": cpu})
    monkeypatch.setattr(machine, "usable_cpus", lambda: 2)
    return tmp_path


def _peaks(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> list[int]:
    """Let the ceilings be measured at once; gives the threads with which they were."""
    requested: list[int] = []

    def measure(threads: int, watching: Watching) -> dict[str, Ceiling]:
        requested.append(threads)
        with watching(Path("status.json")):
            pass
        if error is not None:
            raise error
        return FOUND

    monkeypatch.setattr(ceilings, "measure", measure)
    return requested


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.main(["doctor", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("ceilings"))
    end = next(i for i, line in enumerate(lines) if line.startswith("fake 1.2"))
    return lines[start:end]


def test_doctor_says_that_nothing_was_measured(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ceilings it says how to get them, and does not measure; programs get none."""
    hint = "  not measured; fwbench doctor --peaks measures them"
    assert _printed(capsys) == ["ceilings", hint]
    assert cli.main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == {}
    assert not (here / ".fwbench").exists()


_PRINTED = [
    "ceilings of Fake CPU",
    "  float32   1.074 GFLOP/s (fake 1.2)",
    "  float16   4.295 GFLOP/s (fake 1.2)",
    "  copy      0.001049 GB/s (other 0.1)",
    "ceilings of Fake 9000",
    "  float64   2e-09 GFLOP/s (fake 1.2)",
]


def test_doctor_says_what_was_measured(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rates of each device with their units, and whose they are; the same for programs."""
    stored_ceilings(here)
    assert _printed(capsys) == _PRINTED
    assert cli.main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["ceilings"] == ceilings.to_json(FOUND)
    assert ceilings.from_json(facts["ceilings"]) == FOUND


_MAY_BE_FASTER = (
    "  contended: other processes took processors, and it may be faster: measure again on an idle "
    "machine"
)


@pytest.mark.parametrize(
    ("ceiling", "lines"),
    [
        (
            Ceiling({"float32": 712_345.6e9}, 4_321e9, BY),
            ["  float32   712,346 GFLOP/s (fake 1.2)", "  copy      4,321 GB/s (other 0.1)"],
        ),
        (
            Ceiling(
                *({}, None, {"copy_to_device": "fake 1.2"}),
                {"copy_to_device": 2.5e10, "copy_to_host, pinned": 5e10},
            ),
            ["  copy_to_device 25 GB/s (fake 1.2)", "  copy_to_host, pinned 50 GB/s (unknown)"],
        ),
        # Doctor is what one asks when something is wrong: it does not fail of that.
        (
            Ceiling({"float32": 2.0**30}, 2.0**20),
            ["  float32   1.074 GFLOP/s (unknown)", "  copy      0.001049 GB/s (unknown)"],
        ),
        (
            Ceiling({"float32": 2.0**30}, by={"float32": "fake 1.2 (contended)"}),
            ["  float32   1.074 GFLOP/s (fake 1.2 (contended))", _MAY_BE_FASTER],
        ),
    ],
    ids=["in full", "between host and GPU", "nobody's", "on a busy machine"],
)
def test_doctor_says_rates(
    here: Path, capsys: pytest.CaptureFixture[str], ceiling: Ceiling, lines: list[str]
) -> None:
    stored_ceilings(here, {"Fake 9000": ceiling})
    assert _printed(capsys) == ["ceilings of Fake 9000", *lines]


def test_doctor_measures_when_asked(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--peaks measures, and keeps what it finds for the project and its threads."""
    requested = _peaks(monkeypatch)
    assert _printed(capsys, "--peaks") == _PRINTED
    assert Ceilings(here, MACHINE, 2).load() == FOUND
    assert _printed(capsys) == _PRINTED
    assert _printed(capsys, "--threads=5")[0] == "ceilings"
    assert requested == [2]


def test_doctor_measures_for_programs_and_threads(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json standard output is JSON alone, while it is measured, too."""
    requested = _peaks(monkeypatch)
    assert cli.main(["doctor", "--peaks", "--json", "--threads=5"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == ceilings.to_json(FOUND)
    assert requested == [5]
    assert Ceilings(here, MACHINE, 5).load() == FOUND
    assert Ceilings(here, MACHINE, 2).load() == {}


def test_doctor_says_why_it_could_not_measure(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = stored_ceilings(here)
    _peaks(monkeypatch, error=SuiteError("all went wrong"))
    assert cli.main(["doctor", "--peaks"]) == 3
    assert capsys.readouterr() == ("", "fwbench: error: all went wrong\n")
    assert stored.load() == FOUND


def test_doctor_says_why_it_could_not_keep_them(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that cannot be written exits with 3, and says which."""
    _peaks(monkeypatch)
    (here / ".fwbench").write_text("in the way", encoding="utf-8")
    assert cli.main(["doctor", "--peaks"]) == 3
    message = capsys.readouterr().err
    assert message.startswith(
        f"fwbench: error: cannot write under {here / '.fwbench' / 'ceilings'}: "
    )


def _recovered(root: Path, result: Any, *entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    journal = Journal(journal_folder(root), "now.jsonl")
    journal.append({"fwbench_journal": 1, "version": "5", "fwbench": {"ceilings": result}})
    for entry in entries:
        journal.append(entry)
    journal.close()
    run = root / "run.json"
    assert cli.main(["recover", str(journal.path), "-o", str(run)]) == 0
    benchmarks: list[dict[str, Any]] = json.loads(run.read_text(encoding="utf-8"))["benchmarks"]
    return benchmarks


def test_recover_says_what_was_attainable(tmp_path: Path) -> None:
    """By the ceilings of the session, not those of the machine that recovers it."""
    whole = {**product_entry(), "fullname": "test_fake.py::whole"}
    foreign = entry_of_journal("foreign")
    recovered = _recovered(tmp_path, ceilings.to_json(FOUND), whole, foreign)
    assert [attainable_of(recovered[0]), recovered[1]] == [(2.0, 1.0), foreign]


@pytest.mark.parametrize("text", ["{}", *NONSENSE])
def test_recover_bears_nonsense(tmp_path: Path, text: str) -> None:
    """A session without ceilings, or with none to be understood, is recovered without shares."""
    whole = {**product_entry(), "fullname": "test_fake.py::whole"}
    assert _recovered(tmp_path, json.loads(text), whole) == [whole]
