"""BLAS and OpenMP libraries of this process: versions, and what they chose for this CPU.

What a framework holds within a library of its own, as PyTorch does oneDNN and MKL, is not among
them.
"""

from collections.abc import Iterator
from pathlib import PurePath

import threadpoolctl

#: The folders that packages are installed into.
_PACKAGES = ("site-packages", "dist-packages")


def loaded(*packages: str) -> dict[str, str]:
    """Version, core type and threads of each BLAS and OpenMP library, by package and name.

    Args:
        packages: whose libraries; those outside of any package's folder are everyone's. None of
            them for all libraries.

    Returns:
        For example ``{"numpy openblas core": "SkylakeX"}``; what a library does not say is left
        out. Of two libraries of one name in a package the first one that was loaded.
    """
    facts: dict[str, str] = {}
    for library in threadpoolctl.threadpool_info():
        owner = _owner(PurePath(library["filepath"]))
        if owner and packages and owner not in packages:
            continue
        for name, value in _facts(library):
            facts.setdefault(f"{owner} {name}".lstrip(), value)
    return facts


def _owner(path: PurePath) -> str:
    """The package in whose folder, or in whose folder of repaired wheels, a library is."""
    for folder, inner in zip(path.parts, path.parts[1:], strict=False):
        if folder in _PACKAGES:
            return inner.removesuffix(".libs")
    return ""


def _facts(library: dict[str, object]) -> Iterator[tuple[str, str]]:
    name = library["internal_api"]
    for key, word in (("version", "version"), ("architecture", "core"), ("num_threads", "threads")):
        if library.get(key) is not None:
            yield f"{name} {word}", str(library[key])
