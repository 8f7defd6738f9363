"""``fwbench doctor``: what this machine has, at length."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from fwbench import ceilings, machine
from fwbench.ceilings import Ceiling, Ceilings
from fwbench.cli.common import add_command, print_result, rendered
from fwbench.errors import FwbenchError
from fwbench.frameworks import registry
from fwbench.frameworks.unseen import unseen_gpus
from fwbench.gangs import network
from fwbench.gate import builds, releases
from fwbench.plugin.lines import Live
from fwbench.project import project_root
from fwbench.records.units import four_digits, mebibytes
from fwbench.terms.manifest import Manifest
from fwbench.terms.replicas import Link
from fwbench.workers.environments import NOT_MADE_HERE, Environments
from fwbench.workers.inventory import describe
from fwbench.workloads import data

#: Packages whose versions explain a record, in addition to the frameworks themselves.
_PACKAGES = (
    *("fwbench", "pytest", "pytest-benchmark", "numpy", "pygal", "psutil", "threadpoolctl"),
    "nvidia-ml-py",
)

#: What shows whether there can be networks of a rate, and of a rate and a delay.
_LINKS = (Link(100_000_000), Link(100_000_000, 0.001))


def add_to(commands: Any) -> None:
    """Add ``fwbench doctor`` to the commands."""
    add_command(commands, "doctor", _doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    threads = arguments.threads or machine.usable_cpus()
    live = Live(sys.stderr)
    root = project_root(Path())
    environments = Environments(root)
    facts_of_machine = machine.machine(machine.cpu_model())
    stored = Ceilings(root, facts_of_machine, threads)
    if arguments.peaks:
        stored.prepare()
        stored.store(ceilings.measure(threads, live.watching))
    if arguments.gpu:
        return _try_gpu(arguments, threads, live)
    names = list(registry.registered())
    with live.doing(f"starting {', '.join(names)}"):
        answers = describe(names, threads, environments.interpreter_of)
    facts: dict[str, Any] = {
        "machine": facts_of_machine,
        "gpus": machine.gpus(),
        "ceilings": ceilings.to_json(stored.load()),
        "packages": {name: _version(name) for name in _PACKAGES},
        "threads": threads,
        "data": {name: _data(name) for name in data.NAMES},
        "networks": {str(link): network.missing(link) for link in _LINKS},
        "environments": {
            name: {
                "python": environment.python,
                "frameworks": dict(environment.frameworks),
                "made_here": environment.is_made_here,
            }
            for name, environment in environments.all().items()
        },
        "frameworks": {n: a.to_json() for n, a in answers.items() if isinstance(a, Manifest)},
        "absent": {
            n: {"reason": a.reason, "remedy": a.remedy}
            for n, a in answers.items()
            if not isinstance(a, Manifest)
        },
    }
    if arguments.newer:
        with live.doing("looking for newer releases"):
            facts["newer"] = _newer(set(facts["frameworks"]) - set(facts["environments"]))
    print_result(arguments, facts, _report(facts))
    return 0


def _try_gpu(arguments: argparse.Namespace, threads: int, live: Live) -> int:
    from fwbench.ceilings import gpu_suite

    device = "gpu:0" if machine.gpus().get("models") else "cpu"
    outcomes = gpu_suite.measure(threads, device, watching=live.watching)
    text = rendered("doctor_gpu.txt.j2", device=device, outcomes=outcomes)
    print_result(arguments, [*map(asdict, outcomes)], text)
    return int(any(outcome.holds is False for outcome in outcomes))


def _data(name: str) -> dict[str, str]:
    """Where a data set is, or what is wrong with it."""
    try:
        location = data.find(name, None)
    except FwbenchError as error:
        return {"source": "unusable", "origin": str(error)}
    return {"source": location.source, "origin": location.origin}


def _newer(frameworks: Iterable[str]) -> dict[str, Any]:
    """Newer releases of what is imported as these frameworks here, or why they are not known."""
    distributions = metadata.packages_distributions()
    named = (distributions[name][0] for name in frameworks if name in distributions)
    installed = {builds.canonical(package): metadata.version(package) for package in named}
    try:
        return {"releases": [*map(asdict, releases.newer(installed))], "unknown": ""}
    except FwbenchError as error:
        return {"releases": [], "unknown": str(error)}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _report(facts: dict[str, Any]) -> str:
    return rendered(
        "doctor.txt.j2",
        **{"newer": None, **facts},
        interpreter=sys.executable,
        data_variable=data.VARIABLE,
        rates_by_device={name: _rates(stored) for name, stored in facts["ceilings"].items()},
        not_made_here=NOT_MADE_HERE,
        manifests=[*map(Manifest.from_json, facts["frameworks"].values())],
        capabilities=capabilities,
        unseen_gpus=unseen_gpus,
    )


def capabilities(manifest: Manifest) -> dict[str, str]:
    """The capabilities of a framework as texts, by name; empty for one that it does not have."""
    on_request = dict.fromkeys(manifest.on_request, " (on request)")
    offered = [name for name, reason in manifest.strategies.items() if not reason]
    own_toggles = (toggle.name for toggle in manifest.own_toggles)
    rows: dict[str, Sequence[Sequence[str]]] = {
        "executions": [[name + on_request.get(name, "") for name in manifest.executions]],
        "dtypes": [manifest.dtypes],
        "directions": [["forward", *["backward"] * manifest.differentiable]],
        "training": [manifest.training_executions, manifest.training_dtypes],
        "networks": [manifest.network_executions],
        "int8": [manifest.int8_executions],
        "own models": [manifest.users_models],
        "checkpoints": [["yes"] * manifest.checkpoints],
        "recompute": [manifest.recomputing_executions],
        "toggles": [[*manifest.process_toggles, *own_toggles]],
        "replicas": [manifest.gang_executions, offered, manifest.collectives],
        "gpu memory": [["peak"] * manifest.gpu_memory],
        "gpu clock": [[manifest.gpu_clock]],
    }
    return {
        name: "; ".join(", ".join(part) for part in parts) if any(parts[0]) else ""
        for name, parts in rows.items()
    }


def _rates(stored: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The best rates of a device: of what, the rate, and what reached it."""
    ceiling = Ceiling(**stored)
    products = [(f"{dtype:<9}", r, dtype) for dtype, r in ceiling.flops_per_s.items()]
    copies = [("copy     ", ceiling.bytes_per_s or 0.0, "copy")]
    copies += [(path, rate, path) for path, rate in ceiling.copied_per_s.items()]
    copies += [
        (f"copy of {mebibytes(int(size) / 2)}", rate, "cached_copy")
        for size, rate in ceiling.cached_per_s.items()
    ]
    return [
        (what, f"{four_digits(rate / 1e9)} {unit}/s", ceiling.by.get(by, "unknown"))
        for unit, rates in (("GFLOP", products), ("GB", copies))
        for what, rate, by in rates
        if rate
    ]
