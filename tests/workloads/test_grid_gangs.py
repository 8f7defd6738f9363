"""The grid of cases that several replicas share: ids, groups, sizes, gaps, and what is refused."""

import re
from dataclasses import replace
from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.options.options import Selection
from fwbench.packaged import read_table
from fwbench.terms import toggles
from fwbench.workloads import (
    MODELS,
    WORKLOADS,
    all_reduce,
    gaps,
    gemm,
    grid,
    lenet,
    lenet_step,
    mlp_step,
    null_step,
)
from fwbench.workloads.gaps import value_gap
from fwbench.workloads.grid import Cell
from support.grids import NO_SERVERS, POOR, SHARED, gap_of
from support.tables import tabled

_CHOSEN = {
    "rich": replace(
        SHARED, gang_gaps=(("ps_async", "sparse", "on", "servers of rich know no rows"),)
    )
}


def cells(
    *asked_of: Any, weak: bool = False, manifests: Any = None, **requested: Any
) -> list[Cell]:
    """The cells of workloads at a size of 48, on the CPU, with toggles."""
    selection = Selection(devices=("cpu",), sizes=requested.pop("sizes", (48,)))
    more = grid.GridRequest(
        {name: tuple(map(str, values)) for name, values in requested.items()}, weak=weak
    )
    return [*grid.cells(asked_of, selection, manifests or _CHOSEN, more=more)]


def test_replicas_and_strategy_are_parts_of_the_id_and_not_of_the_group() -> None:
    """One replica is the framework's plain step: it has no strategy."""
    one, two = cells(lenet_step, replicas=(1, 2))
    assert one.id == "lenet_step-rich-cpu-eager-train-float32-48-replicas:1"
    assert two.id == "lenet_step-rich-cpu-eager-train-float32-48-replicas:2-strategy:allreduce"
    assert one.group == two.group
    assert two.params["replicas"] == "2"
    assert (one.replicas, one.gang) == (1, ())
    assert (two.replicas, two.gang) == (2, (("replicas", "2"), ("strategy", "allreduce")))
    assert one.variables == two.variables == {}


def test_servers_belong_to_strategies_that_have_some() -> None:
    requested = {"replicas": (1, 2), "strategy": ("allreduce", "ps_sync"), "servers": (1, 2)}
    grid_cells = [cell.id.partition("-48-")[2] for cell in cells(lenet_step, **requested)]
    assert grid_cells == [
        "replicas:1",
        "replicas:2-strategy:allreduce",
        "replicas:2-strategy:ps_sync-servers:1",
        "replicas:2-strategy:ps_sync-servers:2",
    ]


def test_steps_of_models_are_shared_by_their_batch() -> None:
    """The other numbers of their sizes stay; weak scaling grows the batch alone."""
    (step,) = (step for step in MODELS if step.name == "word_lm_step")
    requested = {"replicas": (1, 2), "sizes": ("b4t16l1u64v500",)}
    assert [cell.gap for cell in cells(step, **requested)] == [None, None]
    weak = cells(step, weak=True, **requested)
    assert [str(cell.size) for cell in weak] == ["b4t16l1u64v500", "b8t16l1u64v500"]
    (uneven,) = cells(step, replicas=(3,), sizes=("b4t16l1u64v500",))
    assert uneven.gap == "a batch of 4 cannot be shared evenly by 3 replicas"


