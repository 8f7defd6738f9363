"""Everything that fwbench raises, one tree.

::

    FwbenchError
     ├─ UsageError               a request for something that is not there (pytest exits with 4)
     │   ├─ UnreadableRun        ... a file that is damaged, or not a file of results
     │   ├─ DifferentSettings    ... two runs that differ in more than what is compared
     │   ├─ NothingToResume      ... no interrupted session has a record that is to be measured
     │   └─ NetworkUnavailable   ... a network between replicas that this machine cannot make
     ├─ DeclarationError         a workload or a framework is declared wrongly
     ├─ FrameworkUnavailable     a framework that cannot be used here
     │   ├─ FrameworkMissing     ... because a package is not installed
     │   └─ FrameworkBroken      ... because it is installed and does not work
     ├─ VerificationError        the work is not the requested work
     │   ├─ WrongResult          ... its result differs from the NumPy reference
     │   ├─ WrongGradient        ... its gradient differs from the central difference
     │   ├─ NotACopy             ... its result still shares memory with its source
     │   ├─ UnreadableResult     ... its result cannot be read back
     │   ├─ UnfinishedWork       ... its calls return earlier, and nothing waits for it
     │   ├─ SkippedWork          ... its calls take longer once their inputs have changed
     │   ├─ ImpossibleRate       ... it is faster than the machine can be
     │   ├─ TooLargeToVerify     ... it does not fit into memory beside its reference
     │   └─ WrongTraining        ... its first losses differ from the float64 reference
     ├─ ClaimFailed              a claim about times in a test is false; an AssertionError, too
     ├─ CannotTell               ... or is neither shown nor refuted: the test is skipped
     ├─ NotOnDevice              a device has no kernel for a case: the case is skipped
     ├─ ProbeError               a case cannot be profiled, or its memory cannot be measured
     ├─ ExportError              a network cannot be exported, or not run where it was exported to
     ├─ ConformanceError         an adapter breaks a promise of the Framework contract
     ├─ Diverged                 a loss became infinite or NaN
     ├─ IsolationError           the process boundary
     │   ├─ WorkerDied           ... the worker ended, was ended, or did not answer
     │   └─ GangFailed           ... processes that do a case together could not, or no longer
     ├─ ComparisonError          a launch of an A/B comparison could not be measured
     ├─ SuiteError               a suite of fwbench's own could not be measured
     ├─ InstallationError        a named environment could not be made or removed
     ├─ DataError                a data file is missing, cut off or not what it should be
     └─ StorageError             a file could not be written or read

Every message says what was asked, what was found, and what to do.
"""

import difflib
from collections.abc import Iterable, Sequence

#: Known names that an error lists.
_NAMED = 40


class FwbenchError(Exception):
    """Base of every error that fwbench raises on purpose."""


class UsageError(FwbenchError):
    """The command line, a setting or a marker asks for something that is not there."""


class UnreadableRun(UsageError):
    """A file of results cannot be read, is cut off, or is not one."""


class DifferentSettings(UsageError):
    """Two runs differ in something that is not what is compared."""


class NothingToResume(UsageError):
    """No session was interrupted that has a record of a test that is to be measured."""


class NetworkUnavailable(UsageError):
    """A network between replicas that cannot be made on this machine."""


class DeclarationError(FwbenchError):
    """A workload or a framework is declared in a way that cannot work."""


class FrameworkUnavailable(FwbenchError):
    """A framework cannot be used in this environment.

    Args:
        reason: what was found, for the header and for ``fwbench doctor``.
        remedy: what to do about it; empty where nothing can be done.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


class FrameworkMissing(FrameworkUnavailable):
    """A package that the framework needs is not installed."""


class FrameworkBroken(FrameworkUnavailable):
    """The framework is installed, and importing or starting it fails."""


class VerificationError(FwbenchError):
    """The work that a framework did is not the requested work."""

    #: Whether the message says it all, without a clause on what was verified.
    is_whole = False


class WrongResult(VerificationError):
    """A result differs from the NumPy reference by more than the tolerance of its dtype."""


class WrongGradient(VerificationError):
    """A gradient differs from the central difference by more than its dtype's tolerance."""


class NotACopy(VerificationError):
    """Changing the source of a created array changed the array."""


class UnreadableResult(VerificationError):
    """A result is not an array, or reading its values fails."""


class UnfinishedWork(VerificationError):
    """A call was over, for the clock, before its result was computed."""


class SkippedWork(VerificationError):
    """Calls take longer where their inputs have changed: what was timed was less work."""


class ImpossibleRate(VerificationError):
    """Work took less time than the machine needs for it at the very least."""


class TooLargeToVerify(VerificationError):
    """Verifying a case takes more memory than is free."""


class WrongTraining(VerificationError):
    """A training has other parameters or other first losses than its float64 reference."""


class ClaimFailed(FwbenchError, AssertionError):
    """A claim about the time of a function is false, by evidence."""


class CannotTell(FwbenchError):
    """A claim about the time of a function was neither shown nor refuted in the time it had."""


class NotOnDevice(FwbenchError):
    """A framework cannot compute a case on its device: a gap, and no failure."""


class ProbeError(FwbenchError):
    """A probe cannot find out what it is for: a gap in the record, and no failure."""


class ExportError(FwbenchError):
    """A network cannot be exported from a framework, or not run by another one."""


class ConformanceError(FwbenchError):
    """A framework's adapter breaks a promise of :class:`~fwbench.frameworks.contract.Framework`."""


class Diverged(FwbenchError):
    """A loss became infinite or NaN while a training was measured."""


class IsolationError(FwbenchError):
    """Something went wrong between the parent and a worker process."""


class WorkerDied(IsolationError):
    """A worker process ended, was ended, or did not answer in time.

    Args:
        output: the last lines that it wrote, ready to follow.
    """

    def __init__(self, how: str, output: str = "") -> None:
        super().__init__(how, output)
        self.how = how
        self.output = output

    def __str__(self) -> str:
        return f"{self.how}{self.output}"


class GangFailed(IsolationError):
    """Processes that do a case together could not be started, or one of them failed the others."""


class ComparisonError(FwbenchError):
    """A launch of an A/B comparison could not be measured."""


class SuiteError(FwbenchError):
    """A suite of fwbench's own could not be measured."""


class InstallationError(FwbenchError):
    """A named environment could not be made or removed."""


class DataError(FwbenchError):
    """A data file is missing, cut off or not what it should be."""


class StorageError(FwbenchError):
    """A record, a journal or a run could not be written or read."""


def unknown(kind: str, name: str, known: Iterable[str], meant: str = "") -> UsageError:
    """An error for a name that is not known: it lists the known ones and suggests the near miss.

    Args:
        kind: what the name names, in the singular: ``"framework"``.
        known: the names that would have been understood, in the order to show them: a few dozen.
        meant: the one that is suggested, if it is known and not merely similar.
    """
    names = list(dict.fromkeys(known))
    close = [meant] if meant in names else difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return UsageError(f"unknown {kind} {name!r}; known: {some(names, _NAMED) or 'none'}.{hint}")


def some(names: Sequence[str], most: int = 3, separator: str = ", ") -> str:
    """The first of several names, and how many more there are: ``a, b and 7 more``."""
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return " and ".join([separator.join(names[:most]), *more])
