"""All reasons why a framework cannot fill a cell of the grid, in the order of precedence.

The skip of a test, ``fwbench list`` and the report print the sentence of the first rule that
holds.
What never makes sense comes before what a framework lacks.
"""

import importlib.util
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from fwbench import workloads
from fwbench.errors import DeclarationError, UsageError
from fwbench.terms import toggles
from fwbench.terms.manifest import Gap, Manifest
from fwbench.terms.names import DEFAULT_DTYPE, FLOAT8, INT8, is_complex
from fwbench.terms.replicas import ALLREDUCE, ASYNCHRONOUS, NO_STRAGGLER, WITH_SERVERS, straggler_of
from fwbench.workloads.cell import Cell
from fwbench.workloads.collectives import Collective, ServedStep
from fwbench.workloads.distribution import INPUTS, ZEROS
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

#: The dtypes in which gradients of networks are verified; :mod:`fwbench.cases.networks` has the
#: bounds.
_DIFFERENTIATED = ("float32", "float64")

_UNWRITTEN = "fwbench has no {m.name} implementation of {w.name}"

#: What is asked of a cell: its workload (of the rule's class), itself, and the manifest.
_Question = Callable[[Any, Cell, Manifest], Any]


class Rule(NamedTuple):
    """A reason why a framework cannot fill a cell.

    Attributes:
        about: the class of the workloads that it is about.
        reason: the sentence, with ``{w}``, ``{c}`` and ``{m}`` for workload, cell and manifest; or
            a function that returns it, or None where the rule does not hold.
        holds: whether it does.
    """

    about: type[Workload] | tuple[type[Workload], ...]
    reason: str | _Question
    holds: _Question = lambda w, c, m: True

    def why(self, cell: Cell, manifest: Manifest) -> str | None:
        """The sentence; None where the rule does not hold."""
        work = cell.workload
        if not self.holds(work, cell, manifest):
            return None
        if isinstance(self.reason, str):
            return self.reason.format(w=work, c=cell, m=manifest)
        reason: str | None = self.reason(work, cell, manifest)
        return reason


def why(cell: Cell, manifest: Manifest) -> str | None:
    """Why a framework cannot fill a cell; None if it can."""
    rules = _rules_of(type(cell.workload))
    return next(filter(None, (rule.why(cell, manifest) for rule in rules)), None)


@cache
def _rules_of(kind: type[Workload]) -> Sequence[Rule]:
    """The rules about a class of workloads: a grid asks for thousands of cells."""
    return [rule for rule in RULES if issubclass(kind, rule.about)]


def of_operation(manifest: Manifest, operation: Operation) -> tuple[Gap, ...]:
    """The parts of an operation that a framework does not offer; a whole gap is the only one."""
    gaps = tuple(gap for gap in manifest.gaps if gap.workload == operation.name)
    whole = tuple(gap for gap in gaps if gap.whole)
    if whole or _is_written(operation, manifest):
        return whole[:1] or gaps
    return (Gap(_UNWRITTEN.format(w=operation, m=manifest), operation.name),)


def _declared(w: Workload, c: Cell, m: Manifest) -> str | None:
    return _of_cell(w.name, c, m)


def _of_cell(name: str, c: Cell, m: Manifest, terms: int = 0) -> str | None:
    settings = [f"{toggle}={value}" for toggle, value in c.toggles]
    return m.gap(name, c.execution, c.direction, c.dtype, c.device, terms, settings)


def _is_written(w: Operation, m: Manifest) -> bool:
    return w.creates or w.name in m.operations or m.framework in w.implementations


def _unseen(w: Workload, c: Cell, m: Manifest) -> bool:
    return not m.has(c.device)


def _has_no(dtype: str, w: Operation) -> bool:
    return is_complex(dtype) or dtype == FLOAT8 if w.dtypes is None else dtype not in w.dtypes


def _in_int8(w: Inference, c: Cell, m: Manifest) -> bool:
    return c.dtype == INT8 and bool(w.offered(m))


def _lacks_dtype(w: WithNetwork, c: Cell, m: Manifest) -> bool:
    narrow = isinstance(w, Classification) and _in_int8(w, c, m)
    return c.dtype not in m.training_dtypes and not narrow


def _without_servers(w: ServedStep, c: Cell, m: Manifest) -> str | None:
    reasons = [m.strategies.get(name) for name in WITH_SERVERS]
    if "" in reasons:
        return None
    return next(filter(None, reasons), f"{m.name} has no parameter servers")


def _unlearnable(w: ModelTraining, c: Cell, m: Manifest) -> bool:
    return w.model.targets is None and w.model.versions[m.framework].loss is None


