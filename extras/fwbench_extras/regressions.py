"""Reports of others on regressions, with what ``fwbench since`` has found: docs/regressions.md."""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fwbench.records.session_facts import StoredRowCase
from fwbench.records.units import count, duration, times
from fwbench.report.escaping import markdown_row
from fwbench.report.since import version_rows

FOLDER = Path(__file__).parents[1] / "regressions"

#: Written by ``benchmarks/harness/regressions.py``.
RECORDED = FOLDER / "results.json"

#: Changes whose logarithms differ by this factor are not of one size.
_ALIKE = 2.0


def studies() -> dict[str, dict[str, Any]]:
    """The rows of versions with their reports, by name."""
    return tomllib.loads((FOLDER / "studies.toml").read_text(encoding="utf-8"))


def results() -> dict[str, dict[str, Any]]:
    """The findings of each row, as far as it was measured."""
    return dict(json.loads(RECORDED.read_text("utf-8"))) if RECORDED.exists() else {}


def command(name: str, study: Mapping[str, Any]) -> list[str]:
    """The command that measures a row, but for its budget and output."""
    options = [*shlex.split(study["options"]), "--python", "3.11"]
    return ["fwbench", "since", study["row"], *options, f"extras/regressions/test_{name}.py"]


def verdict(claimed: Mapping[str, Any], found: Mapping[str, Any], case: str) -> str:
    """Verdict on one claimed change, in a sentence.

    Args:
        claimed: two versions, and ``factor`` of the time or ``says``, which is slower or faster.
        found: the results of the row.
    """
    first, last = claimed["from"], claimed["to"]
    of_case = found["cases"].get(case, {"times_s": {}, "missing": {}})
    if lacking := [version for version in (first, last) if version not in of_case["times_s"]]:
        why = {**found["gaps"], **of_case["missing"]}.get(lacking[0], "it brought no result")
        return f"**not measured** in {lacking[0]}: {why}"
    row = found["versions"]
    span = row[row.index(first) + 1 : row.index(last) + 1]
    ratios = [each["ratio"] for each in of_case["changes"] if each["since"] in span]
    reported: float = claimed.get("factor", 0)
    says = claimed.get("says") or ("slower" if reported > 1 else "faster")
    claim = f"reported: {times(reported) if reported else says}"
    if not ratios:
        steps = [step for step in of_case["steps"] if step["since"] in span]
        bounds = [abs(math.log(bound)) for step in steps for bound in step["bounds"]]
        above = f" above {math.expm1(max(bounds)):.1%}" if bounds else ""
        is_open = not all(step["verdict"] for step in steps)
        word = "cannot tell" if is_open else f"not seen: no change{above} in a step"
        return f"**{word}** from {first} to {last} ({claim})"
    ratio = math.prod(ratios)
    word = "confirmed" if (ratio > 1) == (says == "slower") else "contradicted"
    if word == "confirmed" and reported:
        part = math.log(ratio) / math.log(reported)
        word += ", smaller" if part < 1 / _ALIKE else ", larger" if part > _ALIKE else ""
    return f"**{word}**: {last} takes {times(ratio)} the time of {first} ({claim})"


def page() -> str:
    """The text of docs/regressions.md."""
    overview, rows = list[str](), list[str]()
    for name, row in results().items():
        study = studies()[name]
        cost = f"{count(row['launches'], 'launch', 'launches')} in {duration(row['took_s'])}"
        rows.append(f"\n## {name}\n\n```sh\n{shlex.join(command(name, study))}\n```\n\n")
        facts = f"{row['date']}, {row['machine']}, Python {row['python']}: {cost}."
        rows.append(f"{facts} {study.get('note', '')}".rstrip() + "\n")
        for report in study["reports"]:
            sentences = [verdict(each, row, report["case"]) for each in report["changes"]]
            link = f"[{name}: {report['title']}]({report['thread']})"
            overview.append(f"| {link} | {'; '.join(sentences)} |\n")
            rows += _report(report, sentences, row["cases"].get(report["case"], {}))
    return "".join([(FOLDER / "introduction.md").read_text(encoding="utf-8"), *overview, *rows])


def _report(report: Mapping[str, Any], said: list[str], case: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n### {report['title']}\n\n[The thread]({report['thread']}): {report['claim']}\n"
    yield f"{report['note']}\n" if "note" in report else ""
    yield "".join(f"\n- {sentence}" for sentence in said)
    yield "\n\n| version | time | change | bounds, launches |\n|---|---:|---:|---|\n"
    for cells in version_rows(StoredRowCase.of_json(case)) if case else ():
        yield markdown_row(cells) + "\n"
