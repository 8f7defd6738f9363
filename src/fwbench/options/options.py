"""Selection and settings from any source: values that have been parsed and checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fwbench import toggles
from fwbench.errors import UsageError
from fwbench.presets import Schedule

#: What the suite's own tests ask for: some operations of every family, as long as nobody asks for
#: tests in particular.
REPRESENTATIVES = "representatives"


@dataclass(frozen=True)
class Selection:
    """Which cells of the grid to measure. None stands for the default of each field.

    Attributes:
        frameworks: names; default: all that are installed.
        devices: ``cpu``, ``gpu:N``; default: the CPU and the first GPU of each model.
        executions: default: all but those that run on request only.
        dtypes: default: float32, or the operation's own.
        directions: default: forward; with ``--benchmark-disable`` forward and backward.
        sizes: a preset or sizes (numbers, and texts of shapes); default: quick, of representatives
            its smallest and largest; with ``--benchmark-disable`` each operation's smallest.
        families: names of families, ``all`` or ``representatives``; default: all that there are.
    """

    frameworks: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    executions: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    directions: tuple[str, ...] | None = None
    sizes: tuple[int | str, ...] | str | None = None
    families: tuple[str, ...] | None = None

    def over(self, other: Selection) -> Selection:
        """This selection, with the fields that it leaves open taken from another."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return replace(other, **chosen)


@dataclass(frozen=True)
class Options:
    """Options of a session.

    Attributes:
        asked: what the command line selects; it wins over markers.
        configured: what the ini file selects; markers win over it.
        threads: per framework.
        isolation: ``process`` or ``none``.
        timeout_s: per case, its bind, verification and warm-up included; of a training loop, per
            epoch.
        warmup_s: the longest warm-up of a case.
        precision: the width of the median's interval at which the rounds of a case end, as a share
            of the median; 0 for never. A marker may ask for another.
        epochs: of a training loop; None for the preset's.
        warmup_epochs: how many of them are not in the statistics; None for the preset's.
        repetitions: of a training loop; None for the preset's.
        steps: at most so many batches an epoch; None for the preset's.
        toggles: the values asked for, by toggle.
        profile: whether cases are profiled after they were timed.
        traces: where profiles write their traces; None for the project's own folder.
        memory: whether their memory is measured, each in a process of its own.
        data: a folder to look for data sets in first.
        record_host: whether records have the machine's name and absolute paths.
        tables: whether pytest-benchmark's tables have cases, too.
        launches: fresh processes for every case; None for one, in which cases keep their order.
        budget_s: how long launches may take together; None for as many as there are.
        race: whether to find out who is fastest at the same work.
        threshold: the smallest difference that matters to a race or a budget, as a share.
        seed: of the order of launches and cases; None for a new one each time.
        first_call: ``shared``, or ``fresh`` for a process of its own in the first launch.
        gate: the smallest changes to fail for, as shares, by what is judged; None for no gate.
        fail_on: the verdicts of the gate that fail the session.
        allow_different: the facts that may differ from the baseline's.
        engine: what starts the processes of a case that several do together.
        places: the file that says where; None for this machine.
        scaling: ``strong``: they share its size; ``weak``: each of them has it.
        threads_asked: whether the number of threads was given.
    """

    asked: Selection
    configured: Selection
    threads: int
    isolation: str
    timeout_s: float
    warmup_s: float
    precision: float
    epochs: int | None
    warmup_epochs: int | None
    repetitions: int | None
    steps: int | None
    toggles: toggles.Values
    profile: bool
    traces: Path | None
    memory: bool
    data: Path | None
    record_host: bool
    tables: bool
    launches: int | None
    budget_s: float | None
    race: bool
    threshold: float
    seed: int | None
    first_call: str
    gate: Mapping[str, float] | None
    fail_on: tuple[str, ...]
    allow_different: tuple[str, ...]
    engine: str = "local"
    places: Path | None = None
    scaling: str = "strong"
    threads_asked: bool = False

    @property
    def probing(self) -> str:
        """The option for which cases are run again, each in a process of its own; or nothing."""
        return "--fw-profile" if self.profile else "--fw-memory" if self.memory else ""

    @property
    def is_adaptive(self) -> bool:
        """True if results decide what is launched next."""
        return self.race or self.budget_s is not None

    def selection(self, marker: Selection) -> Selection:
        """Selection of a test with this marker."""
        return self.asked.over(marker.over(self.configured))

    def schedule(self, preset: Schedule) -> Schedule:
        """Schedule of a training: the requested one, or else the preset's.

        A number of epochs asks for whole ones, however few steps the preset has.

        Raises:
            UsageError: every epoch would be a warm-up epoch.
        """
        asked = {
            "epochs": self.epochs,
            "warmup_epochs": self.warmup_epochs,
            "repetitions": self.repetitions,
            "steps": self.steps,
        }
        if self.epochs is not None:
            preset = replace(preset, steps=None)
        schedule = replace(preset, **{n: v for n, v in asked.items() if v is not None})
        if schedule.warmup_epochs >= schedule.epochs:
            raise UsageError(
                f"of {schedule.epochs} epochs {schedule.warmup_epochs} are for warm-up, which "
                "leaves none to measure; give more --fw-epochs, fewer --fw-warmup-epochs"
            )
        return schedule
