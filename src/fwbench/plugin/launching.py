"""Chooses who runs the launches of a session: a fixed number, a budget, or a race."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fwbench.gate.budget import Budget, Fixed, Precise
from fwbench.gate.race import Race
from fwbench.plugin.budget import PreciseHooks
from fwbench.plugin.multilaunch import MultiLaunchRunner
from fwbench.plugin.progress.hooks import Progress
from fwbench.plugin.race import BUDGET_S, Entrants, RaceHooks
from fwbench.plugin.session import Session
from fwbench.plugin.storage import Store
from fwbench.records.launches import LaunchPlan


def hooks(
    config: pytest.Config, session: Session, progress: Progress, plan: LaunchPlan, store: Store
) -> Iterator[object]:
    """The hooks that run launches, and those that tell what came of them.

    Args:
        config: of the session.
        session: of fwbench.
        progress: shows how far things are.
        plan: of the launches.
        store: keeps what is said of the session.
    """
    options = session.options
    if options.race:
        budget = Budget(BUDGET_S if options.budget_s is None else options.budget_s)
        entrants = Entrants(options.threshold, session)
        race = Race(entrants.groups, budget, plan.launches)
        runner = MultiLaunchRunner(config, session, progress, plan, race)
        yield from (entrants, runner, RaceHooks(config, runner, store, race))
    elif options.budget_s is not None:
        precise = Precise(Budget(options.budget_s), options.threshold, plan.launches)
        runner = MultiLaunchRunner(config, session, progress, plan, precise)
        yield from (runner, PreciseHooks(config, runner, store, precise))
    else:
        yield MultiLaunchRunner(config, session, progress, plan, Fixed(plan.launches))
