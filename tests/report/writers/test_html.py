"""The page serves everyone, asks for nothing from anywhere, and takes no name for markup."""

import itertools
import json
import re
from collections import Counter

import pytest

from fwbench.report import sections, writers
from fwbench.report.drawing import bars, lines
from fwbench.report.drawing.chart import Point
from fwbench.report.section import Row, Section, TableCell
from support.launched_runs import QUIET, output, plain
from support.reports import (
    HOSTILE,
    Node,
    case,
    everything,
    handlers,
    interpreted,
    named,
    parsed,
    run_of,
    shown,
    training,
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup(name: str) -> None:
    # As long as the other: pygal adds a title where it shortens a label.
    harmless = parsed(writers.html(*named("x" * len(name))))
    hostile = parsed(writers.html(*named(name)))
    assert Counter(node.tag for node in hostile) == Counter(node.tag for node in harmless)
    assert handlers(hostile) == []
    assert name in hostile.text
    assert "<" not in writers.markdown(*named(name))


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\x9b"])
def test_names_do_not_turn_what_follows(sign: str) -> None:
    """Neither in tables, nor in charts and their tooltips; as in terminals and Markdown."""
    page = writers.html(*named(f"a{sign}b"))
    escaped = f"a{sign.encode('unicode_escape').decode()}b"
    assert sign not in page
    assert escaped in parsed(page).text
    legends = re.findall(r'"legends": (\[[^]]*\])', page)
    assert escaped in str([json.loads(legend) for legend in legends]).replace("\\\\", "\\")
    assert not any(sign in name for legend in legends for name in json.loads(legend))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup_in_charts(name: str) -> None:
    point = Point(10, 1.0, 0.5, 2.0, name)
    drawn = [
        lines.draw(name, {name: [point]}, name),
        lines.draw_curves(name, {name: [1.0, 2.0]}, name),
        lines.draw_over_time(name, [name] * 3, [point] * 3, {1: name}),
        bars.draw(name, {name: {name: 1.0}}, str),
        lines.draw_scatter(name, {name: (1.0, 0.5)}, name, name),
    ]
    for chart in drawn:
        picture = parsed(chart.svg)
        assert name in picture.text
        assert not picture.all("img", "i", "script", "style")
        assert len(picture.all("svg")) == 1
        assert handlers(picture) == []


_ADDRESSES = ("src", "href", "xlink:href", "srcset", "action", "formaction", "data", "poster")


def test_nothing_is_asked_for() -> None:
    run = run_of(case(), training(), plain())
    page = shown(run)
    assert page.of_class("pygal-chart"), "there are charts"
    requested = [
        node.attributes[name] for node in page for name in _ADDRESSES if name in node.attributes
    ]
    assert requested
    assert [address for address in requested if not address.startswith("#")] == []
    assert not page.all("link", "iframe", "object", "embed", "base")
    styles = [node.text for node in page.all("style")]
    styles += [node.attributes.get("style", "") for node in page]
    for style in styles:
        assert "@import" not in style
        assert "url(" not in style
        assert "//" not in style


@pytest.fixture(scope="module")
def full() -> Node:
    return shown(*everything(), problems=["bad.json is empty"])


def test_one_heading_is_the_first(full: Node) -> None:
    levels = [int(node.tag[1]) for node in full if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(levels) == 3
    assert all(here <= before + 1 for before, here in itertools.pairwise(levels))
    assert all(node.text for node in full if re.fullmatch("h[1-6]", node.tag))


def test_tables_say_what_they_are(full: Node) -> None:
    tables = full.all("table")
    assert len(tables) >= 7
    for table in tables:
        (caption,) = table.all("caption")
        assert caption.text
        assert {node.attributes.get("scope") for node in table.all("th")} == {"col", "row"}
        width = len(table.all("th", scope="col"))
        assert {len(row.all("th", "td")) for row in table.all("tr")} == {width}


def test_fields_have_labels(full: Node) -> None:
    fields = full.all("select", "input", "textarea")
    assert [control.tag for control in fields] == ["select"] * 6 + ["input"]
    for field in fields:
        label = field.within("label")
        assert label is not None
        assert label.text


def test_buttons_and_links_have_names(full: Node) -> None:
    controls = full.all("button", "a")
    assert controls
    nameless = [node for node in controls if not node.text and "aria-label" not in node.attributes]
    tables = [node.within("table") for node in nameless]
    assert [node.all("caption")[0].text for node in tables if node] == []
    assert nameless == []


def test_the_page_says_its_language_and_title(full: Node) -> None:
    (html,) = full.all("html")
    assert html.attributes["lang"] == "en"
    (head,) = full.all("head")
    assert head.all("title")[0].text
    (viewport,) = full.all("meta", name="viewport")
    assert "width=device-width" in viewport.attributes["content"]


def test_ids_are_unique(full: Node) -> None:
    assert [name for name, number in Counter(full.ids).items() if number > 1] == []


def test_ids_of_parts_are_unique() -> None:
    names = ("conv relu", "conv-relu", "conv+relu", "conv_relu", "*", "+")
    linked = sections.linkable(sections.details([run_of(*map(case, names))]))
    ids = [section.id for section in linked]
    assert len({*ids}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z][\w-]*", part_id) for part_id in ids)


def test_what_is_referred_to_is_there(full: Node) -> None:
    ids = {*full.ids}
    links = [node.attributes["href"].removeprefix("#") for node in full.all("a")]
    (nav,) = full.all("nav")
    sections = [node.attributes["id"] for node in full.of_class("detail")]
    assert [node.attributes["data-for"] for node in nav.all("li")] == sections
    assert [node.attributes["href"] for node in nav.all("a")] == [f"#{node}" for node in sections]
    named_by = [
        node.attributes["aria-labelledby"] for node in full if "aria-labelledby" in node.attributes
    ]
    assert {*links, *named_by} <= ids


def test_where_numbers_come_from() -> None:
    session = {
        "arguments": ["benchmarks", "--fw-launches=5"],
        "threads": 2,
        "launches": {"launches": 5, "seed": 7},
        "machine": {"cpu": "Fake CPU", "usable_cpus": 3, "os": "Fake OS", "python": "3.99"},
        "frameworks": {"torch": {"version": "2.9", "build": {"blas": "mkl"}}},
        "absent": {"jax": "not installed"},
    }
    made = output([case(), training()], **session)
    made["commit_info"] = {"id": "abc123", "branch": "topic", "dirty": True}
    made["datetime"] = "2026-11-21T10:00:00"
    (section,) = shown(interpreted(made)).all("section", **{"aria-labelledby": "provenance"})
    names, values = ([node.text for node in section.all(tag)] for tag in ("dt", "dd"))
    assert dict(zip(names, values, strict=True)) == {
        "measured": "2026-11-21T10:00:00",
        "command": "benchmarks --fw-launches=5",
        "revision": "abc123 (topic), with uncommitted changes",
        "cpu": "Fake CPU",
        "usable cpus": "3",
        "system": "Fake OS",
        "python": "3.99",
        "threads": "2",
        "launches": "5, seed 7",
        "written by": "fwbench 0.1.0",
        "torch": "2.9; blas mkl",
        "jax, absent": "not installed",
        "data set mnist": "real: its authors",
        "numpy settings": "blas openblas",
        "torch settings": "blas openblas",
    }


@pytest.mark.parametrize(("cpu", "baselines"), [("Fake CPU", 2), ("Other CPU", 0)])
def test_runs_of_other_machines_are_no_baseline(cpu: str, baselines: int) -> None:
    entries = [case(), case(framework="torch")]
    runs = [
        run_of(*entries, name=f"{number}.json", number=number, machine={"cpu": brand})
        for number, brand in enumerate(("Fake CPU", cpu))
    ]
    values = [node.attributes.get("value", "") for node in shown(*runs).all("option")]
    assert sum(value.startswith("case:") for value in values) == 2
    assert sum(value.startswith("run:") for value in values) == baselines


def test_rows_carry_what_they_are_chosen_by(full: Node) -> None:
    options = {
        select.attributes["data-filter"]: {node.text for node in select.all("option")}
        for select in full.all("select")
        if "data-filter" in select.attributes
    }
    assert options["framework"] == {"all", "numpy", "torch", "mxnet"}
    assert options["device"] == {"all", "cpu", "gpu:0"}
    seen = 0
    for section in full.of_class("detail"):
        for row in section.all("tbody")[0].all("tr"):
            facts = {**section.attributes, **row.attributes}
            if "data-framework" in facts:
                seen += 1
                assert all(facts[f"data-{name}"] in page for name, page in options.items())
    assert seen == 8


def test_a_thousand_cases_are_below_three_megabytes() -> None:
    entries = [
        case(f"workload{i}", framework, [seconds * 1e-4 * size for seconds in QUIET], size=size)
        for i in range(10)
        for size in (2**power for power in range(20))
        for framework in ("numpy", "torch", "tensorflow", "mxnet", "jax")
    ]
    made = writers.html([run_of(*entries)])
    page = parsed(made)
    rows = [row for row in page.all("tr") if "data-framework" in row.attributes]
    assert len(rows) == 1000
    assert len(page.of_class("pygal-chart")) == 10
    assert len(made.encode()) < 3_000_000


def test_sentences_begin_at_the_left() -> None:
    """So that their lines can be read; short texts and figures stay at the right."""
    why = "measured before, and found to be among those whose memory is not known"
    gap = {"nodeid": "x", "framework": "jax", "why": "deselected"}
    page = shown(run_of(case(memory={"gap": why}), missing=[gap]))
    assert [node.text for node in page.of_class("prose")] == ["not measured", why]


def test_means_that_are_not_known_have_their_reason() -> None:
    run = run_of(
        *(case(condition="contended"), case(framework="torch")),
        *(case("dot"), case("dot", framework="torch", condition="contended")),
    )
    (card,) = shown(run).of_class("card")
    assert "No means: numpy eager, torch eager share 2 cases, 0 of them undisturbed." in card.text
    assert card.all("table") == []


def test_sentences_among_figures_stay_at_the_right() -> None:
    figures = [Row([TableCell("torch"), TableCell("1.38x", 1.38)])]
    sentence = Row([TableCell("mxnet"), TableCell("not ranked: 11 of 40 cases, and 33 unequal")])
    assert Section("mixed", ["framework", "all"], [*figures, sentence]).prose == frozenset()
    assert Section("prose", ["framework", "all"], [sentence]).prose == {1}


@pytest.mark.parametrize(("reasons", "is_folded"), [(10, False), (11, True)])
def test_long_lists_of_gaps_are_folded(reasons: int, is_folded: bool) -> None:
    missing = [{"nodeid": "x", "framework": "jax", "why": f"skipped: {n}"} for n in range(reasons)]
    (section,) = shown(run_of(missing=missing)).all("section", **{"aria-labelledby": "remarks"})
    assert len(section.all("table")) == 1
    assert [node.text for node in section.all("summary")] == ["11 rows"] * is_folded


def test_texts_are_aligned_as_words_or_figures() -> None:
    rows = [[TableCell(text) for text in ("a", "slow", "+1% to +2%", "x" * 50)]]
    section = Section("texts", ["a", "b", "c", "d"], [*map(Row, rows)])
    assert section.text_classes == {0: "words", 1: "words", 2: "figures", 3: "prose"}


def test_settings_are_not_spelt_as_python_has_them() -> None:
    made = output([case(toggles={"mkldnn": True, "benchmark": False})], frameworks={})
    made["fwbench"]["frameworks"] = {"torch": {"version": "2.9", "build": {"cuda": None}}}
    (section,) = shown(interpreted(made)).all("section", **{"aria-labelledby": "provenance"})
    for expected in ("mkldnn yes, benchmark no", "2.9; cuda none", "not recorded measured, "):
        assert expected in section.text


def test_charts_are_told_in_words(full: Node) -> None:
    pictures = full.of_class("chart")
    of_parts = [chart for section in sections.details(everything()) for chart in section.charts]
    assert len(pictures) == len([chart for chart in of_parts if not chart.is_lone]) >= 5
    for picture in pictures:
        assert picture.attributes["role"] == "img"
        text = picture.attributes["aria-label"]
        names = {node.text for node in picture.of_class("legend")}
        names |= {
            node.attributes["data-line"] for node in picture if "data-line" in node.attributes
        }
        assert names
        for name in names:
            assert name in text


def test_a_lone_bar_is_no_picture() -> None:
    """Its table says as much, and nothing of a picture is left."""
    contended = case(values_s=0.2, contended=True)
    alone, compared = shown(run_of(contended)), shown(run_of(contended, case("gemm", "torch")))
    assert [len(page.of_class("chart")) for page in (alone, compared)] == [0, 1]
    assert [len(page.of_class("legend")) > 0 for page in (alone, compared)] == [False, True]
    assert ["Pale" in page.text for page in (alone, compared)] == [False, True]
    assert alone.all("section", id="part-gemm-cpu-forward-float32")


def test_pictures_have_no_title_of_the_library(full: Node) -> None:
    """Browsers show it where a pointer rests."""
    pictures = full.all("svg")
    assert pictures
    assert "Pygal" not in {title.text for node in pictures for title in node.all("title")}


def test_columns_for_few_are_folded(full: Node) -> None:
    """A first reader sees who, at what size and how fast."""
    (section,) = full.all("section", id="part-gemm-cpu-forward-float32")
    heads = {node.text: node.attributes.get("class", "") for node in section.all("th", scope="col")}
    assert [name for name, names in heads.items() if "more" not in names] == [
        *("case", "size", "median", "against fastest", "middle half")
    ]
    assert {"dispatch", "first call in process", "measured"} <= {*heads}
    width = sum("more" in names for names in heads.values())
    assert {len(row.of_class("more")) for row in section.all("tr")} == {width}


def test_contents_can_be_scanned() -> None:
    """Families, and in each of them operations without what all have in common."""
    families = {"relu": "activations", "gelu": "activations", "gemm": "linalg"}
    entries = [case(name, family=family) for name, family in families.items()]
    (nav,) = shown(run_of(*entries, training())).all("nav")
    listed = {
        entry.all("dt")[0].text: [link.text for link in entry.all("a")] for entry in nav.all("div")
    }
    assert listed == {
        "activations": ["relu", "gelu"],
        "linalg": ["gemm"],
        "training": ["training lenet cpu float32 200"],
    }
