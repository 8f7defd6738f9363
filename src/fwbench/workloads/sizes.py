"""The sizes that are asked for, as each workload has them: numbers, shapes, presets."""

from collections.abc import Collection, Iterator, Mapping

from fwbench.errors import UsageError, some
from fwbench.terms.presets import PRESETS, Size
from fwbench.workloads.workload import Workload

#: What ``--fw-size`` gives: the name of a preset, or numbers and the texts of shapes; None for
#: what is measured by default.
SizeRequest = tuple[int | str, ...] | str | None

#: Number of workloads that a message names; the others are counted.
_NAMED = 3


def sizes(workload: Workload, requested: SizeRequest) -> tuple[Size, ...]:
    """The sizes of a workload that are asked for, as far as it has them; by default ``quick``."""
    if isinstance(requested, tuple):
        read = map(workload.size_of, requested)
        return tuple(size for size in read if size is not None)
    return workload.by_preset.preset(requested or "quick")


def lacked(workload: Workload, requested: SizeRequest) -> Iterator[tuple[str, str]]:
    """Requested sizes that the workload does not have: as they were written, and the reason."""
    if isinstance(requested, tuple):
        for size in requested:
            if workload.size_of(size) is None:
                yield str(size), f"sizes of {workload.name} are {_written(workload)}"
    elif requested is not None and not workload.by_preset.preset(requested):
        yield (
            requested,
            f"{workload.name} is not in the preset {requested}; it has {_presets([workload])}",
        )


def refuse(missing: Mapping[str, Collection[Workload]], there: Collection[str]) -> None:
    """Refuse what is asked for if nothing has it.

    Args:
        missing: the workloads that do not have a size or a preset, by its text.
        there: the texts of the sizes that are measured.

    Raises:
        UsageError: there is such a size; the message says what sizes there are.
    """
    for size, workloads in missing.items():
        if size in PRESETS and not there:
            raise UsageError(
                f"{_some(workloads)}: not in the preset {size!r}; give one of those that there "
                f"are: {_presets(workloads)}"
            )
        if size not in PRESETS and size not in there:
            raise UsageError(
                f"nothing that is selected has the size {size!r}: {_all_written(workloads)}"
            )


def _written(workload: Workload) -> str:
    """Format of its sizes, with examples."""
    examples = ", ".join(map(str, workload.by_preset.quick))
    if workload.form is None:
        return f"whole numbers, such as {examples}"
    return f"shapes written {workload.form.template}, such as {examples}"


def _all_written(workloads: Collection[Workload]) -> str:
    """Formats of their sizes, each once, with the examples of the first one."""
    by_form: dict[str, list[Workload]] = {}
    for workload in workloads:
        form = "" if workload.form is None else workload.form.template
        by_form.setdefault(form, []).append(workload)
    parts = (f"sizes of {_some(group)} are {_written(group[0])}" for group in by_form.values())
    return "; ".join(parts)


def _presets(workloads: Collection[Workload]) -> str:
    return ", ".join(
        name for name in PRESETS if any(workload.by_preset.preset(name) for workload in workloads)
    )


def _some(workloads: Collection[Workload]) -> str:
    return some([workload.name for workload in workloads], _NAMED)
