"""docs/extending.md, followed to the letter: every addition takes as many places as it says."""

import importlib.util
import re
import shutil
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from fwbench.terms.names import GROUP
from support.launched_runs import write
from support.projects import Project, measuring
from support.reports import case

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def _blocks(section: str) -> list[tuple[str, str]]:
    """The code blocks of a section, each with the file that the sentence before it ends with."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", _PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`:\n\n```(?:diff|python|toml)\n(.*?)```", text, re.DOTALL)


def _source(section: str, name: str) -> str:
    """The one block of a section that is this file."""
    (source,) = [source for file, source in _blocks(section) if file == name]
    return source


def _copied(project: Project) -> Path:
    """A copy of fwbench in the project, which is imported instead of the one that is installed."""
    project.forget_manifests()
    # With its bytecode: several processes would compile it at the same time.
    return shutil.copytree(_ROOT / "src" / "fwbench", project.packages / "fwbench")


def _reported(project: Project) -> str:
    """The HTML of a report of two cases, as a page has no chart of a single value."""
    write(project.path / "run.json", case(), case(framework="torch"))
    done = project.python("-m", "fwbench", "report", "run.json", "-o", "report.html")
    assert done.returncode == 0, done.stderr
    return (project.path / "report.html").read_text(encoding="utf-8")


def _captions(page: str) -> list[str]:
    """The titles of the charts of a report."""
    return re.findall(r"<figcaption>([^<]*)", page)


def _install(project: Project, section: str, framework: str = "mine_fwbench.py") -> None:
    """Install the module of a section with the entry point that the page gives it."""
    table = tomllib.loads(_source(section, "pyproject.toml"))["project"]["entry-points"]
    ((group, points),) = table.items()
    ((name, value),) = points.items()
    project.install(name, value, _source(section, framework), group=group)


def _apply(project: Project, edits: list[tuple[str, str]]) -> None:
    """Add each line at the end of the family, or of the table, of its file in a copy of fwbench."""
    packages = _copied(project).parent
    for name, added in edits:
        file = packages / Path(name).relative_to("src")
        text = file.read_text(encoding="utf-8")
        form = r"^(?:ACTIVATIONS|OPERATIONS)\b.*?\n(?=[)}])" if file.suffix == ".py" else r".+"
        (table,) = re.findall(form, text, re.DOTALL | re.MULTILINE)
        line = added.removeprefix("+")
        file.write_text(text.replace(table, table + line), encoding="utf-8")


def test_an_operation_takes_a_definition_and_a_line_for_each_framework(project: Project) -> None:
    """In a copy of fwbench the suite has the cases, and every framework computes them rightly."""
    edits = _blocks("An operation")
    frameworks = {
        point.name
        for point in metadata.entry_points(group=GROUP)
        if point.value.startswith("fwbench.")
    }
    assert len(edits) == len({file for file, _ in edits}) == 1 + len(frameworks)
    assert all(len(block.splitlines()) == 1 for _, block in edits)
    _apply(project, edits)
    shutil.copy(_ROOT / "benchmarks" / "test_activations.py", project.path)
    installed = sorted(name for name in frameworks if importlib.util.find_spec(name))
    result = project.run_exactly(
        *("test_activations.py", "--benchmark-disable", "-k", "tanhshrink", "--fw-device=cpu"),
        *(
            f"--fw={','.join(installed)}",
            "--fw-execution=eager,graph",
            "--junitxml=junit.xml",
            "-rs",
        ),
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    outcomes = project.outcomes()
    for name in installed:
        kinds = {
            (direction, outcome.kind)
            for direction in ("forward", "backward")
            for case_id, outcome in outcomes.items()
            if f"[tanhshrink-{name}-" in case_id and f"-{direction}-" in case_id
        }
        gradient = "skipped" if name in {"numpy", "onnxruntime"} else "passed"
        assert kinds == {("forward", "passed"), ("backward", gradient)}, name
    assert not [name for name in outcomes if "tanhshrink" not in name]


def test_a_line_that_is_left_out_is_a_gap(project: Project) -> None:
    """The definition alone is enough for the suite to name whom it is not written for."""
    definition, *_ = _blocks("An operation")
    _apply(project, [definition])
    shutil.copy(_ROOT / "benchmarks" / "test_activations.py", project.path)
    result = project.run("test_activations.py", "-k", "tanhshrink", "-rs")
    assert result.ret == pytest.ExitCode.OK
    assert "fwbench has no numpy implementation of tanhshrink" in str(result.stdout)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_what_an_operation_can_say(project: Project, framework: str) -> None:
    """Several results, a shape, a parameter, a layout: each is right in both directions."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    project.write("test_pooling.py", _source("What an operation can say", "test_pooling.py"))
    result, records = project.measure(
        *("--fw-direction=forward,backward", "--fw-size=n1h4w4c2"), fw=framework
    )
    result.assert_outcomes(passed=1 if framework == "numpy" else 2, skipped=framework == "numpy")
    facts = records[f"pools-{framework}-cpu-eager-forward-float32-n1h4w4c2"]["extra_info"]
    assert (facts["fwbench"]["size"], facts["fwbench"]["shape"]) == (48, "n1h4w4c2")


