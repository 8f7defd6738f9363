"""Records hold no secret, and say neither whose machine it is nor where its files lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fwbench.records import privacy
from fwbench.records.privacy import Places

_HERE = Places(Path("/srv/work/project"), Path("/home/me"))


_SECRETS = (
    "NVIDIA_API_KEY",
    "TORCH_HUB_TOKEN",
    "TF_TOKEN_app",
    "my_secret",
    "DB_PASSWORD",
    "X_AUTH",
)
_OTHERS = ("OMP_WAIT_POLICY", "MXNET_ENGINE_TYPE", "XLA_FLAGS", "fw-size")


def test_names_of_secrets() -> None:
    names = (*_SECRETS, *_OTHERS)
    assert [name for name in names if privacy.is_secret(name)] == [*_SECRETS]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--x-token=abc", "-v"], ["--x-token=***", "-v"]),
        (["--x-token", "abc", "benchmarks"], ["--x-token", "***", "benchmarks"]),
        (["--x-token", "-v"], ["--x-token", "-v"]),
        (["-o", "api_key = abc"], ["-o", "api_key =***"]),
        (["--override-ini=api_key=abc"], ["--override-ini=api_key=***"]),
        (["--url=https://me:abc@host/x"], ["--url=https://***@host/x"]),
        (["-k", "gemm and not key"], ["-k", "gemm and not key"]),
        (["--fw-size=8", "--fw", "torch"], ["--fw-size=8", "--fw", "torch"]),
    ],
)
def test_secrets_on_a_command_line(given: list[str], expected: list[str]) -> None:
    assert privacy.without_secrets(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/srv/work/project/benchmarks/test_x.py", "benchmarks/test_x.py"),
        ("--rootdir=/srv/work/project", "--rootdir=."),
        ("/srv/work/projects/x", ".../x"),
        ("--benchmark-json=/mnt/me/out.json", "--benchmark-json=.../out.json"),
        ("/home/me/data", "~/data"),
        ("no data in /home/me", "no data in ~"),
        ("/home/me2/data", ".../data"),
        ("File '/opt/venv/lib/x.py', line 3", "File '.../x.py', line 3"),
        ("https://host/a/b", "https://host/a/b"),
        ("12.5 images/s", "12.5 images/s"),
        ("a/b/c", "a/b/c"),
        ("/data", "/data"),
        ("test_x.py::test_it[gemm/a-8]", "test_x.py::test_it[gemm/a-8]"),
        ("", ""),
    ],
)
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
