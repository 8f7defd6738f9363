"""A/B comparisons: what is measured again, what comes of it, and what is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fwbench import cli
from fwbench.environments.named import Environment, Environments, complete
from fwbench.errors import ComparisonError, DifferentSettings, TooFewLaunches, UsageError
from fwbench.frameworks import registry
from fwbench.gate import sides as sides_module
from fwbench.gate.ab import Job, Stages
from fwbench.gate.samples import FACTS, Run
from fwbench.gate.sides import Installed, Revision, Tree, sides
from fwbench.gate.statistics import p_slower, ratio
from fwbench.gate.verdicts import Comparison, Rules, Verdict, judge
from support.launched_runs import run, sample
from support.projects import Project

_FIRST, _FRESH = 0, 1


class Bench:
    """Measures nothing: every launch of every case takes the time that was drawn for it.

    Args:
        centers: of every case, the base's and the contender's time; None where it has none.
        spread: of the launches.
        seed: of what is drawn.

    Attributes:
        drawn: the times of all launches, by stage, side and case.
        calls: every launch: side, cases (None: all), seed.
        lost: by stage and side, why cases are not measured.
        contended: stages and cases that had to share their processors.
        facts: of the cases of each side.
    """

    def __init__(
        self,
        centers: Mapping[str, tuple[float | None, float | None]],
        spread: float = 1e-3,
        seed: int = 0,
    ) -> None:
        draw = np.random.default_rng(seed)
        self.drawn = {
            (stage, side, key): tuple(
                map(float, pair[side] * np.exp(spread * draw.standard_normal(20)))
            )
            for key, pair in centers.items()
            for side in (0, 1)
            for stage in (_FIRST, _FRESH)
            if pair[side] is not None
        }
        self.calls: list[tuple[int, tuple[str, ...] | None, int]] = []
        self.lost: dict[tuple[int, int], dict[str, str]] = {}
        self.contended: set[tuple[int, str]] = set()
        self.facts: list[dict[str, Any]] = [dict.fromkeys(FACTS), dict.fromkeys(FACTS)]

    def __call__(self, side: int, selected: Collection[str] | None, seed: int) -> Run:
        """Measure one launch."""
        stage = _FIRST if selected is None else _FRESH
        number = sum(s == side and (c is None) == (selected is None) for s, c, _ in self.calls)
        self.calls.append((side, None if selected is None else tuple(sorted(selected)), seed))
        lost = self.lost.get((stage, side), {})
        samples = [
            sample(
                key,
                values_s[number : number + 1],
                contended=(stage, key) in self.contended,
                facts=self.facts[side],
            )
            for (of_stage, of_side, key), values_s in self.drawn.items()
            if (of_stage, of_side) == (stage, side)
            and key not in lost
            and (selected is None or key in selected)
        ]
        return run(*samples, name=("base", "contender")[side], unmeasured=lost)

    @property
    def again(self) -> list[tuple[str, ...]]:
        """The cases of every fresh launch."""
        return [cases for _, cases, _ in self.calls if cases is not None]


RULES = Rules(margin=0.01)


def _compare(
    bench: Bench, rules: Rules = RULES, tested: Sequence[str] = (), **stages: Any
) -> Comparison:
    return Job(bench, Stages(**stages), rules, tested).compare(("base", "contender"))


def _verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {one.key: one.verdict for one in comparison.judgements}


def _same(number: int) -> dict[str, tuple[float, float]]:
    return {f"same-{i}": (1.0, 1.0) for i in range(number)}


# Two stages


def test_launches_come_in_pairs_of_both_sides() -> None:
    """One of each side, in an order that is chance and not always the same; each with a seed."""
    bench = Bench(_same(3))
    _compare(bench, launches=10, flag=1e-9 + 1 / 184756)
    assert len(bench.calls) == 20
    sides = [side for side, _, _ in bench.calls]
    pairs = [(sides[i], sides[i + 1]) for i in range(0, 20, 2)]
    assert {*pairs} == {(0, 1), (1, 0)}
    assert all(cases is None for _, cases, _ in bench.calls)
    assert len({seed for _, _, seed in bench.calls}) > 15


def test_a_job_is_repeatable() -> None:
    """The seed decides sides and seeds of all launches; another seed decides otherwise."""
    calls = []
    for seed in (1, 1, 2):
        bench = Bench({"slow": (1.0, 1.5), **_same(2)})
        _compare(bench, seed=seed)
        calls.append(bench.calls)
    assert calls[0] == calls[1]
    assert calls[0] != calls[2]


def test_a_slowed_case_has_regressed() -> None:
    """It alone is flagged, measured again as often as asked, and found."""
    bench = Bench({"slow": (1.0, 1.1), "fast": (1.0, 0.9), "same": (1.0, 1.0)})
    comparison = _compare(bench)
    assert _verdicts(comparison) == {
        "slow": Verdict.REGRESSED,
        "fast": Verdict.IMPROVED,
        "same": Verdict.UNCHANGED,
    }
    assert bench.again == [("fast", "slow")] * 20
    slow, fast = (one for one in comparison.judgements if one.key != "same")
    assert len(slow.base_s) == len(slow.contender_s) == 10
    assert slow.contender_s == bench.drawn[_FRESH, 1, "slow"][:10], "fresh launches alone count"
    assert slow.p == p_slower(slow.base_s, slow.contender_s, 0.01)
    assert fast.p == p_slower(fast.contender_s, fast.base_s, 0.01)
    assert "2 of 3 cases were measured again" in comparison.notes
    assert comparison.rules["fresh"] == 10
    assert comparison.rules["margin"] == 0.01


def test_an_unchanged_suite_is_measured_once() -> None:
    """Where nothing looks changed nothing is measured again, and nothing is found."""
    bench = Bench(_same(10))
    comparison = _compare(bench)
    assert bench.again == []
    assert len(bench.calls) == 10
    assert comparison.counts == {"unchanged": 10}
    assert comparison.exit_status((Verdict.REGRESSED, Verdict.MISSING)) == 0
    assert all(len(one.base_s) == 5 for one in comparison.judgements)


def test_what_only_looked_changed_is_unchanged() -> None:
    """The fresh launches decide; those that the case was flagged by do not count."""
    bench = Bench({"flaky": (1.0, 1.0), "same": (1.0, 1.0)})
    bench.drawn[_FIRST, 1, "flaky"] = (1.5,) * 20
    comparison = _compare(bench)
    assert _verdicts(comparison) == {"flaky": Verdict.UNCHANGED, "same": Verdict.UNCHANGED}
    assert {*bench.again} == {("flaky",)}
    assert len(bench.again) < 20, "it was hopeless before the end"


def test_nothing_is_called_changed_by_its_first_launches() -> None:
    """A change between margin and threshold is neither flagged for nothing nor found."""
    bench = Bench({"slightly": (1.0, 1.02)})
    comparison = _compare(bench)
    assert len(bench.again) == 20
    (found,) = comparison.judgements
    assert found.verdict is Verdict.UNCHANGED
    assert found.p is not None
    assert found.p < 0.05


def test_only_the_flagged_direction_is_confirmed() -> None:
    """A case that looked slower and then is faster has not improved."""
    bench = Bench({"turned": (1.0, 1.0)})
    bench.drawn[_FIRST, 1, "turned"] = (1.5,) * 20
    bench.drawn[_FRESH, 1, "turned"] = (0.5,) * 20
    assert _verdicts(_compare(bench)) == {"turned": Verdict.UNCHANGED}


def test_contended_cases_get_another_chance() -> None:
    """One that was contended is inconclusive; if it looked changed, quiet launches decide."""
    bench = Bench({"slow": (1.0, 1.5), "same": (1.0, 1.0)})
    bench.contended = {(_FIRST, "slow"), (_FIRST, "same")}
    assert _verdicts(_compare(bench)) == {
        "slow": Verdict.REGRESSED,
        "same": Verdict.INCONCLUSIVE,
    }
    bench = Bench({"slow": (1.0, 1.5)})
    bench.contended = {(_FRESH, "slow")}
    assert _verdicts(_compare(bench)) == {"slow": Verdict.INCONCLUSIVE}


# Giving up early


def _random_bench(seed: int) -> Bench:
    """A suite of cases with all kinds of changes and spreads."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    centers = {f"case-{i}": (1.0, draw.choice([0.9, 0.97, 1.0, 1.0, 1.0, 1.1])) for i in range(8)}
    return Bench(centers, draw.choice([0.005, 0.02, 0.05, 0.15]), seed)


