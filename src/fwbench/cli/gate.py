"""``fwbench gate`` and ``fwbench baseline``: has anything become slower since then?"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fwbench.cli.common import (
    add_arguments,
    add_command,
    print_lines,
    print_result,
    terminal_width,
    warn,
)
from fwbench.errors import UnreadableRun, UsageError
from fwbench.gate.causes import ExplainedChange
from fwbench.gate.samples import THRESHOLDS, SampleSet, read, refuse_differences
from fwbench.gate.stored import Baseline, compare
from fwbench.gate.verdicts import FAIL_ON, Comparison, FailOn, Rules
from fwbench.options import values
from fwbench.plugin.options import checked
from fwbench.project import project_root
from fwbench.records import files
from fwbench.records.stored import unknown_notice
from fwbench.records.units import count
from fwbench.report import escaping, explanation, verdicts


def add_to(commands: Any) -> None:
    """Add ``fwbench gate`` and ``fwbench baseline`` to the commands."""
    gate = add_command(commands, "gate", _gate, facts=", ".join(values.FACTS))
    add_rules(gate)
    add_outputs(gate)
    baseline = add_command(commands, "baseline")
    actions = baseline.add_subparsers(required=True, metavar="ACTION")
    add_command(actions, "baseline set", _set)
    add_command(actions, "baseline show", _show)


def add_rules(parser: argparse.ArgumentParser, level: float = Rules.level) -> None:
    """Add what decides, alike for every comparison."""
    add_arguments(parser, "threshold")
    for name, default in THRESHOLDS.items():
        parser.add_argument(
            f"--threshold-{name.replace(' ', '-')}",
            metavar="SHARE",
            type=checked(values.growth, f"threshold of {name}"),
            default=default,
            help=f"the same for {name} (default: {default:.0%})".replace("%", "%%"),
        )
    add_arguments(parser, "rules", level=level)
    names = ("margin", "threshold", "resolution", "confidence")
    parser.set_defaults(level=level, **{name: getattr(Rules, name) for name in names})


def rules_of(arguments: argparse.Namespace) -> Rules:
    """Rules from the arguments of :func:`add_rules`, and a margin."""
    return Rules(
        margin=arguments.margin,
        threshold=arguments.threshold,
        level=arguments.level,
        confidence=arguments.confidence,
        resolution=arguments.resolution,
        thresholds={
            name: getattr(arguments, f"threshold_{name.replace(' ', '_')}") for name in THRESHOLDS
        },
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add what is written and failed on, alike for every comparison."""
    add_arguments(parser, "outputs")
    parser.set_defaults(fail_on=FAIL_ON)


def check_writable(arguments: argparse.Namespace) -> None:
    """Find out before anything is measured whether what comes of it can be written."""
    for path in (arguments.markdown, arguments.json):
        if path is not None:
            files.check_writable(path)


def write_outputs(
    arguments: argparse.Namespace,
    markdown: str,
    figures: Mapping[str, Any],
    explained: Sequence[ExplainedChange] | None = None,
) -> None:
    """Write a result to the requested files, before it is printed: the reader may have gone.

    Args:
        explained: the changes to add to both, if explanations were asked for.
    """
    if explained:
        markdown += f"\n{explanation.markdown(explained)}"
    added = {} if explained is None else {"explanations": explanation.to_json(explained)}
    if arguments.markdown is not None:
        files.write_atomically(arguments.markdown, markdown)
    if arguments.json is not None:
        files.write_atomically(arguments.json, json.dumps({**figures, **added}, indent=2) + "\n")


def conclude(
    comparison: Comparison,
    arguments: argparse.Namespace,
    explained: Sequence[ExplainedChange] | None = None,
) -> int:
    """Write a comparison to the requested files, and print it; returns the exit status.

    Args:
        explained: the changes, if explanations were asked for.
    """
    write_outputs(arguments, verdicts.markdown(comparison), comparison.to_json(), explained)
    print_lines(
        [*verdicts.table(comparison, terminal_width()), *explanation.lines(explained or ())]
    )
    return comparison.exit_status([*map(FailOn, arguments.fail_on)])


def _gate(arguments: argparse.Namespace) -> int:
    refuse_replacing(arguments, arguments.runs)
    check_writable(arguments)
    *base, contender = arguments.runs
    if len(base) > 1:
        raise UsageError(
            f"{len(arguments.runs)} runs are given, and two are compared: BASELINE CONTENDER; "
            "sessions that belong together go into a folder"
        )
    baseline = read(base[0]) if base else _baseline().run()
    measured = read(contender)
    note_unknown(baseline, measured)
    if not baseline.samples:
        raise UnreadableRun(f"{baseline.name}: there is no benchmark in it; measure again")
    differences = refuse_differences(baseline, measured, arguments.allow_different)
    return conclude(compare(baseline, measured, rules_of(arguments), differences), arguments)


def refuse_replacing(arguments: argparse.Namespace, read_runs: Iterable[Path]) -> None:
    """Refuse to write where a run is, or among the runs of a folder."""
    runs = {files.target(path) for path in read_runs}
    for path in filter(None, (arguments.markdown, arguments.json)):
        place = files.target(path)
        if place in runs or (place.suffix == ".json" and place.parent in runs):
            raise UsageError(f"{path} would replace a run, or be among runs; write it elsewhere")


def note_unknown(*sides: SampleSet) -> None:
    """Say once what this version does not know of what was read."""
    notice = unknown_notice([(side.name, side.unknown) for side in sides])
    if notice is not None:
        warn(notice)


def _baseline() -> Baseline:
    return Baseline(project_root(Path()))


def _set(arguments: argparse.Namespace) -> int:
    run = _baseline().set(arguments.files, anyway=arguments.anyway)
    note_unknown(run)
    cases, sessions = count(len(run.samples), "case"), count(len(run.sessions), "session")
    print_result(arguments, _sessions(run), f"the baseline has {cases} of {sessions}")
    return 0


def _sessions(run: SampleSet) -> dict[str, Any]:
    """Number of sessions of each case of the baseline."""
    cases = {sample.label: len(sample.launches) for sample in run.samples.values()}
    return {"folder": str(_baseline().folder), "cases": cases}


def _show(arguments: argparse.Namespace) -> int:
    baseline = _baseline()
    run = baseline.run()
    note_unknown(run)
    lines = [f"{count(len(run.samples), 'case')} under {baseline.folder}"]
    for sample in run.samples.values():
        sessions = count(len(sample.launches), "session", "sessions")
        lines.append(f"  {escaping.terminal(sample.label)}: {sessions}")
    print_result(arguments, _sessions(run), "\n".join(lines))
    return 0
