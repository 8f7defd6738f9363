"""Records hold no secret, and say neither whose machine it is nor where its files lie."""

import shlex
from pathlib import Path
from typing import Any

from fwbench.records import privacy
from fwbench.records.privacy import Places
from support.tables import tabled

_HERE = Places(Path("/srv/work/project"), Path("/home/me"))


@tabled
def test_command_lines(tmp_path: Path, given: str, expected: str | None) -> None:
    """Harmless parts are shown, and nothing else; None stands for all of the command line."""
    root = tmp_path / "project"
    for name in ("sub/x", "../project2/x", "test_x.py", "pytest.ini"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    arguments = shlex.split(given.format(root=root))
    shown = Places(root).command_line(arguments, root)
    assert shown == (shlex.split(expected) if expected else arguments)


@tabled
def test_paths(given: str, expected: str) -> None:
    assert _HERE.without_paths(given) == expected


def test_values_that_are_not_texts() -> None:
    times = [1.0, 2.0]
    given: dict[str, Any] = {"a": ["/home/me/x", {"b": ("/home/me", 1, None, True)}], "t": times}
    assert _HERE.without_paths(given) == {"a": ["~/x", {"b": ["~", 1, None, True]}], "t": times}
    assert given["a"][0] == "/home/me/x"


def test_a_project_in_the_root_folder() -> None:
    places = Places(Path("/"), Path("/"))
    assert places.without_paths("/data/mnist/x") == ".../x"


def test_the_name_of_the_machine() -> None:
    assert privacy.without_host({"node": "mine", "machine": "x86_64"}) == {
        "node": "",
        "machine": "x86_64",
    }
