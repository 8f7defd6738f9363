"""Why a framework cannot do what toggles ask for, of a workload that it otherwise has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fwbench import toggles, workloads
from fwbench.errors import UsageError
from fwbench.manifest import Manifest
from fwbench.presets import Size
from fwbench.terms.straggler import NOBODY, Straggler, straggler_of
from fwbench.workloads.workload import Workload


def of_toggles(
    workload: Workload,
    size: Size,
    manifest: Manifest,
    device: str,
    execution: str,
    dtype: str,
    values: toggles.Combination,
) -> str | None:
    """Why toggles cannot have the values asked for: for anyone, here, or in a framework.

    Args:
        workload: what is computed.
        size: of the case.
        manifest: of the framework.
        device: of the case.
        execution: how.
        dtype: of the case.
        values: of the toggles that were asked for.
    """
    given = {name: toggles.TOGGLES[name].default for name in workload.toggles}
    for name, _ in values:
        if toggles.is_of_process(name) and name not in manifest.process_toggles:
            return f"{manifest.name} has no toggle {name}"
    given |= dict(values)
    reasons = (
        _of_value(workload, manifest, (device, execution, dtype), name, value)
        for name, value in sorted(given.items())
    )
    first = next(filter(None, reasons), None) or _of_devices(manifest, device, given)
    return first or (_of_gang(workload, size, manifest, given) if workload.shared else None)


def _of_value(
    workload: Workload, manifest: Manifest, where: tuple[str, str, str], name: str, value: str
) -> str | None:
    """The same, of one toggle."""
    device, execution, dtype = where
    toggle = toggles.TOGGLES.get(name)
    return (
        manifest.value_gap(name, value)
        or (toggle.gap(value, device, dtype) if toggle else None)
        or workload.toggle_gap(name, value)
        or manifest.toggle_gap(execution, name, value)
    )


def _of_devices(manifest: Manifest, device: str, given: Mapping[str, str]) -> str | None:
    """Why layers cannot be divided among a device and the next ones; a CPU can be several."""
    kind, _, first = device.partition(":")
    parts = int(given.get("model_parallel", "1"))
    if parts > 1 and given.get("replicas", "1") != "1":
        return "replicas with layers on several devices are not written (--fw-replicas 1)"
    others = [f"{kind}:{int(first) + place}" for place in range(1, parts)] if first else []
    missing = [other for other in others if not manifest.has(other)]
    return f"{manifest.name} sees no {missing[0]} beside {device}" if missing else None


def _of_gang(
    workload: Workload, size: Size, manifest: Manifest, given: Mapping[str, str]
) -> str | None:
    """Why replicas cannot share a workload."""
    replicas = int(given.get("replicas", "1"))
    if replicas > 1 and getattr(workloads, workload.name, None) is not workload:
        return f"replicas find fwbench's own workloads alone, not {workload.name}"
    strategy = given.get("strategy", "")
    return (
        _of_straggler(straggler_of(given.get("straggler", NOBODY)), replicas, manifest, strategy)
        or manifest.strategies.get(strategy)
        or next(filter(None, (manifest.gang_gap(strategy, *each) for each in given.items())), None)
        or workload.gang_gap(given)
        or workload.share_gap(size, replicas)
    )


def _of_straggler(
    late: Straggler | None, replicas: int, manifest: Manifest, strategy: str
) -> str | None:
    """Why no worker can be late."""
    if late is None:
        return None
    if late.rank >= replicas > 1:
        return (
            f"the straggler is worker {late.rank}, and {replicas} replicas are 0 to {replicas - 1}"
        )
    if strategy in manifest.coordinated:
        return (
            f"a straggler sleeps in its own step, and {manifest.name}'s workers take none with "
            f"{strategy}: a coordinator gives them graphs"
        )
    return None


def is_built(manifest: Manifest, execution: str, strategy: str) -> bool:
    """Whether a framework has replicas, or a reason why an execution of its has none.

    Args:
        manifest: of the framework.
        execution: how the work would run.
        strategy: how replicas would agree.
    """
    here = execution in manifest.gang_executions
    explained = manifest.toggle_gap(execution, "strategy", strategy) is not None
    return strategy in manifest.strategies and (here or explained)


def refuse_unbuilt(
    asked: toggles.Values, frameworks: Iterable[str], manifests: Mapping[str, Manifest]
) -> None:
    """Refuse replicas of frameworks of which fwbench has built none: there is no gap to report.

    Args:
        asked: values by toggle.
        frameworks: that were asked for by name.
        manifests: of those that can be used, by name.

    Raises:
        UsageError: they are asked for.
    """
    if {*asked.get("replicas", ("1",))} == {"1"}:
        return
    have = [name for name, manifest in manifests.items() if manifest.strategies]
    for name in frameworks:
        if name in manifests and name not in have:
            raise UsageError(
                f"fwbench has no replicas of {name} yet, and --fw-replicas asks for some; leave "
                f"{name} out of --fw ({', '.join(have) or 'numpy and torch'} can), or leave out "
                "--fw-replicas"
            )
