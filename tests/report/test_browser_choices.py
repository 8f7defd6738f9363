"""Choices of a reader on the page: filters reach charts, ratios have any baseline, links keep it.

In a real Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fwbench.report import writers
from fwbench.report.model import read
from support.browser import exercised
from support.launched_runs import write
from support.reports import case, runs_of, training

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="headless Chromium is driven on Linux alone"
)

_GEMM = "part-gemm-cpu-forward-float32"

#: What charts, legend and heat map show, by framework or contestant.
_LOOK = """
    const overview = document.getElementById("part-overview-cpu-forward-float32");
    // Of what is not displayed in a picture, Chromium's checkVisibility says that it is visible.
    const visible = (...where) => all(...where).filter((one) => one.getBoundingClientRect().width);
    const names = (nodes, key) => [...new Set(nodes.map((one) => one.dataset[key]))].sort();
    const drawn = () => ({
      series: names(visible(".chart .series", gemm), "line"),
      legend: names(visible(".legend button", gemm), "line"),
      columns: visible("thead th", overview).map((one) => one.textContent),
      hash: decodeURIComponent(location.hash),
    });
    const shown = (cell) => [cell.textContent, cell.className];
    const ratios = () => Object.fromEntries(all("tbody tr", overview).map(({ cells }) =>
      [cells[0].textContent, [...cells].slice(2).map(shown)]));
    const relative = () => all("[data-relative]", gemm).map((one) => one.textContent);
"""

_FILTER = """
    const devices = all(".detail").find((one) => one.id.endsWith("on-every-device"));
    const trained = () => names(visible(".chart .series", devices), "framework");
    found.all = { ...drawn(), trained: trained() };
    set(filter("framework"), "torch");
    found.torch = { ...drawn(), trained: trained() };
    set(filter("execution"), "compile");
    found.compiled = drawn();
    set(filter("framework"), "");
    set(filter("execution"), "");
    set(document.querySelector("[data-search]"), "mxnet");
    found.searched = drawn();
    set(document.querySelector("[data-search]"), "");
    found.again = { ...drawn(), trained: trained() };
    const button = all(".legend button", gemm).find((one) => one.textContent === "torch eager");
    button.click();
    found.switched = { ...drawn(), pressed: button.getAttribute("aria-pressed") };
    button.click();
    found.back = { ...drawn(), trained: trained() };
"""

_REBASE = """
    const baseline = document.querySelector("[data-baseline]");
    found.options = all("option", baseline).map((one) => one.textContent);
    found.written = { ratios: ratios(), head: relative() };
    set(baseline, BASE);
    found.rebased = { ratios: ratios(), head: relative(), hash: drawn().hash };
    found.sorted = cells(`against ${baseline.selectedOptions[0].textContent}`);
    set(baseline, "");
    found.restored = { ratios: ratios(), head: relative() };
