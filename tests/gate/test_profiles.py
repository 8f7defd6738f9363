"""Profiles of both sides: what they differ by is named, the largest first, and adds up."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fwbench.frameworks.probes import UNTIL_VARIABLE
from fwbench.frameworks.profiler import COMPILATION, DATA_MOVEMENT
from fwbench.gate.explanation import Cause, CauseKind
from fwbench.gate.profiles import measure_profiles, profile_causes
from fwbench.gate.sides import Installed
from fwbench.processes import session
from fwbench.processes.command import Finished
from fwbench.records.facts import CaseFacts, Profile, ProfiledOperator
from fwbench.records.measurement import Measurement
from fwbench.turns.referee import Referee
from fwbench.workers.environments import Environments
from support.launched_runs import entry, output, sample
from support.projects import Project
from support.real_training import all_of, if_installed
from support.tables import tabled

_US = 1e-6

#: Classes of the operators that these tests have.
_CLASSES = {
    **dict.fromkeys(("copy_", "transpose", "Transpose"), DATA_MOVEMENT),
    **dict.fromkeys(("compilations", "graph breaks"), COMPILATION),
    **dict.fromkeys(("mm", "_MklMatMul"), "matmul"),
}


def side(
    *operators: tuple[Any, ...], between_us: float = 5.0, cost_us: float = 0.0, rest_us: float = 0.0
) -> Measurement:
    """A profiled case.

    Args:
        operators: name, microseconds in a call, calls, and the standard error of the time.
        between_us: between operators.
        cost_us: what the profiler adds to each call of an operator.
        rest_us: of operators that are not recorded.
    """
    recorded = [
        ProfiledOperator(
            name=name,
            operator_class=_CLASSES.get(name, "fused"),
            time_s=(time_us + cost_us * calls * (_CLASSES.get(name) != COMPILATION)) * _US,
            calls=calls,
            error_s=(error[0] if error else 0.01) * _US,
        )
        for name, time_us, calls, *error in operators
    ]
    operators_s = sum(operator.time_s for operator in recorded) + rest_us * _US
    true_s = (between_us + rest_us + sum(operator[1] for operator in operators)) * _US
    call_s = operators_s + between_us * _US
    profile = Profile(calls=100, call_s=call_s, operators_s=operators_s, operators=recorded)
    return sample(completion_s=true_s, profile=profile)


def shown(causes: Sequence[Cause]) -> list[tuple[str, str, float | None]]:
    """CauseKind, text and microseconds of each cause."""
    return [
        (cause.kind.value, cause.text, cause.time_s and round(cause.time_s / _US, 3))
        for cause in causes
    ]


@tabled
def test_causes_are_named_and_the_largest_is_first(
    base: Sequence[Any], contender: Sequence[Any], causes: Sequence[Any]
) -> None:
    found, gaps = profile_causes(side(*base), side(*contender))
    assert gaps == []
    assert shown(found)[: len(causes)] == list(causes)


def test_what_a_profiler_costs_is_no_ones_time() -> None:
    """More operators are not slower by that, and all causes together are what is timed."""
    base = side(("add", 2.0, 4), cost_us=1.0, rest_us=3.0)
    contender = side(("add", 3.0, 6), cost_us=1.0, rest_us=3.5)
    causes, _ = profile_causes(base, contender)
    assert shown(causes)[0][1:] == ("add: 2 -> 3 us, 4 -> 6 calls", 1.0)
    difference_s = (contender.facts.call_s or 0.0) - (base.facts.call_s or 0.0)
    assert sum(cause.time_s or 0.0 for cause in causes) == pytest.approx(difference_s)


@pytest.mark.parametrize(
    ("takes_us", "added_us", "left_us"),
    [(10.0, 1.0, 9.0), (10.0, 15.0, 8.5), (40.0, 30.0, 28.0)],
    ids=["the profiler", "more than it has", "more than a profiler takes"],
)
def test_no_operator_loses_all_that_it_has(
    takes_us: float, added_us: float, left_us: float
) -> None:
    """It is called once and twice in calls of 100 us, longer than timed ones by so much each."""
    sides = []
    for calls in (1, 2):
        known = side(("mm", takes_us * calls, calls), between_us=100.0 - takes_us * calls)
        timed = CaseFacts(completion_s=(100.0 - added_us * calls) * _US)
        sides.append(replace(known, facts=known.facts | timed))
    causes, _ = profile_causes(*sides)
    (product,) = [cause for cause in causes if cause.text.startswith("mm: ")]
    assert product.sides_s == pytest.approx([left_us * _US, 2 * left_us * _US])


def _under_profiler(takes_us: float, added_us: float, **facts: Any) -> Measurement:
    """A case that calls one operator once in 100 us, which is longer than when it was timed."""
    known = side(("mm", takes_us, 1), between_us=100.0 - takes_us)
    timed = CaseFacts(completion_s=(100.0 - added_us) * _US, **facts)
    return replace(known, facts=known.facts | timed)


def _product(*sides: Measurement) -> Cause:
    (product,) = [cause for cause in profile_causes(*sides)[0] if cause.text.startswith("mm: ")]
    return product


@pytest.mark.parametrize(("before_us", "after_us"), [(4.0, 6.0), (4.4, 5.6), (6.0, 8.0)])
def test_what_a_profiler_costs_makes_no_difference(before_us: float, after_us: float) -> None:
    """Also where one side alone has more of it than the operator takes."""
    product = _product(_under_profiler(before_us, 5.0), _under_profiler(after_us, 5.0))
    assert product.time_s == pytest.approx((after_us - before_us) * _US, rel=0.1)


def test_on_a_gpu_operators_are_free_of_the_profilers_cost() -> None:
    sides = [_under_profiler(takes_us, 5.0, device="gpu") for takes_us in (10.0, 20.0)]
    assert _product(*sides).sides_s == pytest.approx([10 * _US, 20 * _US])


def test_many_operators_are_few_lines() -> None:
    """The largest have their own; the others are not lost."""
    base = side(*((f"op{n}", 10.0, 1) for n in range(20)))
    contender = side(*((f"op{n}", 11.0 + n, 1) for n in range(20)))
    causes, _ = profile_causes(base, contender)
    assert len(causes) == 8
    assert causes[0].text == "op19: 10 -> 30 us"
    assert sum(cause.time_s or 0.0 for cause in causes) == pytest.approx(210 * _US)


def test_a_difference_that_is_little_of_the_call_has_no_line() -> None:
    """Two processes differ by as much for no reason; what is left unnamed is told."""
    base, contender = (side(("relu", us, 1), ("mm", 27.0, 1)) for us in (0.72, 0.79))
    causes, _ = profile_causes(base, contender)
    texts = [cause.text for cause in causes]
    assert "no operator differs by more than 328 ns" in texts, texts


def test_events_that_one_side_has_more_of() -> None:
    """Beyond what the same code may differ by; what the kernel does not count is a gap."""
    numbers = (
        {"page_faults": 0.0, "instructions": 1e6},
        {"page_faults": 25.0, "instructions": 1.01e6},
    )
    sides = []
    for events in numbers:
        known = side(("mm", 10.0, 1.0))
        profile = (known.facts.profile or Profile()) | Profile(
            events=events, events_gap="none here"
        )
        sides.append(replace(known, facts=known.facts | CaseFacts(profile=profile)))
    causes, gaps = profile_causes(*sides)
    assert shown(causes)[-1] == ("memory", "page faults of a call: 0 -> 25", None)
    assert [cause.kind for cause in causes].count(CauseKind.PROCESSOR) == 0
    assert gaps == ["none here"]


def test_another_instruction_set_is_a_cause() -> None:
    """Unless one side's profile has nothing of it."""
    known = side(("mm", 10.0, 1.0))
    profile = known.facts.profile or Profile()
    low, high, none = (
        replace(known, facts=known.facts | CaseFacts(profile=profile | more))
        for more in (Profile(onednn_isa="SSE4.1"), Profile(onednn_isa="AVX2"), Profile())
    )
    first = profile_causes(high, low)[0][0]
    assert (first.kind, first.text) == (CauseKind.BUILD, "numpy onednn isa: AVX2 -> SSE4.1")
    for other in (high, none):
        assert all(each.kind is not CauseKind.BUILD for each in profile_causes(high, other)[0])


