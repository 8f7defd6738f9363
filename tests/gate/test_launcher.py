"""A pair of launches is measured, kept, and repeated once if one of them dies."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fwbench.errors import ComparisonError, DifferentSettings, UsageError
from fwbench.frameworks.probes import UNTIL_VARIABLE
from fwbench.gate import resume
from fwbench.gate.ab import Launcher, is_enough, refuse_launching
from fwbench.gate.launches import measured_by_then
from fwbench.gate.patience import BudgetIsOver, Patience
from fwbench.gate.resume import ComparisonJob
from fwbench.gate.sides import Installed
from fwbench.plugin.options import from_config
from fwbench.plugin.selected import CheckoutWatch
from fwbench.processes import session
from fwbench.processes.command import Finished
from fwbench.processes.session import FinishedSession
from fwbench.records.measurement import MINIMUM, TURNS
from fwbench.records.session_facts import NOT_REACHED
from fwbench.turns import visits
from fwbench.turns.contest import CaseVisits
from fwbench.turns.referee import Referee
from fwbench.workers.environments import Environments
from support.launched_runs import entry, output
from support.suites import commit_all, run_git
from support.tables import tabled

_STATUSES = {"killed": -9, "terminated": -15, "crashed": 3, "interrupted": 2}


class Sessions:
    """Sessions of pytest that only end.

    Attributes:
        endings: exit status and last line of those to come; later ones pass.
        started: how many there were, and how many of them take turns.
        facts: what is recorded of the case.
        took: what the launches of a side took, by its name.
        arguments: of the latest one.
        known: whether each was examined before, and its machine asked.
    """

    def __init__(self) -> None:
        self.arguments: Sequence[str] = ()
        self.endings: list[tuple[int, str]] = []
        self.started = self.in_turns = 0
        self.known: list[tuple[bool, bool]] = []
        self.facts: dict[str, Any] = {}
        self.took: dict[str, dict[str, float]] = {}

    @contextmanager
    def begin(
        self, arguments: Sequence[str], *, results: Path, variables: Mapping[str, str], **more: Any
    ) -> Iterator[session.ChildSession]:
        """One session, which writes its results if it passes."""
        self.started += 1
        self.in_turns += visits.VARIABLE in variables
        self.arguments = arguments
        self.known.append((session.EXAMINED_VARIABLE in variables, more["origin"] is not None))
        status, line = self.endings.pop(0) if self.endings else (0, "1 passed")
        if status == 0 and "no results" not in line:
            written = output([entry(**self.facts)])
            if results.stem in self.took:
                written["fwbench"]["took"] = self.took[results.stem]
            results.write_text(json.dumps(written), encoding="utf-8")
        elif status == 2:
            results.write_text("{half of", encoding="utf-8")
        child = session.ChildSession()
        child.done = FinishedSession(status, ["...", line], "deselected" in line)
        yield child


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    made = Sessions()
    monkeypatch.setattr(session, "started", made.begin)
    monkeypatch.setattr(Referee, "serve", lambda *_: None)
    monkeypatch.setattr(Patience, "wait", lambda *_: None)
    return made


@pytest.fixture
def job(tmp_path: Path) -> Iterator[ComparisonJob]:
    with resume.job(tmp_path, {"seed": 0}, ComparisonJob, resume=False) as begun:
        yield begun


def _launcher(job: ComparisonJob, message: list[str] | None = None) -> Launcher:
    both = (Installed("numpy", ["numpy"]), Installed("default", ["numpy"]))
    say = [].append if message is None else message.append
    return Launcher(both, ["-k", "gemm"], Environments(job.folder), job, say)


@pytest.mark.parametrize("how", _STATUSES)
def test_a_launch_that_dies_is_repeated(job: ComparisonJob, sessions: Sessions, how: str) -> None:
    """Its pair is, one launch after the other: perhaps there is no memory for both at once."""
    sessions.endings = [(_STATUSES[how], "!!! KeyboardInterrupt !!!")]
    message: list[str] = []
    launcher = _launcher(job, message)
    assert [len(run.samples) for run in launcher(None, 1)] == [1, 1]
    assert (sessions.started, sessions.in_turns, job.saved) == (4, 2, 1)
    assert [line.startswith("a launch of numpy has died (") for line in message] == [True]
    launcher(None, 2)
    assert (sessions.started, sessions.in_turns, job.saved) == (6, 2, 2)


def test_what_the_first_launch_has_found_is_not_asked_again(
    job: ComparisonJob, sessions: Sessions
) -> None:
    launcher = _launcher(job)
    launcher(None, 1)
    launcher(None, 2)
    assert sessions.known == [(False, False)] * 2 + [(True, True)] * 2


def test_a_launch_that_dies_twice_ends_the_job(job: ComparisonJob, sessions: Sessions) -> None:
    launcher = _launcher(job)
    launcher(None, 1)
    sessions.endings = [(0, "1 passed"), (-11, "once"), *[(-9, "twice")] * 2]
    with pytest.raises(ComparisonError, match=r"numpy broke down \(by SIGKILL\)") as raised:
        launcher(None, 1)
    assert str(raised.value).endswith("...\ntwice")
    assert (sessions.started, job.saved) == (6, 1)


def test_a_test_that_launches_die_at_is_left_out(
    job: ComparisonJob, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: if they still die at it something else is wrong; and one that is not there is not."""
    monkeypatch.setattr(Referee, "ended_at", lambda *_: "test_it.py::test_bad")
    launcher = _launcher(job)
    sessions.endings = [(-6, "aborted")] * 4
    runs = launcher(None, 1)
    assert [len(run.samples) for run in runs] == [1, 1]
    assert [run.unmeasured.get("test_it.py::test_bad", "")[:10] for run in runs] == ["left out", ""]
    assert (sessions.started, sessions.in_turns, job.saved) == (6, 4, 1)
    sessions.endings = [(-6, "aborted")] * 4
    with pytest.raises(ComparisonError, match="broke down"):
        launcher(None, 2)
    assert (sessions.started, job.saved) == (10, 1)


