"""CSV and Markdown hold what was measured."""

import csv
import io
import re
from dataclasses import replace

import pytest

from fwbench.records.upstream import CommitInfo
from fwbench.report import sections, summary, writers
from support.launched_runs import plain
from support.reports import case, everything, markdown_cells, run_of, runs_of, training


def test_csv_has_a_line_for_each_case() -> None:
    tricky = {**plain('a, "quoted"\nname', 0.1), "group": None}
    run = run_of(case(values_s=(1 / 3, 2 / 3, 1.0)), training(), tricky)
    first, second, third = csv.DictReader(io.StringIO(writers.comma_separated([run])))
    assert first["case"] == "gemm-numpy-eager-cpu-forward-float32-100"
    assert (first["workload"], first["framework"], first["size"]) == ("gemm", "numpy", "100")
    assert (float(first["median_s"]), float(first["low_s"])) == (2 / 3, 1 / 3)
    assert (float(first["high_s"]), float(first["first_call_in_process_s"])) == (1.0, 10 * (1 / 3))
    assert (first["values"], first["of"]) == ("3", "launches")
    assert (second["workload"], second["of"], second["values"]) == ("lenet", "epochs", "4")
    assert third["case"] == 'a, "quoted"\nname'
    assert (third["framework"], third["dispatch_s"]) == ("", "")
    assert float(third["median_s"]) == pytest.approx(0.15)
    for row in (first, second, third):
        assert None not in row
        assert None not in row.values()


#: Columns as they have been since the first version; further ones follow.
_EARLIER = (
    "run,case,workload,framework,device,execution,direction,dtype,size,shape,median_s,low_s,high_s,"
    "dispatch_s,first_call_s,first_call_in_process_s,values,of,condition,outcome,"
)


def test_a_csv_alone_can_be_joined_with_another() -> None:
    """Every line has its machine, versions and date; columns stay where they were."""
    run = run_of(case(), plain())
    run = replace(run, when="2026-01-02T03:04:05+00:00", commit_info=CommitInfo(id="0123abc"))
    written = writers.comma_separated([run])
    assert written.startswith(_EARLIER)
    for line in csv.DictReader(io.StringIO(written)):
        assert (line["cpu"], line["fwbench"]) == ("Fake CPU", "0.1.0")
        assert (line["date"], line["commit"]) == (run.when, "0123abc")
        assert line["nodeid"].startswith("test_it.py::")
    first = next(csv.DictReader(io.StringIO(written)))
    assert (first["framework_version"], first["threads"]) == ("1.26.4", "2")


def test_csv_of_several_runs_says_which() -> None:
    runs = runs_of(first=[case()], second=[case(), case("dot")])
    results = [row["run"] for row in csv.DictReader(io.StringIO(writers.comma_separated(runs)))]
    assert results == ["first.json", "second.json", "second.json"]


def test_markdown_tables_are_whole() -> None:
    names = ("a|b", "a\\|b", "a\\", "a\nb", "a | b ||")
    entries = [
        *(case(framework=name, execution=name, group=name) for name in names),
        case(framework="slow", values_s=9.0),
        *(plain(name) for name in names),
    ]
    missing = [{"nodeid": "x", "framework": "x", "why": name} for name in names]
    run = run_of(*entries, missing=missing)
    blocks = writers.markdown([run]).split("\n### ")
    tables = [block for block in blocks if "\n| " in block]
    assert len(tables) == 6
    for block in tables:
        lines = [line for line in block.split("\n")[1:] if line.startswith("|")]
        assert all(line.endswith(" |") for line in lines)
        assert len({markdown_cells(line) for line in lines}) == 1
        assert re.fullmatch(r"\| ---( \| ---:?)+ \|", lines[1])
    assert r"a\|b" in writers.markdown([run])


def test_columns_of_words_begin_at_the_left() -> None:
    contended = run_of(case(values_s=0.2, contended=True), case("gemm", "torch"))
    lines = writers.markdown([contended]).splitlines()
    (head,) = (line for line in lines if line.startswith("| case | size |"))
    under = lines[lines.index(head) + 1]
    places = dict(zip(head.split(" | "), under.split(" | "), strict=True))
    assert (places["| case"], places["condition"], places["median"]) == ("| ---", "---", "---:")


def test_markdown_holds_every_part() -> None:
    runs = everything()
    written = writers.markdown(runs, ["bad.json is empty"])
    titles = [section.title for section in (*summary.sections(runs), *sections.details(runs))]
    assert re.findall(r"^### (.+)$", written, re.MULTILINE) == titles
    assert "bad.json is empty" in written
    assert written.endswith("|\n")


def test_markdown_has_no_words_on_colours_and_charts() -> None:
    """The page has them, which has both."""
    made = [run_of(case(), case("gemm", "torch", 2.0, condition="contended"))]
    on_page = [note for part in sections.details(made) for note in part.page_notes]
    page, text = writers.html(made), writers.markdown(made)
    assert any("blue is the fastest" in note for note in on_page)
    assert any(note.startswith("Pale") for note in on_page)
    assert [note for note in on_page if note not in page or note in text] == []
    assert re.findall(r"(?i)\b(blue|orange|red|grey|pale|dashed|lighter)\b", text) == []


def test_ratios_by_turns_are_explained_beside_medians() -> None:
    """In Markdown and on the page, of cases that took turns; not of others, nor without ratios."""
    note = "their ratios are not those of the medians shown"
    for row, state in (("one", "clean"), ("other", "clean"), ("one", "contended")):
        turns = [{"row": name, "visits_s": [1.0, 1.1]} for name in ("one", row)]
        pair = [
            case("gemm", name, 1.0, condition=state, launches=None, turns=visits)
            for name, visits in zip(("numpy", "torch"), turns, strict=True)
        ]
        made = [run_of(*pair)]
        texts = (writers.markdown(made), writers.html(made))
        assert [note in text for text in texts] == [(row, state) == ("one", "clean")] * 2
