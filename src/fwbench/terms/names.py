"""Names in case ids: of frameworks, ``torch`` or ``torch@nightly``, and of dtypes."""

from collections.abc import Mapping
from typing import Any

#: The entry-point group in which packages name their frameworks.
GROUP = "fwbench.frameworks"

#: The dtype of the two numbers of a complex one, by its dtype.
_PARTS = {"complex64": "float32", "complex128": "float64"}

#: Floating-point numbers of 8 bits, of which 3 are mantissa: of products on GPUs, and no other work
#: (Micikevicius and others, FP8 Formats for Deep Learning, 2022; as in NVIDIA's and ONNX's names).
FLOAT8 = "float8_e4m3fn"

#: The dtypes that fwbench can verify; a framework that lacks one gets a skip that says so.
DTYPES = ("float32", "float64", "float16", "bfloat16", *_PARTS, FLOAT8)

#: Whole numbers of 8 bits with a scale: of networks in use, calibrated with examples.
INT8 = "int8"

#: All that a session can be asked for.
EVERY_DTYPE = (*DTYPES, INT8)

#: Those that NumPy lacks; where it has to hold their numbers, it does in float32.
_NARROW = ("bfloat16", FLOAT8)

#: The dtype of cases where none is asked for, unless the operation does not have it.
DEFAULT_DTYPE = "float32"

#: Other names of frameworks: of their projects, and as which modules are imported.
CALLED = {
    "pytorch": "torch",
    "tf": "tensorflow",
    "keras": "tensorflow",
    "np": "numpy",
    "mx": "mxnet",
    "onnx": "onnxruntime",
    "ort": "onnxruntime",
}


def framework_of(reference: str) -> str:
    """The framework that a reference names: ``torch`` of ``torch@nightly``."""
    return reference.partition("@")[0]


def without_environment(text: str, reference: str) -> str:
    """A case id or node id in which the framework of a reference has its plain name."""
    return text.replace(f"-{reference}-", f"-{framework_of(reference)}-") if reference else text


def is_complex(dtype: str) -> bool:
    """True if a dtype is that of complex numbers."""
    return dtype in _PARTS


def real_dtype(dtype: str) -> str:
    """The dtype of the parts of complex numbers; of real numbers it is their own."""
    return _PARTS.get(dtype, dtype)


def numpy_dtype(dtype: str) -> str:
    """The dtype that NumPy holds numbers in: float32 where it lacks their own."""
    return "float32" if dtype in _NARROW else dtype


def product_precision(dtype: str, toggles: Mapping[str, Any]) -> str:
    """Precision of products: the dtype of the parts, or ``tf32`` where that is on."""
    return "tf32" if dtype == "float32" and toggles.get("tf32") == "on" else real_dtype(dtype)


def answered_dtype(dtype: str) -> str:
    """The dtype of the real numbers that work returns: networks in int8 return float32."""
    return "float32" if dtype == INT8 else real_dtype(dtype)


def compiles(execution: str) -> bool:
    """True of an execution whose first call compiles."""
    return execution != "eager"