def test_both_sides_times_add_up_to_the_difference() -> None:
    """For every cause that has seconds: a report shows them in two columns."""
    base = side(("mm", 10.0, 1), ("copy", 1.0, 1), ("add", 1.0, 1), rest_us=2.0)
    contender = side(("mm", 12.0, 1), ("copy", 2.0, 2), ("add", 1.001, 1), rest_us=3.0)
    causes, _ = profile_causes(base, contender)
    assert len(causes) == 4
    for cause in causes:
        assert cause.sides_s is not None
        assert cause.sides_s[1] - cause.sides_s[0] == pytest.approx(cause.time_s)
    ((_, copies_s),) = [cause.sides_s or (0, 0) for cause in causes if "copy" in cause.text]
    assert copies_s == pytest.approx(2 * _US, rel=0.2)


def test_a_side_without_a_profile_is_a_gap() -> None:
    base, contender = side(("mm", 1.0, 1)), sample(profile=Profile(gap="numpy has no profiler"))
    assert profile_causes(base, contender) == ([], ["contender's operators: numpy has no profiler"])
    _, gaps = profile_causes(sample(), base)
    assert gaps == ["base's operators: not profiled (--fw-profile)"]


# Sessions


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Sessions of pytest that write results; the first that begins dies."""
    every: list[dict[str, Any]] = []

    @contextmanager
    def begin(arguments: Sequence[str], *, results: Path, **more: Any) -> Iterator[Any]:
        every.append({"arguments": arguments, **more})
        if len(every) > 1:
            results.write_text(json.dumps(output([entry()])), encoding="utf-8")
        child = session.ChildSession()
        child.done = Finished(0, ["killed"])
        yield child

    monkeypatch.setattr(session, "started", begin)
    monkeypatch.setattr(Referee, "serve", lambda *_: None)
    return every


@pytest.mark.usefixtures("begun")
def test_results_that_are_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.dumps", lambda *_, **__: "{half of")
    both = (Installed("numpy", ["numpy"]), Installed("default", ["numpy"]))
    said: list[str] = []
    names = {side: ["test_it.py::test_it"] for side in range(2)}
    more = Environments(tmp_path), names, 0, 14.0, said.append
    assert measure_profiles(both, [], *more) == (None, None)
    assert said[-1].endswith("or name a folder on another disk by TMPDIR")


def test_as_many_cases_are_profiled_as_there_is_time_for(
    begun: list[dict[str, Any]], tmp_path: Path
) -> None:
    """A side that has brought nothing says so, and costs the other one nothing."""
    both = (Installed("numpy", ["numpy"]), Installed("default", ["numpy"]))
    names = [f"test_it.py::test_it[{n}]" for n in range(4)]
    said: list[str] = []
    selected, given = dict.fromkeys(range(2), names), ["-q", "--fw-memory"]
    more = selected, 0, 14.0, said.append
    runs = measure_profiles(both, given, Environments(tmp_path), *more, "1.0-to-2.0")
    assert [run is None for run in runs].count(True) == 1
    assert said[0].startswith("profiles of 2 of 4 cases, by turns")
    assert "last output: killed" in said[1]
    for each in begun:
        assert each["selected"] == names[:2]
        assert "--fw-profile" in each["arguments"]
        assert UNTIL_VARIABLE in each["variables"]
        (traces,) = (word for word in each["arguments"] if word.startswith("-ofw_traces="))
        assert Path(traces).parent.name == "1.0-to-2.0"
        assert "--fw-memory" not in each["arguments"]
    none = measure_profiles(both, [], Environments(tmp_path), {0: names, 1: []}, 0, 1.0, print)
    assert none == (None, None)


_SUITE = """
import os
import numpy as np
import pytest
from fwbench import Operation

