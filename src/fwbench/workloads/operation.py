"""Operations: inputs, a NumPy reference, sizes, cost. They name no framework."""

import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import DEFAULT_DTYPE, DTYPES
from fwbench.terms.presets import Form, Shape, Size, Sizes
from fwbench.terms.toggles import TOGGLES
from fwbench.workloads.workload import Cost, Workload

#: ``implementation(namespace, *parameters)`` returns the function that computes the operation on
#: the framework's own arrays; ``namespace`` is what the framework's users call it through
#: (``torch``, ``tf``, ``np``, MXNet's ``F``).
Implementation = Callable[..., Callable[..., Any]]

#: The results of an operation, on the host.
Results = Sequence[NDArray[Any]]

#: What changed operands are multiplied by where no number of them is random.
_FEWER = 0.6, 0.9

#: Kinds of dtypes: truth values, numbers, and those of ml_dtypes.
_NUMERIC = "biufcV"

_NAME = re.compile(r"[A-Za-z]\w*")

#: Where copies go.
DEVICE, HOST = "device", "host"

#: The toggle of the distribution of inputs, and its value that is not the default.
INPUTS, ZEROS = "inputs", "zeros"


def has_numbers(operands: Sequence[NDArray[Any]]) -> bool:
    """True if any of the operands is floating-point or complex."""
    return any(np.issubdtype(x.dtype, np.inexact) for x in operands)


