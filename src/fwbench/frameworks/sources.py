"""The packages that a framework's class is made of, and how they looked when it was asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
    """What changes when a package does: its Python files, when each was changed, its size.

    Args:
        place: a folder, or one file.

    Returns:
        Path, time in nanoseconds and size in bytes of every file, in the order of paths; nothing
        where there is none.
    """
    if place.endswith(".py"):
        with suppress(OSError):
            stat = Path(place).stat()
            return [(place, stat.st_mtime_ns, stat.st_size)]
        return []
    return sorted(_python_files(place))


def _python_files(folder: str) -> Iterator[tuple[str, int, int]]:
    # Not by Path.rglob, which takes three times as long: every session waits for this.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                with suppress(OSError):
                    stat = entry.stat()
                    yield entry.path, stat.st_mtime_ns, stat.st_size
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _python_files(entry.path)
