"""Every fact is declared once; what is not declared is an error, what is damaged is named."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import DeclarationError, UnreadableRun
from fwbench.packaged import read_table
from fwbench.plugin import host
from fwbench.records import facts as facts_module
from fwbench.records import session_facts, upstream
from fwbench.records.facts import CaseFacts, Data, Epoch, Launch, Measured
from fwbench.records.journal import Journal, recover
from fwbench.records.launches import MEDIANS
from fwbench.records.session_facts import SessionFacts
from fwbench.records.stored import from_json, load
from fwbench.records.table import Fact, Table
from fwbench.records.upstream import Statistics
from fwbench.report import writers
from fwbench.report.section import KEYS
from support import programs
from support.launched_runs import entry, output, write
from support.reports import case, training
from support.tables import tabled

_USAGE_ERROR = 2
_SOME_UNREADABLE = 1


def facts(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {**entry()["extra_info"]["fwbench"], **changes}
    return made


def _launch(value_s: float, **changes: Any) -> dict[str, Any]:
    return {"launch": 0, "value_s": value_s, **changes}


def test_an_undeclared_key_cannot_be_produced() -> None:
    with pytest.raises(DeclarationError, match="no fact 'warmpu_s'; did you mean 'warmup_s'"):
        CaseFacts(warmpu_s=1.0)


def test_an_undeclared_key_cannot_be_read() -> None:
    read = CaseFacts.checked(facts())
    assert read.warmup_s is None
    with pytest.raises(AttributeError, match="warmpu_s"):
        read.warmpu_s  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(DeclarationError, match="warmpu_s"):
        read.text("warmpu_s")


_TYPO = """
from fwbench.records.facts import CaseFacts, Epoch
from fwbench.records.measurement import Measurement

def read(facts: CaseFacts, record: Measurement) -> None:
    print(facts.warmpu_s)
    print(record.facts.warmpu_s)
    print(record.warmup_s)
    CaseFacts(warmpu_s=1.0)
    CaseFacts(warmup_s="1.0")
    Epoch(secons=1.0)
    facts.warmup_s = 1.0
"""


def test_a_typo_is_an_error_in_mypy(tmp_path: Path) -> None:
    """Each line of the file but its head is wrong."""
    pytest.importorskip("mypy")
    (tmp_path / "typo.py").write_text(_TYPO, encoding="utf-8")
    root = Path(__file__).parents[2]
    settings = ("--config-file", root / "pyproject.toml", "--cache-dir", tmp_path / "cache")
    done = programs.run("-m", "mypy", *settings, tmp_path / "typo.py", cwd=root)
    wrong = {int(line) for line in re.findall(r"typo\.py:(\d+): error", done.stdout)}
    assert wrong == set(range(6, 13)), done.stdout


def test_facts_that_are_named_by_text_are_declared() -> None:
    named = {*MEDIANS, *KEYS, *writers.FACTS}
    assert named <= CaseFacts.declared().keys()
    assert {*MEDIANS} <= Measured.declared().keys() <= Launch.declared().keys()


@pytest.mark.parametrize("table", [CaseFacts, Launch, Epoch, Data, Statistics, SessionFacts])
def test_every_declaration_is_complete(table: type[Table]) -> None:
    for declared in table.declared().values():
        assert declared.meaning
        assert not declared.meaning.endswith(".")
        assert {*declared.needs} <= table.declared().keys()


def test_every_meaning_is_of_a_declared_key() -> None:
    for table, rows in read_table("fwbench.records", "facts.toml").items():
        (module,) = (m for m in (facts_module, session_facts, upstream) if table in vars(m))
        declared = vars(getattr(module, table))
        assert rows.keys() == {name for name, row in declared.items() if isinstance(row, Fact)}


def test_tables_within_tables_are_plain_in_json() -> None:
    made = CaseFacts(
        epochs=[Epoch(repetition=1, seconds=2.0, train_loss=0.5)], data=Data(name="mnist")
    )
    repeated = CaseFacts.unchecked(json.loads(json.dumps(dict(made))))
    assert repeated == made
    assert repeated.epochs is not None
    assert repeated.epochs[0].seconds == 2.0
    assert repeated.data == Data(name="mnist")


def test_a_fact_is_shown_in_its_unit() -> None:
    made = CaseFacts(dispatch_s=0.0123, peak_host_memory_bytes=2**30, threshold=None)
    assert made.text("dispatch_s") == "12.3 ms"
    assert made.text("peak_host_memory_bytes") == "1.00 GiB"
    assert made.text("threshold") == made.text("load") == ""


@tabled
def test_what_is_damaged_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "run.json", entry("dot"), entry("gemm", **changes))
    with pytest.raises(UnreadableRun) as caught:
        load(path)
    case_id = entry("gemm")["param"]
    assert str(caught.value).startswith(f"{path} is not a valid fwbench run: {case_id}: {message}")


def test_every_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "old" / "bad.json", entry("gemm", load="high"))
    write(tmp_path / "old" / "good.json", case())
    report = ["-o", "report.html"]
    commands = {
        ("gate", "old/good.json", "old/bad.json"): _USAGE_ERROR,
        ("baseline", "set", "old/bad.json"): _USAGE_ERROR,
        ("report", "old/bad.json", "old/good.json", *report): _SOME_UNREADABLE,
        ("report", "--history", "old", *report): _SOME_UNREADABLE,
    }
    message = f"old/bad.json is not a valid fwbench run: {entry('gemm')['param']}: load is 'high'"
    for command, status in commands.items():
        assert cli.main([*command]) == status
        assert message in capsys.readouterr().err


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "now.jsonl")
    journal.append({"fwbench_journal": 1})
    journal.append(entry("gemm", load="high"))
    journal.close()
    with pytest.raises(UnreadableRun, match=r"now\.jsonl: line 2: gemm-.*: load is 'high'"):
        recover(journal.path, host.with_statistics)


def test_what_is_unknown_is_kept() -> None:
    launches = [{"launch": 0, "value_s": 1.0, "spin": 1}]
    strange = entry(mass_kg=2.5, launches=launches, workers="2", toggles={"workers": "2"})
    run = from_json("run.json", output([strange], weather="fine"))
    assert run.unknown == ["weather", "mass_kg", "launches[].spin"]
    assert run.records[0].facts["mass_kg"] == 2.5
    assert run.session["weather"] == "fine"


def test_what_is_unknown_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("base.json", "contender.json"):
        made = [case("gemm", mass_kg=2.5), case("dot", mass_kg=7.5), training(mass_kg=1)]
        write(tmp_path / name, *made)
    for command in (
        ["gate", "base.json", "contender.json", "--fail-on", "regressed"],
        ["baseline", "set", "--anyway", "base.json"],
        ["report", "base.json", "contender.json", "--markdown", "report.md"],
    ):
        assert cli.main(command) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert "does not know: mass_kg; they are kept" in line
    shown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert (
        "base.json has mass_kg, which this version of fwbench does not know: 2.5, 7.5, 1" in shown
    )


def test_nothing_is_said_of_what_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path / "run.json", entry()))
    assert cli.main(["gate", path, path, "--fail-on", "regressed"]) == 0
    assert capsys.readouterr().err == ""
