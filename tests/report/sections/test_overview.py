"""Operations at a glance: operation by contestant, gaps among them."""

from typing import Any

import pytest

from fwbench.report import writers
from fwbench.report.ranking import answers
from fwbench.report.section import Section, TableCell
from fwbench.report.sections import overview
from support.reports import case, part, rounds_of, run_of, runs_of, shown

_TITLE = "overview cpu forward float32"


def linalg(workload: str, framework: str, median_s: float, **facts: Any) -> dict[str, Any]:
    """A case of the family, launched five times."""
    return case(workload, framework, median_s, family="linalg", **facts)


def skipped(case_id: str, framework: str, why: str) -> dict[str, Any]:
    """The fact of a session on a case that it skipped."""
    workload, _, rest = case_id.partition(f"-{framework}-")
    device, execution, direction, dtype, size, *toggles = rest.split("-")
    params = {
        "workload": workload,
        "framework": framework,
        "device": device,
        "execution": execution,
        "direction": direction,
        "dtype": dtype,
        "size": int(size),
        **dict(toggle.split(":", 1) for toggle in toggles),
    }
    nodeid = f"test_it.py::test_it[{case_id}]"
    return {"nodeid": nodeid, "framework": framework, "params": params, "why": why}


def cells(section: Section) -> dict[str, dict[str, TableCell]]:
    """The cells by the text of their row's first cell and by their column."""
    return {
        row.cells[0].text: dict(zip(section.columns[1:], row.cells[1:], strict=True))
        for row in section.rows
    }


def test_ratios_at_the_largest_size() -> None:
    run = run_of(
        *(linalg("gemm", "numpy", 0.002), linalg("gemm", "torch", 0.001)),
        *(linalg("gemm", "numpy", 0.008, size=900), linalg("gemm", "torch", 0.032, size=900)),
        *(linalg("dot", "numpy", 0.5), linalg("dot", "torch", 0.75)),
    )
    found = part([run], _TITLE)
    assert found.columns == ["operation", "family", "size", "numpy eager", "torch eager"]
    shown = {name: [cell.text for cell in row.values()] for name, row in cells(found).items()}
    assert shown == {"gemm": ["linalg", "900", "1x", "4x"], "dot": ["linalg", "100", "1x", "1.5x"]}
    gemm = cells(found)["gemm"]
    assert (gemm["torch eager"].hint, gemm["torch eager"].shade) == ("32 ms", "step4")
    assert gemm["numpy eager"].shade == "step0"


@pytest.mark.parametrize(("sd", "shade"), [(0.1, "step0"), (0.03, "step1")])
def test_what_is_too_close_to_call_is_shaded_as_the_fastest(sd: float, shade: str) -> None:
    """By how far medians repeat, as the answer has it."""
    entries = [
        rounds_of(linalg("gemm", name, s)) for name, s in (("numpy", 0.01), ("torch", 0.013))
    ]
    twice = {"cases": 12, "sd": sd, "pairs": {}}
    run = run_of(*entries, revisits={"numpy": twice, "torch": twice})
    row = cells(part([run], _TITLE))["gemm"]
    assert (row["numpy eager"].shade, row["torch eager"].shade) == ("step0", shade)
    close = sum(answer.too_close for answer in answers(run.contests))
    assert close == (shade == "step0")


def test_views_are_in_a_row_of_their_own() -> None:
    run = run_of(
        linalg("flatten", "numpy", 0.001, result_is_view=True),
        linalg("flatten", "torch", 0.004, result_is_view=False),
    )
    found = cells(part([run], _TITLE))
    assert {name: row["torch eager"].text for name, row in found.items()} == {
        "flatten (view)": "",
        "flatten (copy)": "4 ms",  # without a rival
    }


def test_a_row_that_is_not_decided_has_times() -> None:
    """One clean case is no winner, and no time stands in a row of ratios."""
    busy = {"condition": "contended"}
    run = run_of(
        *(linalg("gemm", "numpy", 0.001, **busy), linalg("gemm", "torch", 0.004)),
        *(linalg("dot", "numpy", 0.001), linalg("dot", "torch", 0.004)),
        linalg("dot", "numpy", 0.002, execution="jit", **busy),
        *(linalg("sum", "numpy", 0.001, **busy), linalg("sum", "torch", 0.004)),
        linalg("sum", "jax", 0.008),
    )
    found = part([run], _TITLE)
    assert any(note.startswith("A row that has times is not decided") for note in found.notes)
    shown = {
        name: [(cell.text, cell.shade) for cell in [*row.values()][2:] if cell.text]
        for name, row in cells(found).items()
    }
    assert shown == {
        "gemm": [("≤ 1 ms", ""), ("4 ms", "")],
        "dot": [("1x", "step0"), ("contended", ""), ("4x", "step4")],
        "sum": [("8x", "step4"), ("1x", "step0"), ("4x", "step4")],
    }
    gemm = cells(found)["gemm"]
    assert gemm["numpy eager"].hint == "1 ms, contended"
    timings = [cell.timing for cell in (gemm["numpy eager"], gemm["torch eager"])]
    assert [timing and timing.attributes["data-time"] for timing in timings] == ["nan", "0.004"]


