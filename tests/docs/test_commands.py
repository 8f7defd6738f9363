"""Every command that a document shows works: its program, options, files and names exist."""

import importlib.util
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from _pytest.mark.expression import Expression

from fwbench import cli
from fwbench.frameworks.declared import manifests
from fwbench.options.options import Options
from fwbench.plugin.options import from_config
from fwbench.terms.manifest import Device, Manifest
from fwbench.workloads import (
    CHECKPOINTS,
    CLASSIFICATIONS,
    COLLECTIVES,
    FAMILIES,
    FORWARD_BACKWARDS,
    INFERENCES,
    LOOPS,
    MODELS,
    PHOTOS,
    SAMPLED,
    SERVED,
    STARTUP,
    STEPS,
    grid,
)
from fwbench.workloads.data import Found
from fwbench.workloads.workload import Workload
from fwbench_extras.pages import parsers
from support import programs
from support.documents import PAGES, ROOT, Command, commands, read

#: What pages show how to write: frameworks, and an operation.
_OF_PAGES = ("mine", "cached_output")
_WRITTEN = "tanhshrink"

#: What people put in for themselves.
_PLACEHOLDER = re.compile(r"\.\.\.|\b(ARGUMENTS|COMMAND|RUN|NAME|FILE|FOLDER|TEXT)\b")

#: A case measured on machines with other devices than these.
_DEVICES = (Device("cpu", ""), Device("gpu:0", ""), Device("gpu:1", ""))


def _shown(*programs: str) -> list[object]:
    """The commands of all documents that call one of these programs, as parameters."""
    return [
        pytest.param(command, id=f"{command.page}: {command.text[:80]}")
        for page in PAGES
        for command in map(_as_pytest, commands(page))
        if command.program in programs and not _PLACEHOLDER.search(command.text)
    ]


def _as_pytest(command: Command) -> Command:
    """`fwbench run` as the command of pytest that it stands for, in a checkout."""
    if command.arguments[:2] != ("fwbench", "run"):
        return command
    more = command.arguments[2:]
    suite = () if any(word.startswith("benchmarks/") for word in more) else ("benchmarks",)
    return replace(command, arguments=("pytest", *suite, *more))


def test_every_program_is_one_whose_commands_are_checked() -> None:
    """A page that shows another program needs a check of its own here."""
    programs = {command.program for page in PAGES for command in commands(page)}
    assert programs == {"pytest", "fwbench", "make", "python", "pip", "uv", "head", "."}


def test_options_are_there_where_people_put_something_in(pytestconfig: pytest.Config) -> None:
    """Commands with a placeholder cannot be tried; their options can be looked up.

    So can those that the text names alone.
    """
    groups = [pytestconfig._parser._anonymous, *pytestconfig._parser._groups]
    known = {name for group in groups for option in group.options for name in option.names()}
    for parser, _ in parsers(cli.build_parser()):
        known |= {name for action in parser._actions for name in action.option_strings}
    given = [
        (command.page, word.partition("=")[0])
        for page in PAGES
        for command in commands(page)
        if command.program in ("fwbench", "pytest") and _PLACEHOLDER.search(command.text)
        for word in command.arguments
        if word.startswith("-")
    ]
    given += [(page, name) for page in PAGES for name in re.findall(r"--fw-[a-z-]+", read(page))]
    assert [option for option in given if option[1] not in known] == []


# pytest


@pytest.fixture(scope="module")
def declared() -> dict[str, Manifest]:
    """Manifests of fwbench's own frameworks, on a machine with two GPUs."""
    return {
        name: replace(
            manifest, devices=_DEVICES if name in ("torch", "tensorflow") else _DEVICES[:1]
        )
        for name, manifest in manifests().items()
    }


@pytest.mark.parametrize("command", _shown("pytest"))
def test_pytest_understands_it_and_it_selects_cases(
    command: Command, pytester: pytest.Pytester, declared: dict[str, Manifest]
) -> None:
    folder = str(pytester.path)  # where a reader's own data are
    config = pytester.parseconfig(
        *(folder if word.startswith("~/") else word for word in command.arguments[1:])
    )
    options = from_config(config)
    files = [name for name in config.args if not config.option.pyargs]
    for name in files:
        assert (ROOT / name).exists() or name.startswith("test_"), f"{name} is not there"
    if config.option.pyargs or not any(name.startswith("benchmarks") for name in files):
        return
    selection = replace(
        options.requested,
        frameworks=tuple(
            name.partition("@")[0] for name in options.requested.frameworks or declared
        ),
    )
    if set(selection.frameworks or ()) & {*_OF_PAGES} or config.option.keyword == _WRITTEN:
        return
    grid.check(selection, declared, {})
    ids = _cell_ids(files, options, selection, declared)
    assert any(_selects(config.option.keyword, name) for name in ids), "it selects no case"


