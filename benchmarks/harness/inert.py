"""In a session without cases fwbench costs next to nothing.

`pytest` on one trivial test, in a fresh process with fwbench and without it, in turn. What it adds
is an import of its options; the bound is 30 ms.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import bounds

_BOUND_MS = 30.0


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=15)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_trivial.py").write_text("def test(): pass\n", encoding="utf-8")
        session = partial(bounds.pytest_s, folder=folder)
        times_s = bounds.in_turn(
            given.rounds, {"with": session, "without": partial(session, "-p", "no:fwbench")}
        )
    took = bounds.medians(times_s)
    return bounds.conclude(
        [
            bounds.Finding("session with fwbench", f"{1e3 * took['with']:.0f} ms"),
            bounds.Finding("session without", f"{1e3 * took['without']:.0f} ms"),
            bounds.at_most("fwbench adds", 1e3 * (took["with"] - took["without"]), _BOUND_MS, "ms"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
