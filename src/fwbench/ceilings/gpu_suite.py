"""Suite of ``fwbench doctor --gpu``, and the assumptions that its records are held against.

What fwbench takes for granted of a GPU, tried on this one in some minutes. Without a GPU the same
cases run on the CPU, and what needs one is not tried.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import pytest

from fwbench import Case
from fwbench.frameworks.gpus import CUPTI, EVENTS
from fwbench.measure import nvml
from fwbench.measure.device_time import SLOPE
from fwbench.measure.limits import of_link
from fwbench.measure.nvml import Gpu
from fwbench.processes import session
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import group_by
from fwbench.records.stored import StoredRun, from_json
from fwbench.records.units import amount, count, four_digits, time
from fwbench.workloads import COPIES, WORKLOADS, gemm

_ARGUMENTS = (
    *("--fw-timeout=120", "--fw-revisit=0", "--fw-launches=1", "--benchmark-max-time=0.2", "-v"),
    *("--fw-toggle=pinned=off,on", "--fw-toggle=l2=hot,cold"),
)

_LARGE, _IN_CACHE = 10_000_000, 1_000_000


@pytest.mark.fwbench(gemm, sizes=(1_024,), dtypes=("float32", "bfloat16"))
def test_product(case: Case) -> None:
    """Precision, clock and place of products."""
    case.measure()


@pytest.mark.fwbench(gemm, sizes=(1_024,), frameworks="torch", executions="cuda_graph")
def test_capture(case: Case) -> None:
    """The memory that captures keep."""
    case.measure()


@pytest.mark.fwbench(WORKLOADS["relu"], sizes=(_IN_CACHE, _LARGE), dtypes=("float32",))
def test_short_kernel(case: Case) -> None:
    """The device's own clock, and its cache."""
    case.measure()


@pytest.mark.fwbench(*COPIES, sizes=(2**24,), dtypes=("float32",))
def test_copy(case: Case) -> None:
    """The link to the host."""
    case.measure()


#: What was seen, and whether it is as expected; None where it cannot be told, or was not tried.
Seen = tuple[str, bool | None] | None


@dataclass(frozen=True)
class Assumption:
    """An assumption of fwbench's about GPUs.

    Attributes:
        expected: what must be so.
        otherwise: what it means for figures if it is not.
        look: at the facts of the cases, and at the GPU as NVML knows it.
        needs: pattern in the node ids of cases without which it cannot be told: those fail where it
            is not so, and have no facts to look at then.
    """

    expected: str
    otherwise: str
    look: Callable[[Sequence[CaseFacts], Gpu | None], Seen]
    needs: str | None = None

    def seen(self, cases: Sequence[CaseFacts], failed: Sequence[str], gpu: Gpu | None) -> Seen:
        """Look at the facts of cases, and at the node ids of those that failed."""
        pattern = self.needs
        missing = [nodeid for nodeid in failed if pattern and re.search(pattern, nodeid)]
        if missing:  # it may be for any other reason
            return f"cannot be told: no number of {', '.join(missing)}", None
        return self.look(cases, gpu)


@dataclass(frozen=True)
class TriedAssumption:
    """An assumption with what was seen; ``holds`` is None where it could not be tried."""

    expected: str
    seen: str
    holds: bool | None
    otherwise: str


_ANSWERS_WITHIN_S = 1e-4
_LEFT_AT_MOST_BYTES = 64 * 2**20
_FLOAT32_BITS = 20
_SUSTAINED = 0.75
_COLDER, _APART, _APART_S = 1.1, 0.1, 3e-6


def _answers(_cases: Sequence[CaseFacts], gpu: Gpu | None) -> Seen:
    if gpu is None or gpu.sm_clock_hz() is None:
        return None
    times_s = []
    for _ in range(20):
        start_s = perf_counter()
        gpu.sm_clock_hz()
        times_s.append(perf_counter() - start_s)
    return time(median(times_s)), median(times_s) <= _ANSWERS_WITHIN_S


def _sustains(cases: Sequence[CaseFacts], gpu: Gpu | None) -> Seen:
    default_hz = gpu.default_sm_clock_hz if gpu else None
    clocks_hz = [facts.sm_clock_hz for facts in cases if facts.sm_clock_hz]
    if not default_hz or not clocks_hz:
        return None
    share = min(clocks_hz) / default_hz
    return f"{share:.0%}", share >= _SUSTAINED


