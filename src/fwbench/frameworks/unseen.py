"""Frameworks that see no GPU on a machine with one: why, and the command that changes it."""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

from fwbench.packaged import read_table
from fwbench.terms.manifest import Manifest

#: What builds call the version of CUDA that they are for.
_CUDA_OF_BUILD = ("cuda", "cuda_version")


def unseen_gpus(manifest: Manifest, gpus: Mapping[str, Any]) -> str:
    """Reason that a framework sees no GPU of this machine, with the command that changes it.

    Empty where it sees one, where there is none, and where its build tells nothing. A driver runs
    builds for every version of CUDA's that has its own first number (CUDA Compatibility, "Minor
    Version Compatibility").
    """
    cuda_versions = [manifest.build[name] for name in _CUDA_OF_BUILD if name in manifest.build]
    if manifest.sees_gpu or not gpus["models"]:
        return ""
    newest = gpus["cuda"]
    command = gpu_build(manifest.framework, newest)
    if not cuda_versions:
        return _unseen_by_plugin(manifest, command)
    built, instead = cuda_versions[0], f": {command}" if command else ""
    if not built[:1].isdecimal():
        return f"this build has no CUDA: install one for CUDA {newest} or earlier{instead}"
    if int(built.partition(".")[0]) > int(newest.partition(".")[0]):
        return (
            f"this build is for CUDA {built}, and the driver for CUDA up to {newest}: update the "
            f"driver, or install a build for CUDA {newest} or earlier{instead}"
        )
    if not _has_runtime(built.partition(".")[0]):
        return (
            f"this build is for CUDA {built}, whose libraries are not here: install it with them "
            f"in an environment of its own{instead} (docs/gpu.md)"
        )
    return f"this build is for CUDA {built}: {_HIDING}"


#: What hides a GPU from a framework that is built for it.
_HIDING = "look at CUDA_VISIBLE_DEVICES, and at the permissions of /dev/nvidia*"


def _unseen_by_plugin(manifest: Manifest, command: str) -> str:
    """The same of a framework whose CUDA is a package of its own, as JAX's is."""
    plugins = manifest.build.get("plugins")
    if manifest.gpu_failure:
        what = f"{plugins or 'a plugin'} is installed, and does not start: {manifest.gpu_failure}"
        return f"{what}; the build for this driver: {command}" if command else what
    if plugins:
        return f"{plugins} is installed: {_HIDING}"
    return f"no plugin for CUDA is installed: {command}" if command else ""


def gpu_build(framework: str, cuda: str) -> str:
    """The command for a build of a framework that a driver can run; empty where none is known.

    That of the newest CUDA in the table which is not newer than the driver's: a driver runs builds
    for earlier CUDAs, too.

    Args:
        cuda: the newest version that the driver is for: ``12.2``.
    """
    table = read_table(__package__, "gpu_builds.toml")
    builds: dict[str, str] = table.get(framework, {})
    runnable = [first for first in map(int, builds) if first <= int(cuda.partition(".")[0])]
    return builds[str(max(runnable))] if runnable else ""


def _has_runtime(major: str) -> bool:
    """True if CUDA's runtime of a first number can be loaded, or is an installed package."""
    packages = (f"nvidia-cuda-runtime-cu{major}", "nvidia-cuda-runtime")
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            if metadata.version(package).startswith(f"{major}."):
                return True
    try:
        ctypes.CDLL(f"libcudart.so.{major}")
    except OSError:
        return False
    return True
