"""Replicas in reports: tables of what was measured, pictures with ideals and models."""

from typing import Any

import pytest

from fwbench.report import sections
from support.gangs import gang
from support.reports import case, chart_of, parsed, part_of, run_of
from support.section_parts import chart_lines, rows

_STEP = "replicas: lenet_step cpu train float32 48"
_EXCHANGE = "replicas: all_reduce cpu float32"


def step(
    replicas: int, step_s: float, framework: str = "torch", execution: str = "eager", **of_gang: Any
) -> Any:
    """A training step by some number of replicas."""
    facts = {"direction": "train", "size": 48, "threads": 1, "images_per_s": 48 / step_s}
    if replicas > 1:
        facts["gang"] = gang(replicas, step_s, bus_bytes_per_s=None, **of_gang)
    strategy = of_gang.get("strategy", "allreduce")
    requested = {"replicas": str(replicas)} | ({"strategy": strategy} if replicas > 1 else {})
    requested |= {"servers": str(of_gang["servers"])} if "servers" in of_gang else {}
    return case("lenet_step", framework, step_s, execution, toggles_asked=requested, **facts)


def exchange(
    replicas: int,
    elements: int = 1_000_000,
    step_s: float = 0.01,
    rate: float | None = None,
    **facts: Any,
) -> Any:
    """An all-reduce of NumPy's, on links of a rate in bytes a second."""
    size_bytes = 4 * elements
    made = gang(replicas, step_s, **facts)
    made["bytes_per_step"] = made["least_bytes_per_step"] = 2.0 * (replicas - 1) * size_bytes
    for rank in made["ranks"]:
        rank["sent_bytes"] = made["bytes_per_step"] / replicas
        rank["cpu_s"] = 0.01 * step_s
    if rate is not None:
        made["link_utilization"] = rank["sent_bytes"] / step_s / rate
    made["bus_bytes_per_s"] = made["bytes_per_step"] / replicas / step_s
    requested = {"replicas": str(replicas), "strategy": "allreduce"}
    return case("all_reduce", "numpy", step_s, size=elements, toggles_asked=requested, gang=made)


def test_steps_by_number_of_replicas() -> None:
    shared = step(2, 0.625, alone_s=0.5, skew=0.25)
    section = part_of(_STEP, step(1, 1.0), shared)
    one, two = rows(section)
    assert two == {
        "case": "torch eager",
        "replicas": "2",
        "a step": "625 ms",
        "a second": "76.8",
        "efficiency": "80%",
        "communication": "20%",
        "MB sent": "8",
        "of least": "1.000",
        "skew": "25%",
        "joined by": "loopback",
    }
    assert (one["replicas"], one["a step"], one["efficiency"], one["MB sent"]) == (
        *("1", "1 s", "", ""),
    )
    assert any("Loopback is memory" in note for note in section.notes)


def test_ideals_begin_where_lines_do() -> None:
    section = part_of(_STEP, step(1, 1.0), step(2, 0.625), step(4, 0.5))
    rates, times = section.charts
    assert rates.title.endswith("images a second")
    assert "ideal of torch eager 48 to 192" in rates.text
    assert "ideal of torch eager 250 ms to 1 s" in times.text


def test_ideals_have_the_full_colour_and_no_dots() -> None:
    """Paler lines are not seen on a dark page; on these nothing was measured."""
    section = part_of(_STEP, step(1, 1.0), step(2, 0.625))
    measured, ideal = section.legend["torch eager"], section.legend["ideal of torch eager"]
    assert (ideal.colour, ideal.opacity) == (measured.colour, measured.opacity)
    assert (measured.has_dots, ideal.has_dots) == (True, False)


def test_more_threads_than_processors_have_no_efficiency() -> None:
    section = part_of(_STEP, step(1, 1.0), step(2, 0.6, oversubscribed=True))
    assert [row["efficiency"] for row in rows(section)] == ["", "more threads than CPUs"]


def test_throughput_by_servers_and_workers() -> None:
    """The picture of figure 9 of the TensorFlow paper: a line for each number of workers."""
    entries = [
        step(workers, 1.0 / workers / servers**0.5, "mxnet", strategy="ps_sync", servers=servers)
        for workers in (2, 4)
        for servers in (1, 4)
    ]
    section = part_of(_STEP, *entries)
    chart = chart_of(section, "by servers")
    assert chart.title == f"{_STEP}: images a second by servers"
    assert chart.legends == ["mxnet eager ps_sync, 2 replicas", "mxnet eager ps_sync, 4 replicas"]
    assert "mxnet eager ps_sync, 4 replicas 192 to 384" in chart.text


def test_no_lines_by_number_of_replicas_look_alike() -> None:
    """Their dash says how many replicas; so executions of a framework have a colour each."""
    served = {"strategy": "ps_sync"}
    entries = [
        step(workers, 1.0 / workers, "mxnet", execution, servers=servers, **served)
        for execution in ("eager", "hybridize")
        for workers in (2, 4)
        for servers in (1, 2)
    ]
    chart = chart_of(part_of(_STEP, *entries), "by servers")
    picture = parsed(chart.svg)
    looks = {
        (series.attributes["style"], line.attributes.get("style", ""))
        for number in range(len(chart.legends))
        for series in picture.of_class(f"serie-{number}")
        for line in chart_lines(series)
    }
    assert len(looks) == len(chart.legends) == 4


def test_one_number_of_servers_is_no_line() -> None:
    served = {"strategy": "ps_sync", "servers": 1}
    entries = [step(workers, 1.0 / workers, "mxnet", **served) for workers in (2, 4)]
    titles = [chart.title for chart in part_of(_STEP, *entries).charts]
    assert titles == [f"{_STEP}: images a second", f"{_STEP}: time of a step"]


