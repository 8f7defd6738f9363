"""A device of PyTorch's that is not the CPU, in NumPy, and what the adapter makes of it.

``python -m support.torch_device`` prints what was found. The device is PyTorch's own way to
backends in Python (``_setup_privateuseone_for_python_backend``), with a few operators as in
PyTorch's test/test_privateuseone_python_backend.py: ``torch.accelerator``, dispatch and devices of
tensors are the real ones.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from fwbench.cases.case import bind
from fwbench.errors import VerificationError
from fwbench.frameworks.torch import gpus
from fwbench.frameworks.torch.framework import Torch
from fwbench.workloads import gemm
from support.fakes import cell

NAME = "npy"


class _Module(_DummyBackendModule):  # type: ignore[misc]
    """``torch.npy``, which counts how often it was waited for."""

    waited = 0

    def synchronize(self) -> None:
        self.waited += 1


class _Tensor(torch.Tensor):  # type: ignore[misc]
    """A tensor of the device, whose memory is an array of NumPy's."""

    values: Any


def _wrapped(values: Any) -> Any:
    values = np.asarray(values)
    dtype = getattr(torch, values.dtype.name)
    tensor = torch._C._acc.create_empty_tensor(values.shape, dtype)
    tensor.__class__ = _Tensor
    tensor.values = values
    return tensor


def _dtype(dtype: Any) -> str:
    return str(dtype or torch.float32).removeprefix("torch.")


def _empty(size: Any, *_: Any, dtype: Any = None, **_more: Any) -> Any:
    return _wrapped(np.empty(size, _dtype(dtype)))


def _copy_from(source: Any, target: Any, *_: Any) -> Any:
    into = target.values if isinstance(target, _Tensor) else target.numpy()
    into[...] = source.values if isinstance(source, _Tensor) else source.numpy()
    return target


#: The operators that the device has.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "empty_strided": _empty,
    "empty.memory_format": _empty,
    "_copy_from": _copy_from,
    "mm": lambda left, right: _wrapped(left.values @ right.values),
    "detach": lambda tensor: _wrapped(tensor.values),
}


def _register() -> _Module:
    module = _Module()
    _setup_privateuseone_for_python_backend(NAME, backend_module=module)
    for name, function in _OPERATORS.items():
        torch.library.impl(f"aten::{name}", "privateuseone", function)
    return module


def main() -> None:
    """Have the adapter work on the device."""
    module = _register()
    adapter = Torch()
    found: dict[str, Any] = {"kind": gpus.kind(), "named": gpus.named("gpu:0")}
    described = adapter.manifest("a CPU")
    found["devices"] = [(device.name, device.model) for device in described.devices]
    found["gap"] = described.gap("relu", "cuda_graph", "forward", "float32", "gpu:0", 0, ())
    wait = adapter.waiter("gpu:0")
    assert wait is not None
    wait()
    found["waited"] = module.waited
    found["work"] = _worked(adapter)
    found["astray"] = _gone_astray(adapter)
    copies = adapter.copier("gpu:0", pinned=False)
    host = copies.on_host(np.ones(3), "float32")
    there = copies.to_device(host)
    back = copies.to_host(there)
    found["places"] = [copies.place(array) for array in (host, there, back)]
    found["copied"] = adapter.to_numpy(back).tolist()
    clocks = (adapter.device_clock("gpu:0"), adapter.kernel_clock("gpu:0"))
    found["clocks"] = [clock.failure for clock in clocks if clock is not None]
    print(json.dumps(found))


def _worked(adapter: Torch) -> list[str]:
    """Bind, call and verify a product on the device; the places of its arrays."""
    work = bind(cell(gemm, framework="torch", device="gpu:0", size=16), adapter)
    result = work.run()
    work.verify(result)
    work.verify_again(work.run())
    return [str(adapter.device_of(array)) for array in work.arrays(result)]


def _gone_astray(adapter: Torch) -> str:
    """Verify a result that lies on the CPU."""
    work = bind(cell(gemm, framework="torch", device="gpu:0", size=16), adapter)
    try:
        work.verify(work.run().cpu())
    except VerificationError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
