"""Handover of the parent's pytest session to a worker's, and what stays with the parent."""

import base64
import io
import os
import pickle
import sys
import tempfile
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import pytest

from fwbench import suite
from fwbench.terms.manifest import Manifest

#: Options that a worker does not take over: selecting, stopping and reporting are the parent's,
#: also those of plugins that are widely used together with benchmarks.
_LEFT_TO_PARENT: dict[str, Any] = {
    **dict.fromkeys(("keyword", "markexpr"), ""),
    **dict.fromkeys(("collectonly", "cacheclear", "lf", "failedfirst", "newfirst"), False),
    **dict.fromkeys(("stepwise", "setupshow", "json_report"), False),
    **dict.fromkeys(("deselect", "xmlpath", "durations", "debug", "numprocesses")),
    **dict.fromkeys(("benchmark_json", "benchmark_save", "benchmark_autosave")),
    **dict.fromkeys(("benchmark_compare_fail", "htmlpath", "report_log")),
    **dict.fromkeys(("fw_launches", "fw_budget", "fw_race", "fw_gate")),
    "maxfail": 0,
    "log_file": os.devnull,  # the ini setting would be next
    "dist": "no",
    "tx": [],
    "benchmark_compare": [],
    "benchmark_histogram": [],
    "benchmark_csv": [],
    "cov_source": [],
}

#: What a worker has in the place of settings of the project, which are not for it.
_OF_WORKERS = {"fw_first_call": "shared", "fw_resume": False}


def worker_session(
    config: pytest.Config,
    files: list[str],
    manifest: Manifest,
    interpreter: str,
    loop_s: float | None = None,
) -> dict[str, Any]:
    """The session of the worker of one framework, as values that JSON has.

    Args:
        files: the test files with its cases; those of the suite by their names as modules, since
            another interpreter has files of its own.
        loop_s: see :func:`fwbench.measure.core_speed.notice`.

    Returns:
        ``options`` (packed), ``files``, ``unwanted`` (the plugins of ``-p no:NAME``), ``path``
        (what comes first in ``sys.path``), ``manifest`` and ``loop_s``.
    """
    options = dict(vars(config.option))
    options |= {name: value for name, value in _LEFT_TO_PARENT.items() if name in options}
    options |= _OF_WORKERS
    options["file_or_dir"] = files
    options["pyargs"] = suite.is_packaged()
    options["rootdir"] = str(config.rootpath)
    options["inifilename"] = str(config.inipath) if config.inipath else None
    # "-p no:NAME" as one word has a blank, which pytest takes away from a command line alone.
    plugins = [name.strip() for name in options.get("plugins", [])]
    options["plugins"] = [*plugins, "no:terminal"]
    # Python's output goes to the reports and through to the log, where a crash would leave its
    # last words; output of libraries goes to the log.
    options["capture"] = "no" if config.option.capture == "no" else "tee-sys"
    if options.get("basetemp"):
        # pytest empties its base folder when it starts: a worker must not empty another one's.
        # The parent's is made by now, as pytest-xdist has it, which is not to empty theirs later.
        known: Any = config
        base = known._tmp_path_factory.getbasetemp()  # noqa: SLF001 (pytest has no other name)
        options["basetemp"] = tempfile.mkdtemp(prefix=f"fwbench-{manifest.name}-", dir=base)
    return {
        "options": _packed(options),
        "files": files,
        "unwanted": [name for name in plugins if name.startswith("no:")],
        "path": sys.path if interpreter == sys.executable else _of_project(config.rootpath),
        "manifest": manifest.to_json(),
        "loop_s": loop_s,
    }


def _of_project(root: Path) -> list[str]:
    """Entries of ``sys.path`` that are the project's, and not this interpreter's."""
    return [
        entry
        for entry in sys.path
        if Path(entry).is_relative_to(root) and not Path(entry).is_relative_to(sys.prefix)
    ]


class _Pickler(pickle.Pickler):
    """Pickles what another version of Python can read."""

    def reducer_override(self, value: Any) -> Any:
        """Paths by name: the module that has their class has moved from version to version."""
        if isinstance(value, PurePath):
            return _path, (str(value),)
        return NotImplemented


def _path(text: str) -> Path:
    return Path(text)


def _packed(options: dict[str, Any]) -> dict[str, str]:
    """Options pickled one by one; those that cannot be are the defaults in the worker."""
    packed = {}
    for name, value in options.items():
        with suppress(Exception):  # an option may be anything, and fail in any way
            written = io.BytesIO()
            _Pickler(written).dump(value)
            packed[name] = base64.b64encode(written.getvalue()).decode()
    return packed


def unpacked(options: dict[str, str]) -> dict[str, Any]:
    """The inverse, in the worker; what cannot be found there is the default there."""
    values = {}
    for name, text in options.items():
        with suppress(Exception):
            values[name] = pickle.loads(base64.b64decode(text))  # noqa: S301 (from the parent)
    return values
