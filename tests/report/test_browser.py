"""The report in a real Chromium: sorting, filters, charts, baselines and links work.

Nothing complains, and nothing is requested from anywhere.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fwbench.report import history, writers
from fwbench.report.section import Section
from fwbench_extras.studies import report_2020
from support.browser import BROWSERS, Browser, executable
from support.histories import line
from support.launched_runs import plain
from support.reports import case, named, rounds_of, run_of, runs_of, training
from support.section_parts import CEILINGS, compared

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="headless Chromium is driven on Linux alone"
)

_GEMM = "part-gemm-cpu-forward-float32"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The browser; without one these tests fail, since nothing else says that the page works."""
    seen = executable()
    if seen is None:
        pytest.fail(f"there is no browser ({', '.join(BROWSERS)}); on Debian: apt install chromium")
    started = Browser(seen, tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def report() -> str:
    """A page with operations on two devices, a training and a plain benchmark."""
    run = run_of(
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
    return writers.html([run])


@pytest.fixture(scope="module")
def full() -> str:
    """A page with a part of every kind, with notes, and with a file that could not be read."""
    work: dict[str, Any] = {"flops": 2e9, "bytes": 1e8, "attainable_share": 0.5}
    runs = [
        run_of(
            *(case("gemm", "numpy", _ms(size / 10), size=size, **work) for size in (100, 1000)),
            case("gemm", "torch", _ms(2.0), dispatch_s=1e-4, completion_s=2e-3, **work),
            case("gemm", "torch", _ms(1.0), "compile", contended=True, **work),
            *(case("tanh", name, _ms(1.0), size=20000) for name in ("tensorflow", "mxnet")),
            *(training(), training(execution="compile"), training(size=100)),
            *(training("mxnet"), training("tensorflow", "graph")),
            training(device="gpu:0", peak_device_memory_bytes=2**30),
            training("jax", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
            plain(),
            ceilings=CEILINGS,
            gate={"verdicts": {}, "comparison": compared(notes=["the driver differs"]).to_json()},
            missing=[{"nodeid": "x", "framework": "jax", "why": "deselected"}],
            absent={"jax": "not installed"},
        )
    ]
    before = [*report_2020.sections(runs), *_history(2.0)]
    return writers.html(runs, ["bad.json is empty"], before)


def _history(factor: float) -> list[Section]:
    """Two operations with a run a day; after six of them times change, and NumPy is upgraded."""
    times_s = [1e-3] * 6 + [1e-3 * factor] * 6
    versions = ((0, "1.0"), (6, "1.1"))
    return history.sections([line(times_s, name, versions) for name in ("gemm", "dot")])


def _ms(median: float) -> Sequence[float]:
    """The seconds of three launches with this median in milliseconds."""
    return [median * share * 1e-3 for share in (0.9, 1.0, 1.1)]


@pytest.fixture(scope="module")
def page() -> str:
    """Two operations in three frameworks, one at three sizes, and a training on two devices."""
    early = {"dispatch_s": 1e-4, "completion_s": 4e-3}
    run = run_of(
        *(case("gemm", "numpy", _ms(8.0), size=size) for size in (10, 100, 1000)),
        *(case("gemm", "torch", _ms(2.0), size=size) for size in (10, 100, 1000)),
        *(case("gemm", "torch", _ms(1.0), "compile", size=size) for size in (10, 100, 1000)),
        *(case("gemm", "mxnet", _ms(4.0), size=size, **early) for size in (10, 100, 1000)),
        *(case("dot", "torch", _ms(3.0)), case("dot", "mxnet", _ms(1.0))),
        *(training("torch"), training("mxnet", device="gpu:0")),
    )
    return writers.html([run])


def _script(*names: str, **constants: str) -> str:
    """Exercises of the folder browser, one after the other, after constants that they refer to."""
    folder = Path(__file__).with_name("browser")
    known = [
        f"const {name} = {json.dumps(value)};".replace("</", "<\\/")
        for name, value in constants.items()
    ]
    return "\n".join([*known, *[(folder / f"{name}.js").read_text("utf-8") for name in names]])


def _used(browser: Browser, page: str, exercise: str, **settings: Any) -> dict[str, Any]:
    """Use a page, and check that nothing complained and nothing was requested."""
    seen = browser.use(page, exercise, **settings)
    assert (seen["complaints"], seen["requests"]) == ([], [])
    return seen


def test_tables_are_sorted(browser: Browser, report: str) -> None:
    seen = _used(browser, report, _script("sort"))
    ascending = ["1 ms", "2 ms", "10 ms", "20 ms", "3 s", "20 s"]
    assert seen["median"] == [
        {"cells": ascending, "aria": "ascending"},
        {"cells": ascending[::-1], "aria": "descending"},
    ]
    assert seen["size"] == {"cells": ["100"] * 3 + ["1,000"] * 3, "aria": "ascending"}
    names = ["numpy eager"] * 2 + ["torch compile"] * 2 + ["torch eager"] * 2
    assert [entry["cells"] for entry in seen["case"]] == [names, names[::-1]]
    up, down = ([cell.partition("x")[0] for cell in order["cells"]] for order in seen["against"])
    assert (up, down) == (["", "", "", "", "0.01", "2.00"], ["2.00", "0.01", "", "", "", ""])
    assert seen["marked"] == ["against eager"]


def test_rows_and_parts_are_chosen(browser: Browser, report: str) -> None:
    seen = _used(browser, report, _script("filter"))
    overview, gemm, gpu, dot = (
        "part-overview-cpu-forward-float32",
        "part-gemm-cpu-forward-float32",
        "part-dot-gpu-0-forward-float32",
        "part-dot-cpu-forward-float32",
    )
    lenet, others = "part-training-lenet-cpu-float32-200", "part-other-benchmarks"
    assert seen["before"]["sections"] == [overview, gemm, gpu, dot, lenet, others]
    assert seen["before"]["status"] == "12 of 12 rows"
    assert seen["torch"]["sections"] == [overview, gemm, gpu, lenet]
    assert seen["torch"]["status"] == "8 of 12 rows"
    assert len(seen["torch"]["rows"]) == 8
    assert all("torch" in row for row in seen["torch"]["rows"] if overview not in row)
    assert seen["torch"]["index"] == [
        "overview cpu forward float32",
        "gemm cpu forward float32",
        "dot gpu:0 forward float32",
        "training lenet cpu float32 200",
    ]
    assert seen["compiled"]["rows"][2:] == [f"{gemm}: torch compile"] * 2
    assert seen["compiled"]["status"] == "4 of 12 rows"
    assert seen["gpu"]["rows"] == [f"{gpu}: torch eager"]
    assert seen["after"] == seen["before"]


def test_cases_are_searched(browser: Browser, report: str) -> None:
    seen = _used(browser, report, _script("search"))
    assert len(seen["row"]["rows"]) == 6
    assert (seen["none"]["sections"], seen["none"]["status"]) == ([], "0 of 12 rows")
    assert seen["part"]["sections"] == [
        "part-overview-cpu-forward-float32",
        "part-gemm-cpu-forward-float32",
    ]
    assert seen["part"]["status"] == "7 of 12 rows"
    # A form that is sent loads the page again: filters and order would be lost.
    assert seen["left"] is False


def test_points_show_their_values(browser: Browser, page: str) -> None:
    seen = _used(browser, page, _script("point"))
    assert seen["before"].strip() == ""
    assert seen["shown"]
    tooltip = " ".join(seen["tooltip"])
    for expected in ("torch eager", "10", "2 ms", "3 launches, 1.8 ms to 2.2 ms"):
        assert expected in tooltip
    assert len(seen["charts"]) >= 5
    assert all(seen["charts"])


@pytest.mark.parametrize(
    "name", ["</script><img src=x onerror=alert(1)>", "</style></svg><i onload='alert(1)'>x</i>"]
)
def test_names_do_nothing(browser: Browser, name: str) -> None:
    """A browser reads scripts in pictures as another parser does: names are text to it, too."""
    seen = _used(browser, writers.html(*named(name)), _script("look", NAME=name))
    assert (seen["tags"], seen["handlers"]) == (0, 0)
    assert seen["shown"]
    assert not [entry for entry in seen["scripts"] if entry.startswith("alert")]


def test_a_thousand_cases_are_painted_within_a_second(browser: Browser) -> None:
    """A fifth of a second on an idle machine of two processors."""
    entries = [
        case(f"work{i}", name, _ms(size), size=size, family=f"family{i % 8}")
        for i in range(125)
        for size in (100, 1000)
        for name in ("numpy", "torch", "tensorflow", "mxnet")
    ]
    painted = "seen.ms = performance.getEntriesByType('paint').map((entry) => entry.startTime);"
    wait = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));"
    seen = _used(browser, writers.html([run_of(*entries)]), f"{wait} {painted}")
    assert 0 < max(seen["ms"]) < 1000


def test_a_page_without_a_chart_works(browser: Browser) -> None:
    for entries in ([plain()], []):
        seen = _used(browser, writers.html([run_of(*entries)]), "seen.title = document.title;")
        assert seen["title"] == "fwbench report"


def test_a_full_page_asks_for_nothing(browser: Browser, full: str) -> None:
    seen = _used(browser, full, _script("use"))
    titles = " ".join(seen["sections"])
    for part in ("against", "2020", "history", "Lasting", "gemm", "roofline", "training", "other"):
        assert part in titles
    assert len(seen["charts"]) >= 20
    assert all(seen["charts"])
    assert seen["hidden"], "an entry of a legend hides what it stands for"
    shown, every = seen["status"].removesuffix(" rows").split(" of ")
    assert shown == every


def test_what_has_notes_alone_is_shown(browser: Browser) -> None:
    """The answer that there was no shift stays until something is chosen."""
    made = writers.html([run_of(case())], before=_history(1.0))
    assert "No shift was found." in made
    seen = _used(browser, made, "seen.sections = look().sections;")
    assert "part-Lasting-shifts" in seen["sections"]


def test_a_history_alone_works(browser: Browser) -> None:
    seen = _used(browser, writers.html([], before=_history(2.0)), _script("use"))
    assert len(seen["sections"]) == 2


def test_the_legend_of_a_history_is_that_of_all_its_charts(browser: Browser) -> None:
    """It stays where frameworks are chosen, and hides a line of every chart."""
    times_s = [1e-3, 2e-3]
    cases = [line(times_s, name, framework=name) for name in ("numpy", "torch")]
    made = writers.html([], before=history.sections(cases))
    seen = _used(browser, made, _script("shared"))
    assert (seen["charts"], seen["within"]) == (2, 0)
    assert seen["legend"] == ["lower quartile", "median", "upper quartile"]
    assert seen["torch"] == seen["legend"]
    assert (seen["medians"], seen["switched"]) == (2, 0)


@pytest.mark.parametrize(
    ("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 26)")]
)
def test_everyone_can_read_it(browser: Browser, full: str, scheme: str, background: str) -> None:
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    seen = _used(browser, full, _script("axe"), library=axe, scheme=scheme)
    assert seen["background"] == background
    assert seen["wrong"] == []
    assert {"color-contrast", "label", "select-name", "role-img-alt"} <= {*seen["right"]}


