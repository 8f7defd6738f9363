"""Training steps of a run next to Table 1 of the TensorFlow paper of 2016."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fwbench.errors import UsageError
from fwbench.records.measurement import Measurement
from fwbench.report.condition import is_contended
from fwbench.report.model import Run
from fwbench.report.section import Row, Section, TableCell, grouped, line_names, seconds

ORDER = 30

OPTION = "tensorflow-paper"

HELP = (
    "training steps of AlexNet, OverFeat, VGG A and GoogLeNet next to Table 1 of the TensorFlow "
    "paper of 2016"
)

#: The paper's names of the networks, by the workload.
_NETWORKS = {
    "alexnet_step": "AlexNet",
    "overfeat_step": "OverFeat",
    "vgg_a_step": "OxfordNet (VGG A)",
    "googlenet_step": "GoogLeNet",
}

#: Abadi et al. 2016, "TensorFlow: A System for Large-Scale Machine Learning" (OSDI), Table 1:
#: milliseconds of a training step in the order of the networks. The README of
#: soumith/convnet-benchmarks at b9d22fe has the same sixteen figures: "Caffe (native)",
#: "Nervana-neon-fp32", "CuDNN[R4]-fp32 (Torch)" and "TensorFlow".
_PUBLISHED_MS = {
    "Caffe": (324, 823, 1068, 1935),
    "Neon": (87, 211, 320, 270),
    "Torch": (81, 268, 529, 470),
    "TensorFlow": (81, 279, 540, 445),
}

#: The library that the others of a table are compared with.
_REFERENCE = "TensorFlow"

_THEN = (
    "The paper's steps are those of convnet-benchmarks: a forward and a backward pass without an "
    "update, in float32, of batches of 128 pictures (64 of OxfordNet), on one NVIDIA Titan X with "
    "a Core i7-5930K of six cores. Neon's convolutions were written by hand in assembly; Torch and "
    "TensorFlow had one version of cuDNN."
)

_NOW = (
    "With an update. In brackets the time over TensorFlow's in the same table, today over the "
    "fastest of TensorFlow's executions. Contended times are upper bounds, and in no ratio. "
    "Another batch, picture or width is another step, and a CPU prefers other kernels than a GPU: "
    "compare ratios, within a column."
)


def sections(runs: Sequence[Run]) -> list[Section]:
    """Table 1, and one like it for each device and dtype of the runs.

    Raises:
        UsageError: the runs have none of its networks.
    """
    records = [
        record
        for run in runs
        for record in run.records
        if record.facts and record.facts.workload in _NETWORKS
    ]
    if not records:
        raise UsageError(
            f"--{OPTION} shows training steps of {', '.join(_NETWORKS)}, and these runs have none; "
            "measure some: pytest benchmarks/test_models.py -k 'alexnet_step or googlenet_step' "
            "--benchmark-json=run.json"
        )
    names = [run.name for run in runs]
    today = [
        _today(f"training steps today: {place}", group, names)
        for place, group in grouped(records, "device", "dtype").items()
    ]
    return [_then(), *today]


def _then() -> Section:
    rows = [
        Row(
            [
                TableCell(library),
                *(
                    _cell(step_ms / 1e3, reference_ms / 1e3)
                    for step_ms, reference_ms in zip(
                        steps_ms, _PUBLISHED_MS[_REFERENCE], strict=True
                    )
                ),
            ]
        )
        for library, steps_ms in _PUBLISHED_MS.items()
    ]
    columns = ["library", *_NETWORKS.values()]
    return Section("training steps in 2016 (TensorFlow paper, Table 1)", columns, rows, [], [_THEN])


def _today(title: str, records: Sequence[Measurement], runs: Sequence[str]) -> Section:
    """A column for each network and size, a row for each framework and execution."""
    by_column: dict[str, dict[str, Measurement]] = {}
    for workload, group in grouped(records, "workload").items():
        for name, record in line_names(group, runs):
            heading = f"{_NETWORKS[workload]} {record.facts.size_text}"
            by_column.setdefault(heading, {})[name] = record
    order = [*_NETWORKS.values()]
    headings = sorted(by_column, key=lambda heading: order.index(heading.rpartition(" ")[0]))
    names = dict.fromkeys(name for heading in headings for name in by_column[heading])
    references_s = {heading: _reference_s(by_column[heading]) for heading in headings}
    rows = [
        Row([TableCell(name), *_cells(name, headings, by_column, references_s)]) for name in names
    ]
    return Section(title, ["framework", *headings], rows, [], [_NOW])


def _reference_s(by_name: Mapping[str, Measurement]) -> float | None:
    """The fastest of cases that were not contended: times of others are upper bounds."""
    records = (r for r in by_name.values() if r.facts.framework == _REFERENCE.lower())
    return min((r.median_s for r in records if not is_contended(r.facts)), default=None)


def _cells(
    name: str,
    headings: Sequence[str],
    by_column: Mapping[str, Mapping[str, Measurement]],
    references_s: Mapping[str, float | None],
) -> Iterator[TableCell]:
    for heading in headings:
        record = by_column[heading].get(name)
        if record is None:
            yield _cell(None, None)
        elif is_contended(record.facts):
            yield TableCell(f"{seconds(record.median_s).text} (contended)", record.median_s)
        else:
            yield _cell(record.median_s, references_s[heading])


def _cell(step_s: float | None, reference_s: float | None) -> TableCell:
    cell = seconds(step_s)
    if step_s is None or reference_s is None:
        return cell
    return TableCell(f"{cell.text} ({step_s / reference_s:.2f}x)", step_s)
