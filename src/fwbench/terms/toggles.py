"""Toggles: switches in addition to the execution that may change speed.

Those of fwbench are the rows of ``toggles.json``. A framework adds its own with
:attr:`fwbench.frameworks.contract.Framework.own_toggles`; its manifest tells the process that reads
the options, where no framework is imported.
"""

import itertools
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from fwbench.errors import UsageError, unknown
from fwbench.packaged import read_table
from fwbench.terms.replicas import ASYNCHRONOUS, VALUE_FORMATS, WITH_SERVERS


@dataclass(frozen=True)
class Toggle:
    """A switch that may change speed: its values, its default, and what it belongs to.

    Attributes:
        name: as ``--fw-toggle`` takes it.
        values: what it can be; None for whole numbers, or for values of another form.
        default: what it is when it is not asked for; empty for what the framework does by itself.
        meaning: in a few words.
        process: whether it must be set before a framework is imported. The framework's file reads
            it from the environment (:func:`variable`); others are the workload's.
        changes_work: whether the work is another one with it, so that times and losses do not
            compare: it sets loops apart. Others are a part of a loop's name.
        gpu: whether it can have another value than its default on GPUs alone.
        dtype: the only one in which it can; empty for any.
        gang: whether it says which processes do a case together; it applies to workloads that
            replicas can share.
        least: the smallest of whole numbers.
        form: the format of its values, a key of
            :data:`~fwbench.terms.replicas.VALUE_FORMATS`; empty for whole numbers and for
            names.
    """

    name: str
    values: tuple[str, ...] | None
    default: str
    meaning: str
    process: bool = False
    changes_work: bool = False
    gpu: bool = False
    dtype: str = ""
    gang: bool = False
    least: int = 0
    form: str = ""

    @property
    def metavar(self) -> str:
        """The word for its values in the help of an option."""
        if self.form:
            return VALUE_FORMATS[self.form].metavar
        return "NUMBERS" if self.values is None else "NAMES"

    def gap(self, value: str, device: str, dtype: str) -> str | None:
        """Why it cannot have a value in a cell of the grid in any framework; None if it can."""
        if value == self.default:
            return None
        if self.gpu and device == "cpu":
            return f"{self.name}={value} is for GPUs, and the device is cpu"
        if self.dtype and dtype != self.dtype:
            return f"{self.name}={value} is for {self.dtype}, and the dtype is {dtype}"
        return None

    def parse(self, text: str) -> str:
        """The value that a text stands for.

        Raises:
            UsageError: the toggle does not have this value.
        """
        if self.form:
            return VALUE_FORMATS[self.form].read(text)
        if self.values is None:
            if not text.isdecimal() or not self.least <= int(text) <= _AT_MOST:
                raise UsageError(
                    f"toggle {self.name}: {text!r} is not a whole number from {self.least} to "
                    f"{_AT_MOST} ({self.meaning})"
                )
            return str(int(text))
        if text not in self.values:
            raise unknown(f"value of the toggle {self.name}", text, self.values)
        return text

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """A toggle from its fields, also after a trip through JSON text."""
        choices = values["values"]
        return cls(**{**values, "values": None if choices is None else tuple(choices)})


#: More is a slip of the finger that would bring the machine down.
_AT_MOST = 256

#: The toggle of a process that every framework has: what starts it heeds it.
PIN = "pin"

#: The toggle of a process that what starts it heeds, for every framework that keeps compiled code.
CACHE = "cache"

#: The toggles of cases on several devices in one process.
PARALLEL = ("model_parallel", "data_parallel")

_NOT_WAITING = {("strategy", strategy) for strategy in ASYNCHRONOUS}


def _declared() -> Iterator[Toggle]:
    rows = read_table(__package__, "toggles.json")
    return (Toggle.from_json({"name": name, **row}) for name, row in rows.items())


#: Every toggle of fwbench, in the order in which ids show them.
TOGGLES: Mapping[str, Toggle] = {toggle.name: toggle for toggle in _declared()}

Values = Mapping[str, tuple[str, ...]]

#: One value each of several toggles.
Combination = tuple[tuple[str, str], ...]

