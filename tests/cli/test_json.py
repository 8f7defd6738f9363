"""Every command that prints a result prints it for programs, too."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.frameworks import registry
from fwbench.workers.environments import FACTS, Environment
from fwbench.workers.install import complete
from fwbench_extras.pages import parsers
from support.launched_runs import QUIET, entry, write
from support.schemas import problems
from support.tables import tabled

_STORED = Path(__file__).parents[1] / "records" / "stored" / "current"

#: What these print is a session of pytest's own, which has ``--benchmark-json``; or messages.
_OTHERS = {"fwbench run", "fwbench mcp"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with runs, a baseline, a journal, and two environments of which one is damaged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").touch()
    numpy = registry.registered()["numpy"]
    monkeypatch.setattr(registry, "registered", lambda: {"numpy": numpy})
    for number in range(3):
        slower = [value * (1.5 + number / 100) for value in QUIET]
        write(tmp_path / "base" / f"{number}.json", entry())
        write(tmp_path / "contender" / f"{number}.json", entry(values_s=slower))
    shutil.copy(_STORED / "journal.jsonl", tmp_path / "now.jsonl")
    folder = tmp_path / ".fwbench" / "envs" / "numpy@2"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("#!/bin/sh\n", encoding="utf-8")
    complete(Environment("numpy@2", folder, ("numpy==2.*",), "3.11", "uv", {"numpy": "2.0"}))
    (folder.parent / "damaged").mkdir()
    (folder.parent / "damaged" / FACTS).write_text("{", encoding="utf-8")
    assert cli.main(["baseline", "set", "--anyway", "base"]) == 0
    return tmp_path


def test_every_command_has_the_option() -> None:
    having = {
        parser.prog
        for parser, _ in parsers(cli.build_parser())
        if any("--json" in action.option_strings for action in parser._actions)
    }
    assert {parser.prog for parser, _ in parsers(cli.build_parser())} - having == _OTHERS


@tabled
@pytest.mark.usefixtures("folder")
def test_a_result_is_printed_as_json(
    capsys: pytest.CaptureFixture[str], command: str, keys: tuple[str, ...], found: Any
) -> None:
    """Nothing else is on standard output; ``found`` is some of it."""
    capsys.readouterr()
    assert cli.main([*command.split(), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [*printed] == [*keys]
    flat = json.dumps(printed)
    assert all(part in flat for part in found), flat


@tabled
def test_a_result_is_written_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, schema: str
) -> None:
    assert cli.main([*command.split(), "--json", "figures.json"]) in (0, 1)
    figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    assert problems(schema, figures) == []
    assert capsys.readouterr().out
