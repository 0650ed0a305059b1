"""Cumulative operations."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast, dimension
from .reductions import _float_dtype, _summed_dtype, _wide, ordered


def _cumulative(function, x, dim, dtype):
    x = cast(x, dtype)
    dim = dimension(dim, x.ndim)
    return cast(function(_wide(x), axis=dim), dtype) if x.ndim else x


@lowers("aten.cumsum")
def cumsum(x, dim, dtype=None):
    return _cumulative(ms.cumulative_sum, x, dim, _summed_dtype(x, dtype))


@lowers("aten.cumprod")
def cumprod(x, dim, dtype=None):
    return _cumulative(ms.cumulative_prod, x, dim, _summed_dtype(x, dtype))


@lowers("aten.logcumsumexp")
def logcumsumexp(x, dim):
    dtype = _float_dtype(x)
    if dtype.is_complex:
        raise NotImplementedError("[torch] logcumsumexp of complex numbers is not supported")
    return _cumulative(ms.cumulative_logsumexp, x, dim, dtype)


def _records(function, x, dim):
    """The running extreme, and the last index so far at which it was reached; NaN counts as reached each time."""
    dim = dimension(dim, x.ndim)
    if not x.ndim:
        return x, ms.zeros((), dtype=ms.int64)
    keys = ordered(x)
    values = function(keys, axis=dim)
    reached = ms.logical_or(ms.equal(keys, values), ms.not_equal(keys, keys))
    places = ms.iota(ms.int64, x.shape, dim)
    last = ms.cumulative_max(ms.where(reached, places, ms.zeros_like(places)), axis=dim)
    return cast(values, to_torch(x.dtype)), last


@lowers("aten.cummax")
def cummax(x, dim):
    return _records(ms.cumulative_max, x, dim)


@lowers("aten.cummin")
def cummin(x, dim):
    return _records(ms.cumulative_min, x, dim)
