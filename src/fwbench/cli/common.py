"""Parts that several commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from fwbench.errors import UsageError
from fwbench.report import escaping


def warn(*texts: str) -> None:
    """Print texts on stderr; control characters in names of files and cases are escaped."""
    for text in texts:
        print(f"fwbench: {escaping.terminal(text)}", file=sys.stderr)


def checked(parse: Callable[[str, str], Any], what: str) -> Callable[[str], Any]:
    """A type for argparse, which shows the messages of its own errors only."""

    def convert(text: str) -> Any:
        try:
            return parse(text, what)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert
