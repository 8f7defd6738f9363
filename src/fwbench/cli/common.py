"""Parts that several commands share."""

from __future__ import annotations

import sys

from fwbench.report import escaping


def warn(*texts: str) -> None:
    """Print texts on stderr; control characters in names of files and cases are escaped."""
    for text in texts:
        print(f"fwbench: {escaping.terminal(text)}", file=sys.stderr)
