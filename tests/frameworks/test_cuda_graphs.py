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
from support.stand_ins import refused
from support.verification import installed

ON_GPU = ("reduce_overhead", "max_autotune", "cuda_graph")


class FakeStream:
    """A stream, which notes the one that it waits for."""

    def __init__(self, name: str, done: list[str]) -> None:
        self.name, self._done = name, done

    def wait_stream(self, stream: "FakeStream") -> None:
        self._done.append(f"{self.name} waits for {stream.name}")


class FakeGraph:
    """A graph, which holds the kernel that was launched while it was captured."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        self.kernel: Callable[[], Any] | None = None

    def replay(self) -> None:
        self._done.append("replay")
        assert self.kernel is not None
        self.kernel()


class FakeCuda:
    """``torch.cuda``: what is called while a graph is captured is done by its replays only."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._here = FakeStream("the default", self._done)
        self._streams: list[FakeStream] = []
        self._captures: FakeGraph | None = None

    def current_stream(self) -> FakeStream:
        return self._here

    def current_device(self) -> int:
        return 0

    def Stream(self, device: int) -> FakeStream:  # noqa: N802 (CUDA's name)
        assert device == 0
        self._streams.append(FakeStream("aside", self._done))
        return self._streams[-1]

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        before, self._here = self._here, stream
        yield
        self._here = before

    def CUDAGraph(self) -> FakeGraph:  # noqa: N802 (CUDA's name)
        return FakeGraph(self._done)

    @contextmanager
    def graph(self, cuda_graph: FakeGraph, *, stream: FakeStream) -> Iterator[None]:
        assert [stream] == self._streams
        self._done.append("capture")
        self._captures = cuda_graph
        with self.stream(stream):
            yield
        self._captures = None
        self._done.append("captured")


class Cuda(FakeCuda):
    """The same with what a test asks of it, and kernels."""

    @property
    def done(self) -> list[str]:
        """Calls in their order."""
        return self._done

    @property
    def streams(self) -> list[FakeStream]:
        """Streams that were made."""
        return self._streams

    def call(self) -> None:
        """A call that is enqueued in the current stream."""
        self.launch(lambda: None)
        self._done.append(f"call in {self._here.name}")

    def launch(self, kernel: Callable[[], Any]) -> None:
        """Run a kernel, or keep it for the graph, as PyTorch does."""
        if self._captures is None:
            kernel()
        else:
            self._captures.kernel = kernel


@pytest.fixture
def cuda() -> Cuda:
    return Cuda()


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch, cuda: Cuda) -> Any:
    module = adapter("torch.gpus")
    monkeypatch.setattr(module, "torch", SimpleNamespace(cuda=cuda))
    module._stream_aside.cache_clear()
    return module


@installed("torch")
def test_the_stand_in_has_what_pytorch_has() -> None:
    assert refused(FakeCuda, "torch.cuda") == {}


def test_a_call_is_captured_after_others_on_a_stream_of_their_own(
    graphs: ModuleType, cuda: Cuda
) -> None:
    """In PyTorch's documented order; then each call is a replay and nothing else."""
    replay = graphs.captured(cuda.call)
    begun, ended = "aside waits for the default", "the default waits for aside"
    before = [begun, *["call in aside"] * 3, ended]
    assert cuda.done == [*before, "capture", "call in aside", "captured"]
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

    cuda: Cuda
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


def graphed(graphs: ModuleType, cuda: Cuda, *, copies_inputs: bool) -> Any:
    framework = Graphed()
    framework.cuda, framework.captured = cuda, graphs.captured
    framework.copies_inputs = copies_inputs
    return case_of(cell(operation(), device="gpu:0"), framework)


def test_replays_are_verified_on_inputs_that_are_copied_in(graphs: ModuleType, cuda: Cuda) -> None:
    """The same replay that was timed, on other numbers and on the first again."""
    case = graphed(graphs, cuda, copies_inputs=False)
    facts = recorded(case)
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert cuda.done.count("capture") == 1
    assert cuda.done.count("replay") > 10


def test_a_graph_of_other_arrays_is_wrong(graphs: ModuleType, cuda: Cuda) -> None:
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
