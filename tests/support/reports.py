"""Records and runs as a report reads them, and a report's page as a tree."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

# Sections import it on first use; a session of pytester would remove it again at its end.
import fwbench.report.charts  # noqa: F401
from fwbench.report import model, sections, summary, writers
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Run
from fwbench.report.section import Section, TableCell
from support import launched_runs
from support.launched_runs import QUIET, entry, output, plain

USAGE_ERROR = 2


def case(
    workload: str = "gemm",
    framework: str = "numpy",
    values_s: float | Sequence[float] = QUIET,
    execution: str = "eager",
    size: int = 100,
    **facts: Any,
) -> dict[str, Any]:
    """The entry of an operation that was launched.

    Args:
        values_s: seconds, one a launch; a single number for five launches of the same time.
        facts: what else fwbench says of it; ``toggles_asked`` become parameters of the case.
    """
    requested = facts.pop("toggles_asked", {})
    values_s = values_s if isinstance(values_s, Sequence) else [values_s] * 5
    what = {"device": "cpu", "direction": "forward", "dtype": "float32", **facts}
    what.setdefault("result_is_view", False)
    made = entry(
        workload,
        values_s,
        framework,
        **{
            **dict.fromkeys(("dispatch_s", "completion_s"), values_s[0]),
            "first_call_in_process_s": 10 * values_s[0],
            "execution": execution,
            "size": size,
            **what,
        },
    )
    made["extra_info"]["fwbench"]["workload"] = workload
    about = (what["device"], what["direction"], what["dtype"], size)
    made["param"] = "-".join(map(str, (workload, framework, execution, *about)))
    made["group"] = " ".join(map(str, (workload, *about)))
    made["params"] = {"workload": workload, "framework": framework, **requested}
    return made


def rounds_of(made: dict[str, Any]) -> dict[str, Any]:
    """The same case measured in one process: its values are rounds."""
    del made["extra_info"]["fwbench"]["launches"]
    return made


#: Seconds of the epochs of two repetitions, the first of each a warm-up.
_EPOCHS_S = ((4.0, 2.0, 2.5), (9.0, 3.0, 3.5))


def training(
    framework: str = "torch",
    execution: str = "eager",
    losses: Sequence[Sequence[float]] = ((2.0, 1.0, 0.5), (9.0, 8.0, 7.0)),
    accuracies: Sequence[float] = (0.9, 0.8),
    **facts: Any,
) -> dict[str, Any]:
    """The entry of a training loop of two repetitions in one process."""
    epochs = [
        {"repetition": repetition, "epoch": number, "seconds": seconds, "train_loss": loss}
        for repetition, (times_s, of_one) in enumerate(zip(_EPOCHS_S, losses, strict=True), 1)
        for number, (seconds, loss) in enumerate(zip(times_s, of_one, strict=True), 1)
    ]
    tested = [
        {"repetition": repetition, "epoch": epoch, "accuracy": accuracy / (4 - epoch)}
        for repetition, accuracy in enumerate(accuracies, 1)
        for epoch in (1, 3)
    ]
    what = {
        "epochs": epochs,
        "test_accuracy": tested,
        "direction": "train",
        "size": 200,
        "first_epoch_excess": 0.78,
        "images_per_s": 3200.0,
        "cpu_utilization": 0.5,
        "host_memory_before_bytes": 2**29,
        "peak_host_memory_bytes": 2**29 + 2**30,
        "compile_s": 0.0,
        "data": {"name": "mnist", "source": "real", "origin": "its authors", "digest": "d"},
        **facts,
    }
    values_s = [seconds for of_one in _EPOCHS_S for seconds in of_one[1:]]
    return rounds_of(case("lenet", framework, values_s, execution, **what))


def interpreted(values: Any, name: str = "run.json", number: int = 0) -> Run:
    """The run, or the comparison, that is read from JSON in a file of that name."""
    return model.interpreted(json.loads(json.dumps(values)), Path(name), number)


def run_of(
    *entries: Mapping[str, Any], name: str = "run.json", number: int = 0, **session: Any
) -> Run:
    """A run with these cases: the same case again is that of another test."""
    tests: Counter[str] = Counter()
    cases = []
    for made in entries:
        tests[made["fullname"]] += 1
        again = f"again_{tests[made['fullname']]}_" * (tests[made["fullname"]] > 1)
        cases.append({**made, "fullname": f"{again}{made['fullname']}"})
    return interpreted(output(cases, **session), name, number)


def runs_of(**entries: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Several runs by the names of their files."""
    return [
        run_of(*cases, name=f"{name}.json", number=number)
        for number, (name, cases) in enumerate(entries.items())
    ]


def everything() -> list[Run]:
    """Runs with something of everything."""
    first = [
        *(case("gemm", "numpy", size=size) for size in (10, 100)),
        case("gemm", "torch", (1.0, 2.0), dispatch_s=0.1, completion_s=1.5),
        case("gemm", "torch", (1.0, 2.0), "compile"),
        case("dot", device="gpu:0"),
        training(),
        training("mxnet", data={"name": "mnist", "source": "synthetic", "origin": "made"}),
        plain(),
    ]
    missing = [{"nodeid": "x", "framework": "jax", "why": "deselected"}]
    return [
        run_of(*first, name="first.json", missing=missing, absent={"jax": "absent"}),
        run_of(case(), name="second.json", number=1),
    ]


