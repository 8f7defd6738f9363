"""What ``scripts/install`` tells uv of pip's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "pip_settings.py"


def _exports(configured: str, **variables: str) -> dict[str, str]:
    """The variables that a shell has after it has evaluated what the script prints."""
    command = f'eval "$({sys.executable} {SCRIPT})" && env'
    inherited = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["sh", "-c", command],
        input=configured,
        env=inherited,
        capture_output=True,
        text=True,
        check=True,
    )
    after = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return {
        name: value
        for name, value in after.items()
        if name.startswith(("UV_", "SSL_", "ALL_")) and variables.get(name) != value
    }


@pytest.mark.parametrize(
    ("configured", "exported"),
    [
        ("", {}),
        ("global.disable-pip-version-check='1'\nfreeze.exclude='torch'\n", {}),
        ("global.index-url='https://i/simple'", {"UV_DEFAULT_INDEX": "https://i/simple"}),
        (
            "global.extra-index-url='\\nfile:///a\\nfile:///b'",
            {"UV_INDEX": "file:///a file:///b", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        ("global.find-links='/a /b'", {"UV_FIND_LINKS": "/a,/b"}),
        (
            "install.find-links='/install'\n:env:.find-links='/env'\nglobal.find-links='/global'",
            {"UV_FIND_LINKS": "/env"},
        ),
        (":env:.cert='/it is/ca.crt'", {"SSL_CERT_FILE": "/it is/ca.crt"}),
        (
            "global.index-url='https://u:p$HOME`id`@i/'",
            {"UV_DEFAULT_INDEX": "https://u:p$HOME`id`@i/"},
        ),
    ],
    ids=["none", "others", "index", "indexes", "folders", "sections", "blank", "shell"],
)
def test_settings_of_pip_hold_for_uv(configured: str, exported: dict[str, str]) -> None:
    """Each under uv's name for it; those for other purposes are left out."""
    assert _exports(configured) == exported


def test_settings_of_uv_win() -> None:
    """Whoever has set uv's own variable meant uv."""
    assert _exports("global.find-links='/pip'", UV_FIND_LINKS="/uv") == {}
