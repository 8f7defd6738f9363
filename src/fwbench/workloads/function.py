"""Functions without a reference: each is its own, and that of the others it is given with."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, UsageError
from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Size, Sizes
from fwbench.workloads import WORKLOADS
from fwbench.workloads.input import Input
from fwbench.workloads.operation import Operation, has_numbers
from fwbench.workloads.workload import Workload

#: The execution that calls a function as it is; others are verified against it.
PLAIN = "eager"

#: The fields of :class:`Operation` that :func:`function` takes as they are.
_PASSED_ON = ("tolerance", "terms", "dtypes", "compilable", "cost", "family", "branching")


@dataclass(frozen=True, eq=False)
class Function(Operation):
    """A function of the user's; :func:`function` makes it, and says what the fields mean."""

    compare: Callable[[Any, Any], Any] | None = None
    random: bool = False
    constant: bool = False

    directions: ClassVar = ("forward",)

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """The plain one: nobody has said that a compiler understands the function."""
        return (PLAIN,)

    def executions_to_name(self, manifest: Manifest) -> Collection[str]:
        """All that the framework has."""
        return manifest.executions

    @property
    def zeros_gap(self) -> str:
        """Why it is not timed on zeros."""
        return f"{self.name} has no reference to say what zeros make of it (inputs=normal)"

    @property
    def toggles(self) -> frozenset[str]:
        """An operation's; but where arguments are restored the cache is not emptied."""
        return super().toggles - ({"l2"} if self.updates else set())

    def changed_operands(
        self, size: Size, seed: int, operands: Sequence[NDArray[Any]]
    ) -> tuple[NDArray[Any], ...]:
        """Other inputs, as an operation's; whole numbers that are given are in another order."""
        changed = super().changed_operands(size, seed, operands)
        if not all(map(np.array_equal, operands, changed)):
            return changed
        rng = np.random.default_rng(seed)
        moved = tuple(rng.permuted(x, axis=None) for x in operands)
        is_other = not all(map(np.array_equal, operands, moved))
        return moved if is_other else tuple(np.roll(x, 1) for x in operands)

    def called_on(self, size: Size) -> str:
        """The call, for the error that the function raises: what to look at."""
        try:
            forms = ", ".join(f"{x.dtype}{[*x.shape]}" for x in self.operands(size))
        except Exception:  # noqa: BLE001 (it is the user's, and has raised the error)
            return f"inputs= of {self.name} was called with {size} and a generator: correct it"
        return (
            f"{self.name} was called with {forms or 'no arguments'} (floating-point numbers in the "
            "dtype of the case): correct the function, or what inputs= gives it"
        )


class _Given:
    """An implementation that is the function itself, which needs no namespace."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        return self.function


def function(
    f: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    *,
    inputs: Any = (),
    sizes: Sizes | Sequence[Size] | int | None = None,
    name: str = "",
    framework: str = "",
    changes: str | int | Sequence[str | int] = (),
    compare: Callable[[Any, Any], Any] | None = None,
    random: bool = False,
    constant: bool = False,
    **more: Any,
) -> Function:
    """A function to measure that has no NumPy reference: ``@pytest.mark.fwbench(result)``.

    Calls are held against calls of the same function on new arrays with the same numbers, and on
    other numbers; further executions against the plain call; further frameworks against the first
    one; and in ``fwbench ab`` each side against the other. Results are arrays, numbers and texts,
    or tuples, lists, dicts and dataclasses of them.

    Args:
        f: a callable of arrays, or one for each framework: ``{"numpy": f, "torch": g}``.
        inputs: its arguments: an :class:`Input` whose batch is the size, or an array, or several of
            these; or a callable of ``(size, rng)`` that returns arrays, or yields them. The
            floating-point ones have the dtype of the case, as of an :class:`Operation`: float32
            unless ``dtypes`` or ``--fw-dtype`` says otherwise, or arrays are given.
        sizes: as of an :class:`Operation`. Inputs that are arrays have their own.
        name: the first part of the case ids; by default the name of the function.
        framework: whose arrays a single callable takes; by default NumPy's.
        changes: the names or positions of the arguments that a call overwrites. Every call that is
            timed gets them as they were, restored outside of its time: a round is one call.
        compare: ``compare(result, expected)``, for results that no tolerance fits; it returns None
            or True, or returns a message or raises an error. Both have NumPy's arrays.
        random: whether results differ from call to call; then only their form is verified, and
            whatever ``compare`` says.
        constant: whether results may stay the same when the inputs change.
        more: ``tolerance``, ``terms``, ``dtypes``, ``compilable``, ``cost``, ``family`` and
            ``branching`` of an :class:`Operation`, the last of which is True unless it is given:
            who knows where a function branches, or which rows of a table it looks up?

    Raises:
        DeclarationError: it cannot be called or named, inputs and sizes do not fit together, or a
            changed argument is not there.
    """
    functions = _functions(f, framework)
    first = next(iter(functions.values()))
    named = name or _name_of(first)
    _check_options(named, compare, more)
    updates = _positions(named, first, (changes,) if isinstance(changes, str | int) else changes)
    draw, own_size = _inputs(named, inputs)
    return Function(
        name=named,
        inputs=draw,
        reference=first,
        sizes=_sizes(named, sizes, own_size),
        differentiable=False,
        updates=updates,
        compare=compare,
        random=random,
        constant=constant,
        implementations={key: _Given(value) for key, value in functions.items()},
        **{"branching": True, **_dtypes(inputs), **more},
    )


def _check_options(named: str, compare: Any, more: Iterable[str]) -> None:
    """Refuse a comparison that cannot be called, and what is no option of an operation's."""
    for option in more:
        if option not in _PASSED_ON:
            raise DeclarationError(
                f"fwbench.function does not know {option!r}; what else it takes of an operation is "
                + ", ".join(_PASSED_ON)
            )
    if compare is not None and not callable(compare):
        raise DeclarationError(
            f"compare= of {named} is {compare!r}; give a callable of two results that returns None "
            "or True where they are the same"
        )