def foreign_run(path: Path, brand: str = "Fake CPU") -> Path:
    """A file that pytest-benchmark wrote without fwbench: no ``extra_info`` at all."""
    made = output([plain("test_a", 0.5), plain("test_b")])
    del made["fwbench"]
    for record in made["benchmarks"]:
        del record["extra_info"]
    made["machine_info"]["cpu"]["brand_raw"] = brand
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


@dataclass(eq=False)
class Node:
    """An element of a page."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: Node | None = None
    children: list[Node | str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Node]:
        """All elements in it, in their order."""
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child

    def all(self, *tags: str, **attributes: str) -> list[Node]:
        """The elements in it of these tags that have these attributes."""
        return [
            node
            for node in self
            if (not tags or node.tag in tags)
            and all(node.attributes.get(name) == value for name, value in attributes.items())
        ]

    def of_class(self, name: str) -> list[Node]:
        """The elements in it of a class."""
        return [node for node in self if name in node.attributes.get("class", "").split()]

    def within(self, tag: str) -> Node | None:
        """The nearest element around it."""
        around = self.parent
        while around is not None and around.tag != tag:
            around = around.parent
        return around

    @property
    def text(self) -> str:
        """All text in it, its white space made one."""
        texts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join(" ".join(texts).split())

    @property
    def ids(self) -> list[str]:
        """The ids of all elements in it."""
        return [node.attributes["id"] for node in self if "id" in node.attributes]


class _Parser(HTMLParser):
    _EMPTY = frozenset({"meta", "link", "input", "img", "br", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.root = self._open = Node("")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self._EMPTY:
            self._open = [node for node in self._open.children if isinstance(node, Node)][-1]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self._open.children.append(Node(tag, attributes, self._open))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.tag == tag, f"</{tag}> ends <{self._open.tag}>"
        assert self._open.parent is not None
        self._open = self._open.parent

    def handle_data(self, data: str) -> None:
        self._open.children.append(data)


def parsed(markup: str) -> Node:
    """A page as a tree; each element is ended in its own place."""
    parser = _Parser()
    parser.feed(markup)
    parser.close()
    assert parser._open is parser.root, f"<{parser._open.tag}> is not ended"
    return parser.root


def shown(*runs: Run, problems: Sequence[str] = ()) -> Node:
    return parsed(writers.html(runs, problems))


def part(runs: Sequence[Run], title: str) -> Section:
    """The only section whose title begins so."""
    (picture,) = [
        section
        for section in (*summary.sections(runs), *sections.details(runs))
        if section.title.startswith(title)
    ]
    return picture


def part_of(title: str, *entries: Mapping[str, Any], **session: Any) -> Section:
    """The only section of a run with these cases whose title begins so."""
    return part([run_of(*entries, **session)], title)


def handlers(page: Node) -> list[str]:
    """The attributes of a page that would run a script."""
    return [name for node in page for name in node.attributes if name.startswith("on")]


def column(section: Section, name: str) -> dict[str, TableCell]:
    """A column of a table, by what stands first in its rows."""
    at = list(section.columns).index(name)
    return {row.cells[0].text: row.cells[at] for row in section.rows}


def chart_of(section: Section, title: str) -> Chart:
    """The chart with that in its title."""
    (matching,) = [chart for chart in section.charts if title in chart.title]
    return matching


def markdown_cells(line: str) -> int:
    """The number of cells of a table's row where Markdown is shown."""
    return len(re.findall(r"(?:\\.|[^\\|])*\|", line.strip().removeprefix("|")))


#: What reports name in addition to what no command reads.
UNREADABLE = {**launched_runs.UNREADABLE, "a folder": (lambda path: path.mkdir(), "cannot read")}


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=1>',
    "' onload='alert(1)",
    "</script></style></svg></title><i>x</i>",
    "]]><!-- {{ 7 * 7 }} --><i>x</i>",
)


def named(name: str) -> tuple[list[Run], list[str]]:
    """Runs in which all that has a name is called so, and a problem."""
    file = name.replace("/", "|") + ".json"
    everywhere: dict[str, Any] = {
        "device": name,
        "direction": name,
        "dtype": name,
        "toggles": {name: name},
        "toggles_asked": {name: name},
        "dispatch_s": 0.1,
        "completion_s": 1.0,
    }
    data = {"name": name, "source": name, "origin": name}
    foreign = {**plain(name), "group": name}
    session = {
        "missing": [{"nodeid": name, "framework": name, "why": name}],
        "absent": {name: name},
        "arguments": [name],
        "threads": 2,
        "version": name,
        "frameworks": {name: {"version": name, "build": {name: name}}},
        "machine": {"cpu": name, "os": name, "python": name, "usable_cpus": 2},
    }
    entries = [
        case(name, name, execution=name, **everywhere),
        case(name, "numpy", (2.0, 3.0), execution=name, **everywhere),
        training(name, name, data=data),
        foreign,
    ]
    # The same file twice: its name is shown only beside another's.
    runs = [interpreted(output(entries, **session), file, number) for number in (0, 1)]
    return runs, [f"{name}.json is empty"]
