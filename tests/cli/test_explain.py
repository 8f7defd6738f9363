"""``fwbench explain`` names what differs between two stored runs, and what it cannot know."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.records.session_facts import StoredComparison, StoredExplanation
from fwbench.report.explanation import NOTHING_FOUND
from support.gangs import out
from support.launched_runs import case_id, entry, plain, times, write
from support.schemas import load_valid
from support.suites import FEW, SLOWING, Suite
from support.tables import tabled

_USAGE_ERROR = 2

#: What every run of these tests has recorded.
_FACTS: dict[str, Any] = {
    "others_cpus": 0.02,
    "condition": "clean",
    "precision_bits": 23,
    "flops": 1e6,
    "libraries": {"numpy openblas core": "SkylakeX", "numpy openblas version": "0.3.23"},
}
_SESSION: dict[str, Any] = {"variables": {}, "libraries": {"numpy openblas core": "SkylakeX"}}


def _run(
    name: str, center: float = 1.0, session: dict[str, Any] | None = None, **facts: Any
) -> str:
    """Write a run of a case, and of a plain test, that took so long."""
    case = entry(values_s=times(center), **{**_FACTS, **facts})
    entries = case, entry("dot", **_FACTS), plain(min_s=center)
    return str(write(Path(name), *entries, **{**_SESSION, **(session or {})}))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    _run("base.json")
    return tmp_path


def _explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """The causes of each case, by the headlines."""
    assert cli.main(["explain", "base.json", "contender.json", *arguments]) == 0
    cases: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if not line.startswith("  "):
            cases[line] = []
        elif not line.startswith("  not looked at: "):
            [*cases.values()][-1].append(line.strip())
    return cases


@tabled
def test_what_differs_is_named(
    capsys: pytest.CaptureFixture[str], facts: dict[str, Any], said: tuple[str, ...]
) -> None:
    """And nothing else is; the case that has not changed is left out."""
    _run("contender.json", 1.2, **facts)
    explained = _explained(capsys)
    assert len(explained) == 2
    begin = f"{case_id()}: 1 s -> 1.2 s (+20 %; inconclusive; "
    ((_, causes),) = (row for row in explained.items() if row[0].startswith(begin))
    assert causes == [*said]


@tabled
def test_what_differs_around_a_plain_test_is_named(
    capsys: pytest.CaptureFixture[str], session: dict[str, Any], said: tuple[str, ...]
) -> None:
    """Its session's process has computed; for a case that says nothing."""
    _run("contender.json", 1.2, session)
    (_, of_case), (_, of_plain) = _explained(capsys).items()
    assert of_case == [NOTHING_FOUND if "variables" in session else said[0]]
    assert of_plain == [*said]


def test_an_extra_copy_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """By the profiles of both sides, where both have one."""
    copy = {"name": "copy", "operator_class": "data movement", "time_s": 1e-6}
    _run("base.json", profile={"operators": [{**copy, "calls": 1.0}]})
    _run("contender.json", 1.2, profile={"operators": [{**copy, "calls": 2.0}]})
    (causes,) = _explained(capsys, "-k", "gemm").values()
    assert [cause for cause in causes if re.match("work: .*copy:? 1 -> 2", cause)]


