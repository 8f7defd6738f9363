"""All reasons why a framework cannot fill a cell of the grid: the rules of ``gaps.toml``.

The skip of a test, ``fwbench list`` and the report print the sentence of the first rule that
holds.
"""

import importlib.util
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from fwbench import workloads
from fwbench.errors import DeclarationError, UsageError
from fwbench.packaged import read_table
from fwbench.terms import toggles
from fwbench.terms.manifest import Gap, Manifest
from fwbench.terms.names import DEFAULT_DTYPE, FLOAT8, INT8, is_complex
from fwbench.terms.replicas import NO_STRAGGLER, WITH_SERVERS, straggler_of
from fwbench.workloads.cell import Cell
from fwbench.workloads.collectives import Collective, ServedStep
from fwbench.workloads.imports import Import
from fwbench.workloads.model import ModelInference, ModelTraining
from fwbench.workloads.models.passes import (
    CLASSIFICATIONS,
    Classification,
    ForwardBackward,
    Inference,
)
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.operation import Operation
from fwbench.workloads.photos import PhotoLoading
from fwbench.workloads.training import Step, Training, Trains, TrainsInLoop, WithNetwork
from fwbench.workloads.workload import Workload

#: The reciprocal of the smallest normal number of float16.
_OF_FLOAT16 = 2**14

_UNWRITTEN = "fwbench has no {m.name} implementation of {w.name}"

#: The classes of workloads by the names that rules have for them.
_CLASSES: Mapping[str, type[Workload]] = {
    kind.__name__: kind
    for kind in (
        *(Workload, Operation, Collective, ServedStep, ModelInference, ModelTraining, PhotoLoading),
        Import,
        *(WithNetwork, TrainsInLoop, Training, Step, ModelStep),
        *(Inference, Classification, ForwardBackward),
    )
}


class _Asked(NamedTuple):
    """A cell that is asked for, and the framework's manifest; or a workload alone."""

    w: Any
    c: Any = None
    m: Any = None


#: A condition, or a reason, None where it does not hold.
_Question = Callable[[_Asked], Any]


@dataclass(frozen=True)
class Rule:
    """A reason why a framework cannot fill a cell."""

    #: The classes of the workloads that it is about.
    about: tuple[type[Workload], ...]
    #: Those of them that it is not about.
    but: tuple[type[Workload], ...]
    #: Makes the sentence; None where the rule does not hold.
    reason: _Question
    #: All must be met.
    conditions: Sequence[_Question]
    #: The toggle and the value that it is about: ``tf32=on``; empty for the whole cell.
    toggle: str = ""

    def is_about(self, kind: type[Workload]) -> bool:
        """True if it is about a class of workloads."""
        return issubclass(kind, self.about) and not issubclass(kind, self.but)

    def why(self, asked: _Asked) -> str | None:
        """The sentence; None where the rule does not hold."""
        reason: str | None = None
        if all(condition(asked) for condition in self.conditions):
            reason = self.reason(asked)
        return reason


def _rule(
    about: str | list[str],
    reason: str = "",
    explained_by: str = "",
    conditions: Sequence[str] = (),
    but: Sequence[str] = (),
    toggle: str = "",
) -> Rule:
    sentence = " ".join(reason.split())
    return Rule(
        tuple(map(_CLASSES.__getitem__, [about] if isinstance(about, str) else about)),
        tuple(map(_CLASSES.__getitem__, but)),
        _function(explained_by) if explained_by else lambda asked: _filled(sentence, asked),
        [*map(_condition, conditions)],
        toggle,
    )


def _filled(sentence: str, asked: _Asked) -> str:
    return sentence.format(**asked._asdict())


def _condition(text: str) -> _Question:
    """The question of a condition; ``gaps.toml`` has the forms."""
    name, *relation = text.removeprefix("not ").split()
    value = _value(name)
    match relation:
        case ["=", word]:
            return lambda asked: value(asked) == word
        case ["!=", word]:
            return lambda asked: value(asked) != word
        case ["in", names]:
            known = _value(names)
            return lambda asked: value(asked) in known(asked)
        case ["not", "in", names]:
            known = _value(names)
            return lambda asked: value(asked) not in known(asked)
    return (lambda asked: not value(asked)) if text.startswith("not ") else value


def _value(name: str) -> _Question:
    """An attribute of the workload, the cell or the manifest, or what a function here answers."""
    if name.startswith("c.values."):
        toggle = name.removeprefix("c.values.")
        return lambda asked: asked.c.values.get(toggle)
    return attrgetter(name) if "." in name else _function(name)


def _function(name: str) -> _Question:
    function = _FUNCTIONS[name]
    return lambda asked: function(*asked)


@cache
def _rules(kind: type[Workload], toggle: str) -> Sequence[Rule]:
    """The rules about a class of workloads: a grid asks for thousands of cells."""
    return [rule for rule in _every_rule() if rule.is_about(kind) and rule.toggle == toggle]


@cache
def _every_rule() -> Sequence[Rule]:
    return [_rule(**row) for row in read_table(__package__, "gaps.toml")["rule"]]


