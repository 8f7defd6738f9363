"""``fwbench explain``: what accounts for the changes between two stored runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from fwbench.cli.common import add_command
from fwbench.cli.gate import check_writable, note_unknown, refuse_replacing, write_outputs
from fwbench.errors import UsageError
from fwbench.gate import causes
from fwbench.gate.samples import SampleSet, read
from fwbench.gate.stored import compare
from fwbench.gate.verdicts import Judgement, Rules
from fwbench.records.units import count
from fwbench.report import escaping, explanation


def add_to(commands: Any) -> None:
    """Add ``fwbench explain`` to the commands."""
    add_command(commands, "explain", _explain)


def _explain(arguments: argparse.Namespace) -> int:
    both = arguments.base, arguments.contender
    refuse_replacing(arguments, both)
    check_writable(arguments)
    base, contender = map(read, both)
    note_unknown(base, contender)
    judgements = causes.judged(compare(base, contender, Rules()))
    if not judgements:
        raise UsageError(
            f"{base.name} and {contender.name} have no case in common; give two runs of the same "
            "tests"
        )
    selected = _selected(judgements, arguments.only)
    explained = causes.explained(selected, _sessions(base), _sessions(contender))
    unchanged = _unchanged(judgements)
    text = explanation.markdown(explained) or f"{escaping.markdown(unchanged)}\n"
    write_outputs(arguments, text, {"explanations": explanation.to_json(explained)})
    print("\n".join(explanation.lines(explained) or [unchanged]))
    return 0


def _selected(judgements: Sequence[Judgement], text: str) -> Sequence[Judgement]:
    """The cases whose names have a text; without one those that have changed, or may have."""
    if not text:
        return [judgement for judgement in judgements if causes.may_have_changed(judgement)]
    selected = [judgement for judgement in judgements if text in judgement.name]
    if not selected:
        raise UsageError(
            f"-k {text!r} selects none of the {count(len(judgements), 'case')} of both runs, such "
            f"as {judgements[0].name}"
        )
    return selected


def _sessions(side: SampleSet) -> Sequence[SampleSet]:
    return side.sessions or [side]


def _unchanged(judgements: Sequence[Judgement]) -> str:
    advice = "-k TEXT shows a case whatever its verdict"
    if blind := [each for each in judgements if each.visible is None]:
        cases = f"{len(blind)} of {count(len(judgements), 'case')}"
        return f"{cases}: whether they have changed cannot be told: {blind[0].reason}; {advice}"
    above = max(map(causes.smallest, judgements))
    return f"{count(len(judgements), 'case')}: no difference above {above:.1%}; {advice}"
