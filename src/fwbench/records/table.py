"""Tables of facts: what a stored value may hold, each key declared once.

A table is a class whose attributes are keys::

    class Epoch(Table):
        seconds: float = fact()
        test_accuracy: float | None = fact()

Their meanings, units and conditions are in ``facts.toml``, by the names of table and key. Producers
call it with keywords, readers use its attributes: mypy and a test know either by name. A
key whose type is not optional must be there; an optional one may be absent. It is written as null
only where ``null`` says when; a null elsewhere is read as absent, or as damage in a strict table.
"""

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Self,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from fwbench.errors import DeclarationError
from fwbench.packaged import read_table
from fwbench.records import units
from fwbench.records.units import NONE, Unit


@dataclass(frozen=True)
class Check:
    """Condition on a value beyond its type; on a list, on each of its values."""

    #: The condition, to be read behind the type: ``above 0``.
    words: str
    #: Whether a value meets it.
    holds: Callable[[Any], bool]
    #: Of a number, which must be as large as a quantity of it can be.
    unit: Unit = NONE
    #: The condition in JSON Schema; empty where that cannot say it.
    keywords: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def is_met(self, value: Any) -> bool:
        """True if a value can be, and is what it must be."""
        return (not isinstance(value, _NUMBERS) or self.unit.can_be(value)) and self.holds(value)

    def for_type(self, kind: type) -> Callable[[Any], bool] | None:
        """The same for values of one type, in few calls; None where every value meets it."""
        holds = None if self.holds is _always else self.holds
        if kind not in _NUMBERS:
            return self.is_met if kind is bool else holds
        least, most = self.unit.least, self.unit.most
        if holds is None:
            return lambda number: number == 0 or least <= abs(number) <= most
        return lambda number: (number == 0 or least <= abs(number) <= most) and holds(number)

    def can_be(self, value: Any) -> bool:
        """True if there can be such a quantity; true of other values than numbers."""
        return not isinstance(value, _NUMBERS) or self.unit.can_be(value)


_NUMBERS = (float, int)


def _always(_: Any) -> bool:
    return True


ANY = Check("", _always)
_NOT_NEGATIVE = Check("of at least 0", lambda value: value >= 0, keywords={"minimum": 0})

