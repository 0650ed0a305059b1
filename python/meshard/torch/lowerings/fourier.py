"""Fourier transforms."""

import math

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import as_dtype, dimension


def _scaled(x, count, normalization):
    """A sum as it is (0), divided by the square root of the number of its terms (1), or by this number (2)."""
    if normalization == 0:
        return x
    return x * as_dtype(1 / (math.sqrt(count) if normalization == 1 else count), to_torch(x.dtype).to_real())


def _count(x, dims):
    return math.prod(x.shape[d] for d in dims)


@lowers("aten._fft_c2c")
def fft_c2c(x, dim, normalization, forward):
    dims = tuple(dimension(d, x.ndim) for d in dim)
    if not dims:
        return x
    made = ms.fft.fftn(x, axes=dims, norm="backward") if forward else ms.fft.ifftn(x, axes=dims, norm="forward")
    return _scaled(made, _count(x, dims), normalization)


@lowers("aten._fft_r2c")
def fft_r2c(x, dim, normalization, onesided):
    dims = tuple(dimension(d, x.ndim) for d in dim)
    made = ms.fft.rfftn(x, axes=dims, norm="backward") if onesided else ms.fft.fftn(x, axes=dims, norm="backward")
    return _scaled(made, _count(x, dims), normalization)


@lowers("aten._fft_c2r")
def fft_c2r(x, dim, normalization, last_dim_size):
    dims = tuple(dimension(d, x.ndim) for d in dim)
    sizes = [x.shape[d] for d in dims[:-1]] + [last_dim_size]
    made = ms.fft.irfftn(x, s=sizes, axes=dims, norm="forward")
    return _scaled(made, math.prod(sizes), normalization)


@lowers("prims.fft_r2c")
def prims_fft_r2c(x, dim, onesided):
    return fft_r2c(x, dim, 0, onesided)


@lowers("prims.fft_c2c")
def prims_fft_c2c(x, dim, forward):
    return fft_c2c(x, dim, 0, forward)


@lowers("prims.fft_c2r")
def prims_fft_c2r(x, dim, last_dim_size):
    return fft_c2r(x, dim, 0, last_dim_size)