def _undivided(what: str) -> Callable[[ModelStep], str | None]:
    """Reason of a network whose results are neither recomputed nor divided in parts."""

    def reason(step: ModelStep) -> str | None:
        if len(step.at(step.smallest).graph.segments) > 1:
            return None
        return f"{step.model} {what}: its last layer takes the network's input"

    return reason


def _divided_elsewhere(work: Workload) -> str | None:
    if isinstance(work, ModelStep | Collective | ServedStep):
        return None
    return (
        "only steps of the family models are divided among devices (--fw-toggle model_parallel=1)"
    )


def _unsplit(work: Workload) -> str | None:
    if not isinstance(work, Step | ModelStep):
        return "only steps of training split their batch (--fw-toggle data_parallel=1)"
    if work.at(work.smallest).normalized:
        return f"frameworks normalize parts of a batch of {work.name} differently (--fw-replicas 2)"
    return None


def _unnormalized(work: Workload) -> str | None:
    if isinstance(work, Trains) and work.at(work.smallest).normalized:
        return None
    return f"{work.name} does not normalize by batch (--fw-normalization local)"


#: Values of toggles with which work cannot be measured: its class, the toggle, the value and the
#: reason; the first that holds.
VALUES: tuple[tuple[type[Workload], str, str, str | Callable[[Any], str | None]], ...] = (
    (Operation, INPUTS, ZEROS, lambda operation: operation.zeros_gap),
    (Workload, "normalization", "synchronized", _unnormalized),
    (ModelStep, "recompute", "on", _undivided("keeps all results")),
    (ModelStep, "model_parallel", "2", _undivided("cannot be divided among devices")),
    (Workload, "model_parallel", "2", _divided_elsewhere),
    (Workload, "data_parallel", "2", _unsplit),
    (
        ForwardBackward,
        *("tf32", "on"),
        "gradients of networks are not verified in TF32: each ReLU may decide differently",
    ),
    (
        Collective,
        *("strategy", "ps_async"),
        "an exchange is between workers that wait for each other, and those of ps_async do not",
    ),
    (
        ServedStep,
        *("strategy", ALLREDUCE),
        (
            "null steps and sparse reads are between workers and parameter servers: add "
            "--fw-strategy ps_sync --fw-servers 1"
        ),
    ),
)


def value_gap(work: Workload, toggle: str, value: str) -> str | None:
    """Why work cannot be measured with a value of a toggle; None if it can."""
    reasons = (
        reason(work) if callable(reason) else reason
        for about, *known, reason in VALUES
        if isinstance(work, about) and known == [toggle, value]
    )
    return next(filter(None, reasons), None)


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


def _is_pinned(c: Cell) -> bool:
    return c.values.get(toggles.PIN) == "on"


def _parts(c: Cell, names: Iterable[str] = toggles.PARALLEL) -> int:
    return math.prod(int(c.values.get(name, "1")) for name in names)


def _is_divided(w: Workload, c: Cell, m: Manifest) -> bool:
    return _parts(c) > 1


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


def _shared(*conditions: _Question) -> _Question:
    """Question that holds if several replicas share the cell, and all of these hold."""
    return lambda w, c, m: c.replicas > 1 and all(holds(w, c, m) for holds in conditions)


def _of_split(w: Any, c: Cell, m: Manifest) -> str | None:
    try:
        objective = w.at(c.size)
    except DeclarationError:
        return None  # its case says so, if it is not deselected
    together = c.values.get("normalization") == "synchronized"
    shares = c.batch, 1 if together else c.replicas
    if toggles.asynchronous(c.toggles):
        if together:
            return "workers that do not wait have no common batch (--fw-normalization local)"
        shares = c.batch // c.replicas, 1
    reason: str | None = objective.split_gap(c.batch, c.replicas) if c.replicas > 1 else None
    return reason or objective.rounding_gap(*shares, c.dtype)


