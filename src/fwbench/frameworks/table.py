"""Tables of operations: the name of an operation, and the framework's own function for it.

A value is the dotted path of a function below the framework's namespace, a :class:`Call` (the same
with keyword arguments), or, where a path will not do, an
:data:`~fwbench.workloads.operation.Implementation`; each of them in a :class:`Laid` where the
framework's layout is not the definition's. Paths and calls are the rows of the file
``operations.toml`` in the framework's package; what it can do as a whole is in
``capabilities.toml`` there, and what it cannot do in ``gaps.toml``.

Tables and gaps are checked before anything is measured: what can only be a mistake makes the
framework unusable (:func:`check`); what may have been right for another version of the framework or
of fwbench is noted, and the framework is measured (:func:`notices`).
"""

import difflib
import importlib.util
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

from fwbench import workloads
from fwbench.errors import DeclarationError
from fwbench.frameworks import layout
from fwbench.frameworks.layout import Layout
from fwbench.packaged import read_table
from fwbench.terms.manifest import Capabilities, Gap
from fwbench.workloads import LOOPS, OPERATIONS, WORKLOADS
from fwbench.workloads.operation import Implementation


class Call:
    """A framework's function, named by its path below the framework's namespace.

    It is an implementation: called with a namespace, it returns the function. Nothing stands
    between the caller and a function without keyword arguments.

    Args:
        path: ``nn.functional.softplus`` for PyTorch's.
    """

    def __init__(self, path: str, **keywords: Any) -> None:
        self.path = path
        self.keywords = keywords

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The function, looked up in the namespace that is given.

        Raises:
            AttributeError: the namespace does not have it.
        """
        function: Callable[..., Any] = attrgetter(self.path)(namespace)
        return partial(function, **self.keywords) if self.keywords else function

    def is_in(self, namespace: Any) -> bool:
        """Tell whether the path leads to a callable."""
        try:
            return callable(self(namespace))
        except (AttributeError, ImportError, TypeError):  # some packages import on demand
            return False


class Composed(partial[Callable[..., Any]]):
    """An implementation by several functions: no single one computes the operation as well."""


class Laid:
    """An implementation whose arrays have another layout than the definition of the operation."""

    def __init__(self, entry: str | Implementation, layout: Layout) -> None:
        self.entry = Call(entry) if isinstance(entry, str) else entry
        self.layout = layout

    def __call__(self, namespace: Any, *parameters: Any, **switches: str) -> Callable[..., Any]:
        """The function of the implementation."""
        return self.entry(namespace, *parameters, **switches)


def layout_of(implementation: Implementation) -> Layout:
    """The layout of an implementation's arrays."""
    return implementation.layout if isinstance(implementation, Laid) else Layout()


#: What a framework computes an operation with, by the operation's name.
Table = Mapping[str, str | Implementation]

#: Reasons by execution or strategy, toggle and value.
ToggleGaps = Mapping[tuple[str, str, str], str]

#: Convolutions of images that differ in their windows alone.
CONVOLUTIONS = (
    *("conv2d", "conv2d_3x3", "conv2d_1x1", "conv2d_7x7_s2", "conv2d_5x20_s2"),
    *("conv2d_dilated", "conv2d_grouped"),
)


def paths_of(package: str) -> Table:
    """The rows of the file ``operations.toml`` of a framework's package.

    A row is a path, or a path and keyword arguments: ``{ path = "nn.gelu", approximate = true }``.
    Lists are tuples to the function; ``laid`` names a layout of :mod:`fwbench.frameworks.layout`.
    Paths and layouts that begin with ``kernels`` are the package's own, of the module of that name:
    an implementation, or what makes one of arguments (``given``, and keywords), or, where the row
    is ``plain``, the function of the arrays itself. ``composed`` says that it calls several
    functions of the framework.
    """
    rows = read_table(package, "operations.toml")
    return {
        name: row
        if isinstance(row, str) and not row.startswith(_KERNELS)
        else _entry(package, **({"path": row} if isinstance(row, str) else row))
        for name, row in rows.items()
    }