_CASES = measuring("gemm, tanh, sizes=(8,)", "from fwbench.workloads import gemm, tanh")


def test_a_framework_is_one_module(project: Project) -> None:
    assert [file for file, _ in _blocks("A framework")] == ["mine_fwbench.py", "pyproject.toml"]
    _install(project, "A framework")
    project.write("test_it.py", _CASES)
    result, records = project.measure(fw="mine,numpy")
    result.assert_outcomes(passed=4)
    facts = records["gemm-mine-cpu-eager-forward-float32-8"]["extra_info"]["fwbench"]
    assert facts["framework"] == "mine"
    assert facts["max_relative_error"] <= facts["tolerance"]


def test_the_framework_conforms(project: Project) -> None:
    _install(project, "A framework")
    result = project.run_exactly("--pyargs", "fwbench.testing.conformance", "--fw=mine")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert result.parseoutcomes()["passed"] > 12


def test_a_toggle_is_one_attribute(project: Project) -> None:
    """The class alone names it: it is an option, a part of ids and records, and a gap of others."""
    assert _source("A framework", "mine_fwbench.py").count('Toggle("storage"') == 1
    _install(project, "A framework")
    project.write("test_it.py", _CASES)
    result, records = project.measure(
        "--fw-toggle=storage=rows,columns", "-k", "gemm", fw="mine,numpy"
    )
    counts = result.parseoutcomes()
    assert (counts["passed"], counts["skipped"]) == (2, 2)
    result.stdout.fnmatch_lines(["*numpy has no toggle storage"])
    for value, order in (("rows", "C"), ("columns", "F")):
        entry = records[f"gemm-mine-cpu-eager-forward-float32-8-storage:{value}"]
        toggles = entry["extra_info"]["fwbench"]["toggles"]
        assert (toggles["storage"], toggles["order"]) == (value, order)
    refused = project.run("--fw-toggle=storage=diagonal", fw="mine")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown value of the toggle storage 'diagonal'" in str(refused.stderr)


def test_a_chart_is_one_module(project: Project) -> None:
    assert [file for file, _ in _blocks("A chart")] == ["calls_chart.py", "pyproject.toml"]
    _install(project, "A chart", "calls_chart.py")
    builtin, added, *_ = _captions(_reported(project))
    assert builtin.startswith("time at size")
    assert added.startswith("calls a second")


def test_a_section_is_one_module(project: Project) -> None:
    assert [file for file, _ in _blocks("A section")] == ["counts_section.py", "pyproject.toml"]
    _install(project, "A section", "counts_section.py")
    assert 'id="part-number-of-cases"' in _reported(project)