def test_replicas_are_not_pinned_to_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take turns on it; elsewhere than under Linux nothing is pinned."""
    manifests = {"rich": replace(SHARED, threads=1)}
    one, two = (cell.gap for cell in cells(lenet_step, manifests=manifests, **_PINNED))
    assert (one, two) == (None, _ON_ONE_CPU)
    monkeypatch.delattr(gaps.os, "sched_setaffinity")
    one, _ = (cell.gap for cell in cells(lenet_step, manifests=manifests, **_PINNED))
    assert one == "this system binds no process to a CPU (pin=off)"


_PINNED = {"pin": ("on",), "replicas": (1, 2)}
_ON_ONE_CPU = "pin=on puts all on one CPU, here 2 x 1 threads (--fw-threads 1 --fw-replicas 1)"


def test_workers_that_do_not_wait_are_a_group_of_their_own() -> None:
    """Their work is not that of one process, so nothing is compared with it side by side."""
    requested = {"replicas": (1, 2), "strategy": ("allreduce", "ps_async"), "servers": (1,)}
    grid_cells = cells(lenet_step, **requested)
    alone, together, unequal = (cell.group for cell in grid_cells)
    assert alone == together
    assert unequal == f"{alone} ps_async"


def test_an_execution_without_replicas_may_say_why() -> None:
    """Then it is a gap; others are not in the grid."""
    gap = ("graph", "strategy", "allreduce", "no replicas in graphs")
    compiled = replace(SHARED, training_executions=("eager", "graph", "xla"), toggle_gaps=(gap,))
    grid_cells = cells(lenet_step, manifests={"rich": compiled}, replicas=(2,))
    assert [(cell.execution, cell.gap) for cell in grid_cells] == [
        ("eager", None),
        ("graph", "no replicas in graphs"),
    ]


def test_networks_and_stragglers_are_shown_where_there_are_any() -> None:
    requested = {"network": ("loopback", "100mbit"), "straggler": ("none", "1@20ms")}
    grid_cells = [
        cell.id.partition("-48-")[2] for cell in cells(lenet_step, replicas=(1, 2), **requested)
    ]
    assert grid_cells == [
        "replicas:1",
        "replicas:2-strategy:allreduce",
        "replicas:2-strategy:allreduce-straggler:1@20ms",
        "replicas:2-strategy:allreduce-network:100mbit",
        "replicas:2-strategy:allreduce-network:100mbit-straggler:1@20ms",
    ]


def test_other_workloads_are_left_alone() -> None:
    assert [cell.toggles for cell in cells(gemm, replicas=(1, 2))] == [()]
    assert [cell.toggles for cell in cells(lenet.loader, replicas=(1, 2), sizes=(8,))] == [()]
    assert [cell.toggles for cell in cells(lenet_step)] == [()]


def test_a_size_that_a_network_cannot_have_is_no_trouble_of_others() -> None:
    """A size that is meant for one network need not fit the others."""
    (gpt,) = (step for step in MODELS if step.name == "gpt_small_step")
    size = gpt.form.read("b4t20l2u200v2000")
    shared = (("replicas", "2"), ("strategy", "allreduce"))
    assert gap_of(gpt, SHARED, direction="train", size=size, toggles=shared) is None


def test_weak_scaling_grows_the_batch_and_strong_does_not() -> None:
    """So the id has the true batch of all replicas; a collective's size is everyone's."""
    assert [cell.size for cell in cells(lenet_step, replicas=(1, 2, 3))] == [48, 48, 48]
    assert [cell.size for cell in cells(lenet_step, replicas=(1, 2, 3), weak=True)] == [48, 96, 144]
    assert {cell.size for cell in cells(all_reduce, replicas=(2, 3), weak=True)} == {48}


_NORMALIZED = WORKLOADS["googlenet_bn_step"]
_ASYNCHRONOUS = {"replicas": (2,), "strategy": ("ps_async",), "servers": (1,)}


@tabled
def test_what_replicas_lack(workload: str, requested: dict[str, Any], gap: str) -> None:
    mine = replace(lenet, name="mine").step
    first, *_ = cells((WORKLOADS | {mine.name: mine})[workload], **requested)
    assert first.gap is not None
    assert gap in first.gap


def test_what_is_between_workers_and_servers_says_what_it_lacks() -> None:
    """Servers of the framework, servers of the session, or numbers that shards can have."""
    known = {"rich": replace(SHARED, collectives=("null_step",))}
    without = {"allreduce": "", "ps_sync": NO_SERVERS, "ps_async": NO_SERVERS}
    gaps_of = [
        cells(null_step, manifests=manifests, **requested)[0].gap
        for manifests, requested in (
            (known, _ASYNCHRONOUS),
            (known, _ASYNCHRONOUS | {"sizes": (50,)}),
            (known, {"replicas": (2,)}),
            ({"rich": replace(SHARED, strategies=without)}, _ASYNCHRONOUS),
        )
    ]
    assert gaps_of == [
        None,
        "null_step has numbers in multiples of 16, and the size is 50",
        value_gap(null_step, "strategy", "allreduce"),
        NO_SERVERS,
    ]


def test_rules_ask_for_what_cells_and_manifests_have() -> None:
    """A condition's attribute that is not there would raise when its rule is first asked."""
    rules = read_table("fwbench.workloads", "gaps.toml")["rule"]
    used = re.findall(r"\b([cm])\.(\w+)", " ".join(str(rule) for rule in rules))
    has = {"c": {*dir(Cell), *Cell.__annotations__}, "m": {*dir(SHARED)}}
    assert [name for of, name in used if name not in has[of]] == []


