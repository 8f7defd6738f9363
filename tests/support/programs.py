"""Programs in a Python of their own, run to their end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil


def run(
    *arguments: str | Path,
    interpreter: str | Path = sys.executable,
    variables: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run Python without input; its output is text.

    Args:
        interpreter: another Python than that of the tests.
        variables: environment variables beside those of this process.
        options: others of ``subprocess.run``.
    """
    options.setdefault("env", {**os.environ, **(variables or {})})
    return subprocess.run(
        [interpreter, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def output(*arguments: str | Path, **options: Any) -> str:
    """The standard output of a run, which must end well."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_ended(processes: Iterable[psutil.Process]) -> None:
    """Wait until processes have ended, for a while."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def result(*arguments: str | Path, **options: Any) -> Any:
    """The last line of the output, as JSON."""
    return json.loads(output(*arguments, **options).splitlines()[-1])
