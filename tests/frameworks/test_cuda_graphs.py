"""PyTorch's executions for GPUs, with a stand-in for CUDA: captured once, replayed when timed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.errors import WrongResult
from fwbench.frameworks.declared import manifests
from fwbench.options.options import Selection
from fwbench.terms.manifest import Device
from fwbench.testing import FakeFramework
from fwbench.workloads import adam, gemm, grid, lenet_step, solve
from support.fakes import adapter, case_of, cell, operation, recorded

ON_GPU = ("reduce_overhead", "max_autotune", "cuda_graph")


class FakeCuda:
    """``torch.cuda``: what is called while a graph is captured is done by its replays only.

    Attributes:
        done: what was called, in order.
        streams: those that were made.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.streams: list[SimpleNamespace] = []
        self._captures: Any = None
        self.kernel: Callable[[], Any] | None = None

    def current_stream(self) -> SimpleNamespace:
        return SimpleNamespace(wait_stream=lambda other: self.done.append("join"))

    def current_device(self) -> int:
        return 0

    def Stream(self, device: int) -> SimpleNamespace:  # noqa: N802 (CUDA's name)
        self.streams.append(SimpleNamespace(wait_stream=lambda other: self.done.append("fork")))
        return self.streams[-1]

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.done.append("aside")
        yield
        self.done.append("back")

    def CUDAGraph(self) -> SimpleNamespace:  # noqa: N802 (CUDA's name)
        def replay() -> None:
            self.done.append("replay")
            assert self.kernel is not None
            self.kernel()

        return SimpleNamespace(replay=replay)

    @contextmanager
    def graph(self, graph: Any, stream: Any) -> Iterator[None]:
        assert [stream] == self.streams
        self.done.append("capture")
        self._captures = graph
        yield
        self._captures = None
        self.done.append("captured")

    def launch(self, kernel: Callable[[], Any]) -> None:
        """Run a kernel, or keep it for the graph, as PyTorch does."""
        if self._captures is None:
            kernel()
        else:
            self.kernel = kernel


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> Any:
    module = adapter("torch.gpus")
    monkeypatch.setattr(module, "torch", SimpleNamespace(cuda=cuda))
    module._stream_aside.cache_clear()
    return module


def test_a_call_is_captured_after_others_on_a_stream_of_their_own(
    graphs: ModuleType, cuda: FakeCuda
) -> None:
    """In PyTorch's documented order; then each call is a replay and nothing else."""
    replay = graphs.captured(lambda: cuda.done.append("call"))
    before = ["fork", "aside", *["call"] * 3, "back", "join"]
    assert cuda.done == [*before, "capture", "call", "captured"]
    cuda.kernel = lambda: None
    cuda.done.clear()
    replay()
    replay()
    assert cuda.done == ["replay", "replay"]
    graphs.captured(lambda: None)
    assert len(cuda.streams) == 1, "each keeps 32 MiB"


class Graphed(FakeFramework):
    """The fake framework, whose calls are captured.

    Attributes:
        copies_inputs: whether the kernel has a copy of its inputs, which nobody changes.
    """

    cuda: FakeCuda
    captured: Callable[[Any], Any]
    copies_inputs = False

    def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
        """A kernel that writes where it did when it was captured."""
        function = implementation(np)
        operands = [np.array(x) for x in inputs] if self.copies_inputs else inputs
        static: NDArray[Any] = np.empty_like(inputs[0])

        def kernel() -> None:
            self._cost()
            static[...] = function(*operands)

        def run() -> NDArray[Any]:
            self.cuda.launch(kernel)
            return static

        return self.captured(run)


def graphed(graphs: ModuleType, cuda: FakeCuda, *, copies_inputs: bool) -> Any:
    framework = Graphed()
    framework.cuda, framework.captured = cuda, graphs.captured
    framework.copies_inputs = copies_inputs
    return case_of(cell(operation(), device="gpu:0"), framework)


def test_replays_are_verified_on_inputs_that_are_copied_in(
    graphs: ModuleType, cuda: FakeCuda
) -> None:
    """The same replay that was timed, on other numbers and on the first again."""
    case = graphed(graphs, cuda, copies_inputs=False)
    facts = recorded(case)
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert cuda.done.count("capture") == 1
    assert cuda.done.count("replay") > 10


def test_a_graph_of_other_arrays_is_wrong(graphs: ModuleType, cuda: FakeCuda) -> None:
    """It has captured a copy of its inputs, and computes with their first values for ever."""
    case = graphed(graphs, cuda, copies_inputs=True)
    with pytest.raises(WrongResult, match=r"^a call on changed inputs is wrong"):
        case.measure()


def _gaps(workload: Any, device: str) -> dict[str, str | None]:
    """Why PyTorch cannot run a workload in them, by execution."""
    torch = manifests()["torch"]
    gpu = Device("gpu:0", "NVIDIA H200")
    here = torch.__class__(**{**torch.__dict__, "devices": (*torch.devices, gpu)})
    selection = Selection(devices=(device,), executions=ON_GPU)
    grid_cells = grid.cells(
        [workload], selection, {"torch": here}, more=grid.GridRequest(verify_only=True)
    )
    return {
        made_cell.execution: made_cell.gap
        for made_cell in grid_cells
        if made_cell.direction != "backward"
    }


def test_they_are_gaps_on_a_cpu() -> None:
    gaps = _gaps(gemm, "cpu")
    assert [*gaps] == [*ON_GPU]
    assert "launches CUDA graphs" in str(gaps["reduce_overhead"])
    assert "is for GPUs" in str(gaps["max_autotune"])
    assert "captured on a GPU" in str(gaps["cuda_graph"])


def test_what_a_graph_cannot_hold_is_a_gap() -> None:
    """Steps that go on from one another, and calls in which the host waits."""
    assert {*_gaps(gemm, "gpu:0").values()} == {None}
    assert "steps that nothing verifies" in str(_gaps(adam, "gpu:0")["cuda_graph"])
    assert "waits for the GPU" in str(_gaps(solve, "gpu:0")["cuda_graph"])
    assert _gaps(solve, "gpu:0")["max_autotune"] is None


def test_training_does_not_have_them() -> None:
    """They are of operations: a network's step is a gap that says so."""
    assert all(_gaps(lenet_step, "gpu:0").values())