def _words(softmax: str, replicas: int, step_s: float, servers: int = 0) -> Any:
    """A step of a language model in MXNet, with either softmax."""
    facts: dict[str, Any] = {"direction": "train", "size": 64, "tokens_per_s": 64 / step_s}
    requested = {"replicas": str(replicas)}
    if servers:
        served = {"strategy": "ps_sync", "servers": servers}
        facts["gang"] = gang(replicas, step_s, bus_bytes_per_s=None, **served)
        requested |= {"strategy": "ps_sync", "servers": str(servers)}
    name = f"word_lm_{softmax}step"
    return case(name, "mxnet", step_s, "eager", toggles_asked=requested, **facts)


def test_either_softmax_in_one_picture() -> None:
    """The picture of figure 9 of the TensorFlow paper, by workers and by servers."""
    served = [(2, 1), (2, 2)]
    full = [_words("", 1, 1.0), *(_words("", w, 1.0 / s, s) for w, s in served)]
    sampled = [_words("sampled_", 1, 0.25), *(_words("sampled_", w, 0.5 / s, s) for w, s in served)]
    title = "replicas: word_lm_step cpu train float32 64, full and sampled softmax"
    shown_section = part_of(title, *full, *sampled)
    by_replicas, by_servers = shown_section.charts
    assert by_replicas.title == f"{title}: tokens a second"
    assert "mxnet eager, full softmax ps_sync servers=2 64 to 128" in by_replicas.text
    assert "mxnet eager, sampled softmax ps_sync servers=2 256 to 256" in by_replicas.text
    assert by_servers.legends == [
        f"mxnet eager, {softmax} softmax ps_sync, 2 replicas" for softmax in ("full", "sampled")
    ]
    alone = sections.details([run_of(*full)])
    assert not any("sampled" in section.title for section in alone)


def test_exchanges_by_size_and_number_of_replicas() -> None:
    entries = [exchange(w, n, 1e-3 * w) for n in (1000, 1_000_000) for w in (2, 4)]
    section = part_of(_EXCHANGE, *entries)
    assert [(row["size"], row["replicas"], row["bus GB/s"]) for row in rows(section)] == [
        *(("1,000", "2", "0.002"), ("1,000", "4", "0.0015")),
        *(("1,000,000", "2", "2"), ("1,000,000", "4", "1.5")),
    ]
    by_replicas, bandwidth = section.charts
    assert by_replicas.legends == ["1,000", "1,000,000"]
    assert bandwidth.legends == ["numpy eager, 2 replicas", "numpy eager, 4 replicas"]


def test_long_names_of_bandwidths_have_a_row_of_the_legend_each() -> None:
    """In two columns they lie on each other."""
    entries = [exchange(w, n, 1e-3 * w) for n in (1000, 1_000_000) for w in (2, 3, 4)]
    bandwidth = chart_of(part_of(_EXCHANGE, *entries), "bus bandwidth")
    names = [node.all("text")[0] for node in parsed(bandwidth.svg).of_class("legend")]
    assert len({name.attributes["x"] for name in names}) == 1
    heights = [float(name.attributes["y"]) for name in names]
    assert len({*heights}) == len(names)
    assert bandwidth.legend_height > max(heights) - min(heights)


def _ring_s(replicas: int) -> float:
    return 2 * (replicas - 1) * (1e-3 + 4e6 / replicas / 12.5e6)


def test_modelled_points_are_titled_and_never_in_the_table() -> None:
    entries = [exchange(w, step_s=_ring_s(w), network="100mbit", rate=12.5e6) for w in (2, 3, 4)]
    section = part_of(_EXCHANGE, *entries)
    (chart,) = section.charts
    assert chart.legends == ["1,000,000", "1,000,000 (model)"]
    assert chart.title.endswith("time by size (dashed: model, not measured)")
    assert "stroke-dasharray:2 3" in chart.svg
    measured, model = parsed(chart.svg).of_class("legend")
    hollow = [
        "fill-opacity:0" in node.all("rect")[0].attributes["style"] for node in (measured, model)
    ]
    assert hollow == [False, True]
    assert [row["replicas"] for row in rows(section)] == ["2", "3", "4"]
    assert any("within a factor of 1.5" in note for note in section.page_notes)


@pytest.mark.parametrize("network", ["loopback", "10gbit"])
def test_nothing_is_modelled_without_a_wire_that_is_the_limit(network: str) -> None:
    entries = [exchange(w, step_s=_ring_s(w), network=network) for w in (2, 3, 4)]
    section = part_of(_EXCHANGE, *entries)
    assert chart_of(section, "time by size").legends == ["1,000,000"]
    assert section.page_notes == []


def test_what_replicas_share_is_in_no_section_of_operations() -> None:
    plain = case("softmax", "torch", 1.0, toggles_asked={"replicas": "1"})
    run = run_of(step(1, 1.0), step(2, 0.625), exchange(2), case(), plain)
    titles = [section.title for section in sections.details([run])]
    assert titles.count(_STEP) == titles.count(_EXCHANGE) == 1
    assert [title for title in titles if title.startswith(("lenet_step", "all_reduce"))] == []
    assert {"gemm cpu forward float32", "softmax cpu forward float32"} <= {*titles}


def test_nothing_is_modelled_for_a_dtype_of_another_release() -> None:
    """Its size is not known."""
    entries = [exchange(w, step_s=_ring_s(w), network="100mbit", rate=12.5e6) for w in (2, 3, 4)]
    for entry in entries:
        entry["extra_info"]["fwbench"]["dtype"] = entry["params"]["dtype"] = "int4"
    section = part_of(_EXCHANGE.replace("float32", "int4"), *entries)
    assert chart_of(section, "time by size").legends == ["1,000,000"]