def _reference(bench: Bench, stages: Stages, rules: Rules) -> tuple[dict[str, Verdict], int]:
    """What measuring every flagged case to the end says has changed, and how many were flagged."""
    keys = sorted({key for _, _, key in bench.drawn})

    def launches(stage: int, key: str, number: int) -> tuple[Sequence[float], Sequence[float]]:
        ours, theirs = (bench.drawn[stage, side, key][:number] for side in (0, 1))
        return ours, theirs

    flagged: dict[str, Verdict] = {}
    for key in keys:
        ours, theirs = launches(_FIRST, key, stages.launches)
        slower, faster = p_slower(ours, theirs, rules.margin), p_slower(theirs, ours, rules.margin)
        if min(slower, faster) < stages.flag:
            flagged[key] = Verdict.REGRESSED if slower <= faster else Verdict.IMPROVED
    changed = {}
    for key, change in flagged.items():
        ours, theirs = launches(_FRESH, key, stages.fresh)
        if change is Verdict.IMPROVED:
            ours, theirs = theirs, ours
        surely = p_slower(ours, theirs, rules.margin) <= rules.level / len(flagged)
        if surely and ratio(ours, theirs) >= 1 + rules.threshold:
            changed[key] = change
    return changed, len(flagged)


@pytest.mark.parametrize("seed", range(60))
def test_giving_up_changes_no_finding(seed: int) -> None:
    """What is found is what measuring all flagged cases to the end would have found."""
    bench = _random_bench(seed)
    stages = Stages(launches=4 + seed % 3, fresh=8 + seed % 4, flag=0.15)
    comparison = Job(bench, stages, RULES).compare(("base", "contender"))
    changes = (Verdict.REGRESSED, Verdict.IMPROVED)
    found = {one.key: one.verdict for one in comparison.judgements if one.verdict in changes}
    expected, flagged = _reference(bench, stages, RULES)
    assert found == expected
    assert f"{flagged} of 8 cases were measured again" in comparison.notes


