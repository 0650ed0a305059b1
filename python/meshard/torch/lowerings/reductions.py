"""Reductions."""

import math

import torch

import meshard as ms

from .._dtypes import to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, cast, dimension, dimensions

_HALF = (torch.float16, torch.bfloat16)


def _summed_dtype(x, dtype):
    present = to_torch(x.dtype)
    if dtype is not None:
        return dtype
    return present if present.is_floating_point or present.is_complex else torch.int64


def _float_dtype(x):
    present = to_torch(x.dtype)
    return present if present.is_floating_point or present.is_complex else torch.get_default_dtype()


def _wide(x):
    """16-bit floats as float32, in which PyTorch accumulates them."""
    return cast(x, torch.float32) if to_torch(x.dtype) in _HALF else x


def _reduced_shape(x, dims, keepdim):
    return tuple(1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims)


def ordered(x):
    """Booleans as uint8, which have an order in meshard; other tensors as they are."""
    return cast(x, torch.uint8) if to_torch(x.dtype) == torch.bool else x


@lowers("aten.sum.default", "aten.sum.dim_IntList")
def sum_of(x, dim=None, keepdim=False, dtype=None):
    return ms.sum(as_dtype(x, _summed_dtype(x, dtype)), axis=dimensions(dim, x.ndim), keepdims=keepdim)


@lowers("aten.nansum")
def nansum(x, dim=None, keepdim=False, dtype=None):
    return sum_of(ms.where(ms.not_equal(x, x), ms.zeros_like(x), x), dim, keepdim, dtype)


@lowers("aten.prod.default")
def prod(x, dtype=None):
    return ms.prod(as_dtype(x, _summed_dtype(x, dtype)), axis=dimensions(None, x.ndim))


@lowers("aten.prod.dim_int")
def prod_of_dim(x, dim, keepdim=False, dtype=None):
    return ms.prod(as_dtype(x, _summed_dtype(x, dtype)), axis=dimensions(dim, x.ndim), keepdims=keepdim)


@lowers("prims.sum")
def prims_sum(x, dims, output_dtype=None):
    made = ms.sum(x, axis=tuple(dims if dims is not None else range(x.ndim)))
    return cast(made, output_dtype or to_torch(x.dtype))


@lowers("prims.prod")
def prims_prod(x, dims, output_dtype=None):
    made = ms.prod(x, axis=tuple(dims if dims is not None else range(x.ndim)))
    return cast(made, output_dtype or to_torch(x.dtype))


@lowers("aten.mean.default", "aten.mean.dim")
def mean(x, dim=None, keepdim=False, dtype=None):
    dtype = dtype or to_torch(x.dtype)
    return cast(ms.mean(_wide(cast(x, dtype)), axis=dimensions(dim, x.ndim), keepdims=keepdim), dtype)


def mean_and_variance(x, dims, correction, keepdim):
    """Mean and variance with the kept or dropped dimensions; complex numbers have a real variance."""
    dtype = to_torch(x.dtype)
    x = _wide(x)
    count = math.prod(x.shape[d] for d in dims)
    average = ms.mean(x, axis=dims, keepdims=True)
    distance = ms.subtract(x, average)
    squares = ms.square(ms.abs(distance)) if dtype.is_complex else ms.square(distance)
    total = ms.sum(squares, axis=dims, keepdims=keepdim)
    # A correction as large as the number of elements gives infinity or NaN, never a negative variance.
    divisor = max(count - (1 if correction is None else correction), 0)
    variance = ms.divide(total, ms.full((), divisor, dtype=total.dtype))
    if not keepdim:
        average = ms.reshape(average, _reduced_shape(x, dims, False))
    real = dtype.to_real() if dtype.is_complex else dtype
    return cast(average, dtype), variance, real


@lowers("aten.var.correction")
def var(x, dim=None, correction=None, keepdim=False):
    _, variance, dtype = mean_and_variance(x, dimensions(dim, x.ndim), correction, keepdim)
    return cast(variance, dtype)


@lowers("aten.std.correction")
def std(x, dim=None, correction=None, keepdim=False):
    _, variance, dtype = mean_and_variance(x, dimensions(dim, x.ndim), correction, keepdim)
    return cast(ms.sqrt(variance), dtype)


@lowers("aten.var_mean.correction")
def var_mean(x, dim=None, correction=None, keepdim=False):
    average, variance, dtype = mean_and_variance(x, dimensions(dim, x.ndim), correction, keepdim)
    return cast(variance, dtype), average


@lowers("aten.std_mean.correction")
def std_mean(x, dim=None, correction=None, keepdim=False):
    average, variance, dtype = mean_and_variance(x, dimensions(dim, x.ndim), correction, keepdim)
    return cast(ms.sqrt(variance), dtype), average


@lowers("prims.var")
def prims_var(x, dims, correction=1, output_dtype=None):
    dims = tuple(dims if dims is not None else range(x.ndim))
    _, variance, dtype = mean_and_variance(x, dims, correction, False)
    return cast(variance, output_dtype or dtype)