def product(torch, columns):
    other = torch.eye(512, columns)
    return lambda x: torch.mm(x, other)[:, :512]

def compiled(torch, before):
    relu = torch.compile(torch.relu, backend="eager")
    return lambda x: (before(), relu(x))[1]

def relu(torch):
    return torch.relu

PLANTED = {
    "same": (relu, relu),
    "copied": (relu, lambda torch: lambda x: torch.relu(x.clone())),
    "transposed": (relu, lambda torch: lambda x: torch.relu(x.t().contiguous()).t()),
    "longer": (lambda torch: product(torch, 512), lambda torch: product(torch, 2048)),
    "recompiled": (
        lambda torch: compiled(torch, int),
        lambda torch: compiled(torch, lambda: torch._dynamo.reset()),
    ),
}

def operation(name):
    made = Operation(
        name=name,
        inputs=lambda size, rng: (np.abs(rng.standard_normal((size, size))),),
        reference=lambda x: x,
        sizes=(512,),
    )
    made.implement("torch")(PLANTED[name]["IS_CONTENDER" in os.environ])
    return made

@pytest.mark.fwbench(*map(operation, PLANTED), executions=["eager"])
def test_it(case):
    case.measure()
"""

#: What the largest cause must name, and its kind.
_PLANTED = {
    "copied": (CauseKind.WORK, "aten::copy_ 0 -> 1"),
    "transposed": (CauseKind.WORK, "aten::copy_ 0 -> 1"),
    "longer": (CauseKind.OPERATORS, "aten::mm: "),
    "recompiled": (CauseKind.WORK, "compilations: 0 -> 1 a call"),
}


class Planted(Installed):
    """A side that can have causes to be found."""

    def __init__(self, variables: Mapping[str, str], framework: str = "torch") -> None:
        super().__init__(framework, [framework])
        self._variables = variables

    @property
    def variables(self) -> Mapping[str, str]:
        return self._variables


@pytest.mark.serial
@pytest.mark.usefixtures("started")
def test_planted_causes_are_found(project: Project) -> None:
    """Each is the largest, and of the same code on both sides no operator is named."""
    all_of("torch")
    project.write("test_it.py", _SUITE)
    names = [
        f"test_it.py::test_it[{name}-torch-cpu-eager-forward-float32-512]"
        for name in ("same", *_PLANTED)
    ]
    base, contender = measure_profiles(
        (Planted({}), Planted({"IS_CONTENDER": "1"})),
        ["--fw-device=cpu", "--fw-warmup=0", "--fw-threads=1"],
        Environments(project.path),
        {0: names, 1: names},
        seed=0,
        budget_s=300.0,
        say=print,
    )
    assert base is not None
    assert contender is not None
    found = {
        before.facts.workload: (after, *profile_causes(before, after))
        for before, after in zip(base.records, contender.records, strict=True)
    }
    for name, (kind, text) in _PLANTED.items():
        _, causes, gaps = found[name]
        largest = max(causes, key=lambda cause: abs(cause.time_s or 0.0))
        assert (largest.kind, text in largest.text) == (kind, True), (name, causes, gaps)
    _, causes, _ = found["same"]
    # How far apart they may be by chance is the machine's affair, and told.
    differs = re.compile(r"no operator differs by more than .*|between operators .*")
    operators = [cause.text for cause in causes if cause.kind is CauseKind.OPERATORS]
    assert operators, causes
    assert [text for text in operators if not differs.fullmatch(text)] == []


_MOVED = """
import os
import numpy as np
import pytest
from fwbench import Operation

