"""Finished pairs are kept until their comparison is over, and only the same one goes on."""

import errno
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import StorageError, UnreadableRun, UsageError
from fwbench.gate import resume
from fwbench.gate.resume import ComparisonJob
from support.launched_runs import entry, output
from support.tables import tabled

_SIDES = [output([entry()])] * 2
_RATIOS = {"a case": {"median": 0.1}}
_PAIR = {"sides": _SIDES, "ratios": _RATIOS, "cases": None, "took_s": 1.0}
_SETTINGS: dict[str, Any] = {"base": {"name": "a"}, "contender": {"name": "b"}, "seed": 7}


def _interrupted(root: Path, pairs: int = 1, **settings: Any) -> Path:
    """A job that was interrupted after so many pairs; returns its folder."""
    with (
        suppress(KeyboardInterrupt),
        resume.job(root, {**_SETTINGS, **settings}, ComparisonJob, resume=False) as job,
    ):
        for number in range(pairs):
            job.save(_SIDES, _RATIOS, ["a case"] if number else None, 2.5)
        raise KeyboardInterrupt
    return job.folder


def _left(root: Path) -> list[Path]:
    return sorted((root / ".fwbench" / "ab").iterdir())


def test_an_interrupted_job_is_resumed(tmp_path: Path) -> None:
    folder = _interrupted(tmp_path, pairs=3)
    with resume.job(tmp_path, {**_SETTINGS, "seed": None}, ComparisonJob, resume=True) as job:
        assert (job.folder, job.seed, job.saved) == (folder, 7, 3)
        assert [pair.cases for pair in job.earlier] == [None, ["a case"], ["a case"]]
        assert [pair.took_s for pair in job.earlier] == [2.5] * 3
        assert all(len(side.samples) == 1 for pair in job.earlier for side in pair.sides)
        assert all(pair.ratios == _RATIOS for pair in job.earlier)
        job.save([output([])] * 2, {}, None, 1.0)
    assert len([*folder.glob("launch-*.json")]) == 4


def test_nothing_is_kept_of_a_job_that_is_finished(tmp_path: Path) -> None:
    with resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=False) as job:
        job.save(_SIDES, {}, None, 1.0)
        job.finish()
    assert _left(tmp_path) == []
    _interrupted(tmp_path, pairs=0)
    assert _left(tmp_path) == []


def test_pairs_that_cannot_be_saved_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one that is not saved none is, or --resume would take it for that one."""
    with resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=False) as job:
        job.save(_SIDES, _RATIOS, None, 1.0)
        assert job.remarks() == []
        with monkeypatch.context() as full:
            full.setattr("os.fsync", _full)
            unsaved = job.save(_SIDES, {}, ["a case"], 2.0)
        job.save(_SIDES, {}, None, 3.0)
        assert [pair.took_s for pair in job.pairs()] == [1.0, 2.0, 3.0]
        assert job.pairs()[1] == unsaved
        (line,) = job.remarks()
        assert re.match(r"cannot write .*launch-0002\.json: No space left on device; what", line)
        assert [path.name for path in job.files] == ["launch-0001.json"]


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_nothing_is_left_of_a_job_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "write_atomically", _full)
    with (
        pytest.raises(StorageError, match=r"^cannot write under .*: No space left on device"),
        resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=False),
    ):
        pass
    assert _left(tmp_path) == []


def test_the_newest_job_that_is_the_same_is_resumed(tmp_path: Path) -> None:
    wanted = [_interrupted(tmp_path) for _ in range(2)]
    _interrupted(tmp_path, contender={"name": "c"})
    with resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=True) as job:
        assert job.folder in wanted


@tabled
def test_another_job_is_not_resumed(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    folder = _interrupted(tmp_path)
    with (
        pytest.raises(UsageError) as refused,
        resume.job(tmp_path, {**_SETTINGS, **changed}, ComparisonJob, resume=True),
    ):
        pass
    assert str(refused.value).splitlines()[1:-1] == [f"  {message}"]
    assert str(folder) in str(refused.value)
    assert _left(tmp_path) == [folder]


def test_there_is_no_job_to_resume(tmp_path: Path) -> None:
    message = "--resume: no interrupted comparison is kept under "
    with (
        pytest.raises(UsageError, match=message),
        resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=True),
    ):
        pass
    with (
        resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=False) as job,
        pytest.raises(UsageError, match=message),
        resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=True),
    ):
        job.save(_SIDES, {}, None, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        json.dumps(output([entry()])),
        *(
            json.dumps({**_PAIR, **damage})
            for damage in (
                {"sides": _SIDES[:1]},
                {"cases": [1]},
                {"took_s": -1.0},
                {"took_s": float("nan")},
                {"ratios": {"a case": 1.0}},
                {"ratios": {"a case": {"median": float("inf")}}},
            )
        ),
    ],
)
def test_a_pair_that_is_damaged(tmp_path: Path, text: str) -> None:
    folder = _interrupted(tmp_path, pairs=2)
    (folder / "launch-0002.json").write_text(text, encoding="utf-8")
    with (
        pytest.raises(UnreadableRun, match=r"launch-0002\.json"),
        resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=True),
    ):
        pass
    assert len([*folder.iterdir()]) == 3


def test_a_job_that_was_killed_in_its_first_pair_is_passed_over(tmp_path: Path) -> None:
    wanted = _interrupted(tmp_path)
    killed = wanted.with_name("99999999-000000-killed")
    killed.mkdir()
    (killed / "job.json").write_bytes((wanted / "job.json").read_bytes())
    with resume.job(tmp_path, _SETTINGS, ComparisonJob, resume=True) as job:
        assert job.folder == wanted
    assert _left(tmp_path) == [wanted]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seed": "x"}'])
def test_a_job_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    folder = _interrupted(tmp_path)
    (folder / "job.json").write_text(text, encoding="utf-8")
    with (
        pytest.raises(UsageError, match="no interrupted comparison is like this one"),
        resume.job(tmp_path, {**_SETTINGS, "seed": None}, ComparisonJob, resume=True),
    ):
        pass


def test_only_the_newest_jobs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "_JOBS", 3)
    (tmp_path / ".fwbench" / "ab" / "20200101-000000-x").mkdir(parents=True)
    for day in range(1, 6):
        monkeypatch.setattr(resume.time, "strftime", lambda _, day=day: f"2026010{day}-000000-")
        _interrupted(tmp_path)
    assert [path.name[:8] for path in _left(tmp_path)] == ["20260103", "20260104", "20260105"]
