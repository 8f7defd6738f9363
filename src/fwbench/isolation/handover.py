"""What a worker's pytest session takes over from the parent's, and what it leaves to it."""

from __future__ import annotations

import base64
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fwbench.frameworks.manifest import Manifest

#: Options that a worker does not take over: selecting, stopping and reporting are the parent's,
#: also where plugins do it that are widely used beside benchmarks.
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
    "log_file": os.devnull,  # the ini setting would be next
    "debug": None,
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
    "cov_source": [],
    "htmlpath": None,
    "json_report": False,
    "report_log": None,
    "reruns": None,
}


def worker_session(config: pytest.Config, files: list[str], manifest: Manifest) -> dict[str, Any]:
    """The session of the worker of one framework, as values that JSON has.

    Args:
        config: the parent's.
        files: the test files with its cases.
        manifest: of the framework, as the parent knows it.

    Returns:
        ``options`` (packed), ``files``, ``path`` (the parent's ``sys.path``) and ``manifest``.
    """
    options = dict(vars(config.option))
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
    return {
        "options": _packed(options),
        "files": files,
        "path": sys.path,
        "manifest": manifest.to_json(),
    }


def _packed(options: dict[str, Any]) -> dict[str, str]:
    """Options pickled one by one; those that cannot be are the defaults in the worker."""
    packed = {}
    for name, value in options.items():
        with suppress(Exception):  # an option may be anything, and fail in any way
            packed[name] = base64.b64encode(pickle.dumps(value)).decode()
    return packed


def unpacked(options: dict[str, str]) -> dict[str, Any]:
    """The inverse, in the worker; what cannot be found there is the default there."""
    values = {}
    for name, text in options.items():
        with suppress(Exception):
            values[name] = pickle.loads(base64.b64decode(text))  # noqa: S301 (from the parent)
    return values
