"""Stored runs with launches, made up: what ``--fw-launches`` would have written."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytest_benchmark.utils import safe_dumps

from fwbench.cases.case import Case
from fwbench.gate.budget import History, Result
from fwbench.gate.samples import METRICS, SampleSet
from fwbench.plugin import host
from fwbench.records.facts import CaseFacts, Launch
from fwbench.records.measurement import CLOCK, Measurement
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation

#: Launches of a case that differ by less than anything a gate cares for.
QUIET = (1.0, 1.001, 1.002, 1.003, 1.004, 1.005, 1.006, 1.007)


def times(
    center: float = 1.0, launches: int = 5, spread: float = 0.0, seed: int = 0
) -> tuple[float, ...]:
    """Launches around a time; without a spread they differ just enough not to tie."""
    if not spread:
        return tuple(center * (1 + 1e-4 * i) for i in range(launches))
    random = np.random.default_rng(seed)
    return tuple(map(float, center * np.exp(spread * random.standard_normal(launches))))


def case_id(workload: str = "gemm", framework: str = "numpy", device: str = "cpu") -> str:
    """The id of a case in its size 4."""
    return f"{workload}-{framework}-{device}-eager-forward-float32-4"


def entry(
    workload: str = "gemm",
    values_s: Sequence[float] = QUIET,
    framework: str = "numpy",
    test: str = "test_it.py::test_it",
    **facts: Any,
) -> dict[str, Any]:
    """The entry of a case that was launched.

    Args:
        values_s: seconds, one a launch.
        facts: what else fwbench says of it, and what it says otherwise.
    """
    fwbench_facts = {
        "workload": workload,
        "framework": framework,
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": 4,
        "framework_version": "1.26.4",
        "device": "cpu",
        "device_name": "Fake CPU",
        "threads": 2,
        "toggles": {"blas": "openblas"},
        "statistic": "min",
        "contended": False,
        "threshold": None,
        "launches": [{"launch": i, "value_s": value} for i, value in enumerate(values_s)],
        **facts,
    }
    param = case_id(workload, framework, fwbench_facts["device"])
    return {
        "name": f"{test.rpartition('::')[2]}[{param}]",
        "fullname": f"{test}[{param}]",
        "param": param,
        "params": {},
        "group": workload,
        "extra_info": {"fwbench": fwbench_facts},
        "stats": {"data": list(values_s), "min": min(values_s)},
    }


def plain(name: str = "test_plain", min_s: float = 1.0) -> dict[str, Any]:
    """The entry of a benchmark that is none of fwbench's."""
    return {
        "name": name,
        "fullname": f"test_it.py::{name}",
        "param": None,
        "params": None,
        "group": None,
        "extra_info": {},
        "stats": {"data": [min_s, 2 * min_s], "min": min_s},
    }


def output(entries: Iterable[Mapping[str, Any]], **session: Any) -> dict[str, Any]:
    """The whole JSON of a session that ended well."""
    fwbench_facts = {
        "version": "0.1.0",
        "schema": 1,
        "machine": {"cpu": "Fake CPU", "gpu_driver": "550.1"},
        "missing": [],
        "outcome": {"failed": 0, "interrupted": False},
        "gate": None,
        **session,
    }
    return {
        "machine_info": {"cpu": {"brand_raw": "Fake CPU"}},
        "commit_info": {},
        "benchmarks": list(entries),
        "version": "5.3.1",
        "fwbench": fwbench_facts,
    }


