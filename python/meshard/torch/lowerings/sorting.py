"""Sorting, ranks and searches in sorted sequences."""

import torch

import meshard as ms

from .._dtypes import promoted, to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, cast, dimension
from .dynamic import refuse
from .reductions import _reduced_shape, ordered


def _sorted(x, dim, descending):
    """The values and int64 indices of a stable sort; NaN counts as the largest. `x` has dimensions."""
    keys = ordered(x)
    values, indices = ms.sort([keys, ms.iota(ms.int64, x.shape, dim)], axis=dim, descending=descending)
    return cast(values, to_torch(x.dtype)), indices


def _scalar(x):
    return x, ms.zeros((), dtype=ms.int64)


@lowers("aten.sort.default")
def sort(x, dim=-1, descending=False):
    dim = dimension(dim, x.ndim)
    if not x.ndim:
        return _scalar(x)
    if 0 in x.shape:
        return x, ms.zeros(x.shape, dtype=ms.int64)
    return _sorted(x, dim, descending)


@lowers("aten.sort.stable")
def sort_stable(x, stable=True, dim=-1, descending=False):
    return sort(x, dim, descending)


@lowers("aten.argsort.default")
def argsort(x, dim=-1, descending=False):
    return sort(x, dim, descending)[1]


@lowers("aten.argsort.stable")
def argsort_stable(x, stable=True, dim=-1, descending=False):
    return sort(x, dim, descending)[1]


def _part(x, dim, start, stop):
    return x[(slice(None),) * dim + (slice(start, stop),)]


def _one(x, dim, index, keepdim):
    made = _part(x, dim, index, index + 1)
    return made if keepdim else ms.reshape(made, _reduced_shape(x, (dim,), False))


@lowers("aten.topk")
def topk(x, k, dim=-1, largest=True, sorted=True):
    dim = dimension(dim, x.ndim)
    if not x.ndim:
        return _scalar(x) if k else (ms.zeros((0,), dtype=x.dtype), ms.zeros((0,), dtype=ms.int64))
    if largest and 0 not in x.shape:
        values, indices = ms.top_k(ordered(x), k, axis=dim)
        return cast(values, to_torch(x.dtype)), ms.astype(indices, ms.int64)
    values, indices = sort(x, dim, largest)
    return _part(values, dim, 0, k), _part(indices, dim, 0, k)


@lowers("aten.kthvalue")
def kthvalue(x, k, dim=-1, keepdim=False):
    dim = dimension(dim, x.ndim)
    if not x.ndim:
        return _scalar(x)
    values, indices = sort(x, dim)
    return _one(values, dim, k - 1, keepdim), _one(indices, dim, k - 1, keepdim)


def _median(x, dim, keepdim, ignore_nan):
    """The lower median and its index. With a NaN: the median of the others, or else the first NaN."""
    if not x.ndim:
        return _scalar(x)
    size = x.shape[dim]
    if 0 in _reduced_shape(x, (dim,), keepdim):
        shape = _reduced_shape(x, (dim,), keepdim)
        return ms.zeros(shape, dtype=x.dtype), ms.zeros(shape, dtype=ms.int64)
    values, indices = _sorted(x, dim, False)
    missing = ms.sum(cast(ms.not_equal(x, x), torch.int64), axis=dim, keepdims=True)
    numbers = ms.subtract(ms.full((), size, dtype=ms.int64), missing)
    # NaN is sorted after all numbers, so the first NaN follows the last number.
    middle = ms.floor_divide(ms.subtract(numbers, 1), 2)
    if ignore_nan:
        place = ms.maximum(middle, ms.zeros_like(middle))
    else:
        place = ms.where(ms.greater(missing, 0), numbers, middle)
    found = ms.take_along_axis(values, place, axis=dim), ms.take_along_axis(indices, place, axis=dim)
    return found if keepdim else tuple(ms.reshape(each, _reduced_shape(x, (dim,), False)) for each in found)


def _median_of_all(x, ignore_nan):
    if 0 in x.shape:
        return ms.full((), float("nan"), dtype=x.dtype)
    return _median(ms.reshape(x, (-1,)), 0, False, ignore_nan)[0]