def _functions(f: Any, framework: str) -> dict[str, Callable[..., Any]]:
    if isinstance(f, Operation):
        raise DeclarationError(
            f"{f.name} is an operation or a function of fwbench's already; give it to "
            "@pytest.mark.fwbench as it is"
        )
    if isinstance(f, Mapping) and framework:
        raise DeclarationError(
            f"functions are given by framework, and framework={framework!r} too; leave it out"
        )
    given = dict(f) if isinstance(f, Mapping) else {framework or "numpy": f}
    wrong = [value for value in given.values() if not callable(value)]
    if wrong or not given:
        raise DeclarationError(
            f"fwbench.function was given {wrong[0] if wrong else f!r}, which cannot be called; "
            'give a function of arrays, or one for each framework: {"numpy": f, "torch": g}'
        )
    return given


def _name_of(f: Callable[..., Any]) -> str:
    while isinstance(f, partial):
        f = f.func
    named = getattr(f, "__name__", "")
    if not re.fullmatch(r"[A-Za-z_]\w*", named):
        raise DeclarationError(
            f"{f!r} has no name to put into case ids; give it one: "
            'fwbench.function(..., name="normalise")'
        )
    return named.lstrip("_")


def check_names(workloads: Iterable[Workload], functions: dict[str, Function]) -> None:
    """Check that no other workload has the name of a function, by which records are known.

    Args:
        functions: those of the session so far, by name; the new ones are added.

    Raises:
        UsageError: one has it.
    """
    for made in workloads:
        if not isinstance(made, Function):
            continue
        is_known = functions.setdefault(made.name, made) is not made
        if is_known or made.name in WORKLOADS:
            other = "another function here" if is_known else "a workload of fwbench's"
            raise UsageError(
                f"the function {made.name} has the name of {other}, and their results could not be "
                f'told apart; give it another: fwbench.function(..., name="my_{made.name}")'
            )


def _positions(named: str, f: Callable[..., Any], changes: Sequence[str | int]) -> tuple[int, ...]:
    """The positions of arguments, by their names or themselves."""
    try:
        names = [*inspect.signature(f).parameters]
    except (TypeError, ValueError):  # of what is written in C
        names = []
    for change in changes:
        if isinstance(change, str) and change not in names:
            known = ", ".join(names) or "not known; give positions"
            raise DeclarationError(
                f"{named} is declared to change {change!r}; its arguments are: {known}"
            )
    return tuple(names.index(change) if isinstance(change, str) else change for change in changes)


def _inputs(named: str, inputs: Any) -> tuple[Callable[..., Any], int | None]:
    """A function that draws the inputs, and their size where it is their own."""
    if callable(inputs):
        return partial(_drawn, inputs), None
    parts = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    wrong = [part for part in parts if not isinstance(part, Input | np.ndarray)]
    if wrong:
        raise DeclarationError(
            f"inputs= of {named} has a {type(wrong[0]).__name__}; give an Input or a NumPy array "
            "for each argument, or a callable of (size, rng) that returns arrays, and bind others "
            "with functools.partial"
        )

    def draw(size: Any, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        return tuple(part.draw(size, rng) if isinstance(part, Input) else part for part in parts)

    fixed = [part for part in parts if isinstance(part, np.ndarray)]
    return draw, None if len(fixed) < len(parts) else max((x.size for x in fixed), default=1) or 1


def _drawn(inputs: Callable[..., Any], size: Any, rng: np.random.Generator) -> Any:
    """The arguments that a user's callable returns or yields."""
    drawn = inputs(size, rng)
    if isinstance(drawn, np.ndarray):
        return (drawn,)
    return tuple(drawn) if isinstance(drawn, list | Iterator) else drawn


def _sizes(named: str, sizes: Any, own: int | None) -> Any:
    if own is not None and sizes is not None:
        raise DeclarationError(
            f"the inputs of {named} are arrays, and sizes= is given too; leave it out, or have a "
            "callable of (size, rng) make arrays of each size"
        )
    if own is None and sizes is None:
        raise DeclarationError(
            f"{named} has no sizes; say for which its inputs are made: sizes=(1_000, 1_000_000)"
        )
    if own is not None:
        return (own,)
    return (sizes,) if isinstance(sizes, int) else sizes


def _dtypes(inputs: Any) -> dict[str, Any]:
    """The dtype of arrays that are given, which a case does not change."""
    parts = [inputs] if isinstance(inputs, np.ndarray) else inputs
    arrays = parts if isinstance(parts, list | tuple) else ()
    known = [x.dtype.name for x in arrays if isinstance(x, np.ndarray) and has_numbers((x,))]
    return {"dtypes": (known[0],)} if known else {}
