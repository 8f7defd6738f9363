"""The condition of measured cases: contended, drifting, spinning, early, in fewer bits."""

import math
import statistics
from collections.abc import Sequence
from functools import partial

from fwbench.cases import precision
from fwbench.measure.condition import CONTENDED, DRIFTING, is_slow
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, mebibytes
from fwbench.terms.replicas import LOOPBACK

Cases = Sequence[CaseFacts]

#: Where OpenMP's threads wait asleep; see the OpenMP specification 5.2, section 21.7.
_PASSIVE = "OMP_WAIT_POLICY=PASSIVE"

#: What a framework may rightly keep of a GPU from case to case. PyTorch's workspaces of cuBLAS are
#: 32 MiB for each stream on Hopper (its CUDA semantics, "cuBLAS workspaces"); twice that for two.
_KEPT_BYTES = 2 * 32 * 2**20


#: Calls returned early from this ratio of completion to dispatch on.
_APART = 2.0

#: The shortest time that a clock shows: a dispatch of 0 took less.
_LEAST_S = 1e-9


def condition_of(facts: CaseFacts) -> str:
    """Clean, drifting or contended; empty where that is not known.

    Launches are recorded as contended as a whole, whatever the condition of the middle one.
    """
    return facts.condition or (CONTENDED if facts.contended else "")


def is_contended(facts: CaseFacts) -> bool:
    """True if a case had to share its processors, so that its time is an upper bound."""
    return condition_of(facts) == CONTENDED


def is_exchange(facts: CaseFacts) -> bool:
    """True if replicas only exchanged arrays."""
    return facts.gang is not None and facts.direction != "train"


def is_over_memory(facts: CaseFacts) -> bool:
    """True if replicas exchanged arrays over loopback, so that times cannot be compared.

    They wait for processors and not for bytes: the same exchange took 0.5 ms in one minute and 2.6
    ms in another.
    """
    return facts.gang is not None and is_exchange(facts) and facts.gang.network == LOOPBACK


def is_after_leak(facts: CaseFacts) -> bool:
    """True if earlier cases of its process held memory of its GPU that they should not have."""
    return (facts.device_memory_left_bytes or 0) > _KEPT_BYTES


def reduced_bits(facts: CaseFacts) -> int | None:
    """The bits of mantissa that a case was computed in; None for its dtype's own, or if unknown."""
    return facts.precision_bits if precision.is_reduced(facts) else None


def full_bits(facts: CaseFacts) -> int | None:
    """The bits of mantissa of the case's dtype; None for one that is not known."""
    return precision.of_dtype(facts.dtype)


def early(facts: CaseFacts) -> tuple[float, float] | None:
    """Seconds until calls returned, above 0, and until their work was done.

    Returns:
        None where a call took at least half the time that its work took, or this is not known.
    """
    done_s, returned_s = facts.completion_s, facts.dispatch_s
    if done_s is None or returned_s is None or done_s <= _APART * returned_s:
        return None
    return max(returned_s, _LEAST_S), done_s


def marks(facts: CaseFacts) -> str:
    """The doubts about a case, for beside its number: ``drifting +34 %``; often empty."""
    state, bits = condition_of(facts), reduced_bits(facts)
    doubts = []
    if state == DRIFTING:
        doubts.append(f"drifting {100 * (facts.drift or 0.0):+.0f} %")
    elif state == CONTENDED:
        doubts.append(CONTENDED)
    if facts.spinning:
        doubts.append("spinning")
    if is_after_leak(facts):
        doubts.append("after a leak")
    if bits is not None:
        doubts.append(f"{bits} of {full_bits(facts)} bits")
    return ", ".join(doubts)


def marked(name: str, facts: CaseFacts) -> str:
    """A name with the marks of its case in brackets."""
    doubts = marks(facts)
    return f"{name} ({doubts})" if doubts else name


def notes(cases: Sequence[CaseFacts], cpus: int | None) -> list[str]:
    """A line for each doubt about measured cases, to be read before any number; often none."""
    lines = []
    for is_doubted, line in (
        (lambda facts: is_contended(facts) and not is_slow(facts), partial(_contended, cpus=cpus)),
        (is_slow, _slow),
        (lambda facts: condition_of(facts) == DRIFTING, _drifting),
        (lambda facts: facts.spinning, _spinning),
        (is_after_leak, _after_leaks),
        (lambda facts: reduced_bits(facts) is not None, _reduced),
        (lambda facts: facts.resumed_from is not None, _resumed),
    ):
        doubted = [facts for facts in cases if is_doubted(facts)]
        if doubted:
            lines.append(line(cases, doubted))
    return lines


def _contended(cases: Cases, contended: Cases, cpus: int | None) -> str:
    others = [facts.others_cpus for facts in contended if facts.others_cpus is not None]
    used = f"{statistics.median(others):.1f}" if others else "some"
    of_all = f"of {count(cpus, 'CPU')}" if cpus else "CPUs"
    return (
        f"other processes used {used} {of_all} during {_some(contended, cases)} (contended): "
        f"{_upper_bounds(contended)}; measure again on an idle machine"
    )


def _slow(cases: Cases, slow: Cases) -> str:
    return (
        f"CPUs were slower than at full speed during {_some(slow, cases)} (contended), as where "
        f"another guest of the machine uses the other half of a core: {_upper_bounds(slow)}; "
        "measure again later"
    )


def _upper_bounds(cases: Cases) -> str:
    return "its time is an upper bound" if len(cases) == 1 else "their times are upper bounds"


def _drifting(cases: Cases, drifting: Cases) -> str:
    most = max(drifting, key=lambda facts: abs(math.log1p(facts.drift or 0.0)))
    return (
        f"{_some(drifting, cases)} changed while being measured (drifting), most of all "
        f"{_name(most)}: {100 * (most.drift or 0.0):+.0f} % from first rounds to last"
    )


def _spinning(cases: Cases, spinning: Cases) -> str:
    return (
        f"{_some(spinning, cases)} ({_frameworks(spinning)}) kept processors busy with waiting "
        f"(spinning); if OpenMP's threads did, set {_PASSIVE} or measure on an idle machine"
    )


def _resumed(cases: Cases, resumed: Cases) -> str:
    began = " and ".join(sorted({f"{facts.resumed_from:.16}" for facts in resumed}))
    return (
        f"{_some(resumed, cases)} were measured, in part at least, by an interrupted session of "
        f"{began} UTC (--fw-resume): the machine may have been faster or slower then"
    )


def _reduced(cases: Cases, reduced: Cases) -> str:
    return (
        f"{_some(reduced, cases)} ({_frameworks(reduced)}), computed in fewer bits than the dtype "
        "has: ranked apart"
    )


def _after_leaks(cases: Cases, after: Cases) -> str:
    most_bytes = max(facts.device_memory_left_bytes or 0 for facts in after)
    return (
        f"{_some(after, cases)} ({_frameworks(after)}) began while earlier cases held up to "
        f"{mebibytes(most_bytes)} of their GPU (leak): less was free for them; "
        f"{_name(after[0])} was the first of them"
    )


def _some(part: Cases, cases: Cases) -> str:
    return f"{len(part)} of {count(len(cases), 'case')}"


def _frameworks(cases: Cases) -> str:
    return ", ".join(dict.fromkeys(facts.framework for facts in cases))


def _name(facts: CaseFacts) -> str:
    size = facts.shape or facts.size
    work = (facts.workload, facts.framework, facts.execution, facts.direction, size)
    return " ".join(map(str, work))