@tabled
def test_what_would_only_happen_again_is_not_repeated(
    job: ComparisonJob, sessions: Sessions, ending: tuple[int, str], message: str
) -> None:
    sessions.endings = [ending]
    with pytest.raises(ComparisonError) as raised:
        _launcher(job)(None, 1)
    assert message in str(raised.value)
    assert (sessions.started, job.saved) == (2, 0)


def test_arguments_that_pytest_refuses_are_the_callers_error(
    job: ComparisonJob, sessions: Sessions
) -> None:
    sessions.endings = [(4, "python -m pytest: error: unrecognized arguments: --no")]
    with pytest.raises(UsageError, match=r"pytest refuses the arguments in .*unrecognized .*--no"):
        _launcher(job)(None, 1)


@pytest.mark.parametrize("ending", [(5, "2 deselected"), (4, "file or directory not found: x.py")])
def test_a_side_without_benchmarks_is_empty(
    job: ComparisonJob, sessions: Sessions, ending: tuple[int, str]
) -> None:
    """The base of a change that brings the first ones; if both sides are, nothing was asked for."""
    launcher = _launcher(job)
    sessions.endings = [ending]
    assert [len(run.samples) for run in launcher(None, 1)] == [0, 1]
    sessions.endings = [ending] * 2
    with pytest.raises(UsageError, match="neither side has a benchmark that the arguments select"):
        launcher(None, 1)
    assert (sessions.started, job.saved) == (4, 1)


def test_cases_that_fail_when_they_are_measured_again(
    job: ComparisonJob, sessions: Sessions
) -> None:
    launcher = _launcher(job)
    (key,) = launcher(None, 1)[0].samples
    sessions.endings = [(1, "1 failed")]
    run, _ = launcher([key], 2)
    assert (run.samples, run.unmeasured) == ({}, {key: "failed"})
    assert job.saved == 2