@tabled
def test_batches_are_normalized_by_so_many_values_that_losses_show_more_than_rounding(
    size: str, replicas: int, dtype: str, values: int | None
) -> None:
    """Equal examples count once, and each replica normalizes its own, unless it is told not to."""
    gang = (("replicas", str(replicas)), ("strategy", "allreduce"))
    asked = (_NORMALIZED, SHARED, "cpu", "eager", "train", dtype)
    sized = {"size": _NORMALIZED.size_of(size)}
    gap = gap_of(*asked, **sized, toggles=gang if replicas > 1 else ())
    expected = None if values is None else f"normalizes some channels by {values} different values"
    assert gap is None if expected is None else expected in str(gap)
    together = gap_of(*asked, **sized, toggles=(*gang, ("normalization", "synchronized")))
    assert replicas == 1 or together is None
    assert lenet.rounding_gap(2, 2, "float32") is None


def test_what_fwbench_has_not_built_is_not_in_the_grid() -> None:
    """A framework without strategies has its plain step; asked for by name it is refused."""
    frameworks = {"rich": SHARED, "other": replace(SHARED, name="other", strategies={})}
    grid_cells = cells(mlp_step, manifests=frameworks, replicas=(1, 2))
    assert [(cell.framework, cell.replicas) for cell in grid_cells] == [
        *(("rich", 1), ("rich", 2), ("other", 1))
    ]
    compiled = replace(SHARED, training_executions=("eager", "graph"))
    grid_cells = cells(mlp_step, manifests={"rich": compiled}, replicas=(1, 2))
    assert [(cell.execution, cell.replicas) for cell in grid_cells] == [
        *(("eager", 1), ("eager", 2), ("graph", 1))
    ]
    with pytest.raises(UsageError, match=r"no replicas of other yet.*\(rich can\)"):
        gaps.refuse_unbuilt({"replicas": ("2",)}, ["rich", "other"], frameworks)
    gaps.refuse_unbuilt({"replicas": ("1",)}, ["other"], frameworks)
    gaps.refuse_unbuilt({"replicas": ("2",)}, ["rich"], frameworks)
    assert cells(all_reduce, manifests={"poor": POOR}, replicas=(2,)) == []


@tabled
def test_values_that_do_not_go_together_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        toggles.check_gangs(asked)


def test_values_that_go_together_are_not() -> None:
    """Nothing at all, replicas alone, and servers with a strategy that has some."""
    both = ("allreduce", "ps_sync")
    toggles.check_gangs({})
    toggles.check_gangs({"replicas": ("1", "2")})
    toggles.check_gangs({"replicas": ("2",), "strategy": both, "servers": ("1",)})
