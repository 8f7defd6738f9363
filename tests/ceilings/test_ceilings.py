"""Ceilings of a machine are stored, and records have the share of them that they reach."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fwbench import ceilings
from fwbench.ceilings import Ceiling, Ceilings
from fwbench.errors import StorageError
from fwbench.processes import session
from fwbench.processes.session import Watching
from support.peaks import (
    BY,
    CEILING,
    FOUND,
    MACHINE,
    NONSENSE,
    attainable_of,
    product_entry,
    product_facts,
    stored_ceilings,
)
from support.tables import tabled

_BY_FAKE = {"float32": "fake 1.2"}


@tabled
def test_work_takes_as_long_as_its_slower_part(
    flops: float, moved_bytes: float, dtype: str, seconds: float | None
) -> None:
    """Computing or moving decides; where one of them is not known, nothing is said."""
    assert CEILING.attainable_s(flops, moved_bytes, dtype) == seconds


@pytest.mark.parametrize(
    ("best", "rate", "flops"),
    [(2.0**30, rate, flops) for rate in (None, 0.0) for flops in (0.0, 2.0**30)]
    + [(0.0, 2.0, 1.0)],
)
def test_without_a_copy_or_a_product_nothing_is_known(
    best: float, rate: float | None, flops: float
) -> None:
    """A rate of zero was not measured, and is not divided by."""
    assert Ceiling({"float32": best}, rate).attainable_s(flops, 4.0, "float32") is None


def test_a_better_product_is_the_ceiling() -> None:
    """The rate of a dtype is that of its best result, and says whose it is."""
    ceiling = Ceiling().with_result(product_facts(), 2.0)
    fake = {"float32": ["fake 1.2"]}
    assert ceiling == Ceiling({"float32": 2.0**30}, None, _BY_FAKE, undisturbed=fake)
    better = ceiling.with_result(product_facts("other"), 1.0)
    assert better.flops_per_s == {"float32": 2.0**31}
    assert better.by == {"float32": "other 1.2"}
    both = better.with_result(product_facts(dtype="float64"), 4.0)
    assert both.flops_per_s == {"float32": 2.0**31, "float64": 2.0**29}
    assert both.by == {"float32": "other 1.2", "float64": "fake 1.2"}


@pytest.mark.parametrize("workload", ["gemm", "copy"])
@pytest.mark.parametrize("seconds", [1.0, 4.0], ids=["as good", "worse"])
def test_what_is_no_better_changes_nothing(workload: str, seconds: float) -> None:
    ceiling = Ceiling().with_result(product_facts(workload=workload), 1.0)
    assert ceiling.by
    other = ceiling.with_result(product_facts("other", workload=workload), seconds)
    assert replace(other, undisturbed=ceiling.undisturbed) == ceiling


@pytest.mark.parametrize(
    ("disturbed", "by"),
    [({"condition": "contended"}, "fake 1.2 (contended)"), ({"full_speed": 0.0}, "fake 1.2")],
)
def test_nobody_is_held_to_a_product_that_was_disturbed(disturbed: Any, by: str) -> None:
    """Nor to that of another framework: on a busy machine NumPy's 43 GFLOP/s failed at 55."""
    ceiling = Ceiling().with_result(product_facts(**disturbed), 1.0)
    assert ceiling.by == {"float32": by}
    assert not ceiling.holds_for("fake 1.2")
    both = ceiling.with_result(product_facts("other"), 4.0)
    assert both.holds_for("other 1.2") == {"float32": 2.0**31}, "the best of all"
    assert not both.holds_for("fake 1.2")
    assert not both.holds_for("other 1.3"), "which may be faster"


def test_a_copy_is_the_ceiling_of_bytes() -> None:
    product = Ceiling().with_result(product_facts(), 2.0)
    both = product.with_result(product_facts("other", workload="copy", flops=0.0), 0.5)
    by = {"float32": "fake 1.2", "copy": "other 1.2"}
    assert both == replace(product, bytes_per_s=2.0**21, by=by)
    better = both.with_result(product_facts(workload="copy", flops=0.0, dtype="float64"), 0.25)
    assert better == replace(both, bytes_per_s=2.0**22, by={**by, "copy": "fake 1.2"})