moved = Operation(
    name="moved",
    inputs=lambda size, rng: (np.abs(rng.standard_normal((size, size))),),
    reference=lambda x: x.T if "IS_CONTENDER" in os.environ else x,
    sizes=(2048, 4096),
    differentiable=False,
)

def planted(base, contender):
    return contender if "IS_CONTENDER" in os.environ else base

moved.implement("torch")(
    lambda torch: planted(torch.relu, lambda x: torch.relu(x.t().contiguous()))
)
moved.implement("tensorflow")(
    lambda tf: planted(tf.nn.relu, lambda x: tf.nn.relu(tf.transpose(x)))
)
moved.implement("mxnet")(lambda F: planted(F.relu, lambda x: F.relu(F.transpose(x))))
moved.implement("onnxruntime")(
    lambda op: planted(op.Relu, lambda x: op.Relu(op.Transpose(x, perm=[1, 0])))
)
moved.implement("jax")(
    lambda jnp: planted(lambda x: jnp.maximum(x, 0), lambda x: jnp.maximum(x.T, 0))
)

@pytest.mark.fwbench(moved)
def test_it(case):
    case.measure()
"""


@pytest.mark.serial
@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("framework", "execution", "size", "named"),
    # On a busy machine TensorFlow's calls wait milliseconds for its threads: more than it takes to
    # transpose the smaller array. MXNet's ReLU of the larger one differs by as much. PyTorch's
    # kernel needs a machine that is idle.
    [
        if_installed("torch", "compile", 2048, "cpp_fused_clone", nightly=True),
        if_installed("tensorflow", "eager", 4096, "Transpose", nightly=True),
        if_installed("tensorflow", "graph", 4096, "Transpose"),
        if_installed("tensorflow", "xla", 2048, "transpose"),
        if_installed("mxnet", "eager", 2048, "transpose", nightly=True),
        if_installed("mxnet", "hybridize", 2048, "transpose"),
        if_installed("onnxruntime", "graph", 2048, "Transpose"),
        if_installed("jax", "jit", 2048, "transpose"),
    ],
)
def test_a_transposition_is_the_largest_cause_in_each_execution(
    project: Project, framework: str, execution: str, size: int, named: str
) -> None:
    """The contender's profile alone has it, and nothing else differs by more."""
    project.write("test_it.py", _MOVED)
    case = f"test_it.py::test_it[moved-{framework}-cpu-{execution}-forward-float32-{size}]"
    given = ["--fw-device=cpu", "--fw-warmup=0", "--fw-threads=1", f"--fw-execution={execution}"]
    sides = measure_profiles(
        (Planted({}, framework), Planted({"IS_CONTENDER": "1"}, framework)),
        given,
        Environments(project.path),
        {0: [case], 1: [case]},
        seed=0,
        budget_s=300.0,
        say=print,
    )
    (base,), (contender,) = (side.records if side else () for side in sides)
    has = [
        any(
            named in operator.name for operator in (side.facts.profile or Profile()).operators or ()
        )
        for side in (base, contender)
    ]
    assert has == [False, True]
    causes, gaps = profile_causes(base, contender)
    texts = "; ".join(cause.text for cause in causes)
    if named not in texts and "no operator differs" in texts:
        pytest.skip(f"other processes are at work, and blocks differ by more: {texts}")
    largest = max(causes, key=lambda cause: abs(cause.time_s or 0.0))
    assert named in largest.text, (causes, gaps)
    assert (largest.time_s or 0.0) > 0
