"""Verdicts on the terminal and in Markdown."""

import re

import pytest

from fwbench.gate.stored import compare
from fwbench.gate.verdicts import Rules
from fwbench.records.measurement import Measurement
from fwbench.report import verdicts as shown
from support.launched_runs import run, sample, times

RULES = Rules()


def _cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_the_table_has_the_worst_first() -> None:
    base = run(*(sample(key, times(1.0)) for key in "abcdef"), name="base")
    contender = run(
        sample("a", times(1.0)),
        sample("b", times(1.5)),
        sample("c", times(3.0)),
        sample("d", times(0.9)),
        sample("e", times(0.5)),
        sample("g", times(1.0)),
        name="contender",
    )
    lines = shown.table(compare(base, contender, RULES, ["a note"]))
    assert _cells(lines[0])[:6] == ["verdict", "case", "metric", "base", "contender", "ratio"]
    rows = [_cells(line)[:2] for line in lines[1:8]]
    assert rows == [
        ["regressed", "c"],
        ["regressed", "b"],
        ["missing", "f"],
        ["new", "g"],
        ["improved", "e"],
        ["improved", "d"],
        ["unchanged", "a"],
    ]
    worst = _cells(lines[1])
    assert worst[2:6] == ["minimum", "1 s", "3 s", "+200.0%"]
    assert re.fullmatch(r"\+\d+\.\d% to \+\d+\.\d%", worst[6])
    assert worst[7] == "+3.7%"
    assert _cells(lines[3])[2:] == ["not collected"]
    assert "contender against base: 2 regressed, 1 missing, 1 new, 2 improved, 1 unchanged" in lines
    assert lines[-1] == "a note"


def test_what_was_deselected_is_one_line() -> None:
    """Somebody wanted it so: it stands in nobody's way."""
    base = run(*(sample(key, times(1.0)) for key in "abcde"), name="base")
    left_out = dict.fromkeys("bcde", "deselected")
    contender = run(sample("a", times(2.0)), name="contender", unmeasured=left_out)
    comparison = compare(base, contender, RULES)
    lines = shown.table(comparison)
    assert [_cells(line)[:2] for line in lines[1:2]] == [["regressed", "a"]]
    assert lines[2] == "missing: 4 cases, deselected: b, c, d and 1 more"
    assert "contender against base: 1 regressed, 4 missing" in lines
    assert lines[2] in shown.markdown(comparison).splitlines()


def test_a_table_says_why_and_what_could_not_be_shown() -> None:
    bad = sample("bad", times(1.0), contended=1)
    wild = sample("wild", (1.0, 2.0, 4.0, 8.0, 16.0))
    lines = shown.table(compare(run(bad, wild), run(bad, wild), RULES))
    assert lines[0] == "nothing could be judged: all 2 cases are inconclusive"
    rows = {_cells(line)[1]: _cells(line) for line in lines[2:4]}
    assert rows["bad"][-1] == "other processes took its processors"
    assert rows["wild"][-1] == "its sessions are too far apart"
    single = sample("single", times(1.0, 1))
    assert "nothing" in shown.table(compare(run(single), run(single), RULES))[2]


def test_a_case_is_shown_by_what_is_worse_of_it() -> None:
    base = sample("a", times(1.0, 8), memory=[1e8] * 8, dispatch=times(1e-3, 8))
    contender = sample(
        "a", times(1.0, 8), median=times(2.0, 8), memory=[1e9] * 8, dispatch=times(1e-3, 8)
    )
    lines = shown.table(compare(run(base), run(contender), RULES))
    rows = [_cells(line) for line in lines[1:-3]]
    assert [row[:3] for row in rows] == [["regressed", "a", "memory"], ["regressed", "a", "median"]]
    assert rows[0][3:5] == ["95 MiB", "954 MiB"]
    assert "1 regressed" in lines[-2]


