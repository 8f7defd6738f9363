"""Profiles of cases that have changed: what their operators account for."""

from fwbench.gate.explanation import Cause
from fwbench.processes.session import SIDES
from fwbench.records.measurement import Measurement
from fwbench.records.stored import StoredRun


def measure_profiles(*_: object) -> tuple[StoredRun | None, StoredRun | None]:
    """Profiles of both sides' tests; so far none is measured."""
    return None, None


def profile_causes(base: Measurement, contender: Measurement) -> tuple[list[Cause], list[str]]:
    """Causes that the profiles of both sides hold, and what could not be looked at."""
    sides = zip(SIDES, (base, contender), strict=True)
    lacking = [name for name, side in sides if side.facts and not side.facts.profile]
    return [], [f"no profile on the {name}'s side: --fw-profile" for name in lacking]
