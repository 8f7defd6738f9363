"""The baseline of a project: sessions that somebody has chosen, and nothing else ever becomes."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from fwbench import project
from fwbench.errors import StorageError, UnreadableRun, UsageError
from fwbench.gate.samples import SampleSet, read, together
from fwbench.gate.stored import SESSIONS_AT_LEAST
from fwbench.records.measurement import Measurement
from fwbench.records.stored import files_of


class Baseline:
    """The baseline of a project."""

    def __init__(self, root: Path) -> None:
        self.folder = project.own_folder(root, "baseline")

    def run(self) -> SampleSet:
        """Its sessions as one run."""
        if not self.folder.is_dir():
            raise UsageError(
                f"there is no baseline under {self.folder.parent}; set one: fwbench baseline set "
                "FILE, with what --benchmark-json wrote; or name a run: --benchmark-compare FILE"
            )
        return read(self.folder)

    def set(self, files: Sequence[Path], *, anyway: bool = False) -> SampleSet:
        """Make sessions the baseline, in place of the one before.

        Args:
            files: what ``--benchmark-json`` wrote, a file a session, or folders of them.
        """
        sessions = [file for path in files for file in files_of(path)]
        run = together("baseline", [read(file) for file in sessions])
        if run.failures:
            raise UsageError(
                "a run that failed cannot become the baseline:\n  " + "\n  ".join(run.failures)
            )
        if not run.samples:
            raise UnreadableRun(f"{', '.join(map(str, files))}: there is no benchmark in it")
        if len({file.stem for file in sessions}) < len(sessions):
            raise UsageError("two of the files have one name; a baseline keeps them side by side")
        if not anyway and not any(map(_could_be_judged, run.samples.values())):
            raise UsageError(
                f"not one of {len(run.samples)} cases could be judged by this baseline: "
                f"{SESSIONS_AT_LEAST} sessions or more are needed, in which no other process took "
                "the processors; give their files together, or --anyway"
            )
        self._replace(sessions)
        return run

    def _replace(self, files: Sequence[Path]) -> None:
        new, old = self.folder.with_suffix(".new"), self.folder.with_suffix(".old")
        try:
            for leftover in (new, old):
                shutil.rmtree(leftover, ignore_errors=True)
            project.make_own_folder(new)
            for file in files:
                shutil.copyfile(file, new / file.with_suffix(".json").name)
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
            shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            raise StorageError(f"cannot keep the baseline: {error}") from error


def _could_be_judged(sample: Measurement) -> bool:
    """True if another run of a case could be compared with this one."""
    return len(sample.launches) >= SESSIONS_AT_LEAST and not sample.contended