#: The parts of a case's name; no toggle may be named like one of them.
_PARTS = ("case", "workload", "framework", "device", "execution", "direction", "dtype", "size")


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """``"workers=0,2"`` as ``("workers", ("0", "2"))``.

    A name that fwbench does not know may be a framework's toggle: :func:`checked` decides.

    Raises:
        UsageError: there is no name or no value, or the toggle does not have the value.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if not name.isidentifier():
        raise unknown("toggle", name, TOGGLES)
    toggle = TOGGLES.get(name)
    if not equals or not values.strip():
        raise UsageError(f"toggle {name!r} has no value; give {_form(name, toggle)}")
    parts = (part.strip() for part in values.split(","))
    return name, tuple(dict.fromkeys(toggle.parse(part) if toggle else part for part in parts))


def _form(name: str, toggle: Toggle | None) -> str:
    if toggle is None:
        return f"{name}=VALUE"
    known = "a whole number" if toggle.values is None else "|".join(toggle.values)
    known = VALUE_FORMATS[toggle.form].examples if toggle.form else known
    return f"{name}={known} ({toggle.meaning})"


def known(framework_toggles: Iterable[Toggle] = ()) -> dict[str, Toggle]:
    """Every toggle by its name: those of fwbench, then those of frameworks.

    Args:
        framework_toggles: the toggles of frameworks; of several with one name, the first is kept.
    """
    toggles = dict(TOGGLES)
    for toggle in framework_toggles:
        toggles.setdefault(toggle.name, toggle)
    return toggles


def checked(
    requested: Values, framework_toggles: Sequence[Toggle], *, strict: bool = True
) -> dict[str, Any]:
    """The values asked for, each checked by its toggle.

    Args:
        requested: by the name of the toggle, as :func:`parse` returned them.
        framework_toggles: of two versions of one framework a toggle may have different values: what
            one of them takes can be asked for, and is a gap of the other.
        strict: False in a worker, which knows only its own framework: what it does not know is kept
            as it is.

    Raises:
        UsageError: no framework has such a toggle, or no such toggle has the value.
    """
    definitions: dict[str, list[Toggle]] = {name: [toggle] for name, toggle in TOGGLES.items()}
    for toggle in framework_toggles:
        definitions.setdefault(toggle.name, []).append(toggle)
    for name in requested:
        if strict and name not in definitions:
            raise unknown("toggle", name, definitions)
    return {
        name: tuple(
            dict.fromkeys(_value(text, definitions.get(name, ()), strict=strict) for text in texts)
        )
        for name, texts in requested.items()
    }


def _value(text: str, definitions: Sequence[Toggle], *, strict: bool) -> str:
    """The value that any of the definitions reads from a text."""
    refusals = []
    for toggle in definitions:
        try:
            return toggle.parse(text)
        except UsageError as error:
            refusals.append(error)
    if strict:
        raise refusals[0]
    return text


def combinations(
    requested: Values, effective: Collection[str], *, shared: bool
) -> Iterator[Combination]:
    """Every combination of the values asked for, of the toggles that make a difference.

    Args:
        shared: whether replicas can share it.
    """
    names = dict.fromkeys((*TOGGLES, *requested))
    values = [
        [(name, value) for value in requested[name]]
        for name in names
        if name in requested and (is_of_process(name) or name in effective)
    ]
    gangs = _gangs(requested) if shared else [()]
    for chosen, gang in itertools.product(itertools.product(*values), gangs):
        yield *chosen, *gang


#: The toggles of gangs that ids show only where they have another value than their default.
_RARE = ("network", "straggler", "normalization")


def _gangs(requested: Values) -> list[Combination]:
    """The compositions asked for; a single replica has no strategy, an all-reduce no servers."""
    every: dict[Combination, None] = {}
    for replicas, strategy, servers, *others in itertools.product(
        requested.get("replicas", ()),
        *(_requested_values(requested, name) for name in ("strategy", "servers", *_RARE)),
    ):
        gang: Combination = (("replicas", replicas),)
        if replicas != "1":
            gang += (("strategy", strategy),)
            gang += (("servers", servers),) if strategy in WITH_SERVERS else ()
            rare = zip(_RARE, others, strict=True)
            gang += tuple((name, value) for name, value in rare if value != TOGGLES[name].default)
        every[gang] = None
    return [*every] or [()]


def _requested_values(requested: Values, name: str) -> tuple[str, ...]:
    return requested.get(name, (TOGGLES[name].default,))


def asynchronous(values: Combination) -> tuple[str, ...]:
    """The strategy of workers that do not wait for each other, if there is one."""
    return tuple(value for name, value in values if (name, value) in _NOT_WAITING)


def check_gangs(requested: Values) -> None:
    """Refuse values of gangs' toggles that do not go together.

    Raises:
        UsageError: a strategy without replicas or without the servers it needs, or servers without
            a strategy that has any.
    """
    strategies = _requested_values(requested, "strategy")
    servers = _requested_values(requested, "servers")
    given = [name for name in ("strategy", "servers", *_RARE) if name in requested]
    if given and {*requested.get("replicas", ("1",))} == {"1"}:
        raise UsageError(
            f"--fw-toggle {given[0]} is for several replicas, and one is asked for: add "
            "--fw-replicas 2"
        )
    with_servers = [name for name in strategies if name in WITH_SERVERS]
    if with_servers and "0" in servers:
        raise UsageError(
            f"the strategy {with_servers[0]} needs servers, and none are asked for: add "
            "--fw-toggle servers=1"
        )
    if "servers" in requested and not with_servers:
        raise UsageError(
            f"the strategy {strategies[0]} has no servers, and --fw-toggle "
            f"servers={','.join(servers)} is asked for: leave it out, or add --fw-toggle "
            f"strategy={WITH_SERVERS[0]}"
        )


def problem(toggle: Toggle) -> str | None:
    """Why a toggle of a framework's own cannot be used; None if it can."""
    if toggle.name in TOGGLES:
        return f"fwbench has a toggle {toggle.name}; name the framework's own differently"
    if not toggle.name.isidentifier() or toggle.name in _PARTS:
        return f"the toggle {toggle.name!r} needs a name of its own, of letters, digits and _"
    if not toggle.process:
        return f"the toggle {toggle.name} needs process=True: {variable(toggle.name)} passes it on"
    if toggle.values is not None and not all(map(str.isidentifier, toggle.values)):
        return f"the values of the toggle {toggle.name} must consist of letters, digits and _"
    return None


def is_of_process(name: str) -> bool:
    """True if a toggle must be set before a framework is imported, like all of a framework's."""
    return name not in TOGGLES or TOGGLES[name].process


def is_of_gang(name: str) -> bool:
    """True if a toggle says which processes do a case together."""
    return name in TOGGLES and TOGGLES[name].gang


def variable(name: str) -> str:
    """The environment variable from which a framework's file reads a toggle of the process."""
    return f"FWBENCH_{name.upper()}"


def value_of(name: str) -> str:
    """The value of one of fwbench's toggles of this process: the one asked for, or its default."""
    return os.environ.get(variable(name), TOGGLES[name].default)


def devices_of_process() -> int:
    """Number of devices that share a case in this process."""
    return math.prod(int(value_of(name)) for name in PARALLEL)


def is_on(name: str) -> bool:
    """True if a toggle of this process was asked for and is on."""
    return os.environ.get(variable(name)) == "on"
