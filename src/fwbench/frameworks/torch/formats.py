"""Memory formats of images: channels last, as PyTorch recommends it, or contiguous.

Its tutorial "Channels Last Memory Format in PyTorch" and its Performance Tuning Guide have models
and batches of images in it. ``--fw-toggle layout=nchw`` has all contiguous.
"""

from typing import Any

import torch
from numpy.typing import NDArray

from fwbench.frameworks.layout import channels_last
from fwbench.frameworks.table import Laid
from fwbench.terms.toggles import value_of

#: Of a batch of images.
IMAGE_AXES = 4

#: Of tensors with as many axes: images and volumes.
_FORMATS = {IMAGE_AXES: torch.channels_last, 5: torch.channels_last_3d}

_LAYOUT = value_of("layout")

CHANNELS_LAST = _LAYOUT != "nchw"

#: Of the parameters and batches of networks.
IMAGES = torch.channels_last if CHANNELS_LAST else torch.contiguous_format

#: Of those of users' models, which are as they bring them unless a layout is asked for.
USERS_IMAGES = IMAGES if _LAYOUT else torch.preserve_format


def laid(entry: Laid) -> Laid:
    """An implementation with its images in the format of this process."""
    return Laid(entry.entry, channels_last(entry.layout)) if CHANNELS_LAST else entry


def like(values: NDArray[Any], tensor: Any) -> Any:
    """The tensor with its channels last in memory, where those of NumPy's values are."""
    if values.ndim not in _FORMATS or values.flags.c_contiguous:
        return tensor
    return tensor.contiguous(memory_format=_FORMATS[values.ndim])
