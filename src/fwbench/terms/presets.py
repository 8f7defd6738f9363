"""Presets: how large work is and how long it trains, by ``--fw-size quick``, ``paper`` and so on.

On the ground floor, because options need it in sessions that use nothing else of workloads.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain
from typing import Any

from fwbench.errors import DeclarationError, UsageError
from fwbench.packaged import read_table


class Shape(Mapping[str, int]):
    """The size of work that takes several numbers: named whole numbers with a text.

    Two shapes with the same text are equal.

    Args:
        text: as it stands in case ids and after ``--fw-size``.
        numbers: by name, in the order of the text.
    """

    __slots__ = ("_numbers", "_text", "form")

    def __init__(self, form: "Form", text: str, numbers: Mapping[str, int]) -> None:
        self.form = form
        self._text = text
        self._numbers = dict(numbers)

    def with_numbers(self, **numbers: int) -> "Shape":
        """The shape of the same form in which these numbers are others."""
        return self.form.read(self.form.template.format(**{**self, **numbers}))

    def __getitem__(self, name: str) -> int:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Shape({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and str(other) == self._text

    def __hash__(self) -> int:
        return hash(self._text)


#: How large work is: a whole number, or a shape where one number is not enough.
Size = int | Shape


#: What may be written for a shape of any form: letters and numbers, a number among them.
_SHAPE = re.compile(r"(?=.*[a-z])[a-z]*([1-9][0-9]{0,8}[a-z]*)+")


def is_shape(text: str) -> bool:
    """True if a text may stand for a shape; whose it is says an operation's :class:`Form`."""
    return _SHAPE.fullmatch(text) is not None