def _settles(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    known = [facts.steady for facts in cases if facts.device != "cpu" and facts.steady is not None]
    return (f"{sum(known)} of {count(len(known), 'case')}", all(known)) if known else None


def _times_itself(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    timed = [facts for facts in cases if facts.device_clock]
    seen = {
        f"{facts.framework} {facts.device_clock}"
        + (f" ({facts.slope_reason})" if facts.slope_reason else "")
        for facts in timed
    }
    by_slope = any(facts.device_clock == SLOPE for facts in timed)
    return (", ".join(sorted(seen)), not by_slope) if timed else None


def _agree(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    """Both clocks time the same calls of PyTorch's."""
    large = [facts for facts in cases if facts.size == _LARGE and not _is_cold(facts)]
    told = [facts.on_device_s for facts in large]
    pairs = [(by[EVENTS], by[CUPTI]) for by in told if {EVENTS, CUPTI} <= by.keys()]
    if not pairs:
        return None
    events_s, cupti_s = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    near = abs(events_s - cupti_s) <= _APART_S + _APART * cupti_s
    return f"{time(events_s)} and {time(cupti_s)}", near


def _alike(
    cases: Sequence[CaseFacts], key: Callable[[CaseFacts], Hashable]
) -> Iterable[Sequence[CaseFacts]]:
    return group_by(cases, key).values()


def _is_cold(facts: CaseFacts) -> bool:
    return (facts.toggles or {}).get("l2") == "cold"


def _flushes(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    kernels = [facts for facts in cases if facts.size == _IN_CACHE and facts.device_s]
    ratios = []
    for same in _alike(kernels, lambda f: (f.framework, f.execution, f.device_clock)):
        cold = [facts.device_s or 0.0 for facts in same if _is_cold(facts)]
        hot = [facts.device_s or 0.0 for facts in same if not _is_cold(facts)]
        ratios += [min(cold) / min(hot)] if cold and hot else []
    return (f"{min(ratios):.2f} times as long", min(ratios) >= _COLDER) if ratios else None


def _releases(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    left = [
        facts.device_memory_left_bytes
        for facts in cases
        if facts.execution == "cuda_graph" and facts.device_memory_left_bytes is not None
    ]
    return (amount(max(left)), max(left) <= _LEFT_AT_MOST_BYTES) if left else None


def _copies(cases: Sequence[CaseFacts], gpu: Gpu | None) -> Seen:
    rates = [
        facts.bytes / facts.completion_s
        for facts in cases
        if facts.workload in {copy.name for copy in COPIES} and facts.bytes and facts.completion_s
    ]
    limit = of_link(gpu.link_generation).bytes_per_s if gpu else None
    if not rates or not limit:
        return None
    seen = f"{four_digits(max(rates) / 1e9)} of {four_digits(limit / 1e9)} GB/s"
    return seen, max(rates) <= limit


def _is_float32(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    products = [facts for facts in cases if facts.workload == gemm.name]
    bits = [f.precision_bits for f in products if f.dtype == "float32" and f.precision_bits]
    return (f"{min(bits):.0f} bits", min(bits) >= _FLOAT32_BITS) if bits else None


def _has_narrow_kernels(cases: Sequence[CaseFacts], _gpu: Gpu | None) -> Seen:
    ratios = {}
    for framework in {facts.framework for facts in cases}:
        by_dtype = {
            facts.dtype: facts.device_s
            for facts in cases
            if facts.framework == framework and facts.workload == gemm.name and facts.device_s
        }
        wide_s, narrow_s = by_dtype.get("float32"), by_dtype.get("bfloat16")
        if wide_s and narrow_s:
            ratios[framework] = wide_s / narrow_s
    seen = ", ".join(f"{name} {ratio:.1f}x" for name, ratio in sorted(ratios.items()))
    return (seen, min(ratios.values()) > 1) if ratios else None


ASSUMPTIONS = (
    Assumption(f"NVML answers within {time(_ANSWERS_WITHIN_S)}", "looks disturb rounds", _answers),
    Assumption("clocks settle in the warm-up", "the first rounds are slower", _settles),
    Assumption(
        f"clocks stay above {_SUSTAINED:.0%} of the default",
        "times are of a GPU that is throttled or shared",
        _sustains,
    ),
    Assumption("the device's own clock is read", "device_s has launches in it", _times_itself),
    Assumption(
        "events and CUPTI agree on long kernels", "device_s is wrong by one of them", _agree
    ),
    Assumption("a cold cache is cold", "l2=cold measures a warm one", _flushes),
    Assumption(
        f"captures leave at most {amount(_LEFT_AT_MOST_BYTES)}",
        "later cases have less memory than they should",
        _releases,
    ),
    Assumption(
        "copies are within what the link carries", "nothing was copied", _copies, r"::test_copy\["
    ),
    Assumption(
        "products of float32 are in float32",
        "TF32 has slipped in",
        _is_float32,
        r"::test_product\[.*-float32-",
    ),
    Assumption(
        "products of bfloat16 are faster than those of float32",
        "kernels for narrow dtypes are not used",
        _has_narrow_kernels,
    ),
)


def measure(
    threads: int, device: str, uuid: str = "", watching: session.Watching = nullcontext
) -> list[TriedAssumption]:
    """Try every assumption on a device: ``gpu:0``, or ``cpu`` as far as that goes."""
    arguments = [*_ARGUMENTS, f"--fw-threads={threads}", f"--fw-device={device}"]
    results = session.measure_suite(
        "fwbench.ceilings.gpu_suite", arguments, watching, all_must_pass=False
    )
    return judged(from_json("doctor", results), nvml.gpu(device, uuid))


#: Why a case that could have a number has none.
_NO_NUMBER = ("failed", "not reached")


def judged(run: StoredRun, gpu: Gpu | None) -> list[TriedAssumption]:
    """Every assumption with what was seen; that cases are verified on their device comes first."""
    cases = [record.facts for record in run.records]
    failed = [case.nodeid for case in run.session.missing or () if case.why in _NO_NUMBER]
    seen = f"{len(cases)} of {count(len(cases) + len(failed), 'case')}"
    if failed:
        seen += f"; not {', '.join(failed)}"
    outcomes = [
        TriedAssumption(
            "results are right, and on the device",
            seen,
            not failed if cases or failed else None,
            "cases have no number",
        )
    ]
    for assumed in ASSUMPTIONS:
        found = assumed.seen(cases, failed, gpu)
        seen, holds = found or ("not tried here", None)
        outcomes.append(TriedAssumption(assumed.expected, seen, holds, assumed.otherwise))
    return outcomes
