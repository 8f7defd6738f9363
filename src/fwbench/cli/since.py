"""``fwbench since``: a row of versions, and at which of them a case became slower or faster."""

import argparse
import math
import random
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from fwbench.cli.ab import EXPLAINING, LEVEL, job_settings
from fwbench.cli.common import add_command, print_lines
from fwbench.cli.gate import check_writable, write_outputs
from fwbench.errors import FwbenchError, UsageError
from fwbench.gate import builds, causes, releases, resume
from fwbench.gate.ab import PairPlan, refuse_launching
from fwbench.gate.builds import Builder, installed_pythons, remove_unfinished
from fwbench.gate.causes import ExplainedChange, Profiles
from fwbench.gate.lineup import Lineup, RowJob
from fwbench.gate.profiles import measure_profiles
from fwbench.gate.releases import Releases
from fwbench.gate.samples import SampleSet
from fwbench.gate.sides import (
    REVISION,
    Built,
    Side,
    changed_versions,
    remove_abandoned,
    revisions,
    uncompiled,
)
from fwbench.gate.since import TWO, RowOfVersions, Search
from fwbench.gate.verdicts import Judgement, Rules
from fwbench.machine import cpu_model
from fwbench.plugin.lines import Live
from fwbench.project import project_root
from fwbench.records.session_facts import StoredRow
from fwbench.records.units import count
from fwbench.report import explanation, since
from fwbench.workers.environments import Environments

#: Files that a suite of tests is made of.
_SUFFIXES = (".py", ".toml", ".ini", ".cfg")

#: Characters of versions and revisions that folders are not named by.
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")


def add_to(commands: Any) -> None:
    """Add ``fwbench since`` to the commands."""
    command = add_command(commands, "since", _since)
    command.set_defaults(
        takes_more=True, budget=PairPlan.budget_s, threshold=Rules.threshold, level=LEVEL
    )


def _since(arguments: argparse.Namespace) -> int:
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed  # noqa: S311
    live = Live(sys.stderr)
    remove_abandoned()
    refuse_launching(arguments.more)
    check_writable(arguments)
    root = project_root(Path())
    remove_unfinished(root)
    sides, gaps, builder = _row(arguments, root, live.say)
    search = Search(len(sides), Rules(threshold=arguments.threshold, level=arguments.level))
    settings = _settings(arguments, root, builder)
    if not arguments.resume:
        settings["seed"] = seed
    with ExitStack() as ready, resume.job(root, settings, RowJob, resume=arguments.resume) as job:
        live.say(f"{arguments.row}: {len(sides)} versions, --seed {job.seed}")

        def prepare(place: int) -> None:
            side = sides[place]
            if isinstance(side, Built) and builder is not None:
                side.resolve(builder, {})
            ready.enter_context(side.ready())

        lineup = Lineup(sides, arguments.more, Environments(root), job, live.say, live.watching)
        row = RowOfVersions(search, lineup, prepare, arguments.budget, live.say)
        row.resume(lineup.earlier(row.make_ready))
        lineup.patience.ends_s = time.monotonic() + arguments.budget
        row.measure(job.seed)
        for line in job.remarks():
            live.say(line)
        settings |= {"cpu": cpu_model(), "when": datetime.now(UTC).isoformat(timespec="seconds")}
        names = [side.name for side in sides]
        stored = row.stored(arguments.row, names, gaps, settings, lineup.apart)
        explained: list[ExplainedChange] = []
        is_interrupted = row.is_interrupted
        if arguments.explain and not is_interrupted:
            took_s = arguments.budget if row.reused else row.took_s
            lineup.patience.ends_s = ends_s = time.monotonic() + EXPLAINING * took_s
            more = ends_s, arguments, job.seed, live.say
            try:
                explained = _explained(stored, sides, lineup, *more)
            except KeyboardInterrupt:  # the row stands
                is_interrupted = True
            except FwbenchError as error:
                live.say(f"not explained: {error}")
        asked = explained if arguments.explain else None
        write_outputs(arguments, since.markdown(stored), stored, asked)
        print_lines([*since.table(stored), *explanation.lines(explained)])
        if is_interrupted:
            live.say(f"{job.folder} has its launches; to go on with them, add --resume")
            raise KeyboardInterrupt
    return 0


def _settings(arguments: argparse.Namespace, root: Path, builder: Builder | None) -> dict[str, Any]:
    """Settings that must be the same for launches to be of one row, in JSON's own types."""
    is_of_revisions = arguments.row.startswith(REVISION)
    packages = [each.name for each in _requirements(arguments.row)] if not is_of_revisions else []
    return {
        **job_settings(arguments, root),
        "packages": packages or "revisions",
        "build": arguments.build,
        "with": arguments.extra,
        "python": builder.python if builder else sys.version,
        "tests": "" if is_of_revisions else _tests(arguments.more),
    }


def _tests(arguments: Sequence[str]) -> str:
    """A digest of the tests that the arguments of pytest name."""
    named = [Path(argument.partition("::")[0]) for argument in arguments]
    paths = [path for path in named if path.exists()] or [Path()]
    return " ".join(builds.digest(path.absolute(), _SUFFIXES)[:8] for path in paths)