def test_giving_up_saves_launches_and_findings_are_found() -> None:
    """The random suites above have findings, and cases that are given up before the end."""
    found, launched, at_most = 0, 0, 0
    for seed in range(60):
        bench = _random_bench(seed)
        comparison = _compare(bench)
        changes, flagged = _reference(bench, Stages(), RULES)
        found += len(changes)
        launched += sum(map(len, bench.again))
        at_most += 20 * flagged
        assert {key: _verdicts(comparison)[key] for key in changes} == changes
    assert found > 20
    assert launched < at_most


@pytest.mark.parametrize("seed", range(60))
def test_giving_up_calls_the_same_cases_changed(seed: int) -> None:
    """As all launches would: of what was given up they would have called nothing changed."""
    bench = _random_bench(seed)
    comparison = _compare(bench)
    flagged = {key for cases in bench.again for key in cases}
    for one in comparison.judgements:
        if one.key in flagged:
            assert one.change is not None
            ours, theirs = (
                sample(one.key, bench.drawn[_FRESH, side, one.key][:10]) for side in (0, 1)
            )
            whole = judge(ours, theirs, RULES, RULES.level / len(flagged), [one.change])
            if {one.verdict, whole.verdict} & {Verdict.REGRESSED, Verdict.IMPROVED}:
                assert one.verdict == whole.verdict


# What could show nothing


def test_too_few_launches_to_flag() -> None:
    """Refused before anything is measured, with the number needed."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"2 launches a side.* 3 are needed \(--launches\)"):
        _compare(bench, launches=2)
    assert bench.calls == []
    _compare(bench, launches=3)


def test_a_flag_that_is_just_not_reached() -> None:
    """A probability must be below the flag: of 3 launches it is 1 in 20 at best."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"3 launches a side.* 4 are needed \(--launches\)"):
        _compare(bench, launches=3, flag=0.05)
    _compare(bench, launches=4, flag=0.05)


def test_too_few_fresh_launches_for_any_case() -> None:
    """Refused before anything is measured."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"2 fresh launches.* 3 are needed.*--fresh-launches"):
        _compare(bench, fresh=2)
    assert bench.calls == []


def test_too_few_fresh_launches_for_so_many_cases() -> None:
    """Refused as soon as the number of cases is known, with the number needed."""
    bench = Bench(_same(20))
    with pytest.raises(TooFewLaunches, match=r"5 fresh launches.*20 cases.* 6 are needed"):
        _compare(bench, fresh=5)
    assert len(bench.calls) == 2
    _compare(Bench(_same(20)), fresh=6)
    _compare(Bench(_same(20)), replace(RULES, level=0.2), fresh=5)


# What one side lacks


def test_cases_of_one_side() -> None:
    """They are missing, or new, whatever the other cases are."""
    bench = Bench({"lost": (1.0, None), "found": (None, 1.0), "slow": (1.0, 1.5)})
    comparison = _compare(bench)
    assert _verdicts(comparison) == {
        "slow": Verdict.REGRESSED,
        "lost": Verdict.MISSING,
        "found": Verdict.NEW,
    }
    assert {*bench.again} == {("slow",)}


def test_a_case_that_fails_on_one_side_says_so() -> None:
    """The reason is the session's."""
    bench = Bench({"a": (1.0, 1.0), "b": (1.0, 1.0)})
    bench.lost[_FIRST, 1] = {"b": "call failed"}
    missing = [one for one in _compare(bench).judgements if one.verdict is Verdict.MISSING]
    assert [(one.key, one.reason) for one in missing] == [("b", "call failed")]


