"""Regressions that others reported: ``fwbench since`` measures and judges them again.

The reports are those of ``extras/regressions/studies.toml``, by rows of versions of a package, each
with a file of tests. The results of a row are kept in ``results.json`` when it ends; one that fails
keeps those it had. Then docs/regressions.md is written. Environments are built first, and kept in
``.fwbench/builds`` of this checkout::

    python benchmarks/harness/regressions.py                            all rows, in 25 minutes
    python benchmarks/harness/regressions.py --only numpy,jax --budget 5min
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bounds import REPOSITORY

from fwbench.machine import cpu_model, usable_cpus
from fwbench.records import files
from fwbench_extras import regressions

#: With it eight rows, one of them longer, and what lies between them take 25 minutes at most.
_BUDGET = "165s"

_DIGITS = 4


def measure(name: str, study: Mapping[str, Any], budget: str) -> dict[str, Any]:
    """The results of a row, as they are kept.

    Raises:
        subprocess.CalledProcessError: it could not be measured.
    """
    _, *arguments = regressions.command(name, study)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "row.json"
        more = ["--budget", budget, "--json", str(output)]
        subprocess.run(
            [sys.executable, "-m", "fwbench", *arguments, *more], cwd=REPOSITORY, check=True
        )
        row: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    python = arguments[arguments.index("--python") + 1]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{usable_cpus()} CPUs of {cpu_model()}",
        "python": python,
        **{key: row[key] for key in ("versions", "launches", "sessions")},
        "took_s": round(row["took_s"]),
        "cases": {_test(case): _rounded(facts) for case, facts in row["cases"].items()},
        # Other releases are not gaps of this row.
        "gaps": {each: row["gaps"][each] for each in row["versions"] if each in row["gaps"]},
    }


def _test(nodeid: str) -> str:
    return nodeid.partition("::")[2]


def _rounded(value: Any) -> Any:
    """The same with fewer digits, so that files can be read and compared."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_rounded, value)]
    if isinstance(value, float) and value and math.isfinite(value):
        return float(f"{value:.{_DIGITS}g}")
    return value


def main(words: Sequence[str] | None = None) -> int:
    """Measure rows; exit status 1 if one of them could not be measured."""
    studies = regressions.studies()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(studies)}")
    parser.add_argument(
        "--budget", metavar="TIME", help=f"of each row (default: {_BUDGET}, or its own)"
    )
    given = parser.parse_args(words)
    names = given.only.split(",") if given.only else [*studies]
    if unknown := {*names} - {*studies}:
        parser.error(f"--only: there is no {', '.join(sorted(unknown))} in {', '.join(studies)}")
    failed = []
    for name in names:
        print(f"{name}: {studies[name]['row']}", flush=True)
        try:
            budget = given.budget or studies[name].get("budget", _BUDGET)
            found = measure(name, studies[name], budget)
        except subprocess.CalledProcessError as error:
            failed.append(f"{name}: fwbench since ended with exit status {error.returncode}")
            continue
        kept = regressions.results() | {name: found}
        ordered = {each: kept[each] for each in studies if each in kept}
        files.write_atomically(regressions.RECORDED, json.dumps(ordered, indent=1) + "\n")
    files.write_atomically(REPOSITORY / "docs" / "regressions.md", regressions.page())
    print("\n".join(failed) or "all rows are measured")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
