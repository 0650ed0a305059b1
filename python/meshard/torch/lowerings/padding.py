"""Backward passes of paddings that copy elements of the edge."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast
from .indexing import _scattered_slices


@lowers("aten.replication_pad1d_backward", "aten.replication_pad2d_backward", "aten.replication_pad3d_backward")
def replication_pad_backward(gradient, x, padding):
    """Each element of the edge receives the sum of the gradients of its copies."""
    dtype = to_torch(gradient.dtype)
    made = cast(gradient, torch.float32) if dtype.itemsize == 2 else gradient
    for i in range(len(padding) // 2):
        dim, low = x.ndim - 1 - i, padding[2 * i]
        size = x.shape[dim]
        places = ms.clip(ms.subtract(ms.arange(0, made.shape[dim], 1, dtype=ms.int64), low), 0, size - 1)
        zeros = ms.zeros(tuple(size if d == dim else n for d, n in enumerate(made.shape)), dtype=made.dtype)
        made = _scattered_slices("sum", zeros, dim, places, made)
    return cast(made, dtype)
