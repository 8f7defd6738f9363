"""``fwbench ab``: two environments, or two revisions, measured in turns and compared."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from fwbench.cli.common import add_command
from fwbench.cli.gate import add_outputs, add_rules, check_writable, conclude, rules_of
from fwbench.errors import UsageError
from fwbench.gate import resume
from fwbench.gate.ab import Earlier, Launcher, PairedComparison, PairPlan, refuse_launching
from fwbench.gate.sides import Side, Tree, is_dirty, remove_abandoned, sides
from fwbench.gate.verdicts import Comparison, Rules
from fwbench.plugin.lines import Live
from fwbench.project import project_root
from fwbench.records.privacy import Places
from fwbench.records.units import count
from fwbench.version import __version__
from fwbench.workers.environments import Environments

#: What chance adds to the launches' own spread, between processes that take turns.
MARGIN = 0.01

#: At most one job in fifty calls something changed that is not.
LEVEL = 0.02

#: The start of a launch of one plain test took 0.56 s instead of 0.26.
_NO_BYTECODE = (
    "PYTHONDONTWRITEBYTECODE is set, so every launch compiles its modules again, and takes twice "
    "as long to start: unset it"
)


def add_to(commands: Any) -> None:
    """Add ``fwbench ab`` to the commands."""
    ab = add_command(commands, "ab", _ab)
    add_rules(ab, LEVEL)
    add_outputs(ab)
    ab.set_defaults(takes_more=True, pairs=PairPlan.pairs, budget=PairPlan.budget_s, margin=MARGIN)


def _ab(arguments: argparse.Namespace) -> int:
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed  # noqa: S311
    live = Live(sys.stderr)
    say = live.say
    plan = PairPlan(arguments.pairs, arguments.budget, seed)
    rules = rules_of(arguments)
    remove_abandoned()
    refuse_launching(arguments.more)
    check_writable(arguments)
    root = project_root(Path())
    environments = Environments(root)
    both = sides(arguments.base, arguments.contender, environments)
    settings = _settings(both, arguments, rules, root)
    if not arguments.resume:
        settings["seed"] = seed
    with resume.job(root, settings, resume=arguments.resume) as job:
        plan = dataclasses.replace(plan, seed=job.seed)
        say(f"{arguments.base} against {arguments.contender}: --seed {job.seed}")
        if sys.dont_write_bytecode:
            say(_NO_BYTECODE)
        launcher = Launcher(both, arguments.more, environments, job, say, live.watching)
        try:
            comparison = _comparison(launcher, both, plan, rules, job, say)
            return _concluded(comparison, settings, arguments, job)
        except BaseException as error:
            _part(job, error, say)
            raise


def _settings(
    both: tuple[Side, Side], arguments: argparse.Namespace, rules: Rules, root: Path
) -> dict[str, Any]:
    """Settings that must be the same for launches to be of one job, in JSON's own types."""
    base, contender = both
    settings = {
        "fwbench": __version__,
        "folder": str(Path.cwd().relative_to(root)),
        "base": base.state(),
        "contender": contender.state(),
        "pytest": Places(root).command_line(arguments.more, Path.cwd()),
        # Of what is not shown, so that only the same is resumed.
        "pytest_digest": hashlib.sha256(repr(arguments.more).encode()).hexdigest()[:8],
        "pairs": arguments.pairs,
        "rules": dataclasses.asdict(rules),
        "seed": arguments.seed,
    }
    return json.loads(json.dumps(settings))


def _comparison(
    launcher: Launcher,
    both: tuple[Side, Side],
    plan: PairPlan,
    rules: Rules,
    job: resume.ComparisonJob,
    say: Callable[[str], Any],
) -> Comparison:
    notes = _notes(both)
    if job.earlier:
        earlier = count(len(job.earlier), "pair")
        notes.append(f"resumed: {earlier} had been measured before, for {job.folder.name}")
    for note in notes:
        say(note)
    measured = PairedComparison(launcher, plan, rules, {*both[0].tested, *both[1].tested}, say)
    with ExitStack() as ready:
        for side in both:
            ready.enter_context(side.ready())
        return measured.compare(
            (both[0].name, both[1].name),
            notes,
            Earlier([pair.cases for pair in job.earlier], sum(pair.took_s for pair in job.earlier)),
        )


def _concluded(
    comparison: Comparison,
    settings: dict[str, Any],
    arguments: argparse.Namespace,
    job: resume.ComparisonJob,
) -> int:
    """Print and write a comparison; returns the exit status, unless it was interrupted."""
    both = {"base": settings["base"], "contender": settings["contender"]}
    rules = {**comparison.rules, "sides": both, "pytest": settings["pytest"]}
    status = conclude(dataclasses.replace(comparison, rules=rules), arguments)
    if comparison.interrupted:
        raise KeyboardInterrupt
    job.finish()
    return status


def _part(job: resume.ComparisonJob, error: BaseException, say: Callable[[str], Any]) -> None:
    """Say what is left of a job that has not come to its end."""
    if isinstance(error, UsageError) and not job.earlier:
        job.finish()  # these pairs cannot be compared, now or later
    elif job.pairs:
        pairs = count(job.pairs, "finished pair")
        with suppress(OSError):  # the terminal has gone, perhaps
            say(f"{pairs} kept under {job.folder}; to go on with them, add --resume")


def _notes(both: Any) -> list[str]:
    """Note on uncommitted changes."""
    roots = [side.root for side in both if hasattr(side, "root")]
    if not roots or not is_dirty(roots[0]):
        return []
    within = [side.name for side in both if isinstance(side, Tree)]
    if within:
        return [f"the working tree has uncommitted changes: they are measured in {within[0]}"]
    return ["the working tree has uncommitted changes: they are in neither side"]
