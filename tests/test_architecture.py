"""The order of the code: imports run down, functions are short, and only one folder knows pytest.

Imports are read from the source, those within functions and for type checking included: what
one module needs of another is a dependency, whenever it is imported.
"""

import ast
import importlib.util
import re
import statistics
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fwbench.gangs import launch
from fwbench.processes import process, session
from fwbench.workers import process as workers

_ROOT = Path(__file__).parents[1]
_SOURCE = _ROOT / "src"

#: From top to bottom: a room imports from those below it, and from itself.
_PACKAGES = (
    *("__main__", "cli", "testing", "plugin", "report", "claims", "gate"),
    *("gangs", "ceilings"),
    *("workers", "cases", "records", "measure", "frameworks", "turns", "processes"),
    *("workloads", "options", "terms", "machine", "project", "suite", "jsontext"),
    *("errors", "packaged", "version"),
)

#: Modules that are tests themselves, and so know pytest wherever they are, and what any user
#: imports (:mod:`fwbench` itself).
_TEST_MODULES = ("fwbench.ceilings.suite", "fwbench.ceilings.gpu_suite")

_PYTEST = {"pytest", "_pytest", "pluggy", "pytest_benchmark"}

_MODULES_AT_MOST = 12
_FUNCTION_LINES_AT_MOST = 52
_MEDIAN_FUNCTION_AT_MOST = 7
_NINE_IN_TEN_AT_MOST = 20
_CLASS_LINES_AT_MOST = 250
_CODE_LINES_AT_MOST = 600