def test_a_launch_is_one_whatever_the_project_sets(
    job: ComparisonJob, sessions: Sessions, pytester: pytest.Pytester
) -> None:
    _launcher(job)(None, 7)
    settings = ("race = true", "budget = 5min", "gate = 5%", "launches = 9", "profile = true")
    lines = [f"fw_{setting}" for setting in (*settings, "resume = true")]
    pytester.makeini("\n".join(["[pytest]", *lines]))
    options = from_config(pytester.parseconfig("-o", "fw_race=true", *sessions.arguments))
    assert (options.race, options.budget_s, options.gate) == (False, None, None)
    assert (options.profile, options.resume) == (False, False)
    assert (options.launches, options.seed) == (1, 7)


def test_a_launch_is_one_whatever_addopts_say(
    job: ComparisonJob,
    sessions: Sessions,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _launcher(job)(None, 7)
    pytester.makeini(
        "[pytest]\naddopts = --fw-race --fw-launches=9 --fw-threads=3 --fw-profile "
        "--benchmark-disable --benchmark-skip --dist=load --stepwise-skip --lf --nf"
    )
    monkeypatch.setenv("PYTEST_ADDOPTS", "--fw-budget=5min --fw-gate=5% --fw-resume")
    config = pytester.parseconfigure(*sessions.arguments)
    options = from_config(config)
    assert (options.race, options.budget_s, options.gate) == (False, None, None)
    assert (options.launches, options.seed, options.threads) == (1, 7, 3)
    assert (config.option.benchmark_disable, config.option.benchmark_skip) == (False, False)
    assert config.getoption("dist", "no") == "no"
    plugins = config.pluginmanager
    assert not plugins.hasplugin("stepwiseplugin")
    assert not any(plugins.getplugin(name).active for name in ("lfplugin", "nfplugin"))
    assert (options.profile, options.resume) == (False, False)
    monkeypatch.setenv(UNTIL_VARIABLE, "1e9")  # which a session has that only profiles
    assert from_config(pytester.parseconfigure(*sessions.arguments)).profile


@pytest.mark.parametrize(("given", "most"), [([], 0), (["-x"], 1), (["--maxfail=2"], 2)])
def test_a_test_that_fails_stops_a_launch_only_where_that_is_asked(
    job: ComparisonJob, sessions: Sessions, pytester: pytest.Pytester, given: list[str], most: int
) -> None:
    """The project's own sessions may stop at the first; here it may be one that takes no turns."""
    both = (Installed("numpy", ["numpy"]), Installed("default", ["numpy"]))
    Launcher(both, given, Environments(job.folder), job, [].append)(None, 7)
    pytester.makeini("[pytest]\naddopts = -x")
    assert pytester.parseconfig(*sessions.arguments).getoption("maxfail") == most


def test_what_launches_take_is_said_of_either_side_where_it_differs(
    job: ComparisonJob, sessions: Sessions
) -> None:
    alike = {"start_s": 0.5, "calls_s": 2.0}
    sessions.took = {
        "base": {**alike, "collection_s": 0.3, "fixtures_s": 0.01},
        "contender": {**alike, "collection_s": 1.3, "fixtures_s": 12.0},
    }
    launcher = _launcher(job)
    launcher(None, 1)
    assert launcher.notes()[0] == (
        "a launch takes 0.5 s to start, 0.3 s and 1.3 s to import its tests, 0.01 s and 12 s in "
        "fixtures, and 2 s to measure by turns (medians, of base and contender where they differ)"
    )


def test_modules_of_the_working_tree_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also through a link; what git ignores, environments and the checkout may be in it."""
    root, link = tmp_path / "root", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)
    run_git(root, "init", "--quiet")
    commit_all(root, a__py="", b__py="", __gitignore="built.py")
    monkeypatch.setattr("sys.prefix", str(root / "conda"))
    files = {
        "sound": "/elsewhere/sound.py",
        "installed": str(root / "env" / "site-packages" / "installed.py"),
        "standard": str(root / "conda" / "lib" / "standard.py"),
        "built": str(root / "built.py"),
        "own": str(root / "checkout" / "own.py"),
    }
    watch = CheckoutWatch(root, root / "checkout", tmp_path / "found")
    for name, file in files.items():
        monkeypatch.setitem(sys.modules, name, _module(name, file))
        if file.startswith(str(root)):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).touch()
    watch.pytest_collection_finish()
    assert not (tmp_path / "found").exists()
    monkeypatch.setitem(sys.modules, "tracked", _module("tracked", str(link / "a.py")))
    with pytest.raises(pytest.UsageError):
        watch.pytest_collection_finish()
    found = json.loads((tmp_path / "found").read_text(encoding="utf-8"))
    assert found == {"tracked": str(root / "a.py")}


def _module(name: str, file: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = file
    return module


@tabled
def test_launches_are_the_comparisons_own(argument: str, instead: str) -> None:
    flag = argument.partition("=")[0]
    with pytest.raises(UsageError, match=f"^{flag}.* cannot be passed on .*{instead}"):
        refuse_launching(["-k", "gemm", argument])
    refuse_launching(["-k", "gemm", "--fw-threads=2", "--fw-threshold", "1%", "-n", "0", "-n0"])


def test_a_launch_is_waited_for_until_the_budget_is_over() -> None:
    said: list[str] = []
    patience = Patience(said.append)
    patience.tell(["git:HEAD", "."], [1], "test_it.py::test_b", 60.0)
    assert [line.startswith(".: at test_it.py::test_b for 1 min") for line in said] == [True]
    patience.ends_s = 0.0
    with pytest.raises(BudgetIsOver, match=r"^git:HEAD: at .*test_b for 2 min when") as e:
        patience.tell(["git:HEAD", "."], [0], "test_it.py::test_b", 120.0)
    assert e.value.key == "test_it.py::test_b"


def test_a_session_alone_is_ended_a_minute_after_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it has measured a test meanwhile: one pair is measured whatever the budget."""
    child = session.ChildSession()
    ended = iter([False, True, *[False] * 4])
    monkeypatch.setattr(child, "wait", lambda _: next(ended))
    patience = Patience([].append)
    records = tmp_path / "base.jsonl"
    patience.wait("base", child, records)
    patience.ends_s = 0.0
    looks_s = iter([50.0, 61.0, 111.0, 122.0])
    records.touch()

    def now_s() -> float:
        """The time of a look; before the second one a test is over."""
        look_s = next(looks_s)
        records.write_text("a test" * (look_s > 60.0), encoding="utf-8")
        return look_s

    monkeypatch.setattr("time.monotonic", now_s)
    with pytest.raises(BudgetIsOver, match=r"^a launch of base measured nothing for 1 min after"):
        patience.wait("base", child, records)
    assert [*looks_s] == []


def _resumed(job: ComparisonJob) -> ComparisonJob:
    return ComparisonJob(job.folder, job.seed)


def test_kept_pairs_are_not_measured_again(job: ComparisonJob, sessions: Sessions) -> None:
    before = _launcher(job)(None, 1)
    launcher = _launcher(_resumed(job))
    pair = launcher(None, 1)
    assert pair == before
    assert sessions.started == 2
    launcher([*pair[0].samples], 2)
    assert sessions.started == 4


def test_kept_pairs_of_another_framework(job: ComparisonJob, sessions: Sessions) -> None:
    _launcher(job)(None, 1)
    sessions.facts = {"framework_version": "9.9"}
    launcher = _launcher(_resumed(job))
    launcher(None, 1)
    with pytest.raises(DifferentSettings, match=r"kept launches of numpy.*9\.9.*--resume"):
        launcher(None, 2)


@tabled
def test_a_contest_is_as_exact_as_earlier_pairs_make_worth_while(
    earlier: list[float], deviation: float, is_over: bool
) -> None:
    """The deviation is that of a visit, of which there are 24: the error is a third of it."""
    noise = np.random.default_rng(1).normal(0, deviation, (24, 2, 1))
    contest = CaseVisits([*(1e-5 * np.exp(noise)).tolist()], sides=[0, 1])
    assert is_enough(earlier, contest) == is_over


@pytest.mark.usefixtures("sessions")
def test_the_ratio_of_a_pair_is_that_of_its_visits(job: ComparisonJob) -> None:
    """Where a case has taken turns; of others it is that of their launches."""
    (key,) = _launcher(job)(None, 1)[0].samples
    job.save([output([entry()])] * 2, {key: {MINIMUM: 0.25}}, None, 1.0)
    resumed = _launcher(_resumed(job))
    contenders = [resumed(None, 1)[1].samples[key] for _ in range(2)]
    assert [contender.values(TURNS[MINIMUM]) for contender in contenders] == [(0.0,), (0.25,)]


@pytest.mark.parametrize("stalls", [False, True])
def test_a_case_of_an_environment_that_cannot_take_turns(
    job: ComparisonJob, monkeypatch: pytest.MonkeyPatch, *, stalls: bool
) -> None:
    """One side's node id names the environment; set apart, it is measured alone on both."""
    frameworks = "torch", "torch@nightly"
    key = entry(framework="torch")["fullname"]
    in_turns: list[bool] = []

    @contextmanager
    def begin(
        _: Sequence[str],
        *,
        results: Path,
        variables: Mapping[str, str],
        selected: Sequence[str] | None,
        **__: Any,
    ) -> Iterator[session.ChildSession]:
        """A session of a case that fails, or stalls, while the other side has it."""
        side = session.SIDES.index(variables[session.SIDE_VARIABLE])
        in_turns.append(visits.VARIABLE in variables)
        case = entry(framework=frameworks[side])
        is_run = selected is None or case["fullname"] in selected
        fails = is_run and side == 1 and in_turns[-1] and not stalls
        why = {"nodeid": case["fullname"], "framework": frameworks[side], "why": "call failed"}
        written = output([case] * (is_run and not fails), missing=[why] * fails)
        results.write_text(json.dumps(written), encoding="utf-8")
        child = session.ChildSession()
        child.done = Finished(int(fails), ["..."])
        yield child

    def serve(referee: Referee, *_: object) -> None:
        referee.stalled |= {key} if stalls else set()

    monkeypatch.setattr(session, "started", begin)
    monkeypatch.setattr(Referee, "serve", serve)
    monkeypatch.setattr(Patience, "wait", lambda *_: None)
    both = [Installed(name, [name]) for name in frameworks]
    message: list[str] = []
    launcher = Launcher(both, [], Environments(job.folder), job, message.append)
    for seed, keys in enumerate((None, None, [key])):
        assert [[*run.samples] for run in launcher(keys, seed)] == [[key], [key]]
    assert in_turns == [True] * 2 + [False] * 6
    assert [line.startswith(f"{key} cannot take turns: ") for line in message] == [True]


def test_a_launch_that_was_ended_has_what_it_had_measured(tmp_path: Path) -> None:
    """The last line may be cut off; of one that measured nothing what was to come is known."""
    results = tmp_path / "base.json"
    records = session.records_beside(results)
    line = json.dumps(entry())
    records.write_text(f'{line}\n{line}\n{{"fullname": "te', encoding="utf-8")
    run = measured_by_then(results, ["a", "b", entry()["fullname"]], "it hung")
    assert run["benchmarks"] == [entry()]
    why = {fact["nodeid"]: fact["why"] for fact in run["fwbench"]["missing"]}
    assert why == {"a": "it hung", "b": NOT_REACHED}
    (lost,) = measured_by_then(results, [], every=["c", entry()["fullname"]])["fwbench"]["missing"]
    assert (lost["nodeid"], "no room for its record" in lost["why"]) == ("c", True)
    records.unlink()
    assert measured_by_then(results, []) == {"benchmarks": [], "fwbench": {"missing": []}}
