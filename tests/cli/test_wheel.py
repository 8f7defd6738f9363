"""The wheel and the source distribution, and their metadata."""

import re
import subprocess
import tarfile
import zipfile
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from support import programs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {*archive.namelist()}


@pytest.fixture(scope="module")
def in_sdist(sdist: Path) -> set[str]:
    """The names of the files of the source distribution, without its own folder."""
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """The metadata of the wheel, with the description as its payload."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def _files(folder: str, pattern: str = "**/*") -> set[str]:
    """The files in a folder of the checkout, but for bytecode."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).glob(pattern)
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_wheel_has_the_suite(in_wheel: set[str]) -> None:
    """It equals the checkout's; the scripts that measure fwbench stay out."""
    files = _files("benchmarks", "test_*.py")
    assert files
    assert {name for name in in_wheel if "/suite/" in name} == {
        "fwbench/suite/__init__.py",
        *(name.replace("benchmarks/", "fwbench/suite/") for name in files),
    }


def test_the_wheel_has_the_package_alone(in_wheel: set[str]) -> None:
    files = {name.removeprefix("src/") for name in _files("src/fwbench")}
    assert files <= in_wheel
    tops = {name.partition("/")[0] for name in in_wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"fwbench"}


def test_the_wheel_of_the_extras_has_all_of_them(extras_wheel: Path, wheel: Path) -> None:
    with zipfile.ZipFile(extras_wheel) as archive:
        names = {*archive.namelist()}
        (points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        studies = ConfigParser()
        studies.read_string(archive.read(points).decode())
    assert {name for name in names if ".dist-info/" not in name} == {
        name.removeprefix("extras/") for name in _files("extras/fwbench_extras")
    }
    assert {target.replace(".", "/") for target in studies["fwbench.studies"].values()} == {
        name.removeprefix("extras/").removesuffix(".py").removesuffix("/__init__")
        for name in _files("extras/fwbench_extras/studies", "*.py")
        | _files("extras/fwbench_extras/studies", "*/__init__.py")
        if name != "extras/fwbench_extras/studies/__init__.py"
    }
    assert extras_wheel.name.split("-")[1] == wheel.name.split("-")[1]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="itself a source distribution")
def test_the_sdist_has_what_is_committed(in_sdist: set[str]) -> None:
    command = ["git", "-C", str(ROOT), "ls-files"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {*listed.stdout.splitlines()} - in_sdist == set()


def _is_relative(target: str) -> bool:
    return bool(target) and not re.match(r"[a-z]+:|#", target)


def test_links_of_the_package_index_are_absolute(metadata: Message) -> None:
    """Links and pictures of the README lead to the files of the release."""
    readme, shown = (ROOT / "README.md").read_text(encoding="utf-8"), str(metadata.get_payload())
    link = re.compile(r"!?\]\(([^)]+)\)|src(?:set)?=\"([^\"]+)\"")
    relative, remaining = (
        [target for pair in link.findall(text) for target in pair if _is_relative(target)]
        for text in (readme, shown)
    )
    assert any(target.endswith(".svg") for target in relative)
    assert remaining == []
    release = re.escape(f"/blob/v{metadata['Version']}/")
    assert len(re.findall(release, shown)) + shown.count("/raw/v") == len(relative)


def test_metadata(metadata: Message) -> None:
    labels = {url.partition(",")[0] for url in metadata.get_all("Project-URL", [])}
    assert labels >= {"Homepage", "Documentation", "Changelog", "Issues"}
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert "all" in metadata.get_all("Provides-Extra", [])


@pytest.mark.parametrize(
    "command", [("twine", "check", "--strict"), ("check_wheel_contents",)], ids=lambda c: c[0]
)
def test_checks_of_others_find_nothing(wheel: Path, sdist: Path, command: tuple[str, ...]) -> None:
    files = [wheel, sdist] if command[0] == "twine" else [wheel]
    programs.output("-m", *command, *files)
