"""Float32 means float32 in PyTorch, by both of its interfaces; whatever was set can be recorded."""

from typing import Any

import pytest

from support import programs
from support.verification import installed

pytestmark = installed("torch")

#: What NVIDIA's containers set: products of float32 are in TF32 then.
_CONTAINER = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}

#: The settings as the adapter leaves them, by either interface; what users may do then; the
#: toggles after each.
_PROBE = """
import json, torch
from fwbench.frameworks.torch import gpus
from fwbench.frameworks.torch.framework import Torch

def places():
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    new = [p.fp32_precision for p in (cuda, getattr(cudnn, "conv", 0), getattr(cudnn, "rnn", 0))
           if hasattr(p, "fp32_precision")]
    return {"old": [cuda.allow_tf32, cudnn.allow_tf32], "new": new}

framework = Torch()
facts = {"started": places(), "toggles": framework.toggles()}
torch.backends.cuda.matmul.allow_fp16_accumulation = True
torch.backends.cuda.enable_flash_sdp(False)
facts["changed"] = framework.toggles()
torch.backends.cuda.matmul.allow_fp16_accumulation = False
torch.backends.cuda.enable_flash_sdp(True)
gpus.set_tf32(allowed=True)
facts["on"] = places()
gpus.set_tf32(allowed=False)
facts["off"] = places()
if hasattr(torch.backends, "fp32_precision"):
    torch.backends.fp32_precision = "tf32"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    facts["mixed"] = framework.toggles()
print(json.dumps(facts))
"""

_PROBING = ("-W", "error", "-c", _PROBE)


@pytest.fixture(scope="module")
def probed() -> dict[str, Any]:
    """The output of a process in the environment of NVIDIA's containers."""
    figures: dict[str, Any] = programs.result(*_PROBING, variables=_CONTAINER)
    return figures


def _is(places: dict[str, Any], *, allowed: bool) -> bool:
    named = "tf32" if allowed else "ieee"
    return places["old"] == [allowed, allowed] and {*places["new"]} <= {named}


def test_tf32_is_off(probed: dict[str, Any]) -> None:
    """In products, convolutions and recurrent layers, whatever the environment says."""
    assert _is(probed["started"], allowed=False)


def test_both_interfaces_agree(probed: dict[str, Any]) -> None:
    """After either setting: PyTorch's own compiler reads the older names, and would fail."""
    assert _is(probed["on"], allowed=True)
    assert _is(probed["off"], allowed=False)


def test_the_toggle_turns_it_on() -> None:
    on = programs.result(*_PROBING, variables={"FWBENCH_TF32": "on"})
    assert _is(on["started"], allowed=True)


def test_precisions_are_recorded(probed: dict[str, Any]) -> None:
    """By the names of today's interface where there is one, beside what decides on algorithms."""
    toggles = probed["toggles"]
    assert toggles["float32_matmul_precision"] == "highest"
    assert (toggles["cudnn_benchmark"], toggles["cudnn_deterministic"]) == (False, False)
    if probed["started"]["new"]:
        assert [toggles[f"{place}_precision"] for place in _PLACES] == ["ieee"] * 3


def test_what_chooses_kernels_is_recorded_where_it_was_changed(probed: dict[str, Any]) -> None:
    """Records of before, which do not have it, stay comparable."""
    changed = dict(probed["changed"].items() - probed["toggles"].items())
    assert changed == {"fp16_accumulation": True, "flash_sdp": False}
    assert probed["changed"] == {**probed["toggles"], **changed}


_PLACES = ("cuda_matmul", "cudnn_conv", "cudnn_rnn")


def test_what_a_user_has_mixed_fails_no_case(probed: dict[str, Any]) -> None:
    """PyTorch refuses to tell by the older names what was set by the newer ones."""
    if "mixed" not in probed:
        pytest.skip("this PyTorch has one interface")
    toggles = probed["mixed"]
    assert toggles["float32_matmul_precision"] == "mixed"
    assert toggles["cudnn_conv_precision"] == "tf32"
    assert toggles["mkldnn"] in (True, False)
