"""The section at the end of a session: one screen, within its width, the answer last."""

from itertools import product
from typing import Any

import pytest

from fwbench.records.stored import just_measured
from fwbench.report.terminal.screen import Outcome, View, screen
from fwbench.report.terminal.text import plain
from support.gangs import gang
from support.tables import tabled
from support.terminals import IN_FULL, QUIET, WIDE, entry, shown, styled, texts

_ALL = (
    *("torch eager", "torch compile", "tensorflow eager", "tensorflow graph", "tensorflow xla"),
    *("mxnet eager", "mxnet hybridize", "numpy eager"),
)


def grid(operations: int, sizes: int = 3, families: int = 4) -> list[dict[str, object]]:
    """A large session: every contestant in every operation and size, each slower than the last."""
    return [
        entry(
            *contestant.split()[:1],
            1e-6 * (1 + place) * 10**size,
            execution=contestant.split()[1],
            workload=f"operation_{operation}",
            family=f"family_{operation % families}",
            size=10**size,
            condition="drifting" if operation == place else "clean",
            drift=0.5,
        )
        for operation, size in product(range(operations), range(sizes))
        for place, contestant in enumerate(_ALL)
    ]


def test_a_session_in_words_and_numbers() -> None:
    assert shown(
        *(entry("torch", 2e-6, size=64), entry("numpy", 1e-6, size=64)),
        *(entry("torch", 1e-3, size=1024), entry("numpy", 12.34e-3, size=1024)),
    ) == [
        "Fake CPU, 2 threads: numpy 1.0, torch 1.0",
        "",
        "operations, forward: median times",
        "             numpy  torch",
        "gemm   64     1 us   2 us",
        "gemm 1024  12.3 ms   1 ms",
        "",
        "medians are assumed to repeat to within 5 %: --fw-revisit 12 measures it",
        "",
        "Fastest here: numpy for 1 of 2, torch for 1",
    ]


def test_nothing_measured_is_nothing_said() -> None:
    assert shown() == []


def test_quiet_shows_doubts_and_the_answer() -> None:
    records = [
        *(entry("torch", 1.0), entry("numpy", 2.0), entry("torch", 1.0, size=9)),
        entry("numpy", 2.0, size=9, condition="contended", others_cpus=1.5),
    ]
    doubt, empty, answer = shown(*records, view=QUIET, skips=["why"], cpus=2)
    assert doubt.startswith("other processes used 1.5 of 2 CPUs during 1 of 4 cases (contended)")
    assert (empty, answer) == ("", "Fastest here: torch for 1 of 1; 1 disturbed")


_SESSIONS = {
    "a column": [entry("torch", workload="an_operation_with_a_name_of_its_own")],
    "an operation": grid(1),
    "operations": grid(20),
}


@pytest.mark.parametrize("width", [20, 30, 40, 80, 100, 200])
@pytest.mark.parametrize("records", _SESSIONS.values(), ids=_SESSIONS)
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_no_line_is_wider_than_the_terminal(
    width: int, records: list[dict[str, object]], verbosity: int
) -> None:
    view = View(width=width, verbosity=verbosity)
    skips = ["a reason that is longer than most terminals are wide, " * 3, "another one"]
    lines = screen(Outcome(records, skips, cpus=2), view)
    assert max(len(plain(line)) for line in lines) <= width


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("operations", [1, 20, 60])
def test_the_answer_is_on_the_screen(width: int, operations: int) -> None:
    lines = texts(screen(Outcome(grid(operations)), View(width=width)))
    assert any(line.startswith("Fastest here") for line in lines[-14:])
    assert lines[-2].startswith("Next: ")
    assert len(lines) <= 60


def test_many_rows_are_summed_up_by_size_then_by_family() -> None:
    few, many, most = (shown(*grid(number)) for number in (5, 18, 60))
    assert sum(line.startswith("operation_4 ") for line in few) == 3
    (row,) = (line.split() for line in many if line.startswith("operation_4 "))
    assert row[1:5] == ["6.00x", "8.00x", "3.00x", "1"]
    assert row[-5:] == ["6.00x", "8.00x", "3.00x", "100", "us"]
    assert "small: cost of a call" in "\n".join(many)
    assert [line.split()[:3] for line in most if line.startswith("family")] == [
        [f"family_{number}", "(15)", "6.00x"] for number in range(4)
    ]
    full = shown(*grid(20), view=IN_FULL)
    assert sum(line.startswith("operation_") for line in full) == 60