@lowers("aten.median.default")
def median(x):
    return _median_of_all(x, False)


@lowers("aten.nanmedian.default")
def nanmedian(x):
    return _median_of_all(x, True)


@lowers("aten.median.dim")
def median_of_dim(x, dim, keepdim=False):
    return _median(x, dimension(dim, x.ndim), keepdim, False)


@lowers("aten.nanmedian.dim")
def nanmedian_of_dim(x, dim, keepdim=False):
    return _median(x, dimension(dim, x.ndim), keepdim, True)


@lowers("aten.mode")
def mode(x, dim=-1, keepdim=False):
    """The most frequent element, the smallest of several, and the index of its last occurrence."""
    dim = dimension(dim, x.ndim)
    if not x.ndim:
        return _scalar(x)
    shape = _reduced_shape(x, (dim,), keepdim)
    if 0 in shape:
        return ms.zeros(shape, dtype=x.dtype), ms.zeros(shape, dtype=ms.int64)
    values, indices = _sorted(x, dim, False)
    size = x.shape[dim]
    places = ms.iota(ms.int64, x.shape, dim)
    before, after = _part(values, dim, 0, size - 1), _part(values, dim, 1, size)
    changes = ms.not_equal(before, after)
    edge = ms.ones(tuple(1 if d == dim else n for d, n in enumerate(x.shape)), dtype=ms.bool)
    starts = ms.concat([edge, changes], axis=dim)
    ends = ms.concat([changes, edge], axis=dim)
    first = ms.cumulative_max(ms.where(starts, places, ms.zeros_like(places)), axis=dim)
    length = ms.where(ends, ms.subtract(places, first), ms.full((), -1, dtype=ms.int64))
    place = ms.astype(ms.argmax(length, axis=dim, keepdims=True), ms.int64)
    found = ms.take_along_axis(values, place, axis=dim), ms.take_along_axis(indices, place, axis=dim)
    return tuple(ms.reshape(each, shape) for each in found)


@lowers("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(sequence, x, out_int32=False, right=False, side=None, sorter=None):
    """The insertion indices into sequences along the last dimension, by one binary search for all elements."""
    right = right or side == "right"
    dtype = promoted((sequence, x))
    sequence, x = as_dtype(sequence, dtype), as_dtype(x, dtype)
    size, shape = sequence.shape[-1], x.shape
    if 0 in sequence.shape or 0 in shape:
        return ms.zeros(shape, dtype=ms.int32 if out_int32 else ms.int64)
    if sorter is not None:
        sequence = ms.take_along_axis(sequence, sorter, axis=-1)
    sequence, needles = ordered(sequence), ordered(x)
    if sequence.ndim == 1:
        needles = ms.reshape(needles, (-1,))
    low = ms.zeros(needles.shape, dtype=ms.int64)
    high = ms.full(needles.shape, size, dtype=ms.int64)
    for _ in range(size.bit_length()):
        middle = ms.floor_divide(ms.add(low, high), 2)
        at = ms.take_along_axis(sequence, ms.minimum(middle, ms.full((), size - 1, dtype=ms.int64)), axis=-1)
        # Not negated comparisons: NaN goes after all numbers.
        beyond = ms.logical_not(ms.greater(at, needles) if right else ms.greater_equal(at, needles))
        beyond = ms.logical_and(beyond, ms.less(low, high))
        low, high = ms.where(beyond, ms.add(middle, 1), low), ms.where(beyond, high, middle)
    return ms.astype(ms.reshape(low, shape), ms.int32 if out_int32 else ms.int64)


@lowers("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(x, boundaries, out_int32=False, right=False):
    return searchsorted(boundaries, x, out_int32, right)


@lowers("aten.repeat_interleave.Tensor")
def repeat_interleave(repeats, output_size=None):
    """0 repeats[0] times, 1 repeats[1] times, and so on; `output_size` is the sum of the repeats."""
    if not isinstance(output_size, int):
        refuse("aten.repeat_interleave.Tensor", "output_size")
    ends = ms.cumulative_sum(cast(repeats, torch.int64), axis=0)
    made = searchsorted(ends, ms.arange(0, output_size, 1, dtype=ms.int64), right=True)
    return cast(made, to_torch(repeats.dtype))