def why(cell: Cell, manifest: Manifest) -> str | None:
    """Why a framework cannot fill a cell; None if it can."""
    return _first("", _Asked(cell.workload, cell, manifest))


def _first(toggle: str, asked: _Asked) -> str | None:
    """The sentence of the first rule about a toggle's value, or the whole cell, that holds."""
    kind: type[Workload] = type(asked.w)
    return next(filter(None, (rule.why(asked) for rule in _rules(kind, toggle))), None)


def value_gap(work: Workload, toggle: str, value: str) -> str | None:
    """Why work cannot be measured with a value of a toggle; None if it can."""
    return _first(f"{toggle}={value}", _Asked(work))


def of_operation(manifest: Manifest, operation: Operation) -> tuple[Gap, ...]:
    """The parts of an operation that a framework does not offer; a whole gap is the only one."""
    gaps = tuple(gap for gap in manifest.gaps if gap.workload == operation.name)
    whole = tuple(gap for gap in gaps if gap.whole)
    if whole or _is_written(operation, manifest):
        return whole[:1] or gaps
    return (Gap(_UNWRITTEN.format(w=operation, m=manifest), operation.name),)


def _of_cell(name: str, c: Cell, m: Manifest, terms: int = 0) -> str | None:
    settings = [f"{toggle}={value}" for toggle, value in {**m.defaults, **dict(c.toggles)}.items()]
    return m.gap(name, c.execution, c.direction, c.dtype, c.device, terms, settings)


def _is_written(w: Operation, m: Manifest) -> bool:
    return w.creates or w.name in m.operations or m.framework in w.implementations


def _without_dtype(w: Operation, c: Cell, m: Manifest) -> bool:
    usual = not (is_complex(c.dtype) or c.dtype == FLOAT8)
    return not usual if w.dtypes is None else c.dtype not in w.dtypes


def _vanishing(w: Operation, c: Cell, m: Manifest) -> str | None:
    if not w.average or w.terms(c.size) <= _OF_FLOAT16:
        return None
    return f"gradients of a mean of {w.terms(c.size)} terms are below the normal numbers of float16"


def _in_int8(w: Inference, c: Cell, m: Manifest) -> bool:
    return c.dtype == INT8 and bool(w.offered(m))


def _uncalibrated(w: Inference, c: Cell, m: Manifest) -> str:
    return (
        f"int8 has to be calibrated with examples, and {w.name} has drawn weights and no examples: "
        f"measure {' or '.join(trained.name for trained in CLASSIFICATIONS)}"
    )


def _elsewhere_in_int8(w: Classification, c: Cell, m: Manifest) -> str:
    return f"{m.name} answers in int8 in {', '.join(m.int8_executions)}, and not in {c.execution}"


def _unable_in_dtype(w: WithNetwork, c: Cell, m: Manifest) -> bool:
    narrow = isinstance(w, Classification) and _in_int8(w, c, m)
    return c.dtype not in m.training_dtypes and not narrow


def _in_other_executions(w: WithNetwork, c: Cell, m: Manifest) -> str | None:
    if c.execution in w.executions(m):
        return None
    return f"{m.name} {w.unable} in {c.execution}, but in {', '.join(w.executions(m))}"


def _without_servers(w: ServedStep, c: Cell, m: Manifest) -> str | None:
    reasons = [m.strategies.get(name) for name in WITH_SERVERS]
    if "" in reasons:
        return None
    return next(filter(None, reasons), f"{m.name} has no parameter servers")


def _of_toggles(w: Workload, c: Cell, m: Manifest) -> str | None:
    """The first toggle, by name, whose value does not go with the cell."""
    for name, _ in c.toggles:
        if toggles.is_of_process(name) and not m.reads(name):
            return f"{m.name} has no toggle {name}"
    for name, value in sorted(c.values.items()):
        toggle = toggles.TOGGLES.get(name)
        reason = (
            m.value_gap(name, value)
            or (toggle.gap(value, c.device, c.dtype) if toggle else None)
            or value_gap(w, name, value)
            or m.toggle_gap(c.execution, name, value)
        )
        if reason:
            return reason
    return None


def _parts(c: Cell, names: Iterable[str] = toggles.PARALLEL) -> int:
    return math.prod(int(c.values.get(name, "1")) for name in names)


def _missing_device(w: Workload, c: Cell, m: Manifest) -> str | None:
    """The devices of a case are a GPU and the next ones; a CPU can be several."""
    kind, _, first = c.device.partition(":")
    others = [f"{kind}:{int(first) + place}" for place in range(1, _parts(c))] if first else []
    missing = [other for other in others if not m.has(other)]
    return f"{m.name} sees no {missing[0]} in addition to {c.device}" if missing else None


def _late(w: Workload, c: Cell, m: Manifest) -> str | None:
    late = straggler_of(c.values.get("straggler", NO_STRAGGLER))
    if late is None:
        return None
    if late.rank >= c.replicas > 1:
        last = c.replicas - 1
        return f"the straggler is worker {late.rank}, and {c.replicas} replicas are 0 to {last}"
    strategy = c.values.get("strategy", "")
    if strategy in m.coordinated:
        return (
            f"a straggler sleeps in its own step, and {m.name}'s workers take none with "
            f"{strategy}: a coordinator gives them graphs"
        )
    return None


