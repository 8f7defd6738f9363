"""Keeps secrets, the names of people and machines, and paths out of records.

Records are shared, in reports and in the artifacts of CI. What is left out was never needed to
compare them.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwbench import suite
from fwbench.options import values
from fwbench.options.options import SELECTORS, SETTINGS

#: In place of what is left out.
REDACTED = "***"

#: Words and numbers, of which none is long enough for a key: a name, an expression, a size.
_PLAIN = re.compile(r"(?:[^\W_]{1,18}(?![^\W_])|[\s_()\[\]{}.,:;=%+<>/-])*")

#: Options whose values fwbench itself has checked.
_OWN = {o.flag for o in (*SELECTORS.values(), *SETTINGS.values()) if o.parse not in values.PATHS}

#: Options of others whose values are words and numbers. A setting has the name of its option.
_PLAIN_OPTIONS = (
    *("-k", "-m", "-n", "-p", "-r", "-W", "--assert", "--capture", "--color", "--count", "--dist"),
    *("--durations", "--import-mode", "--log-level", "--maxfail", "--numprocesses", "--reruns"),
    *("--tb", "--timeout", "--timeout-method", "--verbosity", "--xfail-strict"),
    *("--benchmark-columns", "--benchmark-compare-fail", "--benchmark-group-by"),
    *("--benchmark-max-time", "--benchmark-min-rounds", "--benchmark-min-time"),
    *("--benchmark-name", "--benchmark-sort", "--benchmark-timer", "--benchmark-warmup"),
)

#: ``--name``, ``--name=value``, ``-kvalue``, and flags before: ``-xk``.
_OPTION = re.compile(
    r"(?P<flag>--[a-z][\w-]*(?==|$)|--|-[lqsvx]*[A-Za-z])(?P<equals>=?)(?P<value>.*)", re.DOTALL
)
_SETTING = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>.*)", re.DOTALL)

#: Before a path that is not the rest of another one, or of a URL: ``/src`` is none in ``pkg/src``.
_BEFORE = r"(?:(?<![\w.~-])|(?<=^-[A-Z])|(?<=\s-[A-Z]))"

#: An absolute path of two parts or more; the last one is kept. Not the path of a URL.
_PATH = re.compile(r"(?:^|(?<=[\s='\"(\[,:;]))/(?:[^\s/:,;='\"()\[\]]+/)+")

#: What pytest-benchmark calls the name of the machine.
_HOST = "node"


def plain(text: str) -> str:
    """A text of words and numbers, or :data:`REDACTED` if there is anything else in it."""
    return text if _PLAIN.fullmatch(text) else REDACTED


def variables(names: Iterable[str]) -> dict[str, str]:
    """Environment variables with their values (:func:`plain`), as far as they are set."""
    return {name: plain(os.environ[name]) for name in sorted({*names} & os.environ.keys())}


@dataclass(frozen=True)
class Places:
    """Folders whose paths say whose machine it is."""

    #: Of the project; paths below it become relative.
    root: Path
    #: Of the user; becomes ``~``.
    home: Path = field(default_factory=Path.home)

    def without_paths(self, value: Any) -> Any:
        """A value of JSON in which no text has an absolute path.

        Of a path elsewhere only the last part is left: ``.../measured.json``. Numbers are not
        looked at.
        """
        if isinstance(value, str):
            return self._shortened(value)
        if isinstance(value, Mapping):
            return {key: self.without_paths(inner) for key, inner in value.items()}
        # Most lists are long ones of times.
        if isinstance(value, list | tuple) and not (value and isinstance(value[0], float)):
            return [self.without_paths(inner) for inner in value]
        return value

    def command_line(self, arguments: Sequence[str], folder: Path) -> list[str]:
        """A command line of pytest of which only what is known to be harmless is shown.

        Names of options are shown, values of those that are known, and what exists in the project;
        anything else is :data:`REDACTED`.

        Args:
            folder: the one that relative paths start from.
        """
        shown, before = [], ""
        for argument in arguments:
            option = _OPTION.fullmatch(argument)
            flag, equals, value = option.groups() if option else ("", "", argument)
            shown.append(f"{plain(flag)}{equals}{self._value(flag or before, value, folder)}")
            before = "" if equals or value else flag
        return shown

    def _value(self, flag: str, text: str, folder: Path) -> str:
        name = flag if flag.startswith("--") else f"-{flag[-1:]}"
        if not text or name in _OWN:
            return text
        if name in _PLAIN_OPTIONS:
            return plain(text)
        if name in ("-o", "--override-ini") and (setting := _SETTING.fullmatch(text)):
            alike = f"--{setting['name'].replace('_', '-')}"
            return f"{plain(setting['name'])}={self._value(alike, setting['value'], folder)}"
        path, *test = text.partition("::")
        whole = Path(os.path.normpath(folder / path))
        if whole.is_relative_to(self.root) and os.path.exists(whole):  # noqa: PTH110 (takes any length)
            return "".join([str(whole.relative_to(self.root)), *test])
        return text if suite.path(text) else REDACTED

    def _shortened(self, text: str) -> str:
        if "/" not in text:
            return text
        for folder, below, itself in ((self.root, "", "."), (self.home, "~/", "~")):
            if folder != Path(folder.anchor):
                path = f"{_BEFORE}{re.escape(str(folder))}"
                text = re.sub(f"{path}/", below, text)
                text = re.sub(rf"{path}(?![\w.-])", itself, text)  # /home/me, not /home/me2
        return _PATH.sub(".../", text)


def without_host(machine_info: Mapping[str, Any]) -> dict[str, Any]:
    """pytest-benchmark's facts of a machine without its name."""
    return {key: "" if key == _HOST else value for key, value in machine_info.items()}