def test_means_are_geometric_and_by_framework() -> None:
    """Twice as slow and twice as fast are no change on average; missing cases do not count."""

    def measurements(framework: str, **centers: float) -> list[Measurement]:
        return [
            sample(f"{framework} {key}", times(center), framework=framework)
            for key, center in centers.items()
        ]

    base = run(
        *measurements("numpy", a=1.0, b=1.0, lost=1.0),
        *measurements("torch", a=1.0, b=1.0),
        *measurements("", plain=1.0),
    )
    contender = run(
        *measurements("numpy", a=2.0, b=0.5),
        *measurements("torch", a=4.0, b=1.0),
        *measurements("", plain=1.5),
    )
    comparison = compare(base, contender, RULES)
    assert comparison.means == pytest.approx({"numpy": 1.0, "torch": 2.0, "benchmarks": 1.5})
    lines = shown.table(comparison)
    for name, mean in (("numpy", "1.000"), ("torch", "2.000"), ("benchmarks", "1.500")):
        assert f"{name}: {mean}x of the base's time (geometric mean)" in lines


def test_most_unchanged_cases_are_left_out() -> None:
    same = [sample(f"same-{i}", times(1.0, 8)) for i in range(25)]
    near = [sample(f"same-{i}", times(1.0 - i / 4_000, 8)) for i in range(25)]
    slow = [sample(f"slow-{i}", times(2.0, 8)) for i in range(25)]
    base = run(*same, *(sample(slow_sample.key, times(1.0, 8)) for slow_sample in slow))
    comparison = compare(base, run(*near, *slow), RULES)
    lines = shown.table(comparison)
    assert sum(line.startswith("regressed") for line in lines) == 25
    assert sum(line.startswith("unchanged") for line in lines) == 20
    assert "... and 5 unchanged cases more, of -0.6% to -0.5%" in lines
    assert "... and 5 unchanged cases more, of -0.6% to -0.5%" in shown.markdown(comparison)
    fewer = compare(run(*same[:20]), run(*same[:20]), RULES)
    assert "more" not in "\n".join(shown.table(fewer))


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40])
def test_a_table_fits_the_terminal_and_nothing_is_cut(width: int) -> None:
    """Reasons, then cases, go below the numbers; on a phone's columns all is a text."""
    known = sample("tests/bench/test_text.py::test_top", times(1.0))
    lost = sample("tests/bench/test_text.py::test_lost", times(1.0))
    wild = sample("tests/bench/test_text.py::test_wild", (1.0, 2.0, 4.0, 8.0, 16.0))
    comparison = compare(run(known, lost, wild), run(known, wild), RULES, ["a note, " * 20])
    lines = shown.table(comparison, width)
    assert max(map(len, lines)) <= width
    words = {*" ".join(lines).replace(",", " ").split()}
    assert words >= {known.key, lost.key, wild.key, "+262.9%", "-72.4%", "+3.7%"}
    text = " ".join(" ".join(lines).split())
    for part in ("not collected", "its sessions are too far apart", "a note, a note"):
        assert part in text
    assert (lines[:-1] == shown.table(comparison)[:-1]) == (width == 200)


def test_markdown_is_a_table() -> None:
    piped = "test_it[a|b]"
    base = run(sample(piped, times(1.0)), sample("lost"), name="git:main")
    contender = run(
        sample(piped, times(2.0)), name="git:HEAD", unmeasured={"lost": "skipped: a | b"}
    )
    text = shown.markdown(compare(base, contender, RULES, ["a note"]))
    lines = text.splitlines()
    assert lines[0] == "### fwbench: git:HEAD against git:main: 1 regressed, 1 missing"
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {9 + 2}
    assert r"test_it\[a\|b\]" in rows[2]
    assert r"skipped: a \| b" in rows[3]
    assert set(rows[1]) <= set("|- ")
    assert lines[1] == "", "a table begins a paragraph"
    assert "- a note" in lines
    assert text.endswith("\n")