def test_a_gap_has_its_reason() -> None:
    reason = "mxnet has no float32 product today"
    run = run_of(
        *(linalg("gemm", "numpy", 0.001), linalg("gemm", "torch-old", 0.004)),
        linalg("dot", "numpy", 0.001),
        missing=[
            skipped("gemm-mxnet-cpu-eager-forward-float32-100", "mxnet", f"skipped: {reason}"),
            skipped("dot-torch-old-cpu-eager-forward-float32-100", "torch-old", "skipped: none"),
            skipped("dot-mxnet-cpu-eager-backward-float32-100", "mxnet", "skipped: other"),
            skipped("dot-mxnet-cpu-eager-forward-float32-100", "mxnet", "deselected"),
            skipped("tanh-mxnet-cpu-eager-forward-float32-100", "mxnet", "skipped: other"),
        ],
    )
    found = part([run], _TITLE)
    assert found.columns[3:] == ["numpy eager", "torch-old eager", "mxnet eager"]
    gemm, dot = cells(found)["gemm"], cells(found)["dot"]
    assert gemm["mxnet eager"] == TableCell("gap", hint=reason, shade="gap")
    assert (dot["mxnet eager"].text, dot["torch-old eager"].hint) == ("", "none")
    assert found.gaps == [f"{reason} (mxnet eager: gemm).", "none (torch-old eager: dot)."]
    assert not any(reason in note for note in found.notes)


@pytest.mark.parametrize("gaps", [1, 30])
def test_gaps_are_told_below_the_table(gaps: int) -> None:
    """Folded: a gap is read by who looks for it."""
    missing = [
        skipped("gemm-mxnet-cpu-eager-forward-float32-100", "mxnet", f"skipped: reason {number}")
        for number in range(gaps)
    ]
    run = run_of(*(linalg("gemm", "numpy", 0.001), linalg("gemm", "torch", 0.004)), missing=missing)
    (section,) = shown(run).all("section", id="part-overview-cpu-forward-float32")
    order = [node for node in section if node.tag in {"table", "details"}]
    assert [node.tag for node in order] == ["table", "details"]
    assert len(order[1].all("li")) == gaps
    assert f"({gaps})" in order[1].text
    assert "open" not in order[1].attributes
    written = writers.markdown([run]).partition(f"### {_TITLE}")[2]
    assert written.index("| gemm |") < written.index("- Gap: reason 0")


def test_gaps_have_the_columns_of_their_run_and_toggles() -> None:
    asked = [
        linalg("gemm", "torch", 0.001, execution=execution, toggles_asked={"onednn": onednn})
        for execution in ("eager", "compile")
        for onednn in ("off", "on")
    ]
    case_id = "tanh-torch-cpu-{}-forward-float32-100-onednn:{}"
    runs = [
        run_of(
            *(*asked, linalg("tanh", "numpy", 0.002)),
            name=name,
            number=number,
            missing=[skipped(case_id.format(*of), "torch", f"skipped: {why}")],
        )
        for number, (name, of, why) in enumerate(
            [("a.json", ("compile", "off"), "too old"), ("b.json", ("eager", "on"), "too new")]
        )
    ]
    found = part(runs, _TITLE)
    gaps = {name: cell.hint for name, cell in cells(found)["tanh"].items() if cell.text == "gap"}
    assert gaps == {
        "torch compile onednn=off (a.json)": "too old",
        "torch eager onednn=on (b.json)": "too new",
    }


def test_one_contestant_has_no_table() -> None:
    alone = run_of(linalg("gemm", "numpy", 0.001))
    assert overview.sections([alone], ["alone.json"]) == []
    own = run_of(case(), case(framework="torch"))
    (found,) = overview.sections([own], ["own.json"])
    assert [*found.columns] == ["operation", "size", "numpy eager", "torch eager"]


def test_an_operation_leads_to_its_section() -> None:
    run = run_of(linalg("gemm", "numpy", 0.001), linalg("gemm", "torch", 0.002))
    page = shown(run)
    (heat,) = page.of_class("heat")
    (link,) = [node for node in heat.all("a") if node.text == "gemm"]
    target = str(link.attributes["href"]).removeprefix("#")
    assert len(page.all("section", id=target)) == 1


def test_the_size_that_most_were_measured_at_is_shown() -> None:
    """A larger one that one contestant alone reached compares nothing."""
    run = run_of(
        *(linalg("gemm", "numpy", 0.002, size=size) for size in (10, 900, 5000)),
        *(linalg("gemm", "torch", 0.001, size=size) for size in (10, 900)),
    )
    gemm = cells(part([run], _TITLE))["gemm"]
    assert (gemm["size"].text, gemm["numpy eager"].text) == ("900", "2x")


def test_runs_are_compared_within_themselves() -> None:
    """A ratio to the fastest of another run would be one between machines."""
    runs = runs_of(
        slow=[linalg("gemm", "numpy", 0.2), linalg("gemm", "torch", 0.1)],
        fast=[linalg("gemm", "numpy", 0.003), linalg("gemm", "torch", 0.001)],
    )
    gemm = cells(part(runs, _TITLE))["gemm"]
    assert [cell.text for cell in gemm.values()][2:] == ["2x", "1x", "3x", "1x"]
