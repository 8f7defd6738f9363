"""Work around arrays: creation from host data, copies between host and GPU, and the empty call.

Creation from host data means a copy: the verification changes the source afterwards, and the array
must not. A compiler would make zeros and whole numbers once, and keep them. ``noop`` costs what the
harness itself does in a framework: it is reported and never subtracted.
"""

from functools import partial

import numpy as np

from fwbench.terms.presets import sizes_of
from fwbench.workloads.operation import DEVICE, HOST, Operation, family
from fwbench.workloads.operations.vectors import normal
from fwbench.workloads.workload import Cost

#: What CPython spends on one float of a list: 8 bytes of pointer and 24 of object.
_LIST_FLOAT_BYTES = 32

_INT32_BYTES = 4

_SIZES = sizes_of("creation")

_vector = normal(lambda n: (n,))
#: An operation that nothing is computed or learned by, and that a compiler would leave out.
_around = partial(Operation, inputs=_vector, differentiable=False, compilable=False)

CREATIONS = family(
    "creation",
    ("from_numpy",),
    # From a NumPy vector of ``size`` elements in the dtype of the case (float32 for bfloat16, which
    # NumPy does not have): a copy, without a conversion.
    _around(
        name="from_numpy",
        reference=np.asarray,
        sizes=_SIZES["from_numpy"],
        cost=lambda n: Cost(flops=0.0, elements=2.0 * n),
        source=np.copy,
    ),
    # From a Python list of ``size`` floats.
    _around(
        name="from_list",
        reference=np.asarray,
        sizes=_SIZES["from_list"],
        cost=lambda n: Cost(flops=0.0, elements=float(n), other_bytes=float(_LIST_FLOAT_BYTES * n)),
        source=np.ndarray.tolist,
    ),
    # Zeros, as many as a vector of ``size`` elements has, in its dtype and where it is. They are
    # written: memory that was asked for as zeros costs nothing until it is used.
    _around(
        name="zeros_like",
        reference=np.zeros_like,
        sizes=_SIZES["new"],
        cost=lambda n: Cost(flops=0.0, elements=float(n)),
    ),
    # Whole numbers from 0 to ``size``, in 32 bits for every dtype of the case. The operand only
    # names the device.
    _around(
        name="arange",
        inputs=normal(lambda _: (1,)),
        reference=lambda x, n: np.arange(n),
        sizes=_SIZES["new"],
        cost=lambda n: Cost(flops=0.0, elements=0.0, other_bytes=_INT32_BYTES * float(n)),
        parameters=lambda n: (n,),
    ),
)


_copy = partial(
    _around,
    reference=np.copy,
    sizes=_SIZES["copies"],
    # Each element crosses the bus once, which is how rates of buses are given.
    cost=lambda n: Cost(flops=0.0, elements=float(n)),
    switched_by=("pinned",),
)


#: Creations begin with NumPy arrays; these measure the way over the bus alone. ``pinned``: whether
#: the memory of the host is page-locked, the only kind that a GPU copies by itself.
COPIES = family(
    "copies", (), _copy("copy_to_device", copies_to=DEVICE), _copy("copy_to_host", copies_to=HOST)
)


OVERHEAD = family(
    "overhead",
    ("noop",),
    # Returns its argument, through the same path as every other operation.
    Operation(
        name="noop",
        inputs=_vector,
        reference=np.asarray,
        sizes=_SIZES["noop"],
        cost=lambda _: Cost(flops=0.0, elements=0.0),
        differentiable=False,
    ),
)
