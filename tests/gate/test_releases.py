"""Releases that are newer than what is installed, and what holds them back."""

import sys
from pathlib import Path

import pytest

from fwbench.errors import ComparisonError
from fwbench.gate import releases
from fwbench.gate.releases import Newer, newer
from support import wheels


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages in a folder, of which ``beside`` needs an old release of ``needed``."""
    folder = tmp_path / "index"
    wheels.serve(folder, monkeypatch)
    for version, needs in (("0.9", []), ("1.0", ["needed<2.1"])):
        wheels.write_wheel(folder, "beside", version, {}, needs)
    return folder


@pytest.mark.usefixtures("index")
def test_newer_releases_are_named_with_what_holds_them_back() -> None:
    found = newer({"needed": "1.0", "quick": "1.0+cpu", "beside": "1.0"})
    assert found == [
        Newer("needed", "1.0", "2.1", "beside>=1.0 depends on needed<2.1"),
        Newer("quick", "1.0+cpu", "2.0", ""),
    ]
    assert newer({"needed": "2.1", "quick": "2.0"}) == []


def test_a_release_for_a_later_python_is_named(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert releases._newest_python() == "3.13"
    wheels.write_wheel(index, "needed", "3.0", {})
    page = index.parent / "simple" / "needed"
    page.mkdir(parents=True)
    links = [
        f'<a href="{file.as_uri()}" data-requires-python="{python}">{file.name}</a>'
        for file in index.glob("needed-*.whl")
        for python in ["&gt;=3.98" if "-3.0-" in file.name else "&gt;=3"]
    ]
    (page / "index.html").write_text("\n".join(links), encoding="utf-8")
    for variable in ("UV_NO_INDEX", "UV_FIND_LINKS"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_DEFAULT_INDEX", page.parent.as_uri())
    monkeypatch.setattr(releases, "_newest_python", lambda: "3.99")
    here = "{}.{}".format(*sys.version_info)
    assert newer({"needed": "2.0"}) == [
        Newer("needed", "2.0", "2.1", ""),
        Newer("needed", "2.0", "3.0", f"there is none for Python {here}"),
    ]


@pytest.mark.usefixtures("index")
def test_without_an_answer_they_are_not_known() -> None:
    with pytest.raises(ComparisonError, match=r"not known, since uv gets no answer: .*of-nobody"):
        newer({"of-nobody": "1.0"})