def test_filters_reach_charts(browser: Browser, page: str) -> None:
    seen = _used(browser, page, _script("choices", "drawn"))
    every = ["mxnet eager", "numpy eager", "torch compile", "torch eager"]
    assert seen["all"]["legend"] == seen["all"]["series"] == every
    assert seen["torch"]["legend"] == ["torch compile", "torch eager"]
    assert seen["torch"]["series"] == ["torch compile", "torch eager"]
    assert seen["torch"]["columns"] == ["operation", "size", "torch eager", "torch compile"]
    assert (seen["all"]["trained"], seen["torch"]["trained"]) == (["mxnet", "torch"], ["torch"])
    assert seen["compiled"]["series"] == ["torch compile"]
    assert seen["compiled"]["columns"] == ["operation", "size", "torch compile"]
    assert seen["searched"]["series"] == ["mxnet eager"]
    assert seen["again"] == seen["back"] == seen["all"]
    assert seen["switched"]["pressed"] == "false"
    assert {*seen["all"]["series"]} - {*seen["switched"]["series"]} == {"torch eager"}
    assert seen["switched"]["legend"] == every


def test_ratios_have_any_baseline(browser: Browser, page: str) -> None:
    seen = _used(browser, page, _script("choices", "rebase", BASE="case:torch eager"))
    assert seen["options"][0] == "the fastest"
    assert {*seen["options"][1:]} == {"mxnet eager", "numpy eager", "torch compile", "torch eager"}
    assert seen["written"]["ratios"] == {
        "gemm": [["4x", "step4"], ["8x", "step4"], ["2x", "step3"], ["1x", "step0"]],
        "dot": [["1x", "step0"], ["", ""], ["3x", "step3"], ["", ""]],
    }
    assert seen["rebased"]["ratios"] == {
        "gemm": [["2x", "step3"], ["4x", "step4"], ["1x", "step0"], ["0.5x", "fast2"]],
        "dot": [["0.333x", "fast2"], ["", ""], ["1x", "step0"], ["", ""]],
    }
    assert seen["written"]["head"] == ["against fastest"]
    assert seen["rebased"]["head"] == ["against torch eager"]
    assert seen["rebased"]["hash"] == "#?baseline=case:torch+eager"
    assert seen["sorted"] == ["0.5x", "1x", "2x", "4x"] * 3
    assert seen["restored"] == seen["written"]


