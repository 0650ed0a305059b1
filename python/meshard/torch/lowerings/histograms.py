"""Histograms."""

import builtins
import math

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import as_dtype, cast
from .shapes import linspace
from .sorting import searchsorted


@lowers("aten.histc")
def histc(x, bins=100, min=0, max=0):
    """The number of elements in each of `bins` equal parts of [min, max]; NaN and what is outside is not counted."""
    flat = ms.reshape(x, (-1,))
    dtype = to_torch(x.dtype)
    # In the dtype of the elements, as in PyTorch: rounding decides about elements at edges.
    wide = flat if dtype.is_floating_point else cast(flat, torch.float64)
    number = wide.dtype
    if min == max and flat.shape[0]:
        low, high = ms.min(wide), ms.max(wide)
    else:
        low, high = ms.full((), min, dtype=number), ms.full((), max, dtype=number)
    equal = ms.equal(low, high)
    low, high = ms.where(equal, low - 1, low), ms.where(equal, high + 1, high)
    place = ms.floor(ms.divide(ms.multiply(ms.subtract(wide, low), bins), ms.subtract(high, low)))
    place = ms.where(ms.equal(wide, high), ms.full((), bins - 1, dtype=number), place)
    inside = ms.logical_and(ms.greater_equal(wide, low), ms.less_equal(wide, high))
    index = cast(ms.where(inside, place, ms.full((), bins, dtype=number)), torch.int64)
    counts = ms.scatter_add(ms.zeros((bins,), dtype=ms.int64), ms.reshape(index, (-1, 1)),
                            ms.ones(flat.shape, dtype=ms.int64), inserted_window_dims=(0,),
                            scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
    return cast(counts, dtype)


def _edges(column, bins, low_and_high):
    """bins + 1 edges of equal bins between two numbers, or else between the least and the largest element."""
    dtype = to_torch(column.dtype)
    if low_and_high is not None:
        low, high = (as_dtype(each, dtype) for each in low_and_high)
    elif column.shape[0]:
        low, high = ms.min(column), ms.max(column)
    else:
        low, high = as_dtype(0.0, dtype), as_dtype(1.0, dtype)
    equal = ms.equal(low, high)
    low, high = ms.where(equal, low - 0.5, low), ms.where(equal, high + 0.5, high)
    return linspace(low, high, bins + 1, dtype)


def _histogram(columns, edges, weight, density):
    """The sums of weights in the bins between the edges of each column; the last bin contains its right edge."""
    dtype = to_torch(columns[0].dtype)
    shape = tuple(each.shape[0] - 1 for each in edges)
    place = ms.zeros(columns[0].shape, dtype=ms.int64)
    inside = ms.ones(columns[0].shape, dtype=ms.bool)
    for column, ends, count in zip(columns, edges, shape):
        low, high = ends[0], ends[count]
        inside = ms.logical_and(inside, ms.logical_and(ms.greater_equal(column, low), ms.less_equal(column, high)))
        number = ms.subtract(searchsorted(ends, column, right=True), 1)
        place = ms.add(ms.multiply(place, count), ms.clip(number, 0, count - 1))
    total = math.prod(shape)
    # An index beyond the end is dropped.
    place = ms.where(inside, place, ms.full((), total, dtype=ms.int64))
    added = ms.ones(columns[0].shape, dtype=columns[0].dtype) if weight is None else cast(weight, dtype)
    sums = ms.scatter_add(ms.zeros((total,), dtype=columns[0].dtype), ms.reshape(place, (-1, 1)),
                          ms.reshape(added, (-1,)), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,),
                          index_vector_dim=1)
    sums = ms.reshape(sums, shape)
    if density:
        sums = ms.divide(sums, ms.sum(sums))
        for d, ends in enumerate(edges):
            widths = ms.subtract(ends[1:], ends[:-1])
            sums = ms.divide(sums, ms.reshape(widths, tuple(-1 if e == d else 1 for e in range(len(shape)))))
    return sums


@lowers("aten.histogram.bin_ct")
def histogram(x, bins=100, range=None, weight=None, density=False):
    column = ms.reshape(x, (-1,))
    edges = _edges(column, bins, range)
    return _histogram([column], [edges], weight, density), edges


@lowers("aten.histogram.bins_tensor")
def histogram_of_edges(x, bins, weight=None, density=False):
    return _histogram([ms.reshape(x, (-1,))], [bins], weight, density), bins


def _columns(x):
    rows = ms.reshape(x, (-1, x.shape[-1]))
    return [rows[:, d] for d in range(x.shape[-1])]


@lowers("aten._histogramdd_bin_edges")
def histogramdd_bin_edges(x, bins, range=None, weight=None, density=False):
    pairs = [None] * len(bins) if range is None else [range[2 * d:2 * d + 2] for d in builtins.range(len(bins))]
    return [_edges(column, count, pair) for column, count, pair in zip(_columns(x), bins, pairs)]


@lowers("aten._histogramdd_from_bin_cts")
def histogramdd(x, bins, range=None, weight=None, density=False):
    return _histogram(_columns(x), histogramdd_bin_edges(x, bins, range), weight, density)


@lowers("aten._histogramdd_from_bin_tensors")
def histogramdd_of_edges(x, bins, weight=None, density=False):
    return _histogram(_columns(x), list(bins), weight, density)