#: Paths of a package's own functions and layouts begin with this.
_KERNELS = "kernels."


def _entry(
    package: str,
    path: str,
    laid: str = "",
    *,
    given: Sequence[Any] = (),
    plain: bool = False,
    composed: bool = False,
    **keywords: Any,
) -> Implementation:
    keywords = _with_tuples(keywords)
    entry: Implementation = Call(path, **keywords)
    if path.startswith(_KERNELS):
        kernel = _kernel(package, path)
        entry = kernel(*given, **keywords) if given or keywords else kernel
        entry = (lambda *_, **__: kernel) if plain else entry
    entry = Composed(entry) if composed else entry
    if not laid:
        return entry
    own = laid.startswith(_KERNELS)
    return Laid(entry, _kernel(package, laid) if own else getattr(layout, laid))


def _kernel(package: str, path: str) -> Any:
    return getattr(import_module(f"{package}.kernels"), path.removeprefix(_KERNELS))


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tupled(value) for name, value in row.items()}


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def capabilities_of(package: str, **computed: Any) -> Capabilities:
    """The capabilities in ``capabilities.toml`` of a package, and those that code tells."""
    return Capabilities(**_with_tuples(read_table(package, "capabilities.toml")), **computed)


def composed(*functions: Callable[..., Any]) -> Table:
    """Rows for operations that these functions of their names compose."""
    return {
        function.__name__: Composed(lambda function, *_: function, function)
        for function in functions
    }


def is_composed(entry: str | Implementation) -> bool:
    """True if an entry of a table is of several functions."""
    return isinstance(entry.entry if isinstance(entry, Laid) else entry, Composed)


def implementation(table: Table, operation: str) -> Implementation:
    """The implementation of one operation.

    Raises:
        KeyError: the table does not have it.
    """
    entry = table[operation]
    return Call(entry) if isinstance(entry, str) else entry


def missing_paths(table: Table, namespace: Any) -> dict[str, str]:
    """The paths of a table that do not lead to a function, by operation."""
    entries = {name: implementation(table, name) for name in table}
    calls = {
        name: entry.entry if isinstance(entry, Laid) else entry for name, entry in entries.items()
    }
    return {
        name: call.path
        for name, call in calls.items()
        if isinstance(call, Call) and not call.is_in(namespace)
    }


def gaps_of(package: str) -> tuple[Gap, ...]:
    """The rows ``gap`` in the file ``gaps.toml`` of a framework's package.

    A row has the fields of a :class:`~fwbench.terms.manifest.Gap`. Of a list in one of them there
    is a gap for each value; the reason names values in braces. A workload in capitals stands for
    all of that tuple of :mod:`fwbench.workloads`. A row that ``needs`` modules holds where one of
    them is not installed (``{missing}``); nothing is imported.
    """
    return tuple(Gap(reason, **fields) for reason, fields in _rows(package, "gap"))


def toggle_gaps_of(package: str, executions: Iterable[str] = ()) -> ToggleGaps:
    """The rows ``toggle_gap`` there, each with an execution and a toggle's value: ``loop=python``.

    Args:
        executions: those that a row without one is about.
    """
    rows = _rows(package, "toggle_gap", execution=[*executions])
    return {(row["execution"], *row["toggle"].split("=")): reason for reason, row in rows}


def gang_gaps_of(package: str) -> ToggleGaps:
    """The rows ``gang_gap`` there, each with a strategy and a toggle's value."""
    rows = _rows(package, "gang_gap")
    return {(row["strategy"], *row["toggle"].split("=")): reason for reason, row in rows}


