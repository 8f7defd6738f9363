"""Sentiment trainings of a run next to a post of 2018 that compares PyTorch with MXNet.

Jawad Ateeq, "Standardizing a Machine Learning Framework for Applied Research: PyTorch vs MXNet",
Borealis AI, February 2018: an LSTM on IMDB in batches of 64 to 1024, with several loader workers,
and with sparse gradients.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence

from fwbench.errors import UsageError
from fwbench.records import equality
from fwbench.records.measurement import Measurement, blur
from fwbench.records.units import count
from fwbench.report.condition import is_contended
from fwbench.report.model import Run, trainings
from fwbench.report.section import Row, Section, TableCell, grouped, seconds
from fwbench_extras.studies.report_2020.operations import times
from fwbench_extras.studies.report_2020.statements import (
    FEW,
    Finding,
    Verdict,
    first_epochs,
    has_whole_epochs,
)

ORDER = 40

OPTION = "sentiment-post"

HELP = (
    "trainings of sentiment_lstm next to statements and settings of the PyTorch / MXNet post of "
    "2018 (measure with --fw-train epochs=20)"
)

_FRAMEWORKS = ("torch", "mxnet")

#: A first epoch over later ones: "+30 to 900 %".
_FIRST = (1.3, 10.0)

#: Epochs of the post's trainings, and the last of them before losses oscillate.
_EPOCHS = 20
_SMOOTH = 17

#: What the post varies, with the value that others are compared with.
_WITHOUT: Mapping[str, object] = {"batch": 64, "workers": "0", "sparse": "off"}

_FULL = (
    "pytest benchmarks/test_training.py -k 'sentiment_lstm and not step and not loader' --fw-size "
    "64"
)

_NOTE = (
    "Judged by PyTorch and MXNet in whole epochs of the real IMDB; contended cases judge nothing. "
    "A first epoch is that of a process that ran nothing before, over the median of the others. "
    "Losses oscillate from the first epoch on whose mean training loss is above that of the epoch "
    "before."
)

_SETTINGS_NOTE = (
    "Trainings that differ in one setting: the time of an example over that of the other, with its "
    f"95 % interval from process to process from {FEW} values on. Contended cases are left out."
)


def sections(runs: Sequence[Run]) -> list[Section]:
    """The statements and the settings, for each run, device and dtype.

    Raises:
        UsageError: the runs have no such training.
    """
    records = [
        record
        for record in trainings(record for run in runs for record in run.records)
        if record.facts.workload == "sentiment_lstm" and record.facts.framework in _FRAMEWORKS
    ]
    if not records:
        raise UsageError(
            f"--{OPTION} shows trainings of sentiment_lstm in {' and '.join(_FRAMEWORKS)}, and "
            f"these runs have none; measure some: {_FULL} --fw-train epochs=20 "
            "--benchmark-json=run.json"
        )
    return [
        section
        for place, group in grouped(records, "device", "dtype").items()
        for section in _sections(place, group)
    ]


def _sections(place: str, records: Sequence[Measurement]) -> Iterator[Section]:
    known = [record for record in records if not is_contended(record.facts)]
    left_out = len(records) - len(known)
    ending = f" ({count(left_out, 'contended case')} left out)" if left_out else ""
    real = [record for record in known if not record.is_synthetic]
    rows = [
        Row([TableCell(text), TableCell(verdict), TableCell(f"{finding}{ending}")])
        for text, (verdict, finding) in (
            ("the first epoch takes 30 to 900 % longer", _first_epoch(real)),
            (f"losses oscillate after {_SMOOTH} epochs", _oscillation(real)),
        )
    ]
    columns = ("statement", "verdict", "today")
    yield Section(f"What became of the post of 2018: {place}", columns, rows, notes=[_NOTE])
    compared = [*_settings(known)]
    if compared:
        title = f"settings of the post of 2018: {place}"
        compared_columns = ("case", "setting", "time of an example", "ratio", "interval")
        yield Section(title, compared_columns, compared, notes=[_SETTINGS_NOTE])


def _first_epoch(records: Sequence[Measurement]) -> Finding:
    ratios = first_epochs(records)
    if not ratios:
        return Verdict.UNKNOWN, (
            "needs two or more whole epochs of a loop that is the first case of its process: "
            f"{_FULL} --fw-train epochs=3"
        )
    low, high = _FIRST
    inside = {low <= ratio <= high for ratio, _ in ratios}
    verdict = Verdict.UNKNOWN
    if len(inside) == 1:
        verdict = Verdict.HOLDS if inside.pop() else Verdict.FAILS
    (least, of_least), (most, of_most) = min(ratios), max(ratios)
    return verdict, f"{times(least)} ({of_least}) to {times(most)} ({of_most})"


def _oscillation(records: Sequence[Measurement]) -> Finding:
    """Judge that losses fall as long as the post says, and no longer."""
    curves = {
        f"{record.contestant} {record.facts.size}": equality.curve(record.facts)
        for record in records
        if has_whole_epochs(record)
    }
    long = {name: losses for name, losses in curves.items() if len(losses) >= _EPOCHS}
    if not long:
        return (
            Verdict.UNKNOWN,
            f"needs whole epochs, {_EPOCHS} of them: {_FULL} --fw-train epochs={_EPOCHS}",
        )
    rises = {name: _first_rise(losses) for name, losses in long.items()}
    after = {rise is not None and rise > _SMOOTH for rise in rises.values()}
    verdict = Verdict.UNKNOWN
    if len(after) == 1:
        verdict = Verdict.HOLDS if after.pop() else Verdict.FAILS
    return verdict, "; ".join(
        f"{name}: {'never' if rise is None else f'from epoch {rise} on'} of {len(long[name])}"
        for name, rise in rises.items()
    )


def _first_rise(losses: Sequence[float]) -> int | None:
    """The first epoch, from 1, whose loss is above that of the one before; None without any."""
    pairs = enumerate(itertools.pairwise(losses), 2)
    return next((epoch for epoch, (before, loss) in pairs if loss > before), None)


def _settings(records: Sequence[Measurement]) -> Iterator[Row]:
    """A row for each training of which another differs in one setting, which is off there."""
    for record, other in itertools.permutations(records, 2):
        here, there = _setting_of(record), _setting_of(other)
        (name, *more) = [key for key in here if here[key] != there[key]] or [""]
        if more or name not in _WITHOUT or there[name] != _WITHOUT[name]:
            continue
        values_s, others_s = _examples_s(record), _examples_s(other)
        few = min(len(values_s), len(others_s)) < FEW
        ratio = statistics.median(values_s) / statistics.median(others_s)
        off = blur([(record, other)])
        cells = (
            TableCell(f"{record.facts.framework} {record.facts.execution}"),
            TableCell(f"{name} {here[name]}, not {there[name]}"),
            seconds(statistics.median(values_s)),
            TableCell(times(ratio), ratio),
            TableCell("" if few else f"{times(ratio / off)} to {times(ratio * off)}"),
        )
        yield Row([*cells], {"workload": record.facts.workload})


def _setting_of(record: Measurement) -> Mapping[str, object]:
    """The settings of a training; the number of steps does not matter to an example."""
    facts, toggles = record.facts, record.facts.toggles or {}
    varied = {name: toggles.get(name, value) for name, value in _WITHOUT.items()}
    others = {name: value for name, value in record.requested.items() if name not in varied}
    what = {"case": (facts.framework, facts.execution, record.run, record.is_synthetic, others)}
    return what | varied | {"batch": facts.size}


def _examples_s(record: Measurement) -> list[float]:
    """The time of an example in each epoch, or launch."""
    examples = (record.facts.steps_per_epoch or 1) * record.facts.size
    return [value_s / examples for value_s in record.values_s]
