"""Cases that were not measured are recorded with the reason, also those not reached."""

from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.plugin.session import CELL, UNASKED
from fwbench.plugin.store import Unmeasured
from fwbench.records.session_facts import NOT_REACHED


def item(nodeid: str, framework: str = "torch", *, skipped: bool = False) -> Any:
    """A case, as far as it is looked at."""
    return SimpleNamespace(
        nodeid=nodeid,
        stash={CELL: SimpleNamespace(framework=framework, params={"framework": framework})},
        get_closest_marker=lambda _: skipped or None,
    )


def report(nodeid: str, when: str, outcome: str = "passed") -> Any:
    """A report of a test that was not skipped."""
    is_passed, is_failed = outcome == "passed", outcome == "failed"
    return SimpleNamespace(
        nodeid=nodeid,
        when=when,
        outcome=outcome,
        passed=is_passed,
        failed=is_failed,
        skipped=False,
        longrepr="",
    )


@pytest.fixture
def session() -> Unmeasured:
    """Two cases are gaps; of the others one was measured, one failed, and one is to come."""
    unmeasured = Unmeasured()
    unmeasured.pytest_collection_modifyitems(
        [
            *(item("skipped", skipped=True), item("measured"), item("failing")),
            *(item("last", "numpy"), item("a gap after that", skipped=True)),
        ]
    )
    skip = report("skipped", "setup", "skipped")
    skip.skipped, skip.longrepr = True, ("file", 1, "Skipped: a gap")
    for test_config in (
        *(skip, report("skipped", "teardown")),
        *(report("measured", "call"), report("measured", "teardown")),
        *(report("failing", "call", "failed"), report("failing", "teardown")),
    ):
        unmeasured.pytest_runtest_logreport(test_config)
    return unmeasured


def reasons(unmeasured: Unmeasured, *measured: str) -> dict[str, str]:
    """Why each case is missing once the session has ended."""
    return {missing.nodeid: missing.why for missing in unmeasured.facts(measured)}


def test_skipped_cases_are_not_planned(session: Unmeasured) -> None:
    assert session.planned == ["measured", "failing", "last"]


def test_what_will_be_run_again_is_not_missing(session: Unmeasured) -> None:
    """pytest-rerunfailures reports every run; the last one decides."""
    session.pytest_runtest_logreport(report("last", "call", "rerun"))
    assert "last" not in {missing.nodeid for missing in session.facts()}
    session.pytest_runtest_logreport(report("last", "teardown", "rerun"))
    assert reasons(session, "measured")["last"] == NOT_REACHED


def test_what_was_not_reached_is_missing(session: Unmeasured) -> None:
    known = {"skipped": "skipped: a gap", "failing": "call failed"}
    assert {missing.nodeid: missing.why for missing in session.facts()} == known
    assert reasons(session, "measured") == {**known, "last": NOT_REACHED}
    assert [missing.framework for missing in session.facts(["measured"])][-1] == "numpy"


def test_skipped_cases_have_the_parts_of_their_id(session: Unmeasured) -> None:
    params = {missing.nodeid: missing.params for missing in session.facts(["measured"])}
    assert params == {"skipped": {"framework": "torch"}, "failing": None, "last": None}


def test_what_was_measured_without_a_report_is_not_missing(session: Unmeasured) -> None:
    assert "last" not in reasons(session, "measured", "last")


def test_what_has_run_to_its_end_is_not_missing(session: Unmeasured) -> None:
    assert "measured" not in reasons(session)


def test_what_nobody_asked_for_is_not_missing() -> None:
    """A session without a family's operations does not list them; what -k left out it does."""
    unmeasured = Unmeasured()
    unasked, unwanted = item("unasked"), item("unwanted")
    for left_out in (unasked, unwanted):
        left_out.fixturenames = ["case", "benchmark"]
    unasked.stash[UNASKED] = True
    unmeasured.pytest_deselected([unasked, unwanted])
    assert reasons(unmeasured) == {"unwanted": "deselected"}
