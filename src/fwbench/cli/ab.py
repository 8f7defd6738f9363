"""``fwbench ab``: two environments, or two revisions, measured in turns and compared."""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fwbench.cli.gate import add_outputs, add_rules, check_writable, checked, conclude, rules_of
from fwbench.environments.named import Environments
from fwbench.errors import UsageError
from fwbench.gate import self_test
from fwbench.gate.ab import StagedComparison, Stages
from fwbench.gate.launcher import Launcher
from fwbench.gate.sides import Tree, is_dirty, sides
from fwbench.gate.verdicts import Rules
from fwbench.options import values
from fwbench.project import project_root

#: What chance adds to the launches' own spread, between processes that take turns.
MARGIN = 0.01


def add_to(commands: Any) -> None:
    """Add ``fwbench ab`` to the commands."""
    ab = commands.add_parser(
        "ab",
        allow_abbrev=False,
        usage="fwbench ab [options] BASE CONTENDER [pytest arguments]",
        help="measure two environments or two revisions in turns, and say what has changed",
        description="Whatever is not an option of this command goes to pytest, such as "
        "'benchmarks -k gemm'. Exit status: 0; 1 if a case has regressed, 11 if one is missing, 10 "
        "if one is inconclusive (of those that --fail-on names, in this order); 2 for a usage "
        "error.",
    )
    what = "an environment, FRAMEWORK, FRAMEWORK@ENVIRONMENT, default, git:REV, or . (this tree)"
    ab.add_argument("base", metavar="BASE", nargs="?", help=what)
    ab.add_argument("contender", metavar="CONTENDER", nargs="?", help="the same")
    ab.add_argument(
        "--self-test",
        metavar="LAUNCHES",
        nargs="?",
        const=60,
        type=checked(values.positive, "launches"),
        help="say how often comparisons err on this machine, and what they can see, from so many "
        "launches of a suite of NumPy operations (default: 60, a few minutes)",
    )
    launches = partial(ab.add_argument, metavar="N", type=checked(values.positive, "launches"))
    launches("--launches", default=Stages.launches, help="of each side (default: 5)")
    launches(
        "--fresh-launches",
        default=Stages.fresh,
        help="of each side, for cases that look changed (default: 10)",
    )
    ab.add_argument(
        "--flag",
        type=checked(values.share, "flag"),
        default=Stages.flag,
        help="a case looks changed if chance alone does that with a smaller probability (default: "
        "0.15)",
    )
    ab.add_argument(
        "--margin",
        type=checked(values.share, "margin"),
        default=MARGIN,
        help="what the tests concede to chance beyond the launches' own (default: 1%%)",
    )
    ab.add_argument(
        "--seed",
        metavar="N",
        type=checked(values.natural, "seed"),
        help="of the order of launches and cases (default: a new one, which is printed)",
    )
    add_rules(ab)
    add_outputs(ab)
    ab.set_defaults(run=_ab, takes_more=True)


def _ab(arguments: argparse.Namespace) -> int:
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed  # noqa: S311
    say = partial(print, file=sys.stderr)
    stages = Stages(arguments.launches, arguments.flag, arguments.fresh_launches, seed)
    rules = rules_of(arguments)
    if arguments.self_test is not None:
        return _self_test(arguments.self_test, stages, rules, say)
    if arguments.contender is None:
        raise UsageError("two sides are compared: fwbench ab BASE CONTENDER [pytest arguments]")
    check_writable(arguments)
    environments = Environments(project_root(Path()))
    both = sides(arguments.base, arguments.contender, environments)
    say(f"{arguments.base} against {arguments.contender}: --seed {seed}")
    notes = _notes(both)
    for note in notes:
        say(note)
    staged = StagedComparison(
        Launcher(both, arguments.more, environments),
        stages,
        rules,
        {*both[0].tested, *both[1].tested},
        say,
    )
    facts = {"base": both[0].facts(), "contender": both[1].facts()}
    with ExitStack() as ready:
        for side in both:
            ready.enter_context(side.ready())
        comparison = staged.compare((arguments.base, arguments.contender), notes)
    settings = {**comparison.rules, "sides": facts, "pytest": arguments.more}
    return conclude(dataclasses.replace(comparison, rules=settings), arguments)


#: Comparisons of each kind that the self-test draws.
_COMPARISONS = 500


def _self_test(launches: int, stages: Stages, rules: Rules, say: Callable[[str], Any]) -> int:
    self_test.refuse_too_few(launches, stages)
    pool = self_test.measure(launches, stages.seed, say)
    print(f"{_COMPARISONS} comparisons of each kind, drawn from {launches} launches (they overlap)")
    for outcome in self_test.outcomes(pool, stages, rules, _COMPARISONS, stages.seed):
        share = outcome.detected / outcome.comparisons
        print(
            f"{outcome.what}: regressed in {share:.1%} of comparisons; the second stage launched "
            f"{outcome.extra:.1%} as many cases as the first"
        )
    return 0


def _notes(both: Any) -> list[str]:
    """Whether uncommitted changes take part."""
    roots = [side.root for side in both if hasattr(side, "root")]
    if not roots or not is_dirty(roots[0]):
        return []
    within = [side.name for side in both if isinstance(side, Tree)]
    if within:
        return [f"the working tree has uncommitted changes: they are measured in {within[0]}"]
    return ["the working tree has uncommitted changes: they are in neither side"]