def test_a_run_is_a_baseline(browser: Browser) -> None:
    runs = runs_of(
        before=[case("gemm", "numpy", _ms(4.0)), case("gemm", "torch", _ms(2.0))],
        after=[case("gemm", "numpy", _ms(8.0)), case("gemm", "torch", _ms(1.0))],
    )
    seen = _used(browser, writers.html(runs), _script("choices", "rebase", BASE="run:0"))
    assert seen["options"][-2:] == ["before.json", "after.json"]
    written, rebased = (
        [text for text, _ in seen[which]["ratios"]["gemm"]] for which in ("written", "rebased")
    )
    assert written == ["2x", "1x", "8x", "1x"]
    assert rebased == ["1x", "1x", "2x", "0.5x"]


def test_what_is_too_close_has_one_shade(browser: Browser) -> None:
    """Also against another baseline: medians repeat to within a factor of 2.5 here."""
    twice = {"cases": 12, "sd": 0.3, "pairs": {}}
    entries = [
        rounds_of(case("gemm", *each)) for each in (("numpy", _ms(2.0)), ("torch", _ms(3.0)))
    ]
    page = writers.html([run_of(*entries, revisits={"numpy": twice, "torch": twice})])
    seen = _used(browser, page, _script("choices", "rebase", BASE="case:torch eager"))
    assert seen["written"]["ratios"]["gemm"] == [["1x", "step0"], ["1.5x", "step0"]]
    assert seen["rebased"]["ratios"]["gemm"] == [["0.667x", "step0"], ["1x", "step0"]]