def write(path: Path, *entries: Mapping[str, Any], **session: Any) -> Path:
    """Write the JSON of a session; see :func:`output`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(output(entries, **session)), encoding="utf-8")
    return path


def holding(content: str) -> Callable[[Path], Any]:
    """Makes a file with that text."""
    return lambda path: path.write_text(content, encoding="utf-8")


def cut_short(path: Path) -> None:
    made = json.dumps(output([entry()]))
    path.write_text(made[: len(made) // 2], encoding="utf-8")


def _session(**session: Any) -> Callable[[Path], Any]:
    return lambda path: write(path, entry(), **session)


def _entry(**values: Any) -> Callable[[Path], Any]:
    """A run of which one entry was changed by hand."""
    return lambda path: write(path, {**entry(), **values})


def _facts(**facts: Any) -> Callable[[Path], Any]:
    """A run of which facts of one case were changed by hand; None takes one away."""
    made = {**entry()["extra_info"]["fwbench"], **facts}
    kept = {name: value for name, value in made.items() if value is not None or name not in facts}
    return _entry(extra_info={"fwbench": kept})


#: What changes a file for a row of unreadable.json, by the kind that the row begins with.
_MAKERS: dict[str, Callable[[Any], Callable[[Path], Any]]] = {
    "text": holding,
    "session": lambda facts: _session(**facts),
    "entry": lambda values: _entry(**values),
    "facts": lambda facts: _facts(**facts),
}

#: What is made where a run should be, and what must be said of it: also what was changed by hand,
#: or by another program that goes by the same names.
UNREADABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda _: None, "No such file"),
    "truncated": (cut_short, "is not JSON, or is cut off"),
    "binary": (lambda path: path.write_bytes(bytes(range(256))), "can't decode byte"),
    "a session that is a list": (
        lambda path: path.write_text(json.dumps({**output([entry()]), "fwbench": []})),
        "fwbench is []",
    ),
    **{
        name: (_MAKERS[kind](value), said)
        for name, (kind, value, said) in json.loads(
            Path(__file__).with_name("unreadable.json").read_text(encoding="utf-8")
        ).items()
    },
}


def sample(key: str = "a", values_s: Sequence[float] = QUIET, **changes: Any) -> Measurement:
    """The launches of a case of NumPy, in which all rounds took the same time.

    Args:
        changes: other facts; figures of its launches by the metrics' names or as the clock, a value
            each; ``launched=False`` for a benchmark of a single process; an
            empty framework for one that is not fwbench's.
    """
    names = [*(metric.name for metric in METRICS), CLOCK]
    given = {name: changes.pop(name) for name in names if name in changes}
    figures = [
        {"minimum": value_s, "median": value_s, **{name: given[name][i] for name in given}}
        for i, value_s in enumerate(values_s)
    ]
    launches = [Launch(launch=i, value_s=value_s) for i, value_s in enumerate(values_s)]
    facts: dict[str, Any] = {"framework": "numpy", "device": "cpu"}
    if changes.pop("launched", True):
        facts["launches"] = launches
    work = changes.pop("work", key)
    facts = {name: value for name, value in {**facts, **changes}.items() if value != ""}
    return Measurement(CaseFacts(**facts), values_s, nodeid=key, param=work, figures=figures)


def run(*samples: Measurement, name: str = "run.json", **changes: Any) -> SampleSet:
    """A run of these cases."""
    return SampleSet(name, {measurement.key: measurement for measurement in samples}, **changes)


def sent(case: Case) -> Any:
    """The record of a measured case, as it arrives in the parent."""
    return json.loads(safe_dumps(host.record(case.benchmark)))


def measured(**settings: Any) -> dict[str, Any]:
    """The record of a case of the fake framework, as it arrives in the parent."""
    case = case_of(cell(operation()), FakeFramework(), **settings)
    case.measure()
    return sent(case)


#: What every case takes of a launch, and what a launch takes beyond its cases.
CASE_S, OVERHEAD_S = 2.0, 1.0


def launch(history: History, times_s: Mapping[str, float | None], *contended: str) -> None:
    """Add a launch to a history.

    Args:
        times_s: of its cases; None for one that failed.
        contended: the cases that had to share their processors.
    """
    for case, time_s in times_s.items():
        lost = "failed" if time_s is None else ""
        history.add(case, Result(CASE_S, time_s, case in contended, lost=lost))
    history.end_launch(CASE_S * len(times_s) + OVERHEAD_S)


def history(**times_s: Sequence[float]) -> History:
    """A history of launches of all cases.

    Args:
        times_s: of each case, one a launch; as many of each.
    """
    made = History()
    for values in zip(*times_s.values(), strict=True):
        launch(made, dict(zip(times_s, values, strict=True)))
    return made


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s
