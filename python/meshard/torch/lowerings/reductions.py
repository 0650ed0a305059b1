"""Reductions."""

import torch

import meshard as ms

from .._dtypes import to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, cast, dimensions


@lowers("aten.sum.default", "aten.sum.dim_IntList")
def sum_of(x, dim=None, keepdim=False, dtype=None):
    present = to_torch(x.dtype)
    if dtype is None:
        dtype = present if present.is_floating_point or present.is_complex else torch.int64
    return ms.sum(as_dtype(x, dtype), axis=dimensions(dim, x.ndim), keepdims=keepdim)


@lowers("aten.mean.default", "aten.mean.dim")
def mean(x, dim=None, keepdim=False, dtype=None):
    return ms.mean(x if dtype is None else cast(x, dtype), axis=dimensions(dim, x.ndim), keepdims=keepdim)


@lowers("aten.amax")
def amax(x, dim=(), keepdim=False):
    return ms.max(x, axis=dimensions(dim, x.ndim), keepdims=keepdim)


@lowers("aten.amin")
def amin(x, dim=(), keepdim=False):
    return ms.min(x, axis=dimensions(dim, x.ndim), keepdims=keepdim)
