"""What a worker's pytest session takes over from the parent's, and what it leaves to it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from fwbench.frameworks.manifest import Manifest
from fwbench.isolation.worker import WorkerSession

#: Options that a worker does not take over: selecting, stopping and reporting are the parent's.
_LEFT_TO_PARENT: dict[str, Any] = {
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    "maxfail": 0,
    "collectonly": False,
    "cacheclear": False,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "xmlpath": None,
    "durations": None,
    "setupshow": False,
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "benchmark_json": None,
    "benchmark_save": None,
    "benchmark_autosave": None,
    "benchmark_compare": [],
    "benchmark_compare_fail": None,
    "benchmark_histogram": [],
    "benchmark_csv": [],
}


def worker_session(config: pytest.Config, files: list[str], manifest: Manifest) -> WorkerSession:
    """The session of the worker of one framework.

    Args:
        config: the parent's.
        files: the test files with its cases.
        manifest: of the framework.
    """
    options = {name: value for name, value in vars(config.option).items() if _can_be_sent(value)}
    options |= {name: value for name, value in _LEFT_TO_PARENT.items() if name in options}
    options["file_or_dir"] = files
    options["rootdir"] = str(config.rootpath)
    options["inifilename"] = str(config.inipath) if config.inipath else None
    options["plugins"] = [*options.get("plugins", []), "no:terminal"]
    # Python's output goes to the reports and through to the log, where a crash would leave its
    # last words; output of libraries goes to the log.
    options["capture"] = "no" if config.option.capture == "no" else "tee-sys"
    if options.get("basetemp"):
        # pytest empties its base folder when it starts: a worker must not empty the parent's.
        options["basetemp"] = str(Path(options["basetemp"]) / f"fwbench-{manifest.name}")
    return WorkerSession(options, files, sys.path, manifest.to_json())


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 (an option may be anything, and fail in any way)
        return False
    return True