def _extreme(function, x, dim, keepdim):
    dims = dimensions(dim, x.ndim)
    if dim in (None, (), []) and not x.size:
        raise RuntimeError("[torch] Expected reduction dim to be specified for a tensor without elements")
    if empty := [each for each in dims if x.ndim and not x.shape[each]]:
        raise IndexError(f"[torch] Expected reduction dim {empty[0]} to have non-zero size: {tuple(x.shape)}")
    if 0 in (shape := _reduced_shape(x, dims, keepdim)):
        return ms.zeros(shape, dtype=x.dtype)
    return cast(function(ordered(x), axis=dims, keepdims=keepdim), to_torch(x.dtype)) if x.ndim else x


@lowers("aten.amax", "aten.max.default", "prims.amax")
def amax(x, dim=(), keepdim=False, output_dtype=None):
    made = _extreme(ms.max, x, dim, keepdim)
    return made if output_dtype is None else cast(made, output_dtype)


@lowers("aten.amin", "aten.min.default", "prims.amin")
def amin(x, dim=(), keepdim=False, output_dtype=None):
    made = _extreme(ms.min, x, dim, keepdim)
    return made if output_dtype is None else cast(made, output_dtype)


@lowers("aten.aminmax")
def aminmax(x, dim=None, keepdim=False):
    return amin(x, dim, keepdim), amax(x, dim, keepdim)


def _position(function, x, dim, keepdim):
    """The int64 index of the first extreme element; of the first NaN if there is one."""
    if not x.ndim:
        return ms.zeros((), dtype=ms.int64)
    if dim is None:
        index = cast(function(ms.reshape(ordered(x), (-1,)), axis=0), torch.int64)
        return ms.reshape(index, (1,) * x.ndim) if keepdim else index
    dims = dimensions(dim, x.ndim)
    if 0 in (shape := _reduced_shape(x, dims, keepdim)):
        return ms.zeros(shape, dtype=ms.int64)
    return cast(function(ordered(x), axis=dims[0], keepdims=keepdim), torch.int64)


@lowers("aten.argmax")
def argmax(x, dim=None, keepdim=False):
    return _position(ms.argmax, x, dim, keepdim)


@lowers("aten.argmin")
def argmin(x, dim=None, keepdim=False):
    return _position(ms.argmin, x, dim, keepdim)


@lowers("aten.max.dim")
def max_of_dim(x, dim, keepdim=False):
    return amax(x, dim, keepdim), argmax(x, dim, keepdim)


@lowers("aten.min.dim")
def min_of_dim(x, dim, keepdim=False):
    return amin(x, dim, keepdim), argmin(x, dim, keepdim)


def _truth(function, x, dim, keepdim):
    # The result of uint8 is uint8, for historical reasons.
    dtype = torch.uint8 if to_torch(x.dtype) == torch.uint8 else torch.bool
    if isinstance(dim, (list, tuple)) and not dim:
        return cast(cast(x, torch.bool), dtype)
    return cast(function(cast(x, torch.bool), axis=dimensions(dim, x.ndim), keepdims=keepdim), dtype)


@lowers("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_of(x, dim=None, keepdim=False):
    return _truth(ms.any, x, dim, keepdim)


@lowers("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_of(x, dim=None, keepdim=False):
    return _truth(ms.all, x, dim, keepdim)


@lowers("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(x, dim=None):
    return ms.sum(cast(cast(x, torch.bool), torch.int64), axis=dimensions(dim, x.ndim))


@lowers("aten.logsumexp")
def logsumexp(x, dim, keepdim=False):
    dtype = _float_dtype(x)
    dims = dimensions(dim, x.ndim)
    x = _wide(cast(x, dtype))
    if math.prod(x.shape[d] for d in dims) == 0:
        return cast(ms.log(ms.sum(ms.exp(x), axis=dims, keepdims=keepdim)), dtype)
    largest = ms.real(x) if dtype.is_complex else x
    largest = ms.max(largest, axis=dims, keepdims=True) if x.ndim else largest
    largest = ms.where(ms.isinf(largest), ms.zeros_like(largest), largest)
    total = ms.sum(ms.exp(ms.subtract(x, largest)), axis=dims, keepdims=keepdim)
    shift = largest if keepdim else ms.reshape(largest, _reduced_shape(x, dims, False))
    return cast(ms.add(ms.log(total), shift), dtype)


@lowers("aten.hash_tensor")
def hash_tensor(x, dim=(), keepdim=False, mode=0):
    """The exclusive or of the elements' bits: floats as float64, integers as int64."""
    if mode:
        raise NotImplementedError(f"[torch] hash_tensor with mode={mode}")
    dtype = to_torch(x.dtype)
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    bits = ms.astype(x, ms.uint64) if dtype in (torch.bool, torch.uint64) else ms.bitcast_convert(
        cast(x, wide), ms.uint64)
    for d in dimensions(dim, x.ndim):
        size = bits.shape[d]
        if not size:
            bits = ms.zeros(tuple(1 if e == d else n for e, n in enumerate(bits.shape)), dtype=ms.uint64)
        while size > 1:
            front = (slice(None),) * d
            half = size // 2
            folded = ms.bitwise_xor(bits[front + (slice(0, half),)], bits[front + (slice(half, 2 * half),)])
            bits = ms.concat([folded, bits[front + (slice(2 * half, size),)]], axis=d) if size % 2 else folded
            size = bits.shape[d]
    return ms.reshape(bits, _reduced_shape(x, dimensions(dim, x.ndim), keepdim))
