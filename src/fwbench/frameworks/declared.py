"""Declarations of fwbench's own frameworks, installed or not: no process is started."""

from __future__ import annotations

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.import_stub import stubbed
from fwbench.frameworks.registry import registered
from fwbench.terms.manifest import Device, Manifest

#: Where fwbench's own frameworks are.
_OWN = "fwbench.frameworks."


def manifests() -> dict[str, Manifest]:
    """Declarations of fwbench's own frameworks for the CPU, by the framework's name.

    It has no version, and what an installed one lacks is not known.
    """
    points = [point for point in registered().values() if point.module.startswith(_OWN)]
    points.sort(key=lambda point: point.name)
    with stubbed({point.name for point in points}):
        return {point.name: _manifest(point.load()) for point in points}


def _manifest(framework: type[Framework]) -> Manifest:
    return Manifest(
        **framework.declared(),
        version="",
        devices=(Device("cpu", ""),),
        operations=framework.written(),
        missing={},
        threads=None,
        build={},
        sources=(),
    )