def test_without_rivals_nothing_is_summed_up() -> None:
    """Times at the smallest and the largest size; there is nothing that they are multiples of."""
    records = [record for record in grid(40) if record["param"].endswith("-numpy")]  # type: ignore[attr-defined]
    lines = shown(*records)
    assert (
        "operations, forward: median times at the smallest and the largest size (-v: all)" in lines
    )
    rows = [line.split() for line in lines if line.startswith("operation_")]
    assert len(rows) == 40
    assert rows[0] == ["operation_0", "8", "us", "800", "us"]
    assert lines[-1] == "only numpy was measured: nothing to compare"


@tabled
def test_the_same_work_apart(facts: list[dict[str, Any]], why: str) -> None:
    """Its rows are right above the answer."""
    apart = [entry(name, **each) for name, each in zip(("torch", "numpy"), facts, strict=True)]
    assert shown(*apart)[-1] == f"nothing to compare: {why}"


def test_exchanges_over_memory_are_not_compared() -> None:
    apart = [entry(name, gang=gang(network="loopback")) for name in ("torch", "numpy")]
    why = "exchanges over loopback wait for processors, not for bytes: try --fw-network"
    assert shown(*apart)[-1] == f"nothing to compare: {why}"


def test_nothing_in_common() -> None:
    apart = [entry("torch", workload="gemm"), entry("numpy", workload="dot")]
    assert shown(*apart)[-1] == "nothing to compare: numpy, torch share no workload and size"
    idle = [entry(name, workload="noop") for name in ("torch", "numpy")]
    assert shown(*apart, *idle)[-1] == shown(*apart)[-1]
    busy = {"condition": "contended"}
    assert shown(entry("torch", **busy), entry("numpy", **busy))[-1] == (
        "Fastest here: cannot be told: 1 of 1 row disturbed"
    )


def test_an_answer_for_each_kind_and_device() -> None:
    kinds = ({}, {"direction": "backward"}, {"device": "gpu:0", "device_name": "Fake 9000"})
    records = [
        entry(framework, seconds, **kind)
        for kind in kinds
        for framework, seconds in (("torch", 1.0), ("jax", 2.0))
    ]
    lines = shown(*records)
    assert lines[0] == "Fake CPU (cpu), Fake 9000 (gpu:0), 2 threads: jax 1.0, torch 1.0"
    assert lines[-1] == (
        "Fastest here, operations, forward, cpu: torch for 1 of 1; operations, backward, cpu: "
        "torch for 1 of 1; operations, forward, gpu:0 (completion time): torch for 1 of 1"
    )


def test_threads_that_differ_are_each_framework_s() -> None:
    first, *_ = shown(
        entry("torch", threads=2), entry("numpy", threads=1), entry("jax", threads=None)
    )
    assert first == "Fake CPU: jax 1.0, numpy 1.0 (1 thread), torch 1.0 (2 threads)"


def test_doubts_come_before_numbers() -> None:
    records = [
        entry("torch", 1.0),
        entry("numpy", 9.0, condition="contended", others_cpus=1.8),
        entry("jax", 2.0, condition="drifting", drift=0.34, spinning=True),
    ]
    lines = screen(Outcome(records, cpus=2), View(width=200))
    contended, drifting, spinning = styled(lines, "yellow")
    assert contended.startswith("other processes used 1.8 of 2 CPUs during 1 of 3 cases")
    assert "most of all gemm jax eager forward 8" in drifting
    assert "OMP_WAIT_POLICY=PASSIVE" in spinning
    assert [plain(line) for line in lines][4:9] == [
        "",
        "! contended: an upper bound",
        "operations, forward: median times",
        "          jax numpy   torch",
        "gemm 8    2 s   9 s!    1 s",
    ]
    full = texts(screen(Outcome(records, cpus=2), IN_FULL))
    assert "gemm 8  2 s~*   9 s!    1 s" in full
    assert "! contended: an upper bound  ~ drifting  * spinning" in full