def _of_strategy(w: Workload, c: Cell, m: Manifest) -> str | None:
    strategy = c.values.get("strategy", "")
    gaps = (m.gang_gap(strategy, name, value) for name, value in c.values.items())
    return m.strategies.get(strategy) or next(filter(None, gaps), None)


def _of_split(w: Any, c: Cell, m: Manifest) -> str | None:
    try:
        objective = w.at(c.size)
    except DeclarationError:
        return None  # its case says so, if it is not deselected
    together = c.values.get("normalization") == "synchronized"
    shares = c.batch, 1 if together else c.replicas
    if toggles.asynchronous(c.toggles):
        if together:
            return "workers that do not wait have no common batch (--fw-toggle normalization=local)"
        shares = c.batch // c.replicas, 1
    reason: str | None = objective.split_gap(c.batch, c.replicas) if c.replicas > 1 else None
    return reason or objective.rounding_gap(*shares, c.dtype)


#: Conditions and reasons that need code, by the names that rules have for them.
_FUNCTIONS: Mapping[str, Callable[[Any, Cell, Manifest], Any]] = {
    # What the framework declares, and has
    "declared": lambda w, c, m: _of_cell(w.name, c, m),
    "declared_of_loop": lambda w, c, m: _of_cell(w.loop.name, c, m),
    "declared_of_terms": lambda w, c, m: _of_cell(w.name, c, m, w.terms(c.size)),
    "missing": lambda w, c, m: m.missing.get(w.name),
    "unwritten": lambda w, c, m: not _is_written(w, m),
    "unseen": lambda w, c, m: not m.has(c.device),
    # Operations
    "without_dtype": _without_dtype,
    "of_zeros": lambda w, c, m: w.zeros_gap,
    "vanishing": _vanishing,
    # Networks, users' models and photos
    "in_int8": _in_int8,
    "uncalibrated": _uncalibrated,
    "elsewhere_in_int8": _elsewhere_in_int8,
    "unable": lambda w, c, m: not w.offered(m),
    "unable_in_dtype": _unable_in_dtype,
    "in_other_executions": _in_other_executions,
    "unlearnable": lambda w, c, m: (
        w.model.targets is None and w.model.versions[m.framework].loss is None
    ),
    "in_one_segment": lambda w, c, m: len(w.at(w.smallest).graph.segments) <= 1,
    "normalized": lambda w, c, m: isinstance(w, Trains) and w.at(w.smallest).normalized,
    "not_on_host": lambda w, c, m: (c.dtype, c.device) != (DEFAULT_DTYPE, "cpu"),
    "without_pillow": lambda w, c, m: importlib.util.find_spec("PIL") is None,
    # Toggles
    "of_toggles": _of_toggles,
    "several_threads": lambda w, c, m: c.replicas > 1 or m.threads not in (None, 1),
    "unbindable": lambda w, c, m: not hasattr(os, "sched_setaffinity"),
    "divided": lambda w, c, m: _parts(c) > 1,
    "uneven_batch": lambda w, c, m: c.batch % _parts(c, ["data_parallel"]) > 0,
    "missing_device": _missing_device,
    # Replicas
    "shared": lambda w, c, m: c.replicas > 1,
    "foreign": lambda w, c, m: getattr(workloads, w.name, None) is not w,
    "late": _late,
    "of_strategy": _of_strategy,
    "asynchronous": lambda w, c, m: toggles.asynchronous(c.toggles),
    "of_split": _of_split,
    "without_servers": _without_servers,
    "on_gpu": lambda w, c, m: c.device.partition(":")[0] != "cpu",
    "uneven_parts": lambda w, c, m: w.in_parts and c.batch % c.replicas > 0,
    "uneven_rows": lambda w, c, m: c.batch % w.divisor > 0,
}


def is_built(manifest: Manifest, execution: str, strategy: str) -> bool:
    """True if a framework has replicas, or a reason why an execution of its has none."""
    here = execution in manifest.gang_executions
    explained = manifest.toggle_gap(execution, "strategy", strategy) is not None
    return strategy in manifest.strategies and (here or explained)


def refuse_unbuilt(
    requested: toggles.Values, frameworks: Iterable[str], manifests: Mapping[str, Manifest]
) -> None:
    """Refuse replicas of frameworks for which fwbench has none: there is no gap to report.

    Raises:
        UsageError: they are requested.
    """
    if {*requested.get("replicas", ("1",))} == {"1"}:
        return
    have = [name for name, manifest in manifests.items() if manifest.strategies]
    for name in frameworks:
        if name in manifests and name not in have:
            raise UsageError(
                f"fwbench has no replicas of {name} yet, and --fw-replicas asks for some; leave "
                f"{name} out of --fw ({', '.join(have) or 'numpy and torch'} can), or leave out "
                "--fw-replicas"
            )