#: By what is measured, and then what holds for all of it.
RULES: tuple[Rule, ...] = (
    # Operations
    Rule(
        Operation,
        "{w.name} copies between the host and a GPU, and the device is cpu",
        lambda w, c, m: w.copies_to and c.device == "cpu",
    ),
    Rule(
        Operation,
        "{w.name} has no gradient",
        lambda w, c, m: c.direction == "backward" and not w.differentiable,
    ),
    Rule(
        Operation,
        "{w.name} has nothing to compile",
        lambda w, c, m: c.execution != "eager" and not w.compilable,
    ),
    Rule(Operation, "{w.name} has no {c.dtype}", lambda w, c, m: _has_no(c.dtype, w)),
    # Why a framework lacks an operation says more than that fwbench has no implementation.
    Rule(Operation, _declared, lambda w, c, m: not _is_written(w, m)),
    Rule(Operation, lambda w, c, m: m.missing.get(w.name), lambda w, c, m: not _is_written(w, m)),
    Rule(Operation, _UNWRITTEN, lambda w, c, m: not _is_written(w, m)),
    Rule(Operation, "{m.name} sees no {c.device}", _unseen),
    Rule(
        Operation,
        "{m.name} offers no gradients",
        lambda w, c, m: c.direction == "backward" and not m.differentiable,
    ),
    Rule(Operation, "{m.name} has no {c.dtype}", lambda w, c, m: c.dtype not in m.dtypes),
    Rule(Operation, _declared),
    Rule(
        Operation,
        lambda w, c, m: (
            f"gradients of a mean of {w.terms(c.size)} terms are below the normal "
            "numbers of float16"
        ),
        lambda w, c, m: (
            w.average
            and (c.direction, c.dtype) == ("backward", "float16")
            and w.terms(c.size) > _OF_FLOAT16
        ),
    ),
    Rule(Operation, lambda w, c, m: _of_cell(w.name, c, m, w.terms(c.size))),
    # Exchanges between replicas
    Rule(Collective, _declared),
    Rule(ServedStep, _without_servers),
    Rule(
        ServedStep,
        "{w.name} fetches to the host's memory, and the device is {c.device}",
        lambda w, c, m: c.device.partition(":")[0] != "cpu",
    ),
    Rule(
        ServedStep,
        "{w.name} is for float32, and the dtype is {c.dtype}",
        lambda w, c, m: c.dtype != "float32",
    ),
    Rule((Collective, ServedStep), _UNWRITTEN, lambda w, c, m: w.name not in m.collectives),
    Rule(Collective, "{m.name} sees no {c.device}", _unseen),
    Rule(Collective, "{w.name} has no {c.dtype}", lambda w, c, m: c.dtype not in w.dtypes),
    Rule(Collective, "{m.name} has no {c.dtype}", lambda w, c, m: c.dtype not in m.dtypes),
    Rule(ServedStep, _declared),
    # Users' models
    Rule(
        (ModelInference, ModelTraining),
        _UNWRITTEN.replace("w.name", "w.model.name"),
        lambda w, c, m: m.framework not in w.model.versions,
    ),
    Rule(
        (ModelInference, ModelTraining),
        "{m.name} takes no models of users",
        lambda w, c, m: not m.users_models,
    ),
    Rule(
        (ModelInference, ModelTraining),
        "{m.name} does not run users' models in {c.dtype}",
        lambda w, c, m: c.dtype not in m.users_models,
    ),
    Rule(
        ModelTraining,
        "{w.model.name} declares neither targets nor a loss for {m.name}",
        _unlearnable,
    ),
    Rule(ModelInference, "{m.name} sees no {c.device}", _unseen),
    Rule(ModelInference, _declared),
    # Networks
    Rule(
        Classification,
        "the weights of {w.name} were trained on {w.data}, which was not found: name its folder by "
        "--fw-data or in FWBENCH_DATA",
        lambda w, c, m: c.timed and c.data is not None and c.data.source != "real",
    ),
    Rule(
        (Step, ModelStep, ModelTraining),
        "{c.execution} is a whole loop: it has no step of its own",
        lambda w, c, m: c.execution in m.whole_loops,
    ),
    Rule(
        Inference,
        "int8 has to be calibrated with examples, and {w.name} has drawn weights and no examples: "
        f"measure {' or '.join(trained.name for trained in CLASSIFICATIONS)}",
        lambda w, c, m: _in_int8(w, c, m) and not isinstance(w, Classification),
    ),
    Rule(
        Classification,
        "{m.name} runs no networks in int8",
        lambda w, c, m: _in_int8(w, c, m) and not m.int8_executions,
    ),
    Rule(
        Classification,
        lambda w, c, m: (
            f"{m.name} answers in int8 in {', '.join(m.int8_executions)}, and not in {c.execution}"
        ),
        lambda w, c, m: _in_int8(w, c, m) and c.execution not in m.int8_executions,
    ),
    Rule(
        Classification,
        "int8 is measured on the CPU, and not on {c.device}",
        lambda w, c, m: _in_int8(w, c, m) and c.device != "cpu",
    ),
    Rule(
        Classification,
        f"{{m.name}} answers in {DEFAULT_DTYPE} and int8 alone in {{c.execution}}",
        lambda w, c, m: (
            c.dtype not in (DEFAULT_DTYPE, INT8)
            and c.execution in m.int8_executions
            and c.execution not in m.network_executions
        ),
    ),
    Rule(WithNetwork, "{m.name} {w.unable}", lambda w, c, m: not w.offered(m)),
    Rule(WithNetwork, "{m.name} sees no {c.device}", _unseen),
    # What a framework says of a dtype that it lacks says more than that it lacks it.
    Rule(WithNetwork, _declared, _lacks_dtype),
    Rule(WithNetwork, "{m.name} {w.unable} in {c.dtype}", _lacks_dtype),
    Rule(
        WithNetwork,
        lambda w, c, m: (
            f"{m.name} {w.unable} in {c.execution}, but in {', '.join(w.executions(m))}"
        ),
        lambda w, c, m: c.execution not in w.executions(m),
    ),
    Rule(WithNetwork, _declared),
    Rule(TrainsInLoop, lambda w, c, m: _of_cell(w.loop.name, c, m)),
    Rule(
        ForwardBackward,
        "gradients of networks are not verified in {c.dtype}: each ReLU may decide differently",
        lambda w, c, m: c.dtype not in _DIFFERENTIATED,
    ),
    # Photos
    Rule(PhotoLoading, "{m.name} loads no photos", lambda w, c, m: w.name not in m.operations),
    Rule(
        PhotoLoading,
        "photos are loaded as float32 into the host's memory, and not as {c.dtype} on {c.device}",
        lambda w, c, m: (c.dtype, c.device) != (DEFAULT_DTYPE, "cpu"),
    ),
    Rule(
        PhotoLoading,
        'photos need Pillow, which is not installed: pip install "fwbench[photos]"',
        lambda w, c, m: importlib.util.find_spec("PIL") is None,
    ),
    # Toggles
    Rule(Workload, _of_toggles),
    Rule(
        Workload,
        "pin=on puts all on one CPU, here {c.replicas} x {m.threads} threads "
        "(--fw-threads 1 --fw-replicas 1)",
        lambda w, c, m: _is_pinned(c) and (c.replicas > 1 or m.threads not in (None, 1)),
    ),
    Rule(
        Workload,
        "this system binds no process to a CPU (pin=off)",
        lambda w, c, m: _is_pinned(c) and not hasattr(os, "sched_setaffinity"),
    ),
    Rule(
        Workload,
        "fwbench has no replicas with several devices each (--fw-replicas 1)",
        _shared(_is_divided),
    ),
    Rule(
        ModelStep,
        "devices share the layers or a batch, and not both (--fw-toggle data_parallel=1)",
        lambda w, c, m: {*map(c.values.get, toggles.PARALLEL)} == {"2"},
    ),
    Rule(
        (Step, ModelStep),
        "a batch of {c.batch} does not split into equal parts (--fw-toggle data_parallel=1)",
        lambda w, c, m: c.batch % _parts(c, ["data_parallel"]) > 0,
    ),
    Rule(Workload, _missing_device, _is_divided),
    # Replicas
    Rule(
        Workload,
        "replicas find fwbench's own workloads alone, not {w.name}",
        _shared(lambda w, c, m: getattr(workloads, w.name, None) is not w),
    ),
    Rule(Workload, _late, lambda w, c, m: w.shared),
    Rule(Workload, _of_strategy, lambda w, c, m: w.shared),
    Rule(
        Training,
        "fwbench has no loop whose workers do not wait for each other; measure {w.step.name} "
        "(-k {w.step.name})",
        _shared(lambda w, c, m: c.values.get("strategy") in ASYNCHRONOUS),
    ),
    Rule(
        Training,
        "a loop has no straggler; measure {w.step.name} (-k {w.step.name})",
        _shared(lambda w, c, m: c.values.get("straggler", NO_STRAGGLER) != NO_STRAGGLER),
    ),
    Rule(
        Training,
        "a replica loads its own batches (--fw-toggle workers=0)",
        _shared(lambda w, c, m: c.values["workers"] != "0"),
    ),
    Rule(
        Training,
        "replicas do not change their learning rate (--fw-toggle decay=off)",
        _shared(lambda w, c, m: c.values["decay"] != "off"),
    ),
    Rule((Training, Step, ModelStep), _of_split),
    Rule(
        Collective,
        "{w.name} is between replicas, and this is a single one",
        lambda w, c, m: c.replicas == 1,
    ),
    Rule(
        Collective,
        "{c.size} elements do not divide into {c.replicas} equal parts",
        lambda w, c, m: w.in_parts and c.batch % c.replicas > 0,
    ),
    Rule(
        ServedStep,
        "{w.name} is between workers, and this is a single process",
        lambda w, c, m: c.replicas == 1,
    ),
    Rule(
        ServedStep,
        "{w.name} has {w.unit} in multiples of {w.divisor}, and the size is {c.size}",
        lambda w, c, m: c.batch % w.divisor > 0,
    ),
)


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
