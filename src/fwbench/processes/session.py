"""Suites of fwbench's own, each a module of tests, and how they are measured.

They run as any user's suite does: in a session of pytest's own, isolated, verified, waited for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fwbench.errors import SuiteError

_SHOWN_LINES = 25

#: What a user, or a session around this one, tells pytest through the environment.
_USERS = ("PYTEST_ADDOPTS", "PYTEST_XDIST_")

#: pytest's exit status when all tests ran, whether or not some have failed.
_RAN = (0, 1)


def measure(
    name: str, arguments: Sequence[str], say: Callable[[str], Any], *, all_must_pass: bool = True
) -> dict[str, Any]:
    """Measure a suite.

    Args:
        name: of its module, in full.
        arguments: of pytest.
        say: called with every line that pytest prints while it runs.
        all_must_pass: whether a test that fails makes the whole useless.

    Returns:
        What ``--benchmark-json`` wrote.

    Raises:
        SuiteError: the session broke down, measured nothing, or had failures that it must not.
    """
    package, _, module = name.rpartition(".")
    with tempfile.TemporaryDirectory(prefix="fwbench-") as temporary:
        folder, results = Path(temporary), Path(temporary) / "results.json"
        suite = resources.files(package).joinpath(f"{module}.py")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_suite.py").write_text(suite.read_text(encoding="utf-8"), encoding="utf-8")
        command = [
            *(sys.executable, "-P", "-m", "pytest", "test_suite.py", *arguments),
            *("-p", "no:cacheprovider", f"--benchmark-json={results}"),
        ]
        last: deque[str] = deque(maxlen=_SHOWN_LINES)
        with subprocess.Popen(
            command,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if not name.startswith(_USERS)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None  # noqa: S101 (a pipe was asked for)
            try:
                for line in process.stdout:
                    last.append(line)
                    say(line.rstrip())
            except BaseException:
                process.terminate()
                raise
        allowed = _RAN[:1] if all_must_pass else _RAN
        if process.returncode not in allowed or not results.is_file():
            raise SuiteError(
                f"fwbench's own suite {name!r} could not be measured (pytest's exit status is "
                f"{process.returncode}); it said last:\n{''.join(last)}"
            )
        found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
        return found