def _explained(
    row: StoredRow,
    sides: Sequence[Side],
    lineup: Lineup,
    ends_s: float,
    arguments: argparse.Namespace,
    seed: int,
    say: Callable[[str], Any],
) -> list[ExplainedChange]:
    """Explanations of the changes.

    Args:
        ends_s: no further step is profiled from then on, nor launched if this call has not done so,
            the largest one in any case.
    """
    judgements: dict[tuple[int, int], list[Judgement]] = {}
    for name, case in row.cases.items():
        for change in case.changes:
            step = row.versions.index(change.after), row.versions.index(change.since)
            judgements.setdefault(step, []).append(since.judgement(name, case, change))
    explained: list[ExplainedChange] = []
    for step, changes in sorted(judgements.items(), key=lambda each: -_largest(each[1])):
        both = sides[step[0]], sides[step[1]]
        has_time = ends_s > time.monotonic() or not explained
        if has_time and not _launched(changes, step, lineup):
            say(f"{both[0].name} and {both[1].name}: launched once more, to be explained")
            lineup.launch(step, [each.key for each in changes], seed)
        launched = _launched(changes, step, lineup)
        nodeids = [lineup.nodeids[each.key] for each in launched]
        more = arguments.more, Environments(project_root(Path())), {0: nodeids, 1: nodeids}, seed
        profiles: Profiles = None, None
        if has_time and launched:
            names = (_NOT_IN_NAMES.sub("-", side.name) for side in both)
            left_s = ends_s - time.monotonic()
            profiles = measure_profiles(both, *more, left_s, say, "-to-".join(names))
        base, contender = ([SampleSet(sides[p].name, lineup.samples[p])] for p in step)
        profiled = partial(causes.profiled_causes, profiles)
        versions = changed_versions(*both)
        explained += causes.explained(launched, base, contender, versions, profiled)
    return explained


def _launched(
    changes: Sequence[Judgement], step: tuple[int, int], lineup: Lineup
) -> list[Judgement]:
    """The changes of cases that this call has launched in both versions."""
    return [each for each in changes if all(each.key in lineup.samples[p] for p in step)]


def _largest(changes: Sequence[Judgement]) -> float:
    return max(abs(math.log(change.ratio or 1.0)) for change in changes)


def _row(
    arguments: argparse.Namespace, root: Path, say: Callable[[str], Any]
) -> tuple[Sequence[Side], Mapping[str, str], Builder | None]:
    """The versions of a row, why others are not in it, and what builds their environments."""
    if arguments.row.startswith(REVISION):
        return _revisions(arguments, root, say)
    _refuse(arguments, {"--build": arguments.build}, "revisions: git:v1.0..git:HEAD")
    first, *others = _requirements(arguments.row)
    if arguments.index:
        arguments.index = releases.index_url(root, arguments.index)
    arguments.python = arguments.python or _python(first, arguments)
    builder = Builder(root, arguments.python, arguments.extra, say, arguments.index)
    found = _releases(first, builder.python_version, arguments)
    row = found.row(
        every=arguments.every, good=arguments.good, bad=arguments.bad, named=arguments.versions
    )
    if len(row.versions) < TWO:
        raise UsageError(
            f"fewer than two versions are in the row: {', '.join(row.versions)}; name more of "
            f"{', '.join(found.versions)}"
        )
    sides = [
        Built(version, [f"{each.name}=={version}" for each in (first, *others)])
        for version in row.versions
    ]
    return sides, row.gaps, builder


def _requirements(text: str) -> list[Requirement]:
    """The packages of a row, of which the first has the range of versions."""
    try:
        return [Requirement(word) for word in text.split() or [text]]
    except InvalidRequirement as error:
        raise UsageError(
            f"{text!r} is not a row of versions ({str(error).splitlines()[0]}); name a package "
            "with a range, 'numpy>=1.26', or revisions, git:v1.0..git:HEAD"
        ) from error


def _releases(
    requirement: Requirement, python: tuple[int, int], arguments: argparse.Namespace
) -> Releases:
    found = releases.releases(requirement, python, arguments.index, pre=arguments.pre)
    if len(found.versions) < TWO:
        raise UsageError(
            f"{requirement} has {count(len(found.versions), 'release')} with wheels for Python "
            f"{python[0]}.{python[1]}, and {len(found.gaps)} without: a row takes two; ask for a "
            "wider range, or name another interpreter: --python"
        )
    return found


def _python(requirement: Requirement, arguments: argparse.Namespace) -> str | None:
    """The interpreter with wheels of most versions, of those that are installed; None for this."""

    def number(python: tuple[int, int]) -> int:
        found = releases.releases(requirement, python, arguments.index, pre=arguments.pre)
        return len(found.versions)

    most, best = number(sys.version_info[:2]), None
    for version, path in installed_pythons().items():
        if (wheels := number(version)) > most:
            most, best = wheels, path
    return best


def _revisions(
    arguments: argparse.Namespace, root: Path, say: Callable[[str], Any]
) -> tuple[Sequence[Side], Mapping[str, str], Builder | None]:
    of_releases = {
        "--versions": arguments.versions,
        "--every": arguments.every != "patch",
        "--good": arguments.good,
        "--bad": arguments.bad,
        "--pre": arguments.pre,
        "--index": arguments.index,
    }
    _refuse(arguments, of_releases, "releases of a package: 'numpy>=1.26'")
    of_builds = {"--with": arguments.extra, "--python": arguments.python}
    builder = None
    if arguments.build:
        builder = Builder(root, arguments.python, arguments.extra, say)
    else:
        _refuse(arguments, of_builds, "revisions that are built: add --build")
    row = revisions(arguments.row, build=arguments.build)
    if note := uncompiled(row):
        say(note)
    return row, {}, builder


def _refuse(arguments: argparse.Namespace, given: Mapping[str, Any], what: str) -> None:
    """Refuse options that would have no effect on a row of this kind."""
    for option in (name for name, value in given.items() if value):
        raise UsageError(f"{option} has no effect on {arguments.row}: it is for {what}")
