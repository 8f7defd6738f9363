"""Charts as pictures: ``fwbench report --png``."""

import html
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from fwbench import cli
from fwbench.cli import report
from fwbench.report import sections
from fwbench.report.drawing.chart import png
from fwbench.report.model import read
from fwbench.report.section import Section
from support.launched_runs import plain, write
from support.reports import case, run_of, training
from support.section_parts import CEILINGS, as_run, compared, on_the_roof

_USAGE_ERROR = 2
_FAILED = 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case(), case("dot", "torch"))
    return tmp_path


def test_every_chart_is_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [*on_the_roof(), case("gemm", "torch", size=1000), training()]
    gate = as_run(compared().to_json())["fwbench"]["gate"]
    write(folder / "run.json", *made, ceilings=CEILINGS, gate=gate)
    assert cli.main(["report", "run.json", "--png", "new/charts"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    result = sections.details([read(folder / "run.json")])
    drawn = [chart for section in result for chart in section.charts]
    files = sorted((folder / "new" / "charts").iterdir())
    assert len(files) == len(drawn) >= 9
    names = {file.name for file in files}
    assert {"roofline-Fake-CPU-float32.png", "head-json-against-base-json-verdicts.png"} <= names
    assert "gemm-cpu-forward-float32-time-at-size-1000.png" in names
    assert "training-lenet-cpu-float32-200-training-loss-after-each-epoch.png" in names
    # Twice as large as on a page, above it one to three rows of a title, and a margin below.
    rows = [42 + 18 * number for number in range(3)]
    sizes = {(2 * x, 2 * (y + above)) for x, y in (chart.size for chart in drawn) for above in rows}
    for file in files:
        assert f"written: {file.relative_to(folder)}" in captured.out
        with Image.open(file) as picture:
            assert (picture.format, picture.size in sizes) == ("PNG", True)
            assert len(picture.getcolors(2**20)) > 50, "something is drawn in it"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The SVG that the converter is given."""
    svgs: list[bytes] = []

    def convert(svg: bytes, **_: Any) -> bytes:
        svgs.append(svg)
        return b""

    monkeypatch.setitem(sys.modules, "cairosvg", SimpleNamespace(svg2png=convert))
    return svgs


def test_pictures_of_one_title_are_numbered(folder: Path) -> None:
    """Figures in brackets, which differ from run to run, are in no name."""
    chart = sections.details([run_of(case("add"), case("add", "torch"))])[1].charts[0]
    titles = ("add: loss (0.1 apart)", "add: loss (0.2 apart)", "other")
    charts = [replace(chart, title=title) for title in titles]
    part = Section("add", [], [], charts)
    report._draw(folder, [part, replace(part, charts=charts[:1])])
    names = {file.name for file in folder.glob("*.png")}
    assert names == {"add-loss.png", "add-loss-2.png", "add-other.png", "add-2-loss.png"}


def test_pictures_have_titles(given: list[bytes]) -> None:
    """Without the page around them nothing else says what they show; long ones are wrapped."""
    made = run_of(case("add", size=1000), case("add", "torch", size=1000))
    detail = next(part for part in sections.details([made]) if part.charts)
    png(detail.charts[0])
    long = "<add> " * 12
    png(replace(detail.charts[0], title=long))
    above = (svg.decode().partition("<svg y=")[0] for svg in given)
    first, second = (re.findall("<text[^>]*>([^<]*)</text>", svg) for svg in above)
    assert first == ["add cpu forward float32: time at size 1,000"]
    assert [len(html.unescape(row).split()) for row in second] == [9, 3]


def test_pictures_say_what_is_pale(given: list[bytes]) -> None:
    """On a page a note does."""
    for condition in ("clean", "contended"):
        made = run_of(case("add"), case("add", "torch", condition=condition))
        part = next(part for part in sections.details([made]) if part.charts)
        png(part.charts[0])
    assert [b"(pale:" in svg for svg in given] == [False, True]


def test_pictures_have_all_colours(given: list[bytes]) -> None:
    """The page's style sheet says some of them, and the converter does not see it."""
    made = run_of(*on_the_roof(), training(), ceilings=CEILINGS)
    for detail in sections.details([made]):
        for chart in detail.charts:
            png(chart)
    assert len(given) >= 9
    assert [svg for svg in given if b"var(" in svg] == []
    assert [svg for svg in given if b".pygal-chart .axis" not in svg] == []


def test_pictures_are_of_the_chosen_cases(folder: Path) -> None:
    (folder / "charts").mkdir()
    arguments = ["-k", "dot", "--png", "charts", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == 0
    assert [file.name for file in (folder / "charts").iterdir()] == [
        "dot-cpu-forward-float32-time-at-size-100.png"
    ]
    assert (folder / "report.csv").exists()


def test_a_report_without_a_chart_has_no_picture(folder: Path) -> None:
    write(folder / "plain.json", plain())
    assert cli.main(["report", "plain.json", "--png", "charts"]) == 0
    assert [*(folder / "charts").iterdir()] == []


@pytest.mark.parametrize("where", ["taken", "taken/charts", "/proc/charts"])
def test_a_folder_that_cannot_be_made_is_said_first(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    (folder / "taken").write_text("a file", encoding="utf-8")
    assert cli.main(["report", "unread.json", "-o", "x.html", "--png", where]) == _FAILED
    captured = capsys.readouterr()
    assert where in captured.err
    assert "unread.json" not in captured.err
    assert captured.out == ""
    assert not (folder / "x.html").exists()
    assert (folder / "taken").read_text(encoding="utf-8") == "a file"


@pytest.mark.skipif(sys.platform != "linux", reason="root, too, cannot write to /proc on Linux")
def test_a_folder_that_cannot_be_written_to_is_said_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["report", "unread.json", "-o", "x.html", "--png", "/proc/self"]
    assert cli.main(arguments) == _FAILED
    captured = capsys.readouterr()
    assert "cannot write" in captured.err
    assert "unread.json" not in captured.err
    assert not (folder / "x.html").exists()


def test_a_picture_that_cannot_be_written_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "charts" / "gemm-cpu-forward-float32-time-at-size-100.png").mkdir(parents=True)
    assert cli.main(["report", "run.json", "--png", "charts"]) == _FAILED
    assert (
        "cannot write charts/gemm-cpu-forward-float32-time-at-size-100.png"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("lacks", ["CairoSVG", "cairo"])
def test_without_the_converter_it_is_said_how_to_get_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    if lacks == "CairoSVG":
        monkeypatch.setitem(sys.modules, "cairosvg", None)
    else:
        (folder / "cairosvg.py").write_text(
            'raise OSError("no library called cairo was found")', encoding="utf-8"
        )
        monkeypatch.syspath_prepend(folder)
    assert cli.main(["report", "run.json", "--png", "charts"]) == _USAGE_ERROR
    output = capsys.readouterr().err
    assert "--png needs CairoSVG" in output
    assert "pip install 'fwbench[png]'" in output
    assert "cairo itself" in output
    assert not (folder / "charts").exists()
