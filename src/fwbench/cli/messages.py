"""Messages of commands in addition to their results."""

from __future__ import annotations

import sys

from fwbench.report import escaping


def warn(*texts: str) -> None:
    """Print texts on stderr; what names of files and cases hold moves no cursor."""
    for text in texts:
        print(f"fwbench: {escaping.terminal(text)}", file=sys.stderr)
