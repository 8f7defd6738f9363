"""``fwbench ab``: two environments, or two revisions, measured in turns and compared."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from fwbench.cli.common import add_command
from fwbench.cli.gate import add_outputs, add_rules, check_writable, conclude, rules_of
from fwbench.errors import UsageError
from fwbench.gate import causes, resume
from fwbench.gate.ab import Earlier, Launcher, PairedComparison, PairPlan, refuse_launching
from fwbench.gate.builds import Builder, remove_unfinished
from fwbench.gate.causes import ExplainedChange, Profiles
from fwbench.gate.profiles import measure_profiles
from fwbench.gate.sides import (
    Built,
    Revision,
    Side,
    Tree,
    changed_versions,
    is_dirty,
    place_tests,
    remove_abandoned,
    resolve,
    sides,
    uncompiled,
    unseen,
)
from fwbench.gate.verdicts import Comparison, Rules
from fwbench.plugin.lines import Live
from fwbench.project import project_root
from fwbench.records.privacy import Places
from fwbench.records.units import count
from fwbench.version import __version__
from fwbench.workers.environments import Environments

#: At most one job in fifty calls something changed that is not.
LEVEL = 0.02

#: Time that may be spent on explaining changes, as a share of that of the comparison.
EXPLAINING = 0.25

#: None if they were not asked for.
Explanations = Sequence[ExplainedChange] | None

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
    ab.set_defaults(takes_more=True, pairs=PairPlan.pairs, budget=PairPlan.budget_s)


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
    both, notes = _sides(arguments, environments, root, say)
    settings = _settings(both, arguments, rules, root)
    if not arguments.resume:
        settings["seed"] = seed
    with resume.job(root, settings, resume.ComparisonJob, resume=arguments.resume) as job:
        plan = dataclasses.replace(plan, seed=job.seed)
        say(f"{arguments.base} against {arguments.contender}: --seed {job.seed}")
        if sys.dont_write_bytecode:
            say(_NO_BYTECODE)
        launcher = Launcher(both, arguments.more, environments, job, say, live.watching)
        explain = partial(_explained, both, arguments, environments, job, say)
        try:
            compared = _comparison(launcher, both, plan, rules, job, notes, say, explain)
            return _concluded(*compared, settings, arguments, job)
        except BaseException as error:
            _part(job, error, say)
            raise


def _sides(
    arguments: argparse.Namespace, environments: Environments, root: Path, say: Callable[[str], Any]
) -> tuple[tuple[Side, Side], list[str]]:
    """Both sides, resolved if they are built; and notes on them."""
    both = sides(arguments.base, arguments.contender, environments, build=arguments.build)
    notes = [place_tests(both, arguments.tests), *_notes(both), unseen(*both), uncompiled(both)]
    if any(isinstance(side, Built) for side in both):
        remove_unfinished(root)
        builder = Builder(root, arguments.python, arguments.extra, say)
        resolve(both, builder, arguments.pin)
    else:
        _refuse_options_of_builds(arguments)
    return both, [*filter(None, notes)]


def _refuse_options_of_builds(arguments: argparse.Namespace) -> None:
    given = {"--with": arguments.extra, "--pin": arguments.pin, "--python": arguments.python}
    for option in (name for name, value in given.items() if value):
        raise UsageError(
            f"{option} is for environments that are built, and {arguments.base} and "
            f"{arguments.contender} are not; name a requirement (PACKAGE==VERSION), or have "
            "revisions built: --build"
        )


def _settings(
    both: tuple[Side, Side], arguments: argparse.Namespace, rules: Rules, root: Path
) -> dict[str, Any]:
    """Settings that must be the same for launches to be of one job, in JSON's own types."""
    base, contender = both
    settings = {
        **job_settings(arguments, root),
        "base": base.state(),
        "contender": contender.state(),
        "pairs": arguments.pairs,
        "rules": dataclasses.asdict(rules),
    }
    return json.loads(json.dumps(settings))


def job_settings(arguments: argparse.Namespace, root: Path) -> dict[str, Any]:
    """Settings of any job; see :func:`fwbench.gate.resume.job`."""
    return {
        "fwbench": __version__,
        "folder": str(Path.cwd().relative_to(root)),
        "pytest": Places(root).command_line(arguments.more, Path.cwd()),
        # Of what is not shown, so that only the same is resumed.
        "pytest_digest": hashlib.sha256(repr(arguments.more).encode()).hexdigest()[:8],
        "seed": arguments.seed,
    }


