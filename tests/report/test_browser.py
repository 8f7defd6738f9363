"""The report in a real Chromium: sorting, filters and charts work, and nothing complains."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from fwbench.gate.stored import compare
from fwbench.gate.verdicts import Rules
from fwbench.report import history, writers
from fwbench.report.model import read
from fwbench_extras.studies import report_2020
from support.browser import exercised
from support.launched_runs import output, plain, sample, times, write
from support.launched_runs import run as launched_run
from support.reports import case, named, training

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="headless Chromium is driven on Linux alone"
)

_SORT = """
    const sorted = (name) => {
      header(name).querySelector("button").click();
      return { cells: cells(name), aria: header(name).getAttribute("aria-sort") };
    };
    found.median = [sorted("median"), sorted("median")];
    found.size = sorted("size");
    found.case = [sorted("case"), sorted("case")];
    found.against = [sorted("against eager"), sorted("against eager")];
    found.marked = all("thead th[aria-sort]", gemm).map((one) => one.textContent);
"""

_FILTER = """
    found.before = look();
    set(filter("framework"), "torch");
    found.torch = look();
    set(filter("execution"), "compile");
    found.compiled = look();
    set(filter("execution"), "");
    set(filter("framework"), "");
    set(filter("device"), "gpu:0");
    found.gpu = look();
    set(filter("device"), "");
    found.after = look();
"""

_SEARCH = """
    const search = document.querySelector("input[type=search]");
    set(search, "TORCH");
    found.row = look();
    set(search, "gemm");
    found.part = look();
    set(search, "none of them");
    found.none = look();
    set(search, "");
    let submitted = false;
    document.addEventListener("submit", (event) => {
      submitted = !event.defaultPrevented;
      event.preventDefault();
    });
    // What a browser does when Enter is pressed in the only text field of a form.
    search.form?.requestSubmit();
    found.left = submitted;
"""

_POINT = """
    const tooltip = gemm.querySelector(".tooltip");
    const dot = all(".dots", gemm).find((one) => one.textContent.includes("2 ms"))
      .querySelector(".dot");
    found.before = tooltip.textContent;
    dot.dispatchEvent(new MouseEvent("mouseenter"));
    found.tooltip = all("text", tooltip).map((one) => one.textContent);
    found.shown = tooltip.style.display !== "none" && Number(tooltip.style.opacity) === 1;
    found.charts = all(".pygal-chart").map((one) => one.getBoundingClientRect())
      .map((one) => one.width > 200 && one.height > 100);
    for (const one of all(".dot, .tooltip-trigger")) {
      one.dispatchEvent(new MouseEvent("mouseenter"));
      one.dispatchEvent(new MouseEvent("mouseleave"));
    }
    const line = document.querySelector(".chart .legend");
    line.dispatchEvent(new MouseEvent("mouseenter"));
    line.dispatchEvent(new MouseEvent("click"));
"""

_LOOK = """
    found.tags = all("img, i, b").length;
    found.scripts = all("script").map((one) => one.textContent.trimStart().slice(0, 8));
    const names = all("*").flatMap((one) => one.getAttributeNames());
    found.handlers = names.filter((one) => one.startsWith("on")).length;
    found.shown = document.body.textContent.includes(NAME);
"""


#: Whatever can be sorted, chosen, pointed at or clicked.
_USE = """
    found.sections = look().sections;
    found.charts = all(".pygal-chart").map((one) => one.getBoundingClientRect())
      .map((one) => one.width > 200 && one.height > 100);
    const legend = document.querySelector(".chart .legend");
    const drawn = all(".serie-0 .reactive", legend.closest("svg"));
    legend.dispatchEvent(new MouseEvent("click"));
    found.hidden = drawn.length > 0 && drawn.every((one) => one.style.display === "none");
    for (const one of all("thead button")) one.click();
    for (const field of all("[data-filter]")) {
      for (const option of all("option", field)) set(field, option.value);
      set(field, "");
    }
    for (const one of all(".dot, .tooltip-trigger, .legend")) {
      one.dispatchEvent(new MouseEvent("mouseenter"));
      one.dispatchEvent(new MouseEvent("mouseleave"));
      one.dispatchEvent(new MouseEvent("click"));
    }
    found.status = look().status;