def _rows(package: str, kind: str, **fields: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Reason and fields of each gap of a kind; ``fields`` are those that rows leave out."""
    for row in read_table(package, "gaps.toml").get(kind, ()):
        yield from _expanded(**{**fields, **row})


def _expanded(
    reason: str, needs: Collection[str] = (), **parts: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    missing = [module for module in needs if importlib.util.find_spec(module) is None]
    if needs and not missing:
        return
    lists = {key: value if isinstance(value, list) else [value] for key, value in parts.items()}
    if "workload" in lists:
        lists["workload"] = [*itertools.chain.from_iterable(map(_names, lists["workload"]))]
    for values in itertools.product(*lists.values()):
        fields = dict(zip(lists, values, strict=True))
        yield reason.format(missing=" and ".join(missing), **fields), fields


def _names(workload: str) -> list[str]:
    return [w.name for w in getattr(workloads, workload)] if workload.isupper() else [workload]


#: The directions of the grid.
_DIRECTIONS = ("forward", "backward", "train")

#: The kinds of devices that gaps are about.
_DEVICES = ("cpu", "gpu")


def check(framework: str, table: Table, gaps: Iterable[object]) -> None:
    """Refuse a declaration that can only be a mistake.

    Operations of other packages are implemented where they are declared
    (:meth:`fwbench.Operation.implement`), so every name in a table is one of fwbench's own.

    Raises:
        DeclarationError: a name in the table that no operation has, an entry that is neither a
            path nor a function, a gap that is not a :class:`~fwbench.terms.manifest.Gap`.
    """
    known = [operation.name for operation in OPERATIONS if operation.is_in_tables]
    for name, entry in table.items():
        if name not in known:
            raise DeclarationError(
                f"the operations of {framework} name {name!r}, which is not an operation of "
                f"fwbench{_suggestion(name, known)}"
            )
        if not (isinstance(entry, str) or callable(entry)):
            raise DeclarationError(
                f"the operations of {framework} give {entry!r} for {name!r}, which is neither a "
                "dotted path nor a function"
            )
    for gap in gaps:
        if not isinstance(gap, Gap):
            raise DeclarationError(
                f"the gaps of {framework} hold {gap!r}, which is not a fwbench.Gap"
            )


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def notices(
    framework: str,
    version: str,
    missing: Mapping[str, str],
    gaps: Iterable[Gap],
    offered: Mapping[str, Collection[str]],
) -> Iterator[str]:
    """Notices for the author of a framework's package: paths and gaps that are out of date.

    Args:
        missing: the paths of its table that lead nowhere, by operation.
        offered: its ``operations`` (those that it implements), ``executions`` and ``dtypes``.

    Returns:
        Sentences without the name of the package.
    """
    gaps = tuple(gaps)
    declared = {gap.workload for gap in gaps if gap.whole}
    surprising = {name: path for name, path in missing.items() if name not in declared}
    if surprising:
        paths, names = ", ".join(surprising.values()), ", ".join(surprising)
        yield f"{framework} {version} has no {paths}; skipped: {names}"
    for gap in gaps:
        why = _stale(framework, gap, offered)
        if why:
            yield f"the gap {gap.reason!r} of {framework} is stale: {why}; remove or correct it"


def _stale(framework: str, gap: Gap, offered: Mapping[str, Collection[str]]) -> str | None:
    """Why a gap can never apply; None if it can.

    Which devices there are is the machine's business, so of a device only its kind can be wrong.
    """
    workloads = [*WORKLOADS, *(loop.loader.name for loop in LOOPS)]
    known = {
        "workload": (gap.workload, workloads),
        "execution": (gap.execution, offered["executions"]),
        "direction": (gap.direction, _DIRECTIONS),
        "dtype": (gap.dtype, offered["dtypes"]),
        "kind of device": (gap.device, _DEVICES),
    }
    for kind, (name, names) in known.items():
        if name is not None and name not in names:
            whose = framework if kind in ("execution", "dtype") else "fwbench"
            return f"{whose} has no {kind} {name!r}{_suggestion(name, names)}"
    if gap.whole and gap.workload in offered["operations"]:
        return f"its operations implement {gap.workload!r}"
    return None