def _comparison(
    launcher: Launcher,
    both: tuple[Side, Side],
    plan: PairPlan,
    rules: Rules,
    job: resume.ComparisonJob,
    notes: list[str],
    say: Callable[[str], Any],
    explain: Callable[[Comparison], Explanations],
) -> tuple[Comparison, Explanations]:
    if job.earlier:
        earlier = count(len(job.earlier), "pair")
        notes.append(f"resumed: {earlier} had been measured before, for {job.folder.name}")
    for note in notes:
        say(note)
    measured = PairedComparison(launcher, plan, rules, {*both[0].tested, *both[1].tested}, say)
    with ExitStack() as ready:
        for side in both:
            ready.enter_context(side.ready())
        versions = changed_versions(*both)
        for change in versions:
            say(str(change))
        took_s = sum(pair.took_s for pair in job.earlier)
        launcher.patience.ends_s = time.monotonic() + plan.budget_s - took_s
        compared = measured.compare(
            (both[0].name, both[1].name),
            notes,
            Earlier([pair.cases for pair in job.earlier], took_s),
        )
        for line in job.remarks():
            say(line)
        notes = [*compared.notes, *launcher.notes()]
        compared = dataclasses.replace(compared, versions=versions, notes=notes)
        try:
            return compared, explain(compared)
        except KeyboardInterrupt:  # the verdicts stand
            return dataclasses.replace(compared, interrupted=True), None


def _explained(
    both: tuple[Side, Side],
    arguments: argparse.Namespace,
    environments: Environments,
    job: resume.ComparisonJob,
    say: Callable[[str], Any],
    comparison: Comparison,
) -> Explanations:
    """Explanations of the changes; None if they were not asked for."""
    if not arguments.explain:
        return None
    changes = [*filter(causes.has_changed, causes.judged(comparison))]
    pairs = job.pairs()
    if not (changes and pairs):  # none, if the first one was cut short
        return []
    runs = [pair.sides[0] for pair in pairs], [pair.sides[1] for pair in pairs]
    profiles: Profiles = None, None
    if not comparison.interrupted:
        # An import has its parts in its record.
        keys = [each.key for each in changes if not runs[0][0].samples[each.key].facts.import_parts]
        nodeids = {side: [runs[side][0].samples[key].nodeid for key in keys] for side in range(2)}
        budget_s = EXPLAINING * sum(pair.took_s for pair in pairs)
        more = arguments.more, environments, nodeids, job.seed, budget_s, say
        profiles = measure_profiles(both, *more)
    profiled = partial(causes.profiled_causes, profiles)
    return causes.explained(changes, *runs, comparison.versions, profiled)


def _concluded(
    comparison: Comparison,
    explained: Explanations,
    settings: dict[str, Any],
    arguments: argparse.Namespace,
    job: resume.ComparisonJob,
) -> int:
    """Print and write a comparison; returns the exit status, unless it was interrupted."""
    both = {"base": settings["base"], "contender": settings["contender"]}
    rules = {**comparison.rules, "sides": both, "pytest": settings["pytest"]}
    status = conclude(dataclasses.replace(comparison, rules=rules), arguments, explained)
    if comparison.interrupted:
        raise KeyboardInterrupt
    job.finish()
    return status


def _part(job: resume.ComparisonJob, error: BaseException, say: Callable[[str], Any]) -> None:
    """Say what is left of a job that has not come to its end."""
    if isinstance(error, UsageError) and not job.earlier:
        job.finish()  # these pairs cannot be compared, now or later
    elif job.saved:
        pairs = count(job.saved, "finished pair")
        with suppress(OSError):  # the terminal has gone, perhaps
            say(f"{pairs} kept under {job.folder}; to go on with them, add --resume")


def _notes(both: Any) -> list[str]:
    """Note on uncommitted changes."""
    trees = [side.tree if isinstance(side, Built) else side for side in both]
    roots = [tree.root for tree in trees if isinstance(tree, Tree | Revision)]
    if not roots or not is_dirty(roots[0]):
        return []
    within = [tree.name for tree in trees if isinstance(tree, Tree)]
    if within:
        return [f"the working tree has uncommitted changes: {within[0]!r} is measured with them"]
    return ["the working tree has uncommitted changes: they are in neither side"]
