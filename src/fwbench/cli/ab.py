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

from fwbench.cli.gate import (
    add_outputs,
    add_rules,
    check_writable,
    checked,
    conclude,
    replaced,
    rules_of,
)
from fwbench.environments.named import Environments
from fwbench.errors import UsageError
from fwbench.gate import self_test
from fwbench.gate.ab import PairedComparison, Plan
from fwbench.gate.launcher import Launcher
from fwbench.gate.sides import Tree, is_dirty, sides
from fwbench.gate.verdicts import Rules
from fwbench.options import values
from fwbench.project import project_root

_MINUTE_S = 60

#: What chance adds to the launches' own spread, between processes that take turns.
MARGIN = 0.01

#: At most one job in fifty calls something changed that is not.
LEVEL = 0.02


def add_to(commands: Any) -> None:
    """Add ``fwbench ab`` to the commands."""
    ab = commands.add_parser(
        "ab",
        allow_abbrev=False,
        usage="fwbench ab [options] BASE CONTENDER [pytest arguments]",
        help="measure two environments or two revisions in turns, and say what has changed",
        description="Whatever is not an option of this command goes to pytest, such as "
        "'benchmarks -k gemm'. Exit status: 0; 1 if a case has regressed, 11 if one is missing, 10 "
        "if one is inconclusive or all of them are (of those that --fail-on names, in this order); "
        "2 for a usage error.",
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
    ab.add_argument(
        "--pairs",
        metavar="N",
        type=checked(values.positive, "pairs"),
        default=Plan.pairs,
        help="of launches, one of each side, for every case at least (default: 5)",
    )
    ab.add_argument(
        "--budget",
        metavar="MINUTES",
        type=checked(partial(values.seconds, zero=True), "budget"),
        default=Plan.budget_s / _MINUTE_S,
        help="cases that are not decided get further pairs until it is over (default: 10); after "
        "that only those that look changed, up to the number that a verdict takes",
    )
    replaced(ab, "--launches", "the pairs go on until a case is decided: --pairs, --budget")
    replaced(ab, "--fresh-launches", "the pairs go on until a case is decided: --budget")
    replaced(ab, "--flag", "there is no second stage; --level is that of the whole job")
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
    add_rules(ab, LEVEL)
    add_outputs(ab)
    ab.set_defaults(run=_ab, takes_more=True)


def _ab(arguments: argparse.Namespace) -> int:
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed  # noqa: S311
    say = partial(print, file=sys.stderr)
    plan = Plan(arguments.pairs, arguments.budget * _MINUTE_S, seed)
    rules = rules_of(arguments)
    if arguments.self_test is not None:
        return _self_test(arguments.self_test, plan, rules, say)
    if arguments.contender is None:
        raise UsageError("two sides are compared: fwbench ab BASE CONTENDER [pytest arguments]")
    check_writable(arguments)
    environments = Environments(project_root(Path()))
    both = sides(arguments.base, arguments.contender, environments)
    say(f"{arguments.base} against {arguments.contender}: --seed {seed}")
    notes = _notes(both)
    for note in notes:
        say(note)
    job = PairedComparison(
        Launcher(both, arguments.more, environments),
        plan,
        rules,
        {*both[0].tested, *both[1].tested},
        say,
    )
    facts = {"base": both[0].facts(), "contender": both[1].facts()}
    with ExitStack() as ready:
        for side in both:
            ready.enter_context(side.ready())
        comparison = job.compare((arguments.base, arguments.contender), notes)
    settings = {**comparison.rules, "sides": facts, "pytest": arguments.more}
    return conclude(dataclasses.replace(comparison, rules=settings), arguments)


#: Comparisons of each kind that the self-test draws.
_COMPARISONS = 100


def _self_test(launches: int, plan: Plan, rules: Rules, say: Callable[[str], Any]) -> int:
    self_test.refuse_too_few(launches, plan, rules)
    pool = self_test.measure(launches, plan.seed, say)
    print(f"{_COMPARISONS} comparisons of each kind, drawn from {launches} launches (they overlap)")
    for outcome in self_test.outcomes(pool, plan, rules, _COMPARISONS, plan.seed):
        number = outcome.comparisons
        figures = [f"false alarms in {outcome.false_alarms / number:.1%} of comparisons"]
        if outcome.percent:
            figures += [
                f"regressed in {outcome.found / number:.1%}",
                f"unchanged in {outcome.overlooked / number:.1%}",
            ]
        figures.append(f"{outcome.cost:.2f} times the launches of {plan.pairs} pairs")
        print(f"{outcome.what}: {', '.join(figures)}")
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