def zeros(operands: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Zeros for floating-point and complex operands; whole numbers, such as indices, stay."""
    return [np.zeros_like(x) if np.issubdtype(x.dtype, np.inexact) else x for x in operands]


def is_defined(
    reference: Callable[..., Any], operands: Sequence[NDArray[Any]], parameters: Sequence[Any]
) -> bool:
    """True if a function of zeros has finite results."""
    try:
        with np.errstate(all="ignore"):
            results = reference(*zeros(operands), *parameters)
    except (ArithmeticError, ValueError):  # as NumPy's of linear algebra are
        return False
    every = results if isinstance(results, tuple) else (results,)
    return all(bool(np.all(np.isfinite(x))) for x in every)


@dataclass(frozen=True)
class Moments:
    """Properties of independent random numbers of one distribution."""

    mean: float
    variance: float
    #: The fourth central moment over the square of the variance; 3 for normal numbers.
    kurtosis: float
    lowest: float = -np.inf
    highest: float = np.inf
    #: All that a number can be, in ascending order; None where they are continuous.
    values: tuple[float, ...] | None = None
    #: Whether no number occurs twice, as in a permutation.
    distinct: bool = False
    #: ``drawn(result, *operands)``, the numbers that were drawn, where a result is made of them and
    #: of operands.
    drawn: Callable[..., NDArray[Any]] = lambda result, *_: result


def discrete(values: Sequence[float], probabilities: Sequence[float], **others: Any) -> Moments:
    """The moments of numbers that are each one of a few; ``others`` as in :class:`Moments`."""
    x, p = np.asarray(values, float), np.asarray(probabilities, float)
    mean = float(np.sum(p * x))
    second, fourth = (float(np.sum(p * (x - mean) ** power)) for power in (2, 4))
    return Moments(mean, second, fourth / second**2, values=tuple(map(float, x)), **others)


@dataclass(frozen=True, eq=False)
class Operation(Workload):
    """One operation: what is computed, on what, how large, and what it costs at least.

    Args:
        name: letters, digits and underscores; the first part of every case id.
        inputs: ``inputs(size, rng)`` returns the operands, a tuple of NumPy arrays. Floating-point
            ones (float64) are placed in the dtype of the case, others as they are.
        reference: the same operation in NumPy; called with float64 arrays, and the parameters. A
            tuple of arrays where it has several results.
        sizes: a :class:`Sizes`, or the same sizes for every preset: whole numbers, or shapes where
            one number is not enough (:meth:`fwbench.Form.sizes`).
        cost: ``cost(size)`` of ``forward``; None where it is not known.
        backward_cost: ``backward_cost(size)`` of the forward pass and the gradient together.
        differentiable: whether ``backward`` makes sense.
        variables: the positions of the operands to differentiate by; None for all that are
            floating-point or complex.
        family: what it is listed and selected with, as ``--fw-family`` takes it.
        representative: whether a session without options measures it.
        parameters: ``parameters(size)``, values other than arrays: every implementation gets them
            behind the namespace, the reference behind the operands.
        compared: ``compared(*results)`` makes what is compared of the results, of a framework's
            and of the reference's: where they may rightly differ by a sign or an order.
        aligned: ``aligned(expected, results)`` returns the reference's results with the signs that
            a framework's have, where signs are free: the gradient depends on them. None where they
            are not.
        along: ``along(direction)`` makes a direction along which the gradient is compared of a
            random one: a symmetric one, where the operand stays symmetric.
        compilable: whether executions other than ``eager`` make sense.
        source: ``source(array)``, the host data from which an operation creates an array. Such an
            operation is the framework's own creator, so no framework implements it.
        copies_to: ``device`` or ``host`` of an operation that copies an array from the other one
            (:meth:`fwbench.frameworks.contract.Framework.copier`); empty of others.
        terms: ``terms(size)``, how many terms an element of the result adds up; rounding errors
            grow with its square root.
        factors: ``factors(*operands)``, two arrays whose ``numpy.matmul`` is the result, of an
            operation that is a product and nothing else; their axes may be moved or joined. Large
            products are verified by it (:mod:`fwbench.cases.products`).
        average: whether the result is the mean of all its terms, and each counts as much.
        dtypes: those in which it makes sense; None for all but complex ones and float8. Where none
            is asked for it is float32, or the first of ``--fw-dtype``'s that is among them.
        tolerance: factor on the tolerances of :mod:`fwbench.cases.verify`.
        moments: ``moments(size, *operands)``, what is known of results that are random: they are
            verified by it, and must be new in every call. Of the reference only the shape counts.
        updates: the positions of the operands that a call overwrites, as an optimiser does. The
            reference returns their new values; implementations return None, or, where arrays
            cannot be written, new arrays.
        switched_by: the names of fwbench's toggles whose values every implementation gets, as
            keyword arguments.
        branching: whether branches depend on numbers: calls take turns on sets of operands then.

    Raises:
        DeclarationError: the name, the sizes or a toggle cannot be used, or there is a gradient
            declared of what is random or overwritten.
    """

    name: str
    inputs: Callable[[Any, np.random.Generator], tuple[NDArray[Any], ...]]
    reference: Callable[..., Any]
    sizes: Sizes | Sequence[Size]
    cost: Callable[[Any], Cost] | None = None
    backward_cost: Callable[[Any], Cost] | None = None
    differentiable: bool = True
    compilable: bool = True
    source: Callable[[NDArray[Any]], Any] | None = None
    copies_to: str = ""
    terms: Callable[[Any], int] = lambda _: 1
    factors: Callable[..., Any] | None = None
    average: bool = False
    tolerance: float = 1.0
    variables: tuple[int, ...] | None = None
    family: str = ""
    representative: bool = True
    parameters: Callable[[Any], tuple[Any, ...]] = lambda _: ()
    compared: Callable[..., tuple[NDArray[Any], ...]] | None = None
    aligned: Callable[[Results, Results], Results] | None = None
    moments: Callable[..., Moments] | None = None
    updates: tuple[int, ...] = ()
    along: Callable[[NDArray[Any]], NDArray[Any]] = lambda direction: direction
    dtypes: Collection[str] | None = None
    switched_by: tuple[str, ...] = ()
    branching: bool = False
    implementations: dict[str, Implementation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"an operation is named {self.name!r}; the name becomes part of case ids: use "
                "letters, digits and underscores, beginning with a letter"
            )
        if not isinstance(self.sizes, Sizes | Sequence):
            raise DeclarationError(
                f"operation {self.name!r} has the sizes {self.sizes!r}; give a tuple of them"
            )
        sizes = self.by_preset
        every = sizes.every
        shapes = {size.form for size in every if isinstance(size, Shape)}
        numbers = [size for size in every if not isinstance(size, Shape)]
        wrong = [size for size in numbers if type(size) is not int or size < 1]
        if wrong or not sizes.quick or len(shapes) + bool(numbers) > 1:
            raise DeclarationError(
                f"operation {self.name!r} has the sizes {every}; give at least one, "
                "all of them positive whole numbers, or all of them shapes of one form"
            )
        if self.differentiable and (self.moments or self.updates):
            raise DeclarationError(
                f"operation {self.name!r} is random or overwrites its operands, and its gradient "
                "cannot be verified; declare differentiable=False"
            )
        unknown = [name for name in self.switched_by if name not in TOGGLES]
        if unknown:
            raise DeclarationError(
                f"operation {self.name!r} is switched by {unknown[0]!r}, which is not a toggle of "
                f"fwbench's; known: {', '.join(TOGGLES)}"
            )
        for what in ("inputs", "reference", "terms"):
            if not callable(given := getattr(self, what)):
                raise DeclarationError(
                    f"{what}= of operation {self.name!r} is {given!r}; give a function"
                )

    @property
    def form(self) -> Form | None:
        """Format of its shapes; None where a size is a whole number."""
        size = self.by_preset.quick[0]
        return size.form if isinstance(size, Shape) else None

    def implement(self, framework: str) -> Callable[[Implementation], Implementation]:
        """Declare how one framework computes this operation; use as a decorator.

        The decorated function gets the framework's namespace and returns the function that
        computes the operation on its arrays::

            @swish.implement("torch")
            def _(torch):
                return torch.nn.functional.silu

        It is called once, before anything is timed, and only in that framework's process.

        Args:
            framework: the framework's name, as ``--fw`` takes it.

        Raises:
            DeclarationError: this framework's implementation is declared already.
        """

        def declare(implementation: Implementation) -> Implementation:
            if not callable(implementation):
                raise DeclarationError(
                    f"{self.name} is implemented for {framework} by {implementation!r}; give a "
                    "function that takes its namespace and returns the one that computes"
                )
            if framework in self.implementations:
                raise DeclarationError(
                    f"{self.name} is implemented twice for {framework}; keep one"
                )
            self.implementations[framework] = implementation
            return implementation

        return declare

    def operands(self, size: Size) -> tuple[NDArray[Any], ...]:
        """The inputs at ``size``: the same numbers in every process and framework.

        Raises:
            DeclarationError: ``inputs`` did not return a tuple of NumPy arrays.
        """
        # The name is in the seed so that operations do not share operands by accident.
        return self._drawn(size, zlib.crc32(self.name.encode()), *_seed(size))

    def changed_operands(
        self, size: Size, seed: int, operands: Sequence[NDArray[Any]]
    ) -> tuple[NDArray[Any], ...]:
        """Other inputs of the same shapes and dtypes, for a call that must notice.

        Where ``inputs`` draws nothing from its generator they are the same times a number.

        Args:
            seed: of what is drawn, or of that number.
            operands: those of :meth:`operands`.

        Raises:
            DeclarationError: ``inputs`` did not return a tuple of NumPy arrays.
        """
        others = self._drawn(size, zlib.crc32(self.name.encode()), *_seed(size), seed)
        alike = [(x.shape, x.dtype) for x in operands] == [(x.shape, x.dtype) for x in others]
        if alike and not all(map(np.array_equal, operands, others)):
            return others
        factor = np.random.default_rng(seed).uniform(*_FEWER)
        return tuple(
            np.asarray(factor * x, x.dtype) if np.issubdtype(x.dtype, np.inexact) else x
            for x in operands
        )

    def _drawn(self, size: Size, *seed: int) -> tuple[NDArray[Any], ...]:
        operands = self.inputs(size, np.random.default_rng(seed))
        if not isinstance(operands, tuple):
            raise DeclarationError(
                f"the inputs of {self.name} are of the type {type(operands).__name__}; "
                "return a tuple of NumPy arrays"
            )
        for operand in operands:
            if not isinstance(operand, np.ndarray):
                raise DeclarationError(
                    f"among the inputs of {self.name} is a {type(operand).__name__}; "
                    "return NumPy arrays (np.asarray makes one)"
                )
            if operand.dtype.kind not in _NUMERIC:
                raise DeclarationError(
                    f"among the inputs of {self.name} is an array of the dtype {operand.dtype}; "
                    "return NumPy arrays of numbers or truth values"
                )
        return operands

    @property
    def by_preset(self) -> Sizes:
        """The sizes; the same for every preset where they are one list."""
        return self.sizes if isinstance(self.sizes, Sizes) else Sizes(tuple(self.sizes))

    @property
    def default_dtype(self) -> str:
        """Float32, or the first of all dtypes that it has."""
        known = (name for name in DTYPES if self.dtypes is None or name in self.dtypes)
        return next(known, DEFAULT_DTYPE)

    @property
    def creates(self) -> bool:
        """True if the operation turns host data into an array, which must be a copy."""
        return self.source is not None

    @property
    def is_copy(self) -> bool:
        """True if it copies an array and does nothing else."""
        return self.reference is np.copy

    @property
    def is_in_tables(self) -> bool:
        """True if frameworks' tables name it; others are methods of their adapters."""
        return not (self.creates or self.copies_to)

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """Cost of ``direction`` at ``size``; None where it is not declared."""
        cost = self.cost if direction == "forward" else self.backward_cost
        return None if cost is None else cost(size)

    @property
    def toggles(self) -> frozenset[str]:
        """``l2``: a loop around one operation finds its data in a GPU's cache; networks do not.

        ``inputs``, and those that its implementations are switched by.
        """
        return frozenset({"l2", INPUTS, *self.switched_by})

    @cached_property
    def zeros_gap(self) -> str | None:
        """Why it cannot be timed on zeros; its reference is tried at the smallest size."""
        if self.moments is not None:
            return f"{self.name} is random, and its parameters cannot be zeros (inputs=normal)"
        operands = self.operands(self.smallest)
        if not has_numbers(operands):
            return f"{self.name} has no floating-point inputs (inputs=normal)"
        if is_defined(self.reference, operands, self.parameters(self.smallest)):
            return None
        return f"{self.name} of zeros is not defined (inputs=normal)"

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """All that the framework has."""
        return manifest.executions


def family(
    name: str, representatives: Collection[str], *operations: Operation
) -> tuple[Operation, ...]:
    """The operations of a family.

    Args:
        name: of the family, as ``--fw-family`` takes it.
        representatives: the names of those that a session without options measures.

    Raises:
        DeclarationError: a representative is not an operation of the family.
    """
    strangers = {*representatives} - {operation.name for operation in operations}
    if strangers:
        raise DeclarationError(f"the family {name!r} has no {', '.join(sorted(strangers))}")
    return tuple(
        replace(operation, family=name, representative=operation.name in representatives)
        for operation in operations
    )


def _seed(size: Size) -> list[int]:
    """Numbers that distinguish a size from others."""
    return [size] if isinstance(size, int) else list(size.values())