def test_a_case_that_one_launch_lacks_is_missing() -> None:
    """A case that was measured in some launches only is not judged by these."""
    bench = Bench({"a": (1.0, 1.0), "b": (1.0, 1.0)})

    def measure(side: int, selected: Collection[str] | None, seed: int) -> Run:
        if len(bench.calls) == 8:
            bench.lost[_FIRST, 1] = {"b": "call failed"}
        return bench(side, selected, seed)

    comparison = Job(measure, Stages(), RULES).compare(("base", "contender"))
    assert _verdicts(comparison) == {"a": Verdict.UNCHANGED, "b": Verdict.MISSING}


def test_a_case_that_fails_on_both_sides_is_not_passed_over() -> None:
    """Nothing passes in silence: it is named, among the verdicts or the notes."""
    bench = Bench({"a": (1.0, 1.0), "broken": (1.0, 1.0)})
    bench.lost = {(_FIRST, side): {"broken": "call failed"} for side in (0, 1)}
    comparison = _compare(bench)
    told = [*(one.name for one in comparison.judgements), *comparison.notes]
    assert any("broken" in text for text in told)


@pytest.mark.parametrize("side", [0, 1])
def test_a_flagged_case_that_is_lost_is_inconclusive(side: int) -> None:
    """It looked changed, and could not be measured again: neither a finding nor nothing."""
    bench = Bench({"slow": (1.0, 1.5), "other": (1.0, 1.5)})
    bench.lost[_FRESH, side] = {"slow": "call failed"}
    comparison = _compare(bench)
    assert _verdicts(comparison) == {"slow": Verdict.INCONCLUSIVE, "other": Verdict.REGRESSED}
    (lost,) = (one for one in comparison.judgements if one.key == "slow")
    assert "call failed" in lost.reason


# What must be the same


def test_facts_that_are_not_compared_must_be_the_same() -> None:
    """A difference is refused by name; what is compared may differ, and is noted."""
    bench = Bench({"slow": (1.0, 1.5)})
    bench.facts[1] = {**dict.fromkeys(FACTS), "framework": "2.0"}
    with pytest.raises(DifferentSettings, match="framework"):
        _compare(bench)
    assert bench.again == []
    comparison = _compare(Bench({"slow": (1.0, 1.5)}), tested=("framework",))
    assert not [note for note in comparison.notes if "2.0" in note]
    bench.calls.clear()
    comparison = _compare(bench, tested=("framework", "toggles"))
    assert [note for note in comparison.notes if "2.0" in note]


def test_what_is_going_on_is_told() -> None:
    """Each launch: which, of which side, how many cases."""
    told: list[str] = []
    bench = Bench({"slow": (1.0, 1.5), **_same(2)})
    Job(bench, Stages(), RULES, say=told.append).compare(("base", "contender"))
    assert len(told) == len(bench.calls) == 30
    assert sum(text.startswith("launch 5 of 5, ") for text in told) == 2
    assert sum(", base: " in text for text in told) == 15
    assert [text for text in told if "fresh launch 10" in text and "1 flagged" in text]


# The sides are environments


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    """A project with an old PyTorch, an environment of two frameworks, and an older NumPy."""
    found = Environments(tmp_path)
    for name, held in (
        ("torch@old", {"torch": "1.0", "numpy": "1.0"}),
        ("both", {"torch": "2.0", "tensorflow": "2.0", "numpy": "1.0"}),
        ("bare", {"numpy": "1.0"}),
    ):
        folder = found.folder_of(name)
        folder.mkdir(parents=True)
        complete(Environment(name, folder, (name,), "3.11", "link", held))
    return found


#: What is compared, and what ``--fw`` is for both.
_INSTALLED = {
    "a framework and an environment": ("torch", "torch@old", ["torch"], ["torch@old"]),
    "default takes the other's": ("default", "torch@old", ["torch"], ["torch@old"]),
    "default as contender": ("torch@both", "default", ["torch@both"], ["torch"]),
    "an environment of several": (
        "default",
        "both",
        ["torch", "tensorflow"],
        ["torch@both", "tensorflow@both"],
    ),
    "two environments": ("torch@old", "torch@both", ["torch@old"], ["torch@both"]),
    "the same twice": ("numpy", "numpy", ["numpy"], ["numpy"]),
    "numpy of an environment": ("numpy", "numpy@bare", ["numpy"], ["numpy@bare"]),
}