"""

#: What axe holds against the page; of what it found right, the rules alone.
_AXE = """
    const told = await axe.run(document, { resultTypes: ["violations"] });
    found.background = getComputedStyle(document.body).backgroundColor;
    found.right = told.passes.map((one) => one.id);
    found.wrong = told.violations.filter((one) => ["serious", "critical"].includes(one.impact))
      .flatMap(({ id, nodes }) => nodes.map((one) => `${id}; ${one.html}; ${one.failureSummary}`));
"""


@pytest.fixture
def report(tmp_path: Path) -> str:
    """A page with operations on two devices, a training and a plain benchmark."""
    path = write(
        tmp_path / "run.json",
        case("gemm", "numpy", _ms(10.0), size=100),
        case("gemm", "numpy", _ms(20_000.0), size=1000),
        case("gemm", "torch", _ms(2.0), size=100),
        case("gemm", "torch", _ms(1.0), "compile", size=100),
        case("gemm", "torch", _ms(20.0), size=1000),
        case("gemm", "torch", _ms(3_000.0), "compile", size=1000),
        case("dot", "torch", _ms(1.0), device="gpu:0"),
        case("dot", "mxnet", _ms(1.0)),
        training(),
        plain(),
    )
    return writers.html([read(path)])


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with a part of every kind, with notes, and with a file that could not be read."""
    folder = tmp_path_factory.mktemp("full")
    work: dict[str, Any] = {"flops": 2e9, "bytes": 1e8, "attainable_share": 0.5}
    judged = [sample(name, times()) for name in ("slow", "same", "lost")]
    comparison = compare(
        launched_run(*judged, name="base.json"),
        launched_run(sample("slow", times(2.0)), judged[1], name="head.json"),
        Rules(margin=0.01),
        ["the driver differs"],
    )
    path = write(
        folder / "run.json",
        *(case("gemm", "numpy", _ms(size / 10), size=size, **work) for size in (100, 1000)),
        case("gemm", "torch", _ms(2.0), size=100, dispatch_s=1e-4, completion_s=2e-3, **work),
        case("gemm", "torch", _ms(1.0), "compile", size=100, contended=True, **work),
        *(case("tanh", framework, _ms(1.0), size=20000) for framework in ("tensorflow", "mxnet")),
        *(training(), training(execution="compile"), training(size=100)),
        *(training("mxnet"), training("tensorflow", "graph")),
        training(device="gpu:0", peak_device_memory_bytes=2**30),
        training("jax", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
        plain(),
        ceilings=ceilings.to_json({"Fake CPU": Ceiling({"float32": 1e11}, 1e10)}),
        gate={"verdicts": {}, "comparison": comparison.to_json()},
        missing=[{"nodeid": "x", "framework": "jax", "why": "deselected"}],
        absent={"jax": "not installed"},
    )
    runs = [read(path)]
    lines, _ = history.collect(_history(folder / "history", 12, 2.0))
    before = [*report_2020.sections(runs), *history.sections(lines)]
    return writers.html(runs, ["bad.json is empty"], before)


def _history(folder: Path, runs: int, shift: float) -> Path:
    """Stored runs of two operations, one a day; in the middle they shift, and NumPy is upgraded."""
    folder.mkdir()
    for number in range(runs):
        late = number >= runs // 2
        seconds, version = _ms(shift if late else 1.0), f"1.{late:d}"
        entries = [
            case(workload, values_s=seconds, framework_version=version)
            for workload in ("gemm", "dot")
        ]
        made = output(entries, threads=2)
        made["datetime"] = f"2026-11-{number + 1:02}T10:00:00"
        (folder / f"{number:02}.json").write_text(json.dumps(made), encoding="utf-8")
    return folder


def _ms(median: float) -> Sequence[float]:
    """Launches of so many milliseconds."""
    return [median * share * 1e-3 for share in (0.9, 1.0, 1.1)]


def test_tables_are_sorted(chromium: str, tmp_path: Path, report: str) -> None:
    """By value and not by text; a second click turns the order; one column is marked."""
    found = exercised(chromium, tmp_path, report, _SORT)
    assert found["complaints"] == []
    ascending = ["1 ms", "2 ms", "10 ms", "20 ms", "3 s", "20 s"]
    assert found["median"] == [
        {"cells": ascending, "aria": "ascending"},
        {"cells": ascending[::-1], "aria": "descending"},
    ]
    assert found["size"] == {"cells": ["100"] * 3 + ["1,000"] * 3, "aria": "ascending"}
    names = ["numpy eager"] * 2 + ["torch compile"] * 2 + ["torch eager"] * 2
    assert [one["cells"] for one in found["case"]] == [names, names[::-1]]
    up, down = ([cell.partition("x")[0] for cell in one["cells"]] for one in found["against"])
    assert (up, down) == (["", "", "", "", "0.01", "2.00"], ["2.00", "0.01", "", "", "", ""])
    assert found["marked"] == ["against eager"]


def test_rows_and_parts_are_chosen(chromium: str, tmp_path: Path, report: str) -> None:
    """What does not fit is hidden, also in the index; the status counts; all come back."""
    found = exercised(chromium, tmp_path, report, _FILTER)
    assert found["complaints"] == []
    overview, gemm, gpu, dot = (
        "part-overview-cpu-forward-float32",
        "part-gemm-cpu-forward-float32",
        "part-dot-gpu-0-forward-float32",
        "part-dot-cpu-forward-float32",
    )
    lenet, others = "part-training-lenet-cpu-float32-200", "part-other-benchmarks"
    assert found["before"]["sections"] == [overview, gemm, gpu, dot, lenet, others]
    assert found["before"]["status"] == "12 of 12 rows"
    assert found["torch"]["sections"] == [overview, gemm, gpu, lenet]
    assert found["torch"]["status"] == "8 of 12 rows"
    assert len(found["torch"]["rows"]) == 8
    assert all("torch" in row for row in found["torch"]["rows"] if overview not in row)
    assert found["torch"]["index"] == [
        "overview cpu forward float32",
        "gemm cpu forward float32",
        "dot gpu:0 forward float32",
        "training lenet cpu float32 200",
    ]
    assert found["compiled"]["rows"][2:] == [f"{gemm}: torch compile"] * 2
    assert found["compiled"]["status"] == "4 of 12 rows"
    assert found["gpu"]["rows"] == [f"{gpu}: torch eager"]
    assert found["after"] == found["before"]


def test_cases_are_searched(chromium: str, tmp_path: Path, report: str) -> None:
    """By a part of their name, in any case of letters; the operation is a part of it, too."""
    found = exercised(chromium, tmp_path, report, _SEARCH)
    assert found["complaints"] == []
    assert len(found["row"]["rows"]) == 6
    assert (found["none"]["sections"], found["none"]["status"]) == ([], "0 of 12 rows")
    assert found["part"]["sections"] == [
        "part-overview-cpu-forward-float32",
        "part-gemm-cpu-forward-float32",
    ]
    assert found["part"]["status"] == "7 of 12 rows"


def test_enter_in_the_search_does_not_leave_the_page(
    chromium: str, tmp_path: Path, report: str
) -> None:
    """A form that is sent loads the page anew: filters and order would be lost."""
    assert exercised(chromium, tmp_path, report, _SEARCH)["left"] is False


def test_points_show_their_values(chromium: str, tmp_path: Path, report: str) -> None:
    """The tooltip under a pointer says time, spread and launches; all charts can be touched."""
    found = exercised(chromium, tmp_path, report, _POINT)
    assert found["complaints"] == []
    assert found["requests"] == []
    assert found["before"].strip() == ""
    assert found["shown"]
    told = " ".join(found["tooltip"])
    for expected in ("torch eager", "100", "2 ms", "3 launches, 1.8 ms to 2.2 ms"):
        assert expected in told
    assert len(found["charts"]) >= 5
    assert all(found["charts"])


@pytest.mark.parametrize(
    "name", ["</script><img src=x onerror=alert(1)>", "</style></svg><i onload='alert(1)'>x</i>"]
)
def test_names_do_nothing(chromium: str, tmp_path: Path, name: str) -> None:
    """A browser reads scripts in pictures as another parser does: names are text to it, too."""
    exercise = _LOOK.replace("NAME", json.dumps(name).replace("</", "<\\/"))
    made = writers.html(*named(tmp_path, name))
    found = exercised(chromium, tmp_path, made, exercise)
    assert found["complaints"] == []
    assert found["requests"] == []
    assert (found["tags"], found["handlers"]) == (0, 0)
    assert found["shown"]
    assert not [one for one in found["scripts"] if one.startswith("alert")]


def test_a_page_without_a_chart_works(chromium: str, tmp_path: Path) -> None:
    """Plain benchmarks alone, and a run without any."""
    for number, entries in enumerate(((plain(),), ())):
        run = read(write(tmp_path / f"{number}.json", *entries))
        found = exercised(chromium, tmp_path, writers.html([run]), "found.title = document.title;")
        assert found["complaints"] == []
        assert found["title"] == "fwbench report"


def test_a_full_page_asks_for_nothing(chromium: str, tmp_path: Path, full: str) -> None:
    """Every part is there, and may be used, without a complaint and without a request."""
    found = exercised(chromium, tmp_path, full, _USE)
    assert found["complaints"] == []
    assert found["requests"] == []
    titles = " ".join(found["sections"])
    for part in ("against", "2020", "history", "Lasting", "gemm", "roofline", "training", "other"):
        assert part in titles
    assert len(found["charts"]) >= 20
    assert all(found["charts"])
    assert found["hidden"], "an entry of a legend hides what it stands for"
    shown, every = found["status"].removesuffix(" rows").split(" of ")
    assert shown == every


def test_what_has_notes_alone_is_shown(chromium: str, tmp_path: Path) -> None:
    """That no shift was found is an answer, and stays until something is chosen."""
    run = read(write(tmp_path / "run.json", case()))
    lines, _ = history.collect(_history(tmp_path / "history", 12, 1.0))
    made = writers.html([run], before=history.sections(lines))
    assert "None was found." in made
    found = exercised(chromium, tmp_path, made, "found.sections = look().sections;")
    assert found["complaints"] == []
    assert "part-Lasting-shifts" in found["sections"]


def test_a_history_alone_works(chromium: str, tmp_path: Path) -> None:
    """Without a run, all that a page can do is there."""
    lines, _ = history.collect(_history(tmp_path / "history", 12, 2.0))
    found = exercised(chromium, tmp_path, writers.html([], before=history.sections(lines)), _USE)
    assert (found["complaints"], found["requests"]) == ([], [])
    assert len(found["sections"]) == 3


@pytest.mark.parametrize(
    ("scheme", "background"),
    [("1", "rgb(255, 255, 255)"), ("0", "rgb(20, 23, 26)")],
    ids=["light", "dark"],
)
def test_everyone_can_read_it(
    chromium: str, tmp_path: Path, full: str, scheme: str, background: str
) -> None:
    """axe finds nothing serious and nothing critical, in light and in dark."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = exercised(
        *(chromium, tmp_path, full, _AXE),
        f"--blink-settings=preferredColorScheme={scheme}",
        library=axe,
    )
    assert (found["complaints"], found["requests"]) == ([], [])
    assert found["background"] == background
    assert found["wrong"] == []
    assert {"color-contrast", "label", "select-name", "role-img-alt"} <= {*found["right"]}
