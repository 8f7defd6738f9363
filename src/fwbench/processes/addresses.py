"""Addresses in launches that are compared: drawn for each pair, and alike on all its sides.

What lies where decides what is evicted from caches and from the tables of branch predictors. Linux
draws the addresses of each process anew, by which loops of plain Python took 6 or 30 % longer in
one launch than in the next (docs/figures.md). Here the system draws none: libraries and memory
begin below the limit of the stack (mmap_base() in the kernel's mm/util.c), which is drawn, as is
the padding that shifts the stack. So all pairs together have seen many addresses.

Within a heap, objects lie as everything before has left it: alike in each launch of a side, but
not on the other side, whose paths have other lengths. That would be taken for a change, so each
process lets its heap begin elsewhere, and draws that for itself.
"""

import ctypes
import os
import random
import resource
import sys
from functools import cache

from fwbench.processes.guard import ADDRESSES_VARIABLE, NOT_RANDOM, PERSONALITY

#: What the kernel leaves to a stack at least, how much more is drawn, and its unit. Large libraries
#: begin at multiples of 2 MiB.
_LEAST_BYTES, _DRAWN_BYTES, _PAGE_BYTES = 128 << 20, 512 << 20, 4096

#: A pthread_attr_t is smaller: 56 bytes on x86-64, 64 on AArch64.
_ATTRIBUTES_BYTES = 128

#: Beyond the largest of a heap's small blocks (pymalloc's: 512 bytes), and large ones.
_SMALL_BYTES, _LARGE_BYTES = 512, 1 << 16

#: What lies where the heap of this process would have begun.
_kept: list[object] = []


@cache
def can_be_given() -> bool:
    """Return whether a process may have given addresses here, and has room for them.

    In containers it often may not: Docker's default profile permits no other personality(2).
    """
    if sys.platform != "linux" or "CS_GNU_LIBC_VERSION" not in os.confstr_names:
        return False
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if hard != resource.RLIM_INFINITY and hard < _LEAST_BYTES + _DRAWN_BYTES:
        return False
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return False  # threads of what a test starts would take it up with their stacks
    personality = ctypes.CDLL(None).personality
    before = personality(PERSONALITY)
    allowed = personality(before | NOT_RANDOM) != -1
    personality(before)
    return allowed


def drawn(seed: int) -> dict[str, str]:
    """The environment variable of programs that have the addresses of a seed; none if they cannot.

    :mod:`fwbench.processes.guard` gives them to the program, which is to :func:`settle`.
    """
    if not can_be_given():
        return {}
    draw = random.Random(seed)  # noqa: S311 (no secret)
    limit_bytes = _LEAST_BYTES + _PAGE_BYTES * draw.randrange(_DRAWN_BYTES // _PAGE_BYTES)
    padding = "x" * draw.randrange(_PAGE_BYTES)
    return {ADDRESSES_VARIABLE: f"{limit_bytes},{_stack_bytes()},{padding}"}


def settle() -> None:
    """Let the heap of this process begin anywhere, if its addresses were given.

    New threads have stacks as large as without: glibc takes the limit for their size.
    """
    given = os.environ.get(ADDRESSES_VARIABLE)
    if given is None:
        return
    libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(int(given.split(",")[1])))
    libc.pthread_setattr_default_np(attributes)
    draw = random.Random()  # noqa: S311 (no secret)
    makers = (
        (object, 1 << 10),  # 16 bytes
        (draw.random, 1 << 10),  # 24 bytes
        (lambda: bytes(draw.randrange(_SMALL_BYTES)), 1 << 12),
        (lambda: bytes(draw.randrange(_LARGE_BYTES)), 1 << 5),
    )
    blocks = [make() for make, most in makers for _ in range(draw.randrange(most))]
    draw.shuffle(blocks)
    _kept[:] = blocks[::2]


def _stack_bytes() -> int:
    """The size of the stacks of new threads."""
    libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    size = ctypes.c_size_t()
    libc.pthread_getattr_default_np(attributes)
    libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))
    return size.value