@pytest.mark.parametrize(
    ("base", "contender", "ours", "theirs"), _INSTALLED.values(), ids=_INSTALLED
)
def test_sides_of_environments(
    environments: Environments, base: str, contender: str, ours: list[str], theirs: list[str]
) -> None:
    """Frameworks of environments, or of the one that runs this."""
    both = sides(base, contender, environments)
    assert [side.name for side in both] == [base, contender]
    assert [side.arguments for side in both] == [
        ["--fw", ",".join(references)] for references in (ours, theirs)
    ]
    for side in both:
        assert isinstance(side, Installed)
        assert {*side.tested} == {"framework", "toggles"}
        assert side.folder == Path.cwd()
        assert side.variables == {}
        assert side.facts()["frameworks"] in (ours, theirs)


def test_default_twice_is_everything(environments: Environments) -> None:
    """All that is known here, on both sides."""
    ours, theirs = sides("default", "default", environments)
    assert ours.arguments == theirs.arguments == ["--fw", ",".join(sorted(registry.registered()))]


@pytest.mark.parametrize("place", [0, 1])
def test_unknown_sides_are_refused(environments: Environments, place: int) -> None:
    """With every name that would have been understood, and the near miss."""
    names = ["torch", "torch"]
    names[place] = "torch@odl"
    with pytest.raises(UsageError) as refused:
        sides(names[0], names[1], environments)
    said = str(refused.value)
    assert "unknown side 'torch@odl'" in said
    assert "Did you mean 'torch@old'?" in said
    for known in ("both", "bare", "tensorflow", "default", "git:REV"):
        assert known in said


@pytest.mark.parametrize("pair", [("git:HEAD", "torch"), ("default", ".")])
def test_revisions_and_environments_are_not_compared(
    environments: Environments, pair: tuple[str, str]
) -> None:
    """Two things would differ at once."""
    with pytest.raises(UsageError, match="one is a revision and one an environment"):
        sides(*pair, environments)


def test_sides_need_a_common_framework(environments: Environments) -> None:
    """Nothing of two different frameworks could be paired; both are told."""
    with pytest.raises(UsageError, match="no framework in common") as refused:
        sides("torch@old", "bare", environments)
    assert "torch@old" in str(refused.value)
    assert "numpy@bare" in str(refused.value)


# The sides are revisions