def test_ratios_of_cases_that_took_turns_are_those_of_visits(browser: Browser) -> None:
    """Against any baseline, and so is what they may be off by; their medians are 3x apart."""
    visits = {"numpy": 1.2e-3, "torch": 1e-3}
    entries = []
    for name, ms in (("numpy", 3.0), ("torch", 1.0)):
        turns = {"row": "r", "visits_s": [visits[name]] * 9}
        entries.append(rounds_of(case("gemm", name, _ms(ms), turns=turns)))
    page = writers.html([run_of(*entries)])
    seen = _used(browser, page, _script("choices", "rebase", BASE="case:numpy eager"))
    assert seen["written"]["ratios"]["gemm"] == [["1.2x", "step1"], ["1x", "step0"]]
    assert seen["rebased"]["ratios"]["gemm"] == [["1x", "step0"], ["0.833x", "fast1"]]


def test_upper_bounds_have_no_ratio(browser: Browser) -> None:
    """In a row that is not decided, whatever baseline is chosen."""
    known = case("gemm", "numpy", _ms(4.0)), case("gemm", "torch", _ms(2.0))
    bounds = (case("gemm", name, _ms(1.0), condition="contended") for name in ("jax", "mxnet"))
    made = writers.html([run_of(*known, *bounds)])
    seen = _used(browser, made, _script("choices", "rebase", BASE="case:torch eager"))
    times = [["≤ 1 ms", ""], ["≤ 1 ms", ""], ["4 ms", ""], ["2 ms", ""]]
    assert seen["written"]["ratios"]["gemm"] == times
    assert seen["rebased"]["ratios"]["gemm"] == [
        ["", ""],
        ["", ""],
        ["2x", "step3"],
        ["1x", "step0"],
    ]


def test_links_keep_what_was_chosen(browser: Browser, page: str) -> None:
    fragment = f"#{_GEMM}?framework=torch&baseline=case%3Anumpy+eager"
    seen = _used(browser, page, _script("choices", "link"), fragment=fragment)
    assert seen["opened"]["series"] == ["torch compile", "torch eager"]
    assert seen["opened"]["baseline"] == "case:numpy eager"
    assert seen["top"]
    assert seen["clicked"]["hash"].startswith(f"#{_GEMM}?framework=torch")
    assert seen["clicked"]["series"] == ["torch compile", "torch eager"]
    assert (seen["odd"]["framework"], seen["odd"]["images"]) == ("", 0)
    assert seen["odd"]["status"].startswith("0 of ")
