"""What fwbench's own frameworks declare, whether or not they are installed: nothing is started."""

from __future__ import annotations

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.import_stub import stubbed
from fwbench.frameworks.registry import registered
from fwbench.manifest import Device, Manifest

#: Where fwbench's own frameworks are.
_OWN = "fwbench.frameworks."


def manifests() -> dict[str, Manifest]:
    """What each of fwbench's own frameworks declares for the CPU, by the framework's name.

    It has no version, and what an installed one lacks is not known.
    """
    points = [point for point in registered().values() if point.module.startswith(_OWN)]
    points.sort(key=lambda point: point.name)
    with stubbed({point.name for point in points}):
        return {point.name: _manifest(point.load()) for point in points}


def _manifest(framework: type[Framework]) -> Manifest:
    return Manifest(
        name=framework.name,
        version="",
        devices=(Device("cpu", ""),),
        executions=framework.executions,
        on_request=tuple(sorted(framework.on_request)),
        dtypes=framework.dtypes,
        operations=framework.written(),
        missing={},
        differentiable=framework.differentiable,
        gaps=tuple(framework.gaps),
        training_executions=framework.training_executions,
        whole_loops=tuple(sorted(framework.whole_loops)),
        network_executions=framework.network_executions,
        users_models=framework.users_models,
        int8_executions=framework.int8_executions,
        training_dtypes=framework.training_dtypes,
        process_toggles=framework.process_toggles,
        toggle_gaps=tuple(framework.every_toggle_gap()),
        strategies=dict(framework.strategies),
        gang_executions=framework.gang_executions,
        collectives=framework.collectives,
        coordinated=framework.coordinated,
        gang_gaps=tuple((*what, reason) for what, reason in framework.gang_gaps.items()),
        coordinator=framework.coordinator,
        threads=None,
        build={},
        sources=(),
    )