@cache
def _modules() -> dict[str, Path]:
    """Every module of fwbench, by name; packages without ``__init__``."""
    files = sorted((_SOURCE / "fwbench").rglob("*.py"))
    return {
        ".".join(file.relative_to(_SOURCE).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


@cache
def _imported(module: str) -> frozenset[str]:
    """The modules that a module imports; ``from package import module`` is the module."""
    return frozenset(_imports(ast.parse(_modules()[module].read_text(encoding="utf-8"))))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in _modules() else str(node.module)


def _dependencies(module: str) -> list[str]:
    return sorted(name for name in _imported(module) if name in _modules() and name != module)


def _package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _lines_of(definition: _Definition) -> int:
    """Lines from ``def`` or ``class`` to the end, without the docstrings in it."""
    return _span(definition) - sum(
        _span(node.body[0])
        for node in ast.walk(definition)
        if isinstance(node, _Definition) and ast.get_docstring(node) is not None
    )


def _span(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _lines_of_code(tree: ast.Module) -> int:
    """Lines of a module's functions and classes, without their docstrings."""
    return sum(_lines_of(node) for node in tree.body if isinstance(node, _Definition))


# Imports


def test_imports_within_functions_and_for_types_count() -> None:
    """And a module that is imported from its package is that module."""
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from fwbench.workloads.grid import Cell\n"
        "def load():\n    from fwbench.terms import toggles\n"
    )
    assert {*_imports(ast.parse(text))} == {
        "typing",
        "fwbench.workloads.grid",
        "fwbench.terms.toggles",
    }


def test_no_module_imports_itself_through_others() -> None:
    """A CycleError names the modules."""
    TopologicalSorter({module: _dependencies(module) for module in _modules()}).prepare()


def test_imports_run_down() -> None:
    """No room imports from one above it; the package itself only names what is public."""
    wrong = [
        f"{module} imports {other}"
        for module in _modules()
        if module != "fwbench"
        for other in _dependencies(module)
        if (other == "fwbench" and module not in _TEST_MODULES)
        or (
            other != "fwbench"
            and _PACKAGES.index(_package_of(module)) > _PACKAGES.index(_package_of(other))
        )
    ]
    assert wrong == []


def test_every_room_has_its_place() -> None:
    """A new room is put into the order before anything imports it."""
    assert {_package_of(module) for module in _modules()} - {""} <= {*_PACKAGES}


def test_only_the_plugin_knows_pytest() -> None:
    """Modules that are tests themselves, and the suite for other people's adapters, apart."""
    free = ("fwbench.plugin", "fwbench.testing.conformance")
    knowing = {
        module
        for module in _modules()
        if not f"{module}.".startswith(tuple(f"{name}." for name in free))
        and _PYTEST & {name.partition(".")[0] for name in _imported(module)}
    }
    assert knowing == {*_TEST_MODULES}


def test_pytest_benchmarks_inside_is_known_to_one_module() -> None:
    """The type of the fixture apart, and hooks, which are public."""
    private = re.compile(
        r"_benchmarksession|\b_precisions|\b_make_runner|\._mode\b|compute_timer_precision"
        r"|\bhas_error|\.stats\.stats\b|compared_mapping|pytest_benchmark\.(stats|timers|session)"
    )
    knowing = {name for name, file in _modules().items() if private.search(file.read_text("utf-8"))}
    assert knowing == {"fwbench.plugin.host"}


def test_processes_are_started_in_one_room() -> None:
    """Nothing else imports what starts them."""
    starting = {"subprocess", "multiprocessing", "multiprocessing.connection"}
    modules = {*_modules()}
    packages = {_package_of(module) for module in modules if starting & _imported(module)}
    assert packages <= {"processes", "plugin"}, "the plugin has the worker's end of the connection"
    assert "subprocess" not in {
        n for m in _modules() if _package_of(m) == "plugin" for n in _imported(m)
    }


# Sizes


def test_few_modules_lie_outside_rooms() -> None:
    assert len([*(_SOURCE / "fwbench").glob("*.py")]) <= _MODULES_AT_MOST


@pytest.mark.parametrize("folder", ["src", "extras", "tests"])
def test_modules_have_one_subject(folder: str) -> None:
    """Lines of functions and classes are limited; tables of data may be as long as they need."""
    lines = {
        str(file.relative_to(_ROOT)): _lines_of_code(ast.parse(file.read_text(encoding="utf-8")))
        for file in sorted((_ROOT / folder).rglob("*.py"))
    }
    assert {file: count for file, count in lines.items() if count > _CODE_LINES_AT_MOST} == {}


def test_functions_and_classes_are_short() -> None:
    """The longest, the middle one, and nine in ten."""
    functions, classes = [], []
    for module, file in _modules().items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append((_lines_of(node), f"{module}.{node.name}"))
            elif isinstance(node, ast.ClassDef):
                classes.append((_lines_of(node), f"{module}.{node.name}"))
    assert [function for function in functions if function[0] > _FUNCTION_LINES_AT_MOST] == []
    assert [cls for cls in classes if cls[0] > _CLASS_LINES_AT_MOST] == []
    lengths = [length for length, _ in functions]
    assert statistics.median(lengths) <= _MEDIAN_FUNCTION_AT_MOST
    assert statistics.quantiles(lengths, n=10)[-1] <= _NINE_IN_TEN_AT_MOST


# Words


def _adapter(module: str) -> str:
    """The framework whose package a module is in; its classes have counterparts in others."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["frameworks"] and len(parts) > 3 else ""


def test_no_class_name_stands_for_two_things() -> None:
    """Apart from counterparts: classes that do the same in the packages of several frameworks."""
    places: dict[str, list[str]] = {}
    for module, file in _modules().items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    frameworks = {name: {*map(_adapter, modules)} - {""} for name, modules in places.items()}
    assert {
        name: modules
        for name, modules in places.items()
        if len(modules) > 1 and len(frameworks[name]) < len(modules)
    } == {}


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    """A relative clause or a question tells a caller nothing that he can search for."""
    clause = re.compile(r"(What|How|Whether|Those|That|As|Of)\b")
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    wrong = [
        f"{file.relative_to(_ROOT)}: {text.splitlines()[0]}"
        for folder in ("src", "extras", "benchmarks", "scripts", "tests")
        for file in sorted((_ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, documented) and (text := ast.get_docstring(node) or "")
        if clause.match(text)
    ]
    assert wrong == []


# Names that no tool follows


@cache
def _project() -> dict[str, Any]:
    return tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_entry_points_are_there() -> None:
    """None is imported, which takes seconds."""
    project = _project()["project"]
    groups = [project["scripts"], *project["entry-points"].values()]
    for target in (target for group in groups for target in group.values()):
        module, _, name = target.partition(":")
        assert module in _modules(), target
        assert not name or re.search(
            rf"^(class|def) {name}\b", _modules()[module].read_text(), re.MULTILINE
        )


def test_modules_named_in_strings_are_there() -> None:
    for main in (workers.WORKER_MAIN, launch.ROLE_MAIN):
        imported = re.match(r"from ([\w.]+) import (\w+); \2\(\)$", main)
        assert imported is not None
        assert callable(getattr(import_module(imported[1]), imported[2]))
    assert importlib.util.find_spec(session.SELECTOR) is not None
    assert (_ROOT / _project()["tool"]["hatch"]["version"]["path"]).is_file()


def test_suites_named_in_strings_are_there() -> None:
    named = {
        name
        for file in _modules().values()
        for name in re.findall(r'measure_suite\(\s*"([\w.]+)"', file.read_text(encoding="utf-8"))
    }
    assert named == {*_TEST_MODULES}


def test_frames_of_the_harness_are_known_by_their_folders() -> None:
    """A dead worker's last words leave out the frames of these rooms, which must be there."""
    packages = re.search(r"fwbench\[/\\\\\]\(([\w|]+)\)", process._HARNESS_FRAME.pattern)
    assert packages is not None
    assert all((_SOURCE / "fwbench" / room).is_dir() for room in packages[1].split("|"))
    frame = f'  File "{_modules()["fwbench.plugin.worker"]}", line 1 in main'
    assert process._HARNESS_FRAME.match(frame)


def test_tables_of_parameters_are_those_of_tests() -> None:
    """A table whose test is gone would be read by nobody."""
    for file in (_ROOT / "tests").rglob("tables.toml"):
        tests = "".join(path.read_text(encoding="utf-8") for path in file.parent.glob("test_*.py"))
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        assert [name for name in tables if f"\ndef {name}(" not in tests] == [], file


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "docs", "scripts", "src"])
def test_paths_in_prose_are_there(file: str) -> None:
    """Files and folders of the source that documents and docstrings name."""
    start = _ROOT / file
    texts = [start] if start.is_file() else [*start.rglob("*.md"), *start.rglob("*.py")]
    named = {
        path.rstrip("./")
        for text in texts
        for path in re.findall(r"\bsrc/fwbench[\w/.]*", text.read_text(encoding="utf-8"))
    }
    assert sorted(path for path in named if not (_ROOT / path).exists()) == []
