"""Sections, charts and studies are added by a file each, also from another package."""

import subprocess
from pathlib import Path

import pytest

from fwbench.report import charts, sections
from fwbench.report.discovery import extensions
from support.launched_runs import write
from support.projects import Project
from support.reports import case
from support.tables import tabled

_USAGE_ERROR, _FAILED = 2, 3

_CHART = '''
"""Bytes a second against size."""

from fwbench.report.drawing import lines
from fwbench.report.drawing.chart import Point

SECTION = "operations"
ORDER = 15


def draw(group):
    """A line of rates for each framework and execution."""
    series = {}
    for name, record in group.records:
        rate = 1e9 / record.median_s
        series.setdefault(name, []).append(Point(record.facts.size, rate, rate, rate))
    return lines.draw(f"{group.title}: my rate", series, "size", "a second", "{:.3g}".format)
'''

_SECTION = '''
"""How many cases there are."""

from fwbench.report.section import Row, Section, TableCell

ORDER = 45


def sections(runs, names):
    """A section with the number of cases of each run."""
    rows = [
        Row([TableCell(name), TableCell(str(len(run.records)), len(run.records))])
        for run, name in zip(runs, names, strict=True)
    ]
    return [Section("my counts", ("run", "cases"), rows)]
'''

_STUDY = '''
"""A study of its own."""

from fwbench.report.section import Row, Section, TableCell

ORDER = 20
OPTION = "mine"
HELP = "beside figures of mine"


def sections(runs):
    """A section that says how many runs there are."""
    return [Section("my study", ("runs",), [Row([TableCell(str(len(runs)))])])]
'''


def report(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.python("-m", "fwbench", "report", "run.json", *arguments)


@pytest.fixture
def measured(project: Project) -> Project:
    """A project with a run of one operation, by two frameworks: one bar alone is not drawn."""
    write(project.path / "run.json", case(), case(framework="torch"))
    return project


def test_extensions_from_another_package(measured: Project) -> None:
    for name, source in (("chart", _CHART), ("section", _SECTION), ("study", _STUDY)):
        group = "fwbench.studies" if name == "study" else f"fwbench.{name}s"
        measured.install(f"my-{name}", f"my_{name}", source, group=group)
    help_text = report(measured, "--help").stdout
    assert "--mine" in help_text
    assert "beside figures of mine" in help_text
    result = report(measured, "-o", "report.html", "--markdown", "without.md")
    assert result.returncode == 0, result.stderr
    assert report(measured, "--markdown", "with.md", "--mine", "--mine").returncode == 0
    page, without, with_study = (
        (measured.path / name).read_text(encoding="utf-8")
        for name in ("report.html", "without.md", "with.md")
    )
    builtin_caption, mine = ("time at size 100", "my rate")
    assert 0 < page.index(f"<figcaption>{builtin_caption}") < page.index(f"<figcaption>{mine}")
    assert 'id="part-my-counts"' in page
    assert "| run | cases |\n| --- | ---: |\n| run.json | 2 |" in without
    assert without.index("### gemm cpu") < without.index("### my counts")
    assert "my study" not in without
    assert with_study.count("### my study") == 1


@pytest.mark.parametrize("group", ["fwbench.charts", "fwbench.sections", "fwbench.studies"])
@tabled
def test_what_cannot_be_used_is_named(
    measured: Project, group: str, source: str, message: str
) -> None:
    measured.install("mine", "my_module", source, package="my-package", group=group)
    result = report(measured, "--markdown", "report.md")
    assert result.returncode == _FAILED
    (line,) = result.stderr.splitlines()
    assert line.startswith("fwbench: error: the package my-package names my_module in " + group)
    assert message in line
    assert not (measured.path / "report.md").exists()
    assert measured.python("-m", "fwbench", "env", "list").returncode == 0


def test_every_module_of_sections_is_found() -> None:
    folder = Path(str(sections.__file__)).parent
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    modules = extensions(sections, "fwbench.nothing")
    assert {module.__name__.rpartition(".")[2] for module in modules} == files
    assert len({module.ORDER for module in modules}) == len(modules)


def test_every_chart_has_its_place() -> None:
    places = {(drawing.section, drawing.order) for drawing in charts._CHARTS}
    assert len(places) == len(charts._CHARTS)
