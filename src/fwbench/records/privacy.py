"""Keeps secrets, the names of people and machines, and paths out of records.

Records are shared, in reports and in the artifacts of CI. What is left out was never needed to
compare them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: In the name of a variable or an option: what it is set to is a secret.
_SECRET_WORDS = ("AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN")
_SECRET_WORD = re.compile("|".join(_SECRET_WORDS), re.IGNORECASE)

#: In place of a secret.
REDACTED = "***"

#: ``--name=value`` and ``name = value``; not the id of a test.
_ASSIGNMENT = re.compile(r"(?P<name>[\w.-]+)\s*=(?P<value>.*)", re.DOTALL)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")

#: An absolute path of two parts or more; the last one is kept. Not the path of a URL.
_PATH = re.compile(r"(?:^|(?<=[\s='\"(\[,:;]))/(?:[^\s/:,;='\"()\[\]]+/)+")

#: What pytest-benchmark calls the name of the machine.
_HOST = "node"


def is_secret(name: str) -> bool:
    """True if the name of a variable or an option says that its value is a secret."""
    return _SECRET_WORD.search(name) is not None


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """A command line in which secrets are replaced by :data:`REDACTED`.

    Args:
        arguments: ``--x-token=abc``, ``--x-token abc``, ``-o x_token=abc``, and URLs with a user.
    """
    shown = []
    follows = False  # the value of the option before
    for argument in arguments:
        is_value = follows and not argument.startswith("-")
        shown.append(REDACTED if is_value else _redacted(argument))
        follows = argument.startswith("--") and "=" not in argument and is_secret(argument)
    return shown


def _redacted(argument: str) -> str:
    assigned = _ASSIGNMENT.fullmatch(argument)
    if assigned is None:
        return _USER_IN_URL.sub(f"{REDACTED}@", argument)
    # The value may be a setting itself: --override-ini=name=value.
    value = REDACTED if is_secret(assigned["name"]) else _redacted(assigned["value"])
    return argument[: assigned.start("value")] + value


@dataclass(frozen=True)
class Places:
    """Folders whose paths say whose machine it is.

    Attributes:
        root: of the project; paths below it become relative.
        home: of the user; becomes ``~``.
    """

    root: Path
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

    def _shortened(self, text: str) -> str:
        if "/" not in text:
            return text
        for folder, below, itself in ((self.root, "", "."), (self.home, "~/", "~")):
            if folder != Path(folder.anchor):
                path = re.escape(str(folder))
                text = re.sub(f"{path}/", below, text)
                text = re.sub(rf"{path}(?![\w.-])", itself, text)  # /home/me, not /home/me2
        return _PATH.sub(".../", text)


def without_host(machine_info: Mapping[str, Any]) -> dict[str, Any]:
    """pytest-benchmark's facts of a machine without its name."""
    return {key: "" if key == _HOST else value for key, value in machine_info.items()}
