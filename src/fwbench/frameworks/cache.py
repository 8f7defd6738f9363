"""Manifests kept between sessions: asking a framework costs its whole import."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fwbench.errors import FrameworkUnavailable
from fwbench.frameworks.variables import PLACEMENT, variables_of
from fwbench.terms.manifest import Absent, Manifest
from fwbench.version import __version__

#: What decides which devices a framework sees, and which modules and libraries it is made of. The
#: variables that change speed count, too: some decide what it can compute.
_VARIABLES = (*PLACEMENT, "LD_LIBRARY_PATH", "PYTHONPATH")

#: The version of NVIDIA's driver, as Linux tells it.
_DRIVER = Path("/proc/driver/nvidia/version")

#: What reading a manifest of any other form may raise.
_UNEXPECTED = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


class ManifestCache:
    """Manifests in pytest's cache folder, as long as they would be the same if asked for again.

    Args:
        cache: ``config.cache``; None where pytest's cache is switched off.
        path_of: the folders that this interpreter imports packages from.
    """

    def __init__(
        self,
        cache: Any,
        threads: int,
        interpreter_of: Callable[[str], str],
        path_of: Callable[[str], Sequence[str]],
    ) -> None:
        self._cache = cache
        self._threads = threads
        self._interpreter_of = interpreter_of
        self._path_of = path_of
        # Frameworks share packages: fwbench's own is one of each.
        self._state = functools.cache(state)

    def get(self, name: str) -> Manifest | Absent | None:
        """The manifest of a framework; None if it must be asked."""
        if not self._cache:
            return None
        # Anyone may write there, a newer fwbench too: what is not as expected is asked for again,
        # and so is a framework whose interpreter is not to be run.
        with contextlib.suppress(*_UNEXPECTED, FrameworkUnavailable):
            return self._read(name, self._cache.get(_key(name), None))
        return None

    def _read(self, name: str, stored: Any) -> Manifest | Absent | None:
        if stored is None or stored["digest"] != _digest(stored):
            return None
        if "absent" in stored:
            same = stored["fingerprint"] == self.fingerprint(name)
            return Absent(**stored["absent"]) if same else None
        places = stored["manifest"].get("sources", ())
        if stored["fingerprint"] != self.fingerprint(name, places):
            return None
        manifest = Manifest.from_json(stored["manifest"])
        hash(manifest.every_execution)  # a TypeError if a list is where a text should be
        return manifest

    def put(self, manifest: Manifest | Absent) -> None:
        """Keep a manifest, or that a package is missing; what is broken may be fixed anywhere.

        Nor is it kept that a framework sees no GPU where there is one: its memory may have been
        full, or its driver away for a moment.
        """
        if not self._cache or (isinstance(manifest, Manifest) and _may_see_more(manifest)):
            return
        stored: dict[str, Any]
        places: Sequence[str] = ()
        if isinstance(manifest, Absent):
            if not manifest.missing:
                return
            stored = {"absent": dataclasses.asdict(manifest)}
        else:
            places, stored = manifest.sources, {"manifest": manifest.to_json()}
        stored["fingerprint"] = self.fingerprint(manifest.name, places)
        self._cache.set(_key(manifest.name), {**stored, "digest": _digest(stored)})

    def fingerprint(self, name: str, places: Sequence[str] = ()) -> str:
        """A text that differs whenever the framework could answer differently.

        Installing or removing a package changes the folder that packages are in; other folders of
        the path change with every file that is written there.
        """
        interpreter = self._interpreter_of(name)
        path = self._path_of(name)
        packages = [entry for entry in path if entry.endswith(("site-packages", "dist-packages"))]
        facts = [
            __version__,
            [field.name for field in dataclasses.fields(Manifest)],
            interpreter,
            _modified_ns(interpreter),
            self._threads,
            [(entry, _modified_ns(entry)) for entry in packages],
            [self._state(place) for place in places],
            _gpu_nodes(),
            _text(_DRIVER),
            [os.environ.get(name) for name in (*_VARIABLES, *variables_of())],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _may_see_more(manifest: Manifest) -> bool:
    return bool(_gpu_nodes()) and not manifest.sees_gpu


def _gpu_nodes() -> list[str]:
    """The nodes of NVIDIA's GPUs, whether or not a driver answers there."""
    return sorted(str(device) for device in Path("/dev").glob("nvidia[0-9]*"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _digest(stored: Mapping[str, Any]) -> str:
    """A key that changes with anything that is stored."""
    values = {key: value for key, value in stored.items() if key != "digest"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _key(name: str) -> str:
    return f"fwbench/manifests/{name}"


def _modified_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


#: Its own classes answer alike as long as the interpreter is the same.
_BUILT_IN = frozenset(sys.stdlib_module_names)


def packages_of(framework: type) -> tuple[str, ...]:
    """The top-level packages of a class and its bases, without Python's own.

    Returns:
        The folder of each package, or the file of a module that is in none.
    """
    modules = dict.fromkeys(base.__module__ for base in framework.__mro__)
    places = (_top(name) for name in modules if name.partition(".")[0] not in _BUILT_IN)
    return tuple(dict.fromkeys(place for place in places if place))


def _top(module: str) -> str | None:
    """The outermost package of a module that has a file: namespace packages are many folders."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        loaded = sys.modules.get(".".join(parts[:i]))
        file = getattr(loaded, "__file__", None)
        if file:
            return str(Path(file).parent) if hasattr(loaded, "__path__") else file
    return None


def state(place: str) -> list[tuple[str, int, int]]:
    """The state of a package: its modules and tables, with the times of their changes and sizes.

    Returns:
        Path, time in nanoseconds and size in bytes of every file, in the order of paths; nothing
        where there is none.
    """
    if place.endswith(".py"):
        with suppress(OSError):
            stat = Path(place).stat()
            return [(place, stat.st_mtime_ns, stat.st_size)]
        return []
    return sorted(_source_files(place))


def _source_files(folder: str) -> Iterator[tuple[str, int, int]]:
    # Not by Path.rglob, which takes three times as long: every session waits for this.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".toml")):
                with suppress(OSError):
                    stat = entry.stat()
                    yield entry.path, stat.st_mtime_ns, stat.st_size
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)
