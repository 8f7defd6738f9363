"""A session has the families that it asks for, all that it names, and else the representatives."""

import pytest

from support.projects import Project
from support.tables import tabled

_FAMILIES = """
from dataclasses import replace

import pytest
from declared import doubling
from fwbench.workloads import gemm

def made(name, family, representative):
    return replace(doubling(name), family=family, representative=representative)

shown, hidden = made("shown", "mine", True), made("hidden", "mine", False)

@pytest.mark.fwbench(shown, hidden, gemm, families="representatives", sizes=8)
def test_it(case):
    case.measure()

@pytest.mark.fwbench(shown, hidden, gemm, families="mine", sizes=4)
def test_marked(case):
    case.measure()

def test_ordinary():
    pass
"""


@pytest.fixture
def families(project: Project) -> Project:
    """A project with operations in families, one of them not a representative."""
    project.write("tests/test_it.py", _FAMILIES)
    return project


def _collected(project: Project, *arguments: str) -> list[str]:
    """The case ids, and the names of other tests, that are left when others are deselected."""
    result = project.run("--collect-only", "-q", *arguments)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    nodes = (line for line in result.outlines if line.startswith("tests/"))
    return [node.rpartition("::")[2].rpartition("[")[2].split("-")[0].rstrip("]") for node in nodes]


_EVERYTHING = ["shown", "hidden", "gemm", "shown", "hidden", "test_ordinary"]


_REPRESENTATIVES = ["shown", "gemm", "shown", "hidden", "test_ordinary"]


@pytest.mark.parametrize("arguments", [(), ("tests",), (".",), ("--rootdir=.", "tests/")])
def test_a_folder_has_the_representatives(families: Project, arguments: tuple[str, ...]) -> None:
    """A marker that names a family has all of it."""
    assert _collected(families, *arguments) == _REPRESENTATIVES


def test_a_file_in_addition_to_a_folder_leaves_it_its_representatives(families: Project) -> None:
    """``fwbench run test_swish.py`` measures the suite and that file."""
    families.write("own/test_own.py", "def test_own(): pass")
    for named in ("own/test_own.py", "own/test_own.py::test_own"):
        assert _collected(families, "tests", named) == _REPRESENTATIVES
    assert _collected(families, "tests/test_it.py", "own/test_own.py") == _EVERYTHING


def test_published_sizes_have_the_operations_that_were_published(families: Project) -> None:
    families.write(
        "tests/test_it.py",
        """
        from dataclasses import replace

        import pytest
        from declared import doubling
        from fwbench.terms.presets import Sizes

        def made(name, family, representative, **presets):
            sizes = Sizes(quick=(4,), **presets)
            return replace(
                doubling(name), family=family, representative=representative, sizes=sizes
            )

        deep = made("deep", "mine", False, deepbench=(8,))
        other, unnamed = made("other", "mine", True), made("own", "", True, paper=(16,))

        @pytest.mark.fwbench(deep, other, unnamed, families="representatives")
        def test_it(case):
            case.measure()
        """,
    )
    assert _collected(families) == ["other", "own"]
    assert _collected(families, "--fw-size=paper") == ["own"]
    assert "deep" in _collected(families, "--fw-size=deepbench")
    assert "other" not in _collected(families, "--fw-size=deepbench")


def test_representatives_have_the_smallest_and_the_largest_quick_size(project: Project) -> None:
    """They show the cost of a call and of arithmetic; asking for sizes or tests selects all."""
    project.write(
        "tests/test_it.py",
        """
        import pytest
        from declared import doubling

        four = doubling("four", sizes=(2, 4, 8, 16))

        @pytest.mark.fwbench(four, families="representatives")
        def test_it(case):
            case.measure()

        @pytest.mark.fwbench(four, families="representatives", sizes=(4, 8))
        def test_marked(case):
            case.measure()
        """,
    )

    def sizes(*arguments: str) -> list[str]:
        result = project.run("--collect-only", "-q", *arguments)
        return [line.rpartition("-")[2].rstrip("]") for line in result.outlines if "::" in line]

    assert sizes() == ["2", "16", "4", "8"]
    assert sizes("--fw-size=quick") == ["2", "4", "8", "16"] * 2
    assert sizes("-k", "four") == ["2", "4", "8", "16", "4", "8"]
    assert sizes("--fw-size=4") == ["4", "4"]


@tabled
def test_what_is_named_is_all_there(families: Project, arguments: tuple[str, ...]) -> None:
    """A file, a test, ``-k`` and ``-m`` ask for themselves, representatives or not."""
    result = _collected(families, *arguments)
    assert result == [name for name in _EVERYTHING if name in result]
    assert result.count("hidden") == 2


@tabled
def test_families_are_all_there(families: Project, requested: str, names: tuple[str, ...]) -> None:
    """The command line wins over markers; tests of the user's own stay."""
    assert _collected(families, f"--fw-family={requested}") == [*names]


def test_the_ini_file_may_ask_for_families(families: Project) -> None:
    """It does for every session; markers win over it, and the command line over both."""
    ini = families.path / "pytest.ini"
    ini.write_text("[pytest]\nfw_family = linalg\n", encoding="utf-8")
    assert _collected(families) == ["gemm", "shown", "hidden", "test_ordinary"]
    assert _collected(families, "--fw-family=fft") == ["test_ordinary"]


def test_an_unknown_family_is_refused_with_those_there_are(families: Project) -> None:
    result = families.run("--fw-family=linalg,min")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = (line for line in result.errlines if line.startswith("ERROR"))
    assert "unknown family 'min'; known: creation, " in line
    assert line.endswith("overhead, models, mine, all, representatives. Did you mean 'mine'?")


def test_others_are_deselected_and_workers_run_what_is_left(families: Project) -> None:
    families.run().assert_outcomes(passed=5, deselected=2)
    families.run("--fw-family=mine", "--fw-launches=2").assert_outcomes(passed=5, deselected=2)