def _cell_ids(
    files: Sequence[str], options: Options, selection: grid.Selection, known: dict[str, Manifest]
) -> Iterable[str]:
    """The ids of the cells without a gap in these files."""
    more = grid.GridRequest(toggles=options.toggles, find=_real)
    for cell in grid.cells(_workloads(files), selection, known, {}, more):
        if cell.gap is None:
            yield cell.id


def _real(name: str) -> Found:
    return Found(name, "real", "", (), None)


def _workloads(files: Sequence[str]) -> list[Workload]:
    by_file = {
        f"benchmarks/test_{family}.py": [*operations] for family, operations in FAMILIES.items()
    }
    by_file["benchmarks/test_training.py"] = [
        *STEPS,
        *(part for loop in LOOPS for part in (loop.loader, loop)),
    ]
    by_file["benchmarks/test_files.py"] = [*PHOTOS, *CHECKPOINTS]
    networks = [*MODELS, *SAMPLED, *INFERENCES, *CLASSIFICATIONS, *FORWARD_BACKWARDS]
    by_file["benchmarks/test_models.py"] = networks
    by_file["benchmarks/test_collectives.py"] = [*COLLECTIVES]
    by_file["benchmarks/test_serving.py"] = [*SERVED]
    by_file["benchmarks/test_startup.py"] = [*STARTUP]
    named = [by_file[name] for name in files if name in by_file]
    return [workload for group in named or by_file.values() for workload in group]


def _selects(keyword: str, case_id: str) -> bool:
    return not keyword or Expression.compile(keyword).evaluate(
        lambda name, /, **_: name.lower() in case_id.lower()
    )


def test_lenet_is_not_googlenet() -> None:
    """`-k` matches within names, too: a first look at LeNet must not take GoogLeNet's minutes."""
    requested = [
        (command, keyword)
        for page in PAGES
        for command in commands(page)
        if "lenet" in (keyword := _keyword(command)).replace("googlenet", "")
    ]
    assert requested
    for command, keyword in requested:
        names = [workload.name for workload in _workloads(command.arguments)]
        selected = [name for name in names if _selects(keyword, name)]
        assert selected, command.text
        assert not [name for name in selected if "googlenet" in name], command.text


def _keyword(command: Command) -> str:
    """The expression after ``-k``, if there is one."""
    words = command.arguments
    return words[words.index("-k") + 1] if "-k" in words else ""


# fwbench


#: Commands that the text names without the rest of the line.
_NAMES = [["fwbench", *command.prog.split()[1:]] for command, _ in parsers(cli.build_parser())]


@pytest.mark.parametrize("command", _shown("fwbench"))
def test_fwbench_understands_it(command: Command, pytester: pytest.Pytester) -> None:
    words = [*command.arguments]
    if any(name[: len(words)] == words for name in _NAMES):
        return
    try:
        parsed, more = cli.build_parser().parse_known_args(words[1:])
    except SystemExit as ended:
        assert ended.code == 0  # noqa: PT017 (--help and --version end so)
        return
    if more:
        assert parsed.takes_more, f"unknown: {more}"
        pytester.parseconfig(*more)


# make, python, pip and uv


def _targets() -> list[str]:
    return re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", _shown("make"))
def test_make_has_the_target_and_its_variables(command: Command) -> None:
    """`make help` lists targets; the head of the Makefile says what they take."""
    variables = dict(word.split("=", 1) for word in command.arguments[1:] if "=" in word)
    targets = [word for word in command.arguments[1:] if "=" not in word]
    assert {*targets} <= {*_targets()}
    assert {*variables} <= {"ARGS", "EXTRAS", "INSTALLER", "PYTHON"}
    assert _extras(variables.get("EXTRAS", "")) <= _known_extras()


def _extras(text: str) -> set[str]:
    return {name for name in text.split(",") if name}


def _known_extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {*project["optional-dependencies"]}


@pytest.mark.parametrize("command", _shown("pip", "uv"))
def test_what_is_installed_is_there(command: Command) -> None:
    for name in re.findall(r"(?:fwbench|\.)\[([\w,]+)\]", command.text):
        assert _extras(name) <= _known_extras()
    for name in re.findall(r"-c (\S+)", command.text):
        assert (ROOT / name).is_file()


@pytest.mark.parametrize("command", _shown("python"))
def test_python_has_the_program_and_its_options(command: Command) -> None:
    first, *rest = command.arguments[1:]
    if first == "-m":
        assert importlib.util.find_spec(rest[0]) is not None, f"there is no module {rest[0]}"
        return
    script = ROOT / first
    assert script.is_file(), f"{first} is not there"
    options = [word for word in rest if word.startswith("--")]
    if options:
        known = programs.output(script, "--help")
        unknown = [option for option in options if f"{option} " not in known]
        assert not unknown, f"{first} has no {unknown}"