#: Conditions of quantities, by the words of ``facts.toml``.
_CHECKS = {
    "of either sign": ANY,
    "of at least 0": _NOT_NEGATIVE,
    "above 0": Check("above 0", lambda value: value > 0, keywords={"exclusiveMinimum": 0}),
    "above 0 and below 1": Check(
        "above 0 and below 1",
        lambda value: 0 < value < 1,
        keywords={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
    "from 0 to 1": Check(
        "from 0 to 1", lambda value: 0 <= value <= 1, keywords={"minimum": 0, "maximum": 1}
    ),
    "above -1": Check("above -1", lambda value: value > -1, keywords={"exclusiveMinimum": -1}),
}


def one_of(*choices: str) -> Check:
    """The check that a text is one of ``choices``."""
    words, keywords = f"out of {', '.join(choices)}", {"enum": [*choices]}
    return Check(words, lambda value: value in choices, keywords=keywords)


#: Characters of a damaged value that a message shows.
_SHOWN = 60

_WORDS = {
    float: "number",
    int: "whole number",
    bool: "boolean",
    str: "text",
    dict: "object",
    list: "list",
    Any: "value",
}


def type_words(kind: Any) -> str:
    """A type as messages and the documentation call it: ``list of numbers``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(type_words, arguments))
    if origin is list:
        return f"list of {type_words(arguments[0])}s"
    if origin is dict and arguments[1] in _WORDS and arguments[1] is not Any:
        return f"object of {type_words(arguments[1])}s"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, Mapping)):
        return "object"
    return _WORDS[kind]


def shown(value: Any) -> str:
    """A damaged value for a message: as much of it as tells what it is."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def problem(path: str, value: Any, must: str, bounds: str = "") -> str:
    """Message about a damaged value, and ``bounds``: how large it can be, if it is beyond that."""
    article = "an" if must.startswith("o") else "a"
    beyond = f", {bounds}" if bounds else ""
    return f"{path} is {shown(value)}, and must be {article} {must}{beyond}"


#: Types of values that hold no others; what JSON has most of.
_SCALARS = frozenset({float, int, bool, str, NoneType})

_Plain: TypeAlias = tuple[type, Callable[[Any], bool] | None]

#: :attr:`Fact.plain` of other keys: no stored value is of this type.
_NOT_PLAIN: _Plain = (object, None)


class DamagedFact(ValueError):
    """A stored value is not what its table declares; says key, value and what it must be."""


class Fact:
    """The declaration of one key, with what ``facts.toml`` says of it.

    Attributes:
        meaning: what it says; a clause without a full stop.
        check: what it must be beyond its type.
        null: where it is null; empty if it never is.
        needs: other keys that must be there wherever it is.
        filled: whether it is a list of at least one value.
    """

    def __init__(self, check: Check | None) -> None:
        self._given = check

    def __set_name__(self, owner: "type[Table]", name: str) -> None:
        self.table = owner
        self.name = name
        row = read_table(__package__, "facts.toml").get(owner.__name__, {}).get(name)
        if row is None:
            raise DeclarationError(f"facts.toml has no row {name!r} in [{owner.__name__}]; add it")
        self._declare(**({"meaning": row} if isinstance(row, str) else row))

    def _declare(
        self,
        meaning: str,
        unit: str = "NONE",
        check: str = "",
        *,
        choices: Sequence[str] = (),
        null: str = "",
        needs: Sequence[str] = (),
        filled: bool = False,
    ) -> None:
        self.meaning, self.null, self.needs, self.filled = meaning, null, needs, filled
        self.unit: Unit = getattr(units, unit)
        usual = ANY if self.unit is NONE else _NOT_NEGATIVE
        of_row = one_of(*choices) if choices else _CHECKS[check] if check else usual
        given = self._given or of_row
        self.check = dataclasses.replace(given, unit=self.unit)

    def __get__(self, facts: "Table | None", owner: "type[Table]") -> Any:
        if facts is None:
            return self
        value = facts._values.get(self.name)  # noqa: SLF001 (its own table's, and read often)
        if value is None:
            if self.name not in facts and self.is_required:
                raise AttributeError(f"{owner.__name__} without {self.name}, which it must have")
            return None
        return _wrapped(value, self.type) if self.holds_tables else value

    @cached_property
    def type(self) -> Any:
        """Its type, None left out of a union."""
        return _without_none(self._hint)

    @cached_property
    def is_required(self) -> bool:
        """True if it must be there."""
        return NoneType not in get_args(self._hint)

    @cached_property
    def holds_tables(self) -> bool:
        """True if its value is a table, or a list or an object of tables."""
        return any(map(_is_table, (self.type, *get_args(self.type))))

    @cached_property
    def _hint(self) -> Any:
        return _hints(self.table)[self.name]

    @cached_property
    def plain(self) -> _Plain | None:
        """Its type, and what a value of exactly that must meet to be sound, as nearly all are.

        What is not of this type may be sound all the same. None where a value needs more.
        """
        if self.type not in _SCALARS or self.needs:
            return None
        return self.type, self.check.for_type(self.type)


def fact(check: Check | None = None) -> Any:
    """Declare a key of a table, with what it must be beyond its type where code tells that."""
    return Fact(check)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Table(Mapping[str, Any]):
    """Facts by key: read-only, made with keywords, read as attributes.

    Attributes:
        strict: whether a null that no declaration explains is damage, and not as if absent.

    Raises:
        DeclarationError: a key is not declared.
    """

    strict: ClassVar[bool] = False

    def __init__(self, **values: Any) -> None:
        self._values: Mapping[str, Any] = {k: _plain(value) for k, value in values.items()}
        for name in values:
            if name not in self.declared():
                raise undeclared(type(self), name)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"

    def __or__(self, other: Self) -> Self:
        """Both tables' facts; the other's where both have one."""
        return self.unchecked({**self, **other})

    @classmethod
    @cache
    def declared(cls) -> dict[str, Fact]:
        """Every key with its declaration, in order."""
        known = (vars(base) for base in reversed(cls.__mro__))
        return {k: v for names in known for k, v in names.items() if isinstance(v, Fact)}

    @classmethod
    @cache
    def required(cls) -> list[str]:
        """The keys that must be there."""
        return [name for name, declared in cls.declared().items() if declared.is_required]

    @classmethod
    @cache
    def plain(cls) -> dict[str, _Plain]:
        """:attr:`Fact.plain` of the keys that have one; read of each of millions of values."""
        return {name: row.plain for name, row in cls.declared().items() if row.plain is not None}

    @classmethod
    @cache
    def _of_tables(cls) -> list[str]:
        return [name for name, declared in cls.declared().items() if declared.holds_tables]

    @classmethod
    def unchecked(cls, values: Mapping[str, Any]) -> Self:
        """The table of values that are known to be sound; undeclared keys stay."""
        return cls.of_json({k: _plain(value) for k, value in values.items()})

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Self:
        """The same of values in JSON's own types, which are not copied."""
        made = cls.__new__(cls)
        made._values = values  # noqa: SLF001 (its own)
        return made

    @classmethod
    def checked(cls, values: Any, path: str = "") -> Self:
        """The table of stored values; undeclared keys stay.

        Args:
            path: the key under which they are stored, for messages.

        Raises:
            DamagedFact: they are not what is declared; the message names the key.
        """
        for what in _damage(values, cls, ANY, path):
            raise DamagedFact(what)
        return cls.of_json(dict(values))

    def is_known(self, name: str) -> bool:
        """True if a key means something to this version of fwbench."""
        return name in self.declared()

    def unknown(self) -> list[str]:
        """The keys that are not declared, also in tables within; ``launches[].spin``."""
        keys: list[str] = []
        if not self._values.keys() <= self.declared().keys():
            keys += [name for name in self._values if not self.is_known(name)]
        for name in self._of_tables():
            if name in self._values:
                keys += _unknown_within(getattr(self, name), name)
        return list(dict.fromkeys(keys))

    def text(self, name: str) -> str:
        """A fact for people to read, in its unit; empty if it is absent or null.

        Raises:
            DeclarationError: the key is not declared.
        """
        if name not in self.declared():
            raise undeclared(type(self), name)
        value = self.get(name)
        return "" if value is None else self.declared()[name].unit.show(value)


def undeclared(table: type[Table], name: str) -> DeclarationError:
    """An error for a key that a table does not declare."""
    close = difflib.get_close_matches(name, table.declared(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"declare it in {table.__module__}"
    return DeclarationError(f"{table.__name__} has no fact {name!r}; {hint}")


@cache
def _hints(table: type[Table]) -> dict[str, Any]:
    return get_type_hints(table)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return Union[tuple(kinds)]  # noqa: UP007 (made of a list)


def _plain(value: Any) -> Any:
    """A value as JSON's own types, where it is or holds tables."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Table):
        return dict(value)
    if isinstance(value, list | tuple):
        holds_tables = any(isinstance(item, Table) for item in value)
        return [_plain(item) for item in value] if holds_tables else value
    if isinstance(value, dict) and any(isinstance(item, Table) for item in value.values()):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _wrapped(value: Any, kind: Any) -> Any:
    """A stored value with tables in place of the objects that its type says are tables."""
    if value is None or kind is Any:
        return value
    if isinstance(kind, type) and issubclass(kind, Table):
        return kind.of_json(value)
    origin, arguments = _form(kind)
    if origin is list and _is_table(arguments[0]):
        return [*map(arguments[0].of_json, value)]
    if origin is dict and _is_table(arguments[1]):
        return {name: arguments[1].of_json(item) for name, item in value.items()}
    return value


@cache
def _form(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Origin and arguments of a type: ``list`` and ``(float,)`` of ``list[float]``."""
    return get_origin(kind), get_args(kind)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table)


def _unknown_within(value: Any, path: str) -> list[str]:
    if isinstance(value, Table):
        return [f"{path}.{name}" for name in value.unknown()]
    if isinstance(value, dict):
        value, path = list(value.values()), f"{path}.*"
    elif isinstance(value, list):
        path = f"{path}[]"
    tables = (
        [table for table in value if isinstance(table, Table)] if isinstance(value, list) else []
    )
    return [f"{path}.{name}" for table in tables for name in table.unknown()]


def _damage(value: Any, kind: Any, check: Check, path: str) -> Iterator[str]:
    """Messages about damage in a stored value: its place, the value, and what it must be."""
    origin, arguments = _form(kind)
    if origin in (Union, UnionType):
        if all(any(_damage(value, option, check, path)) for option in arguments):
            yield _problem(value, kind, check, path)
    elif _is_table(kind) and isinstance(value, Mapping):
        yield from _damage_of_table(value, kind, path)
    elif origin is list and isinstance(value, list | tuple):
        yield from _damage_of_list(value, arguments[0], check, path)
    elif origin is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _damage(item, arguments[1], check, f"{path}.{name}")
    elif not _matches(value, kind, check):
        yield _problem(value, kind, check, path)


def _damage_of_table(values: Mapping[str, Any], table: type[Table], path: str) -> Iterator[str]:
    for name in table.required():
        if name not in values:
            yield f"{path}.{name} is missing".lstrip(".")
    facts, plain = table.declared(), table.plain()
    for name, value in values.items():
        kind, is_sound = plain.get(name, _NOT_PLAIN)
        if type(value) is kind and (is_sound is None or is_sound(value)):
            continue
        declared = facts.get(name)
        if declared is not None:
            yield from _damage_of(values, declared, f"{path}.{name}".lstrip("."))


def _damage_of(values: Mapping[str, Any], declared: Fact, path: str) -> Iterator[str]:
    value = values[declared.name]
    if value is None and not declared.is_required and (declared.null or not declared.table.strict):
        return
    if declared.filled and value == []:
        yield f"{path} is empty"
    yield from _damage(value, declared.type, declared.check, path)
    for needed in declared.needs:
        if values.get(needed) is None:
            yield f"{path} is {value!r}, and {needed} is missing"


def _damage_of_list(values: Sequence[Any], kind: Any, check: Check, path: str) -> Iterator[str]:
    if kind is float and all(type(item) is float and check.is_met(item) for item in values):
        return  # rounds: thousands of numbers, nearly always sound
    if _is_table(kind):
        for number, item in enumerate(values):
            within = f"{path}[{number}]"
            if isinstance(item, Mapping):
                yield from _damage_of_table(item, kind, within)
            else:
                yield _problem(item, kind, check, within)
        return
    for number, item in enumerate(values):
        yield from _damage(item, kind, check, f"{path}[{number}]")


def _matches(value: Any, kind: Any, check: Check) -> bool:
    if kind is Any:
        return True
    if not isinstance(kind, type) or issubclass(kind, Table):
        return False
    if isinstance(value, bool) and kind is not bool:
        return False
    return isinstance(value, (float, int) if kind is float else kind) and check.is_met(value)


def _problem(value: Any, kind: Any, check: Check, path: str) -> str:
    beyond = "" if check.can_be(value) else check.unit.bounds
    return problem(path, value, " ".join(filter(None, (type_words(kind), check.words))), beyond)