_GIT = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [*_GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def _commit(folder: Path, **files: str) -> str:
    """Write files and commit everything; returns the commit."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "a commit")
    return _git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits, in whose folder ``inner`` we are."""
    root = (tmp_path / "repository").resolve()
    (root / "inner").mkdir(parents=True)
    _git(root, "init", "--quiet")
    _commit(root, a__py="first = 1\n")
    (root / "inner" / "b.py").write_text("", encoding="utf-8")
    _commit(root, a__py="second = 2\n")
    monkeypatch.chdir(root / "inner")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return root


def _worktrees(root: Path) -> int:
    return _git(root, "worktree", "list").count("\n") + 1


def test_a_revision_is_checked_out_beside_the_tree(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is ready its files are there, and its modules come before the tree's."""
    monkeypatch.setenv("PYTHONPATH", f"{repository / 'src'}{os.pathsep}/elsewhere")
    monkeypatch.syspath_prepend(str(repository / "lib"))
    base, contender = sides("git:HEAD~1", "git:HEAD", environments)
    assert isinstance(base, Revision)
    with base.ready(), contender.ready():
        assert (base.checkout / "a.py").read_text(encoding="utf-8") == "first = 1\n"
        assert base.folder == base.checkout / "inner"
        assert (contender.folder / "b.py").is_file()
        path = base.variables["PYTHONPATH"].split(os.pathsep)
        checkout = [str(base.checkout / name) for name in (".", "src", "lib")]
        assert {*checkout} <= {*path}
        assert max(map(path.index, checkout)) < path.index(str(repository / "src"))
        assert path[-1] == "/elsewhere"
        assert _worktrees(repository) == 3
    assert _worktrees(repository) == 1
    assert [*(repository.parent / "temporary").iterdir()] == []


def test_a_checkout_goes_when_something_goes_wrong(
    repository: Path, environments: Environments
) -> None:
    """However its context is left."""
    base, _ = sides("git:HEAD~1", ".", environments)
    with pytest.raises(KeyboardInterrupt), base.ready():
        raise KeyboardInterrupt
    assert _worktrees(repository) == 1
    assert [*(repository.parent / "temporary").iterdir()] == []


def test_revisions_are_recorded(repository: Path, environments: Environments) -> None:
    """By their commits; of the tree also whether it has changes that are in none."""
    base, contender = sides("git:HEAD~1", ".", environments)
    assert isinstance(contender, Tree)
    first, second = (_git(repository, "rev-parse", name) for name in ("HEAD~1", "HEAD"))
    assert base.facts() == {"name": "git:HEAD~1", "revision": first, "dirty": False}
    assert contender.facts() == {"name": ".", "revision": second, "dirty": False}
    (repository / "new.py").touch()
    assert contender.facts()["dirty"] is True
    assert sides_module.is_dirty(repository)
    assert base.facts()["dirty"] is False
    assert base.arguments == []
    assert (contender.variables, contender.folder) == ({}, Path.cwd())


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("name", ["git:nowhere", "git:HEAD~9", "git:", "git:HEAD:a.py"])
def test_a_revision_that_does_not_exist(environments: Environments, name: str) -> None:
    """Refused by name, with what git says."""
    with pytest.raises(UsageError, match="git knows no such revision") as refused:
        sides(name, ".", environments)
    assert str(refused.value).startswith(f"{name}: ")


def test_a_folder_in_no_repository(
    tmp_path: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused, with the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="in no git repository") as refused:
        sides("git:HEAD", ".", environments)
    assert tmp_path.name in str(refused.value)


@pytest.mark.usefixtures("repository")
def test_without_git(environments: Environments, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said that git cannot be run."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises((UsageError, ComparisonError), match="cannot run git"):
        sides("git:HEAD", ".", environments)


# fwbench ab, end to end

_MYMATH = """
import numpy as np
from fwbench import Operation

def sorted_often(times):
    def run(x):
        for _ in range(times):
            y = np.sort(x)
        return y
    return run

def operation(name, times):
    made = Operation(
        name=name,
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=np.sort,
        sizes=(5000,),
        differentiable=False,
    )
    made.implement("numpy")(lambda np: sorted_often(times))
    return made

slowing = operation("slowing", {slowing})
steady = operation("steady", 2)
"""

_SUITE = """
import pytest
from mymath import slowing, steady

@pytest.mark.fwbench(slowing, steady)
def test_it(case):
    case.measure()
"""

#: Others may be at work on the machine: what they do to launches is not what is tested here. And
#: asking what the CPU is takes pytest-benchmark a second, in every launch.
_CONFTEST = """
from fwbench.records import launches

launches.is_contended = lambda launch: False

def pytest_benchmark_generate_machine_info():
    return {"cpu": {"brand_raw": "Fake CPU"}}
"""

_INI = """
[pytest]
addopts = --fw=numpy --benchmark-max-time=0.02 --benchmark-min-rounds=2 --fw-warmup=0
"""

_SLOWING = "slowing-numpy-cpu-eager-forward-float32-5000"
_STEADY = _SLOWING.replace("slowing", "steady")

#: As few launches as can show anything, and margins that nothing but twice the work is beyond.
_FEW = (
    *("--launches", "3", "--fresh-launches", "3", "--flag", "0.2", "--level", "0.2"),
    *("--margin", "0.3", "--threshold", "0.5", "--widest", "0.9", "--seed", "1"),
)


class Suite:
    """A repository with a small suite.

    Args:
        project: where.
        temporary: a folder for temporary files, and nothing else.
    """

    def __init__(self, project: Project, temporary: Path) -> None:
        self.path = project.path.resolve()
        self.temporary = temporary
        project.write(".gitignore", "__pycache__/\n/packages/\n")
        _git(self.path, "init", "--quiet")
        self.commit(
            pytest__ini=_INI,
            conftest__py=_CONFTEST,
            mymath__py=_MYMATH.replace("{slowing}", "2"),
            test_it__py=_SUITE,
        )

    def commit(self, **files: str) -> str:
        """Commit files; returns the commit."""
        return _commit(self.path, **files)

    def slow(self) -> str:
        """What makes one operation do twice the work."""
        return _MYMATH.replace("{slowing}", "4")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start ``fwbench ab``."""
        return subprocess.Popen(
            [sys.executable, "-m", "fwbench", "ab", *arguments],
            cwd=self.path,
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ab(self, *arguments: str) -> tuple[int, str, str]:
        """Run ``fwbench ab``; gives exit status, what it printed, what it said beside."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        assert "Traceback" not in err
        return process.returncode, out, err

    def figures(self) -> dict[str, Any]:
        """What ``--json figures.json`` has."""
        found: dict[str, Any] = json.loads((self.path / "figures.json").read_text(encoding="utf-8"))
        return found

    def assert_clean(self) -> None:
        """Neither worktrees nor temporary files are left."""
        assert _worktrees(self.path) == 1
        assert [path.name for path in self.temporary.iterdir()] == []


@pytest.fixture
def suite(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A repository with a suite of two cases and one commit."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    return Suite(project, temporary)


def test_ab_of_a_revision_and_the_tree(suite: Suite) -> None:
    """An operation that does twice the work has regressed: exit status 1, named everywhere."""
    suite.commit(mymath__py=suite.slow())
    outputs = ("--json", "figures.json", "--markdown", "verdicts.md")
    status, out, err = suite.ab("git:HEAD~1", ".", *_FEW, *outputs)
    assert status == 1, out + err
    rows = [line.split() for line in out.splitlines() if _SLOWING in line or _STEADY in line]
    assert [row[:2] for row in rows] == [["regressed", _SLOWING], ["unchanged", _STEADY]]
    assert "launch 3 of 3" in err
    assert "fresh launch 3 of at most 3, base: 1 flagged cases" in err
    figures = suite.figures()
    assert figures["verdicts"] == {"regressed": 1, "unchanged": 1}
    found = next(one for one in figures["judgements"] if one["verdict"] == "regressed")
    assert statistics.median(found["contender_s"]) > 1.5 * statistics.median(found["base_s"])
    assert figures["rules"]["sides"]["base"]["revision"] == _git(suite.path, "rev-parse", "HEAD~1")
    assert figures["rules"]["sides"]["contender"]["dirty"] is False
    assert figures["rules"]["seed"] == 1
    assert "1 regressed, 1 unchanged" in (suite.path / "verdicts.md").read_text(encoding="utf-8")
    suite.assert_clean()


def test_ab_of_one_revision(suite: Suite) -> None:
    """The same on both sides: nothing has changed, and pytest's arguments select."""
    status, out, err = suite.ab("git:HEAD", "git:HEAD", *_FEW, "-k", "steady")
    assert status == 0, out + err
    assert _STEADY in out
    assert _SLOWING not in out
    assert "uncommitted" not in out
    suite.assert_clean()


def test_ab_of_a_dirty_tree(suite: Suite) -> None:
    """Changes that are in no revision are measured, said to be, and recorded."""
    (suite.path / "mymath.py").write_text(suite.slow(), encoding="utf-8")
    arguments = ("--json", "figures.json", "-k", "slowing")
    status, out, err = suite.ab("git:HEAD", ".", *_FEW, *arguments)
    assert status == 1, out + err
    note = "the working tree has uncommitted changes: they are measured in ."
    assert note in out
    assert note in err
    figures = suite.figures()
    assert figures["rules"]["sides"]["contender"]["dirty"] is True
    assert figures["rules"]["sides"]["base"]["dirty"] is False
    assert note in figures["notes"]
    assert (suite.path / "mymath.py").read_text(encoding="utf-8") == suite.slow()
    suite.assert_clean()


def test_ab_of_tests_that_one_side_has(suite: Suite) -> None:
    """A test that is gone is missing, a renamed one perhaps renamed: exit status 11."""
    more = "\n@pytest.mark.fwbench(steady)\ndef test_more(case):\n    case.measure()\n"
    suite.commit(test_it__py=_SUITE.replace("fwbench(slowing, steady)", "fwbench(slowing)") + more)
    only = ("-k", "steady")
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *_FEW, *only)
    assert status == 11, out + err
    rows = [line for line in out.splitlines() if _STEADY in line]
    assert [row.split()[0] for row in rows] == ["missing", "new"]
    assert "renamed to " in rows[0]
    assert "test_more" in rows[0]
    suite.assert_clean()


@pytest.mark.parametrize("side", ["base", "contender"])
def test_ab_of_a_suite_that_breaks_down(suite: Suite, side: str) -> None:
    """One that cannot be collected: exit status 3 and the session's last lines; nothing is left."""
    suite.commit(mymath__py="raise RuntimeError('the suite of this side is broken')\n")
    pair = ("git:HEAD", "git:HEAD~1") if side == "base" else ("git:HEAD~1", "git:HEAD")
    status, out, err = suite.ab(*pair, *_FEW, "--json", "figures.json")
    assert status == 3, out + err
    assert "a launch of git:HEAD broke down" in err
    assert "the suite of this side is broken" in err
    assert out == ""
    assert not (suite.path / "figures.json").exists()
    suite.assert_clean()


_FLAKY = """
    import os
    assert "FWBENCH_SELECTED" not in os.environ, "flaky"
    case"""


def test_ab_of_a_case_that_fails_when_it_is_measured_again(suite: Suite) -> None:
    """A flagged case that is lost then is inconclusive; the job goes on to its end."""
    suite.commit(mymath__py=suite.slow(), test_it__py=_SUITE.replace("    case", _FLAKY))
    arguments = ("-k", "slowing", "--fail-on", "inconclusive")
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *_FEW, *arguments)
    assert status == 10, out + err
    suite.assert_clean()


_HANGING = """
import os, time
from pathlib import Path
import pytest
from mymath import slowing

@pytest.mark.fwbench(slowing)
def test_it(case):
    Path(os.environ["HANGING"]).touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ab_that_is_ended(suite: Suite, number: signal.Signals) -> None:
    """A job that is cancelled leaves no worktree, no file and no process: exit status 130."""
    suite.commit(test_it__py=_HANGING)
    hanging = suite.temporary.parent / "hanging"
    # Ctrl-C is switched on even where the tests run in the background of a shell.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from fwbench.cli import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "ab", "git:HEAD", "git:HEAD", *_FEW],
        cwd=suite.path,
        env={**os.environ, "HANGING": str(hanging)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + _PATIENCE_S
        while not hanging.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 2, "a session and its worker"
        process.send_signal(number)
        _, err = process.communicate(timeout=_PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "fwbench: interrupted"
    _, alive = psutil.wait_procs(below, timeout=10)
    for left in alive:
        left.kill()
    assert alive == []
    suite.assert_clean()


_PATIENCE_S = 60.0


def test_ab_measures_or_says_why_not(suite: Suite) -> None:
    """With --benchmark-disable nothing is timed: an error that says so, before many launches."""
    status, out, err = suite.ab("git:HEAD", ".", *_FEW, "--benchmark-disable")
    assert status in (2, 3), out + err
    assert out == ""
    assert "--benchmark-disable" in err or "measured nothing" in err
    assert err.count("all cases") <= 1
    suite.assert_clean()


def test_ab_that_selects_nothing(suite: Suite) -> None:
    """No case is an error with the session's last lines, not an empty success."""
    status, out, err = suite.ab("git:HEAD", ".", *_FEW, "-k", "nothing_of_that_name")
    assert status == 3, out + err
    assert "deselected" in err
    suite.assert_clean()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("numpy", "numpy@nowhere"), "unknown side 'numpy@nowhere'; known: "),
        (("git:nowhere", "."), "git:nowhere: git knows no such revision"),
        (("numpy", "."), "one is a revision and one an environment"),
        (("numpy",), "fwbench ab BASE CONTENDER"),
        ((), "fwbench ab BASE CONTENDER"),
        (("numpy", "numpy", "--launches", "2"), "3 are needed (--launches)"),
        (("numpy", "numpy", "--fresh-launches", "2"), "3 are needed (--fresh-launches)"),
        (("numpy", "numpy", "--launches", "0"), "launches"),
        (("numpy", "numpy", "--fail-on", "improved"), "unknown verdict to fail on 'improved'"),
        (("numpy", "numpy", "--flag", "2"), "flag"),
        (("numpy", "numpy", "--seed", "-1"), "seed"),
    ],
)
def test_ab_is_refused(
    suite: Suite,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    """Usage errors, before anything is measured or written."""
    monkeypatch.chdir(suite.path)
    try:
        status = cli.main(["ab", *arguments])
    except SystemExit as refused:  # by argparse
        status = int(str(refused.code))
    assert status == 2
    captured = capfd.readouterr()
    assert said in captured.err
    assert "launch 1 of" not in captured.err
    assert captured.out == ""
    suite.assert_clean()


def test_ab_lists_what_could_be_compared(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown side is refused with every name that is known."""
    monkeypatch.chdir(suite.path)
    assert cli.main(["ab", "numpy", "numpy@nowhere"]) == 2
    error = capfd.readouterr().err
    for known in (*registry.registered(), "default", "git:REV"):
        assert known in error


def test_ab_of_what_cannot_be_written(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before the first launch: minutes later would be too late."""
    monkeypatch.chdir(suite.path)
    status = cli.main(["ab", "git:HEAD", ".", *_FEW, "--json", "nowhere/figures.json"])
    assert status not in (0, 1, 10, 11)
    error = capfd.readouterr().err
    assert "nowhere" in error
    assert "launch 1 of" not in error


def test_ab_of_frameworks(suite: Suite) -> None:
    """Two names of frameworks are compared in the tree as it is; the seed is printed."""
    few = [*_FEW[:-2]]
    status, out, err = suite.ab("numpy", "default", *few, "-k", "steady")
    assert status == 0, out + err
    assert "numpy against default: --seed " in err
    assert f"unchanged  {_STEADY}" in out
    assert "git" not in out
    suite.assert_clean()