def test_columns_of_the_same_case_are_explained() -> None:
    records = [entry("torch", 1.0), entry("torch", 2.0), entry("numpy", 9.0)]
    lines = texts(screen(Outcome(records), View(width=200)))
    (explained,) = (line for line in lines if "#2 the same case in another test" in line)
    assert lines.index(explained) < lines.index("operations, forward: median times")
    assert not any("#2" in line for line in texts(screen(Outcome(records[1:]), View(width=200))))


def test_training_has_a_table_of_its_own() -> None:
    train = {"direction": "train", "family": None, "checked_steps": 3}
    steps = [
        entry("torch", 1e-3, workload="mlp_step", size=128, **train),
        entry("tensorflow", 2e-3, workload="mlp_step", size=128, **train),
    ]
    lines = shown(*grid(60), *steps)
    at = next(at for at, line in enumerate(lines) if line.startswith("training: "))
    assert lines[at + 2] == "mlp_step 128        2 ms   1 ms"


def test_failed_cases_stand_where_their_times_would() -> None:
    case = just_measured(entry("numpy", size=8, toggles={})).facts
    records = [entry("torch", 1.0), entry("jax", 2.0), entry("torch", 1.0, size=9)]
    lines = screen(Outcome(records, failed=[case]), WIDE)
    assert styled(lines, "red") == ["failed"]
    assert "gemm 8    2 s  failed    1 s" in texts(lines)
    assert "gemm 9      -       -    1 s" in texts(lines)
    sums = shown(
        *grid(18), failed=[case, just_measured(entry("cupy", workload="operation_7", size=1)).facts]
    )
    assert [line.split()[0] for line in sums if "failed" in line] == ["operation_7"]


def test_skips_have_one_line() -> None:
    none, few, many = [], ["noop has no gradient"], ["a", "b", "b"]
    assert shown(skips=none) == []
    assert shown(skips=few) == ["skipped 1 case: noop has no gradient"]
    assert shown(skips=many) == ["skipped 3 cases for 2 reasons: -rs lists them"]


def test_skips_are_said_once() -> None:
    assert shown(skips=["a", "b"], view=View(skips_listed=True)) == []
    assert shown(skips=["a", "b", "b"], view=IN_FULL) == ["skipped 2 cases: b", "skipped 1 case: a"]


def test_what_others_wrote_is_shown_as_it_is() -> None:
    assert shown(skips=["\x1b[2Jgone\nnew line"]) == ["skipped 1 case: \\x1b[2Jgone new line"]


def test_sizes_stand_side_by_side() -> None:
    """A row for each operation, of any dtype; the fastest by its time, the others by how much."""
    records = [
        entry(framework, seconds, execution=execution, workload=work, size=size, dtype=dtype)
        for work, dtype in (*((f"op_{n}", "float32") for n in range(30)), ("fft", "complex64"))
        for size, framework, execution, seconds in (
            *(
                (1, "torch", "eager", 2e-6),
                (1, "torch", "compile", 4e-6),
                (1, "numpy", "eager", 1e-6),
            ),
            *((9, "torch", "eager", 8e-3), (9, "torch", "compile", 1e-3)),
            *((9, "numpy", "eager", 1.04e-3), (9, "jax", "eager", 2e-2)),
        )
    ]
    lines = texts(screen(Outcome(records), View(width=80)))
    at = lines.index("= too close to call")
    assert lines[at + 1] == (
        "operations, forward, float32: time of the fastest, others as multiples (-v: all)"
    )
    rows = {line.split()[0]: line.split()[1:] for line in lines[at + 3 :] if line}
    assert rows["op_0"] == ["1", "us", "2.00x", "20.0x", "=1.04x", "1", "ms"]
    assert rows["fft"] == ["complex64", *rows["op_0"]]
    assert sum("small: cost of a call" in line for line in lines) == 1


def test_undecided_sizes_have_times_and_no_ratio() -> None:
    records = grid(20)
    for record in records:
        facts = record["extra_info"]["fwbench"]  # type: ignore[index]
        if facts["workload"] == "operation_3" and facts["framework"] == "numpy":
            facts["condition"] = "contended"
    lines = shown(*records)
    (row,) = (line for line in lines if line.startswith("operation_3 "))
    assert "x" not in row
    assert row.count("!") == 2
    legend = next(n for n, line in enumerate(lines) if "only times" in line)
    assert legend < next(n for n, line in enumerate(lines) if line.startswith("operations"))
