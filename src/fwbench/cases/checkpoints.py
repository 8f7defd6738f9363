"""Checkpoints of a training: weights and the optimiser's state, in files and back.

No framework waits for the disk, so what is timed ends in the page cache of the operating system;
the time of an ``fsync`` afterwards is recorded beside it. Whatever is restored goes into a learner
that was trained on something else, from files that were exchanged: nothing but them knows what.
"""

import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import learning, verify
from fwbench.cases.inputs import Change, digest
from fwbench.cases.training import FolderCase
from fwbench.cases.work import NO_TURNS, Turns, Work
from fwbench.errors import WrongTraining
from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.learner import Learner
from fwbench.records.facts import CaseFacts
from fwbench.workloads.objective import Batch
from fwbench.workloads.training import Saving

#: Losses after a restoration: of its weights, and of two updates by the optimiser's state.
_LOSSES = 3

#: How far apart both learners may be after these steps, in parts of the way, on a CPU; elsewhere
#: sums may have another order each time.
_APART, _APART_ELSEWHERE = 1e-4, 1e-2


class _Checkpoint(Work):
    """A learner that saves, another one that restores, and a folder between them."""

    def __init__(self, saving: Learner, restoring: Learner, parent: Path, *, saves: bool) -> None:
        self._saving, self._restoring = saving, restoring
        self._folder, self._other = parent / "now", parent / "other"
        self._folder.mkdir()
        job = saving.job
        self._batches = job.training.check_batches(job.batch, 3 + _LOSSES)
        self._save = partial(saving.save, self._folder)
        self._restore = partial(restoring.restore, self._folder)
        self.run = self._save if saves else self._restore
        self._train(saving, self._batches[:1])
        self._save()
        restoring.reset(exact=True)
        # Nobody saves or restores weights twice, and MXNet's first save undoes oneDNN's layout.
        learner = saving if saves else restoring
        self.before = partial(learner.step, *learner.place(self._batches[0]))

    def verify(self, result: Any) -> CaseFacts:
        """Each of two checkpoints restores its own weights, and the training goes on the same.

        Raises:
            WrongTraining: it does not.
        """
        verify.parameters(self._saving.parameters(), self._saving.job.training.parameters)
        return self._verified()

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        self._verify_last()
        facts = CaseFacts()
        for _ in turns(self._others):
            facts = self._verified()
        return facts

    def _verify_last(self) -> None:
        """The last call has saved, or restored, weights that a step has changed before it.

        What is verified otherwise follows on a reset, which timed calls never do.
        """
        with verify.within("in the last timed call"):
            if self.run is self._save:
                self._check_restored(_digests(self._saving))
            else:
                self._check_weights(self._written)

    def _others(self, seed: int) -> Change:
        batches = self._batches[:1]
        if seed:
            order = np.random.default_rng(seed).permutation(len(self._batches))
            batches = [self._batches[place] for place in order[:_LOSSES]]

        def switch() -> BoundCall:
            self._train(self._saving, batches)
            if self.run is not self._save:
                self._save()
            return self.run

        return switch

    def _verified(self) -> CaseFacts:
        first, second, third, *later = self._batches
        self._train(self._restoring, [third])
        earlier = self._saved([first])
        self._folder.rename(self._other)
        self._folder.mkdir()
        latest = self._saved([first, second])
        size_bytes = sum(path.stat().st_size for path in _files(self._folder))
        sync_s = _sync_s(self._folder)
        for weights in (earlier, latest):
            self._exchange()
            self._check_restored(weights)
        self._written = latest
        shutil.rmtree(self._other)
        begun = learning.copied(self._saving)
        expected, actual = (
            learner.losses([learner.step(*learner.place(batch)) for batch in later])
            for learner in (self._saving, self._restoring)
        )
        job = self._saving.job
        allowed = verify.loss_tolerances(job.training, expected.tolist(), job.verified_as)
        with verify.within("after a checkpoint was restored"):
            deviation, tolerance = verify.losses(
                actual, expected.tolist(), allowed, "the learner that was saved"
            )
            self._check_way(begun)
        return CaseFacts(
            parameters=job.training.parameters,
            checkpoint_bytes=size_bytes,
            checkpoint_sync_s=sync_s,
            max_loss_deviation=deviation,
            loss_tolerance=tolerance,
        )

    def _check_way(self, begun: Sequence[NDArray[Any]]) -> None:
        """The steps have moved both learners' weights alike: they had the same optimiser's state.

        Args:
            begun: the weights before.
        """
        way = learning.distance(self._saving.weights(), begun)
        apart = learning.distance(self._saving.weights(), self._restoring.weights())
        allowed = _APART if self._saving.job.device == "cpu" else _APART_ELSEWHERE
        if not apart <= allowed * way:
            raise WrongTraining(
                f"{_LOSSES} steps move the weights by {way:.3g}, and to a place {apart:.3g} away "
                "in the learner that was restored; save all of the optimiser's state, in its own "
                "precision"
            )

    def _saved(self, batches: Sequence[Batch]) -> list[int]:
        """Digests of the weights of a checkpoint after a training on these batches.

        Its files are those that are there when the call is over: what writes on writes elsewhere.
        """
        self._train(self._saving, batches)
        self._save()
        there = self._folder.with_name("there")
        shutil.copytree(self._folder, there)
        shutil.rmtree(self._folder)
        there.rename(self._folder)
        return _digests(self._saving)

    def _exchange(self) -> None:
        """Let each of both checkpoints take the place of the other."""
        aside = self._folder.with_name("aside")
        for source, target in (
            (self._folder, aside),
            (self._other, self._folder),
            (aside, self._other),
        ):
            source.rename(target)

    def _check_restored(self, expected: Sequence[int]) -> None:
        try:
            self._restore()
        except Exception as error:
            raise WrongTraining(
                "nothing can be restored from the files that were there when a checkpoint was "
                f"saved ({type(error).__name__}): write all of them within the call"
            ) from error
        self._check_weights(expected)

    def _check_weights(self, expected: Sequence[int]) -> None:
        if _digests(self._restoring) != expected:
            raise WrongTraining(
                "a restored checkpoint has other weights than were saved in its files; write all "
                "of them in each save, and read the files in each restore"
            )

    def _train(self, learner: Learner, batches: Sequence[Batch]) -> None:
        learner.reset(exact=True)
        for batch in batches:
            learner.step(*learner.place(batch))


def _digests(learner: Learner) -> list[int]:
    """Digests of its weights, of each array one."""
    return [digest(np.asarray(array)) for array in learner.weights()]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _sync_s(folder: Path) -> float:
    """Seconds until the files are on the disk, once they were written."""
    start_s = time.perf_counter()
    for path in _files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    return time.perf_counter() - start_s


class CheckpointCase(FolderCase):
    """The case of a checkpoint that is saved, or restored."""

    def bind(self) -> Work:
        """Two learners of the same training, one of which saves and the other restores."""
        saves = isinstance(self.cell.workload, Saving)
        return _Checkpoint(self.learner(), self.learner(), self._folder, saves=saves)