class Form:
    """Format of the shapes of an operation.

    Args:
        template: a name in braces for each number, and what stands between them:
            ``"{m}x{n}x{k}"`` for ``1760x16x1760``, ``"n{n}h{h}w{w}c{c}"`` for ``n8h28w28c16``.
        or_zero: the names of numbers that may be 0, such as a padding.

    Raises:
        DeclarationError: two numbers follow each other with nothing between them, or a hyphen,
            which separates the parts of case ids, is among what stands there.
    """

    def __init__(self, template: str, or_zero: Collection[str] = ()) -> None:
        if "}{" in template or not re.fullmatch(r"[a-z]*(\{[a-z]\w*\}[a-z]*)+", template):
            raise DeclarationError(
                f"the form of shapes {template!r} cannot be read back; write names in braces with "
                "lower-case letters between them, as in '{m}x{n}x{k}'"
            )
        self.template = template

        def number(name: re.Match[str]) -> str:
            return f"(?P<{name[1]}>{'0|' * (name[1] in or_zero)}[1-9][0-9]{{0,8}})"

        self._pattern = re.compile(re.sub(r"\{(\w+)\}", number, template))

    def read(self, text: str) -> Shape:
        """The shape that a text stands for.

        Raises:
            UsageError: the text does not have this form.
        """
        shape = self.shape(text)
        if shape is None:
            raise UsageError(f"{text!r} does not have the form {self.template}")
        return shape

    def shape(self, text: str) -> Shape | None:
        """The shape that a text stands for; None if it does not have this form."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        return Shape(self, text, {name: int(number) for name, number in match.groupdict().items()})

    def sizes(self, quick: Iterable[str], **presets: Iterable[str]) -> "Sizes":
        """Shapes by preset, of their texts.

        Args:
            quick: small, middling and large; the smallest comes first.
            presets: the others that the operation has, by the names that :class:`Sizes` has.

        Raises:
            UsageError: a text does not have this form.
        """
        return Sizes(
            tuple(map(self.read, quick)),
            **{name: tuple(map(self.read, texts)) for name, texts in presets.items()},
        )


#: The form of what an operation cannot read: a shape with a text, and no numbers.
_UNREAD = Form("{n}")


def unread(text: str) -> Shape:
    """A requested size that the work does not have."""
    return Shape(_UNREAD, text, {})


@dataclass(frozen=True)
class Sizes:
    """The sizes of an operation, by preset.

    Attributes:
        quick: small, middling and large, for a first look; the smallest comes first.
        paper: the sizes of the TensorFlow / MXNet report of 2020.
        full: from overhead alone to well beyond the caches.
        deepbench: shapes of DeepBench (https://github.com/baidu-research/DeepBench).
        opperf: shapes of MXNet's opperf (apache/mxnet, benchmark/opperf).
        convnet: layers of convnet-benchmarks (https://github.com/soumith/convnet-benchmarks).

    Where ``full`` is empty it is the quick one. The others have been published: an operation
    without one of them is left out where it is asked for.
    """

    quick: tuple[Size, ...]
    paper: tuple[Size, ...] = ()
    full: tuple[Size, ...] = ()
    deepbench: tuple[Size, ...] = ()
    opperf: tuple[Size, ...] = ()
    convnet: tuple[Size, ...] = ()

    def preset(self, name: str) -> tuple[Size, ...]:
        """The sizes of one of :data:`PRESETS`; none where the operation does not have it."""
        sizes: tuple[Size, ...] = getattr(self, name)
        return sizes or (self.quick if name in _COMMON else ())

    def declares(self, name: str) -> bool:
        """True if a preset has sizes of its own, and is not the quick one."""
        return bool(getattr(self, name))

    @property
    def every(self) -> tuple[Size, ...]:
        """All sizes of all presets."""
        return tuple(size for name in PRESETS for size in getattr(self, name))


#: The presets that every operation has.
_COMMON = ("quick", "full")


#: The presets that others have published: an operation without one was not among theirs.
PUBLISHED = ("paper", "deepbench", "opperf", "convnet")


#: The presets that ``--fw-size`` knows.
PRESETS = tuple(field.name for field in fields(Sizes))


@dataclass(frozen=True)
class Schedule:
    """Numbers of epochs, repetitions and steps of a training loop.

    Attributes:
        epochs: of one repetition, warm-up epochs included.
        warmup_epochs: the first epochs, which never enter the statistics.
        repetitions: trainings from the initial weights on.
        steps: the most batches an epoch; None for all that the data has.
    """

    epochs: int
    warmup_epochs: int = 1
    repetitions: int = 1
    steps: int | None = None


def sizes_of(family: str) -> dict[str, Sizes]:
    """The sizes of a family of workloads, by their names in ``sizes.toml``."""
    return {
        name: _sizes(**table)
        for name, table in read_table(__package__, "sizes.toml")[family].items()
    }


def _sizes(form: str = "", or_zero: Collection[str] = (), **presets: Any) -> Sizes:
    read: Any = Form(form, or_zero).read if form else int
    if "deepbench" in presets:
        presets["deepbench"] = _published(presets["deepbench"])
    return Sizes(**{preset: tuple(map(read, sizes)) for preset, sizes in presets.items()})


def _published(sizes: str | list[int]) -> Iterable[Any]:
    """DeepBench's shapes of a kind, each once, or of one of its lists: ``products.nn``."""
    if not isinstance(sizes, str):
        return sizes
    kind, _, name = sizes.partition(".")
    lists = deepbench(kind)
    return lists[name] if name else dict.fromkeys(chain.from_iterable(lists.values()))


def schedules_of(loop: str) -> dict[str, Schedule]:
    """The schedules of a training loop by preset, of ``schedules.toml``."""
    return {
        preset: Schedule(**row)
        for preset, row in read_table(__package__, "schedules.toml")[loop].items()
    }


@cache
def deepbench(kind: str) -> dict[str, tuple[str, ...]]:
    """Texts of DeepBench's shapes of ``convolution``, ``recurrent`` or ``products``, by list.

    Those of training, of inference on servers and on devices, in the order of
    github.com/baidu-research/DeepBench, code/kernels (``conv_problems.h``, ``rnn_problems.h``),
    without the convolution 151x40 20x5, whose two strides differ; those of products
    (``gemm_problems.h``) by what is transposed: neither operand, the first, the second. Each is
    there once in its list, products in the order of the elements that they move.
    """
    every = read_table(__package__, "deepbench.json")
    return {name: tuple(texts) for name, texts in every[kind].items()}
