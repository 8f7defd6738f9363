"""Charts have a text, and say every value and its spread."""

import pytest

from fwbench.report.drawing import bars, lines
from fwbench.report.drawing.chart import Point
from support.reports import case, chart_of, parsed, part, part_of, run_of, training
from support.section_parts import marks, outside


@pytest.mark.parametrize("size", [1, 2, 100])
def test_one_size_is_a_bar(size: int) -> None:
    entries = [case(size=size), case(framework="torch", values_s=(3.0, 4.0), size=size)]
    (chart,) = part_of("gemm", *entries).charts
    picture = parsed(chart.svg)
    named = [bar.attributes["data-framework"] for bar in picture.of_class("bar")]
    assert sorted(named) == ["numpy", "torch"]
    bars = picture.of_class("rect")
    first, second = sorted(bars, key=lambda bar: float(bar.attributes["y"]))
    assert float(first.attributes["width"]) < float(second.attributes["width"])
    assert outside(chart) == []


@pytest.mark.parametrize("smallest", [1, 2, 10])
def test_every_size_is_a_point(smallest: int) -> None:
    sizes = [smallest * factor for factor in (100, 1, 10)]
    entries = [case(size=size, values_s=size * 1e-3) for size in sizes]
    (chart,) = part_of("gemm", *entries).charts
    places = [float(dot.attributes["cx"]) for dot in parsed(chart.svg).all("circle")]
    assert len(places) == 3
    assert places == sorted(places)
    first, second, third = places
    assert 0 <= first < third <= 820
    assert second - first == pytest.approx(third - second), "the axis is logarithmic"


def test_points_say_value_and_spread() -> None:
    run = run_of(case(values_s=(0.001, 0.002, 0.003)))
    (bar,) = parsed(part([run], "gemm").charts[0].svg).of_class("bar")
    assert "2 ms" in bar.text
    assert "3 launches, 1 ms to 3 ms" in bar.text


@pytest.mark.parametrize(("sizes", "mark"), [([10], "bar"), ([10, 20, 30], "dot")])
def test_upper_bounds_are_pale(sizes: list[int], mark: str) -> None:
    conditions = {"numpy": "clean", "torch": "drifting", "jax": "contended"}
    cases = [
        case("gemm", name, size=size, condition=condition)
        for size in sizes
        for name, condition in conditions.items()
    ]
    picture = parsed(part([run_of(*cases)], "gemm").charts[0].svg)
    found = [node.attributes.get("opacity") for node in picture.of_class(mark)]
    assert (found.count(".3"), found.count(None)) == (len(sizes), 2 * len(sizes))


@pytest.mark.parametrize("number", [1, 3, 8, 9, 12])
def test_every_point_has_its_spread(number: int) -> None:
    points = {f"line {i}": [Point(10, 1.0 + i, 0.5 + i, 2.0 + i)] for i in range(number)}
    picture = parsed(lines.draw("title", points, "size").svg)
    assert len(picture.of_class("ci")) == len(picture.of_class("legend")) == number
    results = {
        node.attributes["class"].split("color-")[1].split()[0]
        for node in picture.of_class("series")
    }
    assert len(results) == number


def test_a_point_without_spread_has_none() -> None:
    picture = parsed(lines.draw("title", {"line": [Point(10, 1.0, 1.0, 1.0)]}, "size").svg)
    assert picture.of_class("ci") == []


def test_a_name_too_long_for_its_chart_is_squeezed() -> None:
    names = ["of fifty-four letters and signs, which is what fits in", "b" * 70]
    picture = parsed(lines.draw("t", {name: [Point(10, 1.0, 1.0, 1.0)] for name in names}, "x").svg)
    widths = [
        text.attributes.get("textlength")
        for node in picture.of_class("legend")
        for text in node.all("text")
    ]
    assert widths == [None, "335"]


def test_bars_are_told_one_by_one() -> None:
    chart = bars.draw("t", {"first": {"a": 1.0, "b": 2.0}, "all": {"a": 3.0}}, "{} s".format)
    assert chart.text == "t: a, first: 1.0 s; a, all: 3.0 s; b, first: 2.0 s"


def test_accuracy_is_drawn_over_time() -> None:
    run = run_of(training(), training("mxnet", accuracies=(0.5,)))
    chart = chart_of(part([run], "training"), "time against accuracy")
    assert chart.text.endswith("mxnet eager 8.5 s, 50.00%; torch eager 8.5 s, 85.00%")
    assert len(parsed(chart.svg).all("circle")) == 2


def test_few_bars_are_no_blocks() -> None:
    heights = [
        bars.draw("a", {"x": {str(n): float(n + 1) for n in range(number)}}, str).size[1]
        for number in (1, 2, 3, 30)
    ]
    assert heights == sorted(heights)
    assert heights[1] - heights[0] == heights[2] - heights[1] < heights[0] / 2
    assert heights[3] < 30 * heights[0] / 2


def test_two_sizes_suggest_no_law() -> None:
    """A line between them would: each has its bars."""
    entries = [case(size=size, values_s=size * 1e-3) for size in (100, 10)]
    drawn = part_of("gemm", *entries).charts
    assert [chart.title.partition(": ")[2] for chart in drawn] == [
        "time at size 10",
        "time at size 100",
    ]
    assert [len(parsed(chart.svg).of_class("bar")) for chart in drawn] == [1, 1]


def test_shapes_are_on_the_axis() -> None:
    """A size alone does not say which row of the table a point is."""
    shapes = {8_576: "n1h14w14c16k16", 91_000: "n2h28w28c32k32", 1_642_496: "n4h56w56c64k64"}
    entries = [case("conv", size=size, shape=shape) for size, shape in shapes.items()]
    (chart,) = part_of("conv", *entries).charts
    assert marks(chart, "x") == [*shapes.values()]
    assert outside(chart) == []


def test_early_returns_of_one_size_each_are_not_drawn() -> None:
    """Dots in an empty frame compare nothing."""
    late = {"dispatch_s": 0.1, "completion_s": 1.0}
    entries = [case(size=10, **late), *(case("gemm", "torch", size=size) for size in (100, 1000))]
    assert len(part_of("gemm", *entries).charts) == 1
    assert len(part_of("gemm", *entries, case(size=100, **late)).charts) == 2


def test_contestants_have_the_same_order_everywhere() -> None:
    """By name, and eager before what compiles: neither as measured nor as fast as they are."""
    who = [("torch", "compile", 1.0), ("torch", "eager", 2.0), ("mxnet", "eager", 3.0)]
    entries = [case("gemm", name, seconds, execution) for name, execution, seconds in who]
    names = ["mxnet eager", "torch eager", "torch compile"]
    assert [*part_of("gemm", *entries).legend] == names
    assert part_of("overview", *entries).columns[2:] == names
    bars = parsed(chart_of(part_of("gemm", *entries), "time at size").svg).of_class("bar")
    assert [bar.attributes["data-line"] for bar in bars] == names[::-1]  # from the bottom