"""

_LINK = """
    found.opened = { ...drawn(), baseline: document.querySelector("[data-baseline]").value };
    found.top = Math.abs(gemm.getBoundingClientRect().top) < innerHeight;
    gemm.querySelector(".permalink").click();
    await new Promise((done) => setTimeout(done, 50));
    found.clicked = drawn();
    location.hash = "#part-gemm-cpu-forward-float32?framework=none&text=%3Cimg%20src%3Dx%3E&odd=1";
    await new Promise((done) => setTimeout(done, 50));
    found.odd = { ...look(), images: all("img").length, framework: filter("framework").value };
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two operations in three frameworks at two sizes, and a training on two devices."""
    early = {"dispatch_s": 1e-4, "completion_s": 4e-3}
    entries = [
        *(case("gemm", "numpy", _ms(8), size=size) for size in (10, 100)),
        *(case("gemm", "torch", _ms(2), size=size) for size in (10, 100)),
        *(case("gemm", "torch", _ms(1), "compile", size=size) for size in (10, 100)),
        *(case("gemm", "mxnet", _ms(4), size=size, **early) for size in (10, 100)),
        *(case("dot", "torch", _ms(3)), case("dot", "mxnet", _ms(1))),
        *(training("torch"), training("mxnet", device="gpu:0")),
    ]
    return writers.html([read(write(tmp_path_factory.mktemp("page") / "run.json", *entries))])


def _ms(median: float) -> tuple[float, ...]:
    return (median * 1e-3,) * 5


def _used(chromium: str, folder: Path, page: str, exercise: str, **settings: Any) -> dict[str, Any]:
    found = exercised(chromium, folder, page, _LOOK + exercise, **settings)
    assert found["complaints"] == []
    assert found["requests"] == []
    return found


def test_filters_reach_charts(chromium: str, tmp_path: Path, page: str) -> None:
    """Lines, legends and columns go with the rows; an entry of a legend hides its lines."""
    found = _used(chromium, tmp_path, page, _FILTER)
    every = ["mxnet eager", "numpy eager", "torch compile", "torch eager"]
    assert found["all"]["legend"] == found["all"]["series"] == every
    assert found["torch"]["legend"] == ["torch compile", "torch eager"]
    assert found["torch"]["series"] == ["torch compile", "torch eager"]
    assert found["torch"]["columns"] == ["operation", "size", "torch eager", "torch compile"]
    assert (found["all"]["trained"], found["torch"]["trained"]) == (["mxnet", "torch"], ["torch"])
    assert found["compiled"]["series"] == ["torch compile"]
    assert found["compiled"]["columns"] == ["operation", "size", "torch compile"]
    assert found["searched"]["series"] == ["mxnet eager"]
    assert found["again"] == found["back"] == found["all"]
    assert found["switched"]["pressed"] == "false"
    assert {*found["all"]["series"]} - {*found["switched"]["series"]} == {"torch eager"}
    assert found["switched"]["legend"] == every


def test_ratios_have_any_baseline(chromium: str, tmp_path: Path, page: str) -> None:
    """A contestant as 1.0: what it did not measure has no ratio; without one all is as before."""
    found = _used(chromium, tmp_path, page, _REBASE.replace("BASE", '"case:torch eager"'))
    assert found["options"][0] == "the fastest"
    assert {*found["options"][1:]} == {"mxnet eager", "numpy eager", "torch compile", "torch eager"}
    assert found["written"]["ratios"] == {
        "gemm": [["8x", "step4"], ["2x", "step3"], ["1x", "step0"], ["4x", "step4"]],
        "dot": [["", ""], ["3x", "step3"], ["", ""], ["1x", "step0"]],
    }
    assert found["rebased"]["ratios"] == {
        "gemm": [["4x", "step4"], ["1x", "step0"], ["0.5x", "fast2"], ["2x", "step3"]],
        "dot": [["", ""], ["1x", "step0"], ["", ""], ["0.333x", "fast2"]],
    }
    assert found["written"]["head"] == ["against fastest"]
    assert found["rebased"]["head"] == ["against torch eager"]
    assert found["rebased"]["hash"] == "#?baseline=case:torch+eager"
    assert found["sorted"] == ["0.5x", "1x", "2x", "4x"] * 2
    assert found["restored"] == found["written"]


def test_a_run_is_a_baseline(chromium: str, tmp_path: Path) -> None:
    """Each case against itself in that run; the ratios that are written are within a run."""
    runs = runs_of(
        tmp_path,
        before=[case("gemm", "numpy", _ms(4)), case("gemm", "torch", _ms(2))],
        after=[case("gemm", "numpy", _ms(8)), case("gemm", "torch", _ms(1))],
    )
    found = _used(chromium, tmp_path, writers.html(runs), _REBASE.replace("BASE", '"run:0"'))
    assert found["options"][-2:] == ["before.json", "after.json"]
    written, rebased = (
        [text for text, _ in found[which]["ratios"]["gemm"]] for which in ("written", "rebased")
    )
    assert written == ["2x", "1x", "8x", "1x"]
    assert rebased == ["1x", "1x", "2x", "0.5x"]


def test_links_keep_what_was_chosen(chromium: str, tmp_path: Path, page: str) -> None:
    """A fragment opens a section with its choices; links keep these; nonsense is left alone."""
    fragment = f"#{_GEMM}?framework=torch&baseline=case%3Anumpy+eager"
    found = _used(chromium, tmp_path, page, _LINK, fragment=fragment)
    assert found["opened"]["series"] == ["torch compile", "torch eager"]
    assert found["opened"]["baseline"] == "case:numpy eager"
    assert found["top"]
    assert found["clicked"]["hash"].startswith(f"#{_GEMM}?framework=torch")
    assert found["clicked"]["series"] == ["torch compile", "torch eager"]
    assert (found["odd"]["framework"], found["odd"]["images"]) == ("", 0)
    assert found["odd"]["status"].startswith("0 of ")
