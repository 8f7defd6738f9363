"""BLAS and OpenMP libraries of this process: versions, and what they chose for this CPU.

What a framework holds within a library of its own, as PyTorch does oneDNN and MKL, is not among
them. oneDNN tells which instruction set it computes with in the first line of its log alone.
"""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import TypeVar

import threadpoolctl

#: As oneDNN 1 to 3 write it: ``onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with ...``.
_ISA = re.compile(rb"_verbose,(?:v\d+,)?info,cpu,isa:(.+)")

#: The descriptor that libraries in C print to.
_STANDARD_OUTPUT = 1

T = TypeVar("T")

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


def onednn_isa(work: Callable[[], T], log: AbstractContextManager[object]) -> tuple[T, str | None]:
    """Do some work, and find out which instruction set oneDNN does it with, in its own words.

    Args:
        work: the first that this process does with oneDNN while that logs.
        log: the block within which it does.

    Returns:
        What the work returns; and None if oneDNN has no part in it, or has begun its log earlier.
    """
    _flush()  # what was written before is not the log's
    kept = os.dup(_STANDARD_OUTPUT)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), _STANDARD_OUTPUT)
            with log:
                result = work()
            _flush()
            file.seek(0)
            found = _ISA.search(file.read())
    finally:
        os.dup2(kept, _STANDARD_OUTPUT)
        os.close(kept)
    return result, found[1].decode(errors="replace").strip() if found else None


def _flush() -> None:
    """Write what Python and C have buffered, of every stream of C's."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