def test_each_device_has_its_own_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best round of every result counts for its device; failures of some are accepted."""
    requested: list[Any] = []
    results = [
        (product_facts(), [2.0, 1.0, 4.0]),
        (product_facts("other"), [1.5, 3.0]),
        (product_facts(device_name="Fake 9000"), [0.5]),
        (product_facts(workload="copy"), [8.0]),
    ]
    stored = [
        {
            "fullname": f"suite.py::test_product[{number}]",
            "extra_info": {"fwbench": dict(facts)},
            "stats": {"min": min(data), "median": max(data), "max": max(data)},
        }
        for number, (facts, data) in enumerate(results)
    ]

    def measure(
        name: str, arguments: list[str], watching: Watching, *, all_must_pass: bool
    ) -> dict[str, Any]:
        requested.extend([name, watching, all_must_pass, "--fw-threads=3" in arguments])
        return {"benchmarks": stored}

    monkeypatch.setattr(session, "measure_suite", measure)
    both = {"float32": ["fake 1.2", "other 1.2"]}
    assert ceilings.measure(3, nullcontext) == {
        "Fake CPU": Ceiling(
            {"float32": 2.0**31}, 2.0**17, dict.fromkeys(BY, "fake 1.2"), undisturbed=both
        ),
        "Fake 9000": Ceiling(
            {"float32": 2.0**32}, None, _BY_FAKE, undisturbed={"float32": ["fake 1.2"]}
        ),
    }
    assert requested == ["fwbench.ceilings.suite", nullcontext, False, True]


def test_what_was_stored_is_loaded(tmp_path: Path) -> None:
    """All that was measured comes back; what is stored later takes its place."""
    assert stored_ceilings(tmp_path).load() == FOUND
    repeated = stored_ceilings(tmp_path, {"Fake CPU": Ceiling()})
    assert Ceilings(tmp_path, dict(MACHINE), 2).load() == {"Fake CPU": Ceiling()}
    assert [*repeated.path.parent.iterdir()] == [repeated.path]


def test_ceilings_stay_out_of_version_control(tmp_path: Path) -> None:
    """They lie in the project's own folder, which ignores all of itself."""
    assert stored_ceilings(tmp_path).path.parent == tmp_path / ".fwbench" / "ceilings"
    assert (tmp_path / ".fwbench" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@tabled
def test_another_machine_has_other_ceilings(tmp_path: Path, changes: dict[str, Any]) -> None:
    other = {"Another CPU": Ceiling({}, 1.0)}
    here, there = stored_ceilings(tmp_path), stored_ceilings(tmp_path, other, **changes)
    assert here.path != there.path
    assert (here.load(), there.load()) == (FOUND, other)


@pytest.mark.parametrize("changes", [{"memory_bytes": 1}, {"os": "New OS"}, {"python": "4.0"}])
def test_the_same_machine_keeps_its_ceilings(tmp_path: Path, changes: dict[str, Any]) -> None:
    stored_ceilings(tmp_path)
    assert Ceilings(tmp_path, {**MACHINE, **changes}, 2).load() == FOUND
    assert Ceilings(tmp_path, {**MACHINE, **changes}, 1).load() == {}, "other threads"


@pytest.mark.parametrize("text", ["", "{", '{"Fake CPU": {"flops_per_s"', *NONSENSE])
def test_what_is_damaged_was_not_measured(tmp_path: Path, text: str) -> None:
    """A file that was cut off, or says something else, is as good as none, and can be replaced."""
    stored = stored_ceilings(tmp_path)
    stored.path.write_text(text, encoding="utf-8")
    assert stored.load() == {}
    stored.store(FOUND)
    assert stored.load() == FOUND


def test_what_cannot_be_read_was_not_measured(tmp_path: Path) -> None:
    """No file, a folder of that name, or bytes that are not text: nothing is known."""
    stored = Ceilings(tmp_path, MACHINE, 2)
    assert stored.load() == {}
    stored.path.mkdir(parents=True)
    assert stored.load() == {}
    stored.path.rmdir()
    stored.path.write_bytes(b'{"\xff": {}}')
    assert stored.load() == {}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where a file stands in the way, the message says where and why."""
    (tmp_path / ".fwbench").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write under .*ceilings: (Not a|File exists)"):
        stored_ceilings(tmp_path)
    assert (tmp_path / ".fwbench").read_text(encoding="utf-8") == "in the way"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """Where a folder has its name, the message says where and why."""
    path = Ceilings(tmp_path, MACHINE, 2).path
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match=rf"cannot write .*{path.name}: Is a directory"):
        stored_ceilings(tmp_path)


def test_records_say_what_was_attainable() -> None:
    """Each by its dtype and its device, as a share of its median time; above 1 as it is.

    In float16 it is the bytes that take a second, in float64 no product was measured.
    """
    faster = {"Fake 9000": Ceiling({"float32": 2.0**32}, 2.0**30)}
    entries = [
        product_entry(),
        product_entry(8.0),
        product_entry(0.5),
        product_entry(dtype="float16"),
        product_entry(dtype="float64"),
        product_entry(flops=0.0, dtype="float64"),
        product_entry(device_name="Fake 9000"),
        product_entry(device_name="no such device"),
    ]
    ceilings.annotate(entries, {"Fake CPU": CEILING, **faster})
    assert [*map(attainable_of, entries)] == [
        (2.0, 1.0),
        (2.0, 0.25),
        (2.0, 4.0),
        (1.0, 0.5),
        (None, None),
        (1.0, 0.5),
        (0.5, 0.25),
        (None, None),
    ]


@pytest.mark.parametrize(
    "record",
    [
        product_entry(result_is_view=True),
        product_entry(flops=None, bytes=None),
        product_entry(flops=0.0, bytes=0.0),
        {"extra_info": {"fwbench": {"schema": 1}}, "stats": {"median": 1.0}},
        {"extra_info": {"mine": 1}, "stats": {"median": 1.0}},
        {"extra_info": {}, "stats": {}},
    ],
    ids=["view", "no cost", "nothing to do", "facts of old", "foreign", "bare"],
)
def test_what_has_no_limit_is_left_as_it_is(record: dict[str, Any]) -> None:
    before = json.loads(json.dumps(record))
    ceilings.annotate([record], FOUND)
    assert record == before


def test_launches_are_told_of_by_their_median() -> None:
    launched = product_entry(4.0, launches=[{"launch": i, "value_s": 1.0 + i} for i in range(3)])
    before = json.loads(json.dumps(launched["extra_info"]["fwbench"]))
    ceilings.annotate([launched], {})
    assert launched["extra_info"]["fwbench"] == before, "a machine that was not measured"
    ceilings.annotate([launched], FOUND)
    expected = {**before, "attainable_s": 2.0, "attainable_share": 0.5}
    assert launched["extra_info"]["fwbench"] == expected


def test_a_run_has_the_ceilings_that_it_was_stored_with() -> None:
    """They come back from a run's JSON as they were."""
    run = json.loads(json.dumps({"fwbench": {"ceilings": ceilings.to_json(FOUND)}}))
    assert ceilings.of_run(run) == FOUND


@pytest.mark.parametrize(
    "run",
    [
        *({}, {"fwbench": {}}, {"fwbench": None}, {"fwbench": []}),
        *({"fwbench": {"ceilings": json.loads(text)}} for text in NONSENSE),
    ],
)
def test_a_run_without_ceilings_has_none(run: dict[str, Any]) -> None:
    assert ceilings.of_run(run) == {}