def test_what_was_not_recorded_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of facts, and profiles."""
    nothing = dict.fromkeys(("flops", "threads", "toggles", "precision_bits", "statistic"))
    _run("contender.json", 1.2, **nothing)
    assert cli.main(["explain", "base.json", "contender.json"]) == 0
    of_case, of_plain = re.findall("not looked at: (.*)", capsys.readouterr().out)
    assert "settings, work: not recorded on the contender's side" in of_case
    assert "--fw-profile" in of_case
    assert of_plain == "work: not recorded on either side"


def _sessions(side: str, center: float = 1.0, **facts: Any) -> None:
    """Write five sessions of a side."""
    if Path(side).is_file():
        Path(side).unlink()
    Path(side).mkdir(exist_ok=True)
    for number in range(5):
        _run(f"{side}/{number}.json", center * (1 + 1e-4 * number), **facts)


def test_the_same_work_twice_has_no_causes(capsys: pytest.CaptureFixture[str]) -> None:
    """A/A: one line, also of a case that is asked for, unless something differs all the same."""
    for side in ("base.json", "contender.json"):
        _sessions(side)
    ((line, causes),) = _explained(capsys).items()
    assert re.match(r"3 cases: no difference above 3\.\d%; -k TEXT", line)
    assert causes == []
    ((headline, causes),) = _explained(capsys, "-k", "gemm").items()
    assert headline == f"{case_id()}: 1 s -> 1 s (+0.0 %)"
    (same,) = causes
    assert same.startswith("no difference above 3.")
    _sessions("contender.json", threads=1)
    (causes,) = _explained(capsys, "-k", "gemm").values()
    assert causes == [same, "settings: threads: 2 -> 1"]


def test_two_sessions_do_not_tell_that_nothing_has_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _run("contender.json", 1.001)
    (line,) = _explained(capsys)
    told = "3 of 3 cases: whether they have changed cannot be told: the base has one session; -k "
    assert line.startswith(told)
    ((headline, causes),) = _explained(capsys, "-k", "gemm").items()
    assert headline == f"{case_id()}: 1 s -> 1 s (+0.1 %)"
    assert causes == ["whether it has changed cannot be told: the base has one session"]


def test_sessions_decide_and_their_medians_are_compared(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """One disturbed session of four is no cause, and a verdict needs no words of its own."""
    (folder / "base.json").unlink()
    for number, time_s in enumerate(times(1.0, 4)):
        _run(f"base.json/{number}.json", time_s)
        others_cpus = 2.0 if number == 1 else 0.02
        changed = {"others_cpus": others_cpus, "threads": 1}
        _run(f"contender.json/{number}.json", 2 * time_s, **changed)
    (headline, causes), *_ = _explained(capsys).items()
    assert headline == f"{case_id()}: 1 s -> 2 s (+100 %)"
    assert causes == ["settings: threads: 2 -> 1"]


def test_markdown_has_ten_lines_a_case_and_json_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    toggles = {f"VARIABLE_{number}": "1" for number in range(20)}
    _run("contender.json", 1.2, toggles=toggles)
    _explained(capsys, "-k", "gemm", "--markdown", "why.md", "--json", "why.json")
    markdown = Path("why.md").read_text(encoding="utf-8").splitlines()
    headline = f"**{case_id()}: 1 s -> 1.2 s (+20 %; inconclusive; the base has one session)**"
    assert headline in markdown
    points = [line for line in markdown if line.startswith("- ")]
    assert len(points) == 10
    assert points[-2] == "- and 13 more"
    (figures,) = load_valid("explanations", Path("why.json"))["explanations"]
    explanation = StoredExplanation.checked(figures)
    assert explanation.unknown() == []
    assert len(explanation.causes) == 21
    assert {cause.kind for cause in explanation.causes} == {"settings"}
    assert (explanation.verdict, explanation.unexplained_s) == ("inconclusive", None)


def test_what_cannot_be_done_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _run("contender.json")
    write(Path("other.json"), entry("sum"))
    refused = {
        "contender.json -k nothing": "-k 'nothing' selects none of the 3 cases",
        "other.json": "have no case in common",
        "contender.json --json base.json": "would replace a run",
    }
    for more, said in refused.items():
        arguments = ("explain", "base.json", *more.split())
        assert said in out(capsys, *arguments, status=_USAGE_ERROR)


_OTHER_BLAS = """
from fwbench.frameworks.numpy.framework import NumPy
NumPy.libraries = {"numpy openblas core": "Planted"}
"""


def test_ab_explains_what_has_changed(suite: Suite) -> None:
    """From what its launches recorded; a case that has not changed is left out."""
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text(encoding="utf-8") + _OTHER_BLAS, encoding="utf-8")
    (suite.path / "mymath.py").write_text(suite.slow(), encoding="utf-8")
    outputs = ("--json", "figures.json", "--markdown", "verdicts.md")
    status, printed, err = suite.ab("git:HEAD", ".", *FEW, *outputs, "--explain")
    assert status == 1, printed + err
    assert re.search(r"^  build: numpy openblas core: \w+ -> Planted$", printed, re.MULTILINE)
    comparison = StoredComparison.checked(suite.figures())
    assert comparison.unknown() == []
    (explanation,) = comparison.explanations or ()
    assert (explanation.name, explanation.verdict) == (SLOWING, "regressed")
    assert explanation.contender_s > 1.5 * explanation.base_s
    markdown = (suite.path / "verdicts.md").read_text(encoding="utf-8")
    assert f"**{SLOWING}: " in markdown.partition("### Why it changed")[2]
    suite.assert_clean()
