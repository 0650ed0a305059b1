"""Counts of elements: in bins, by value, by pairs of values."""

import numpy

from .._array_api.common import ops, read
from .._array_api.creation import as_tensor

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]

_RULES = "bins of traced values: give their limits, or range= with a number of bins"


def bincount(x, weights=None, minlength=0, *, length=None):
    """How often each of 0, 1, ... is an element, or the sums of the weights of those elements.

    The largest element is read, unless `length` is the number of counts; larger elements are then left out.
    """
    x = ops.flatten(as_tensor(x))
    if x.dtype.kind not in "biu":
        raise TypeError(f"bincount takes integers, not {x.dtype}")
    if length is None:
        values = read(x, "bincount of traced values: the number of counts is not known; pass length=")
        if values.size and values.min() < 0:
            raise ValueError(f"bincount takes no negative numbers, such as {values.min()}")
        length = max(int(values.max()) + 1 if values.size else 0, minlength)
    weights = ops.ones(x.shape, "int32") if weights is None else ops.flatten(as_tensor(weights))
    if weights.shape != x.shape:
        raise ValueError(f"bincount has {weights.shape[0]} weights for {x.shape[0]} elements")
    if length == 0 or x.shape[0] == 0:
        return ops.zeros((length,), weights.dtype)
    return ops.segment_sum(weights, ops.astype(x, "int32"), length)


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The limits of bins: a number of equal ones between the extremes or in `range`, one of NumPy's rules, or given
    limits. Rules read the elements."""
    a = ops.flatten(as_tensor(a))
    if isinstance(bins, str):
        edges = numpy.histogram_bin_edges(read(a, _RULES), bins, range)
        return as_tensor(edges.astype("float32"))
    if not isinstance(bins, int | numpy.integer):
        return as_tensor(bins)
    dtype = a.dtype if a.dtype.kind == "f" else "float32"
    if range is not None:
        low, high = (ops.full((), each, dtype) for each in range)
        low, high = (low - 0.5, high + 0.5) if range[0] == range[1] else (low, high)
    elif a.shape[0] == 0:
        low, high = ops.zeros((), dtype), ops.ones((), dtype)
    else:
        low, high = (ops.astype(op(a, None, False), dtype) for op in (ops.min, ops.max))
        equal = ops.equal(low, high)
        low, high = ops.where(equal, low - 0.5, low), ops.where(equal, high + 0.5, high)
    steps = ops.arange(0, int(bins) + 1, 1, dtype) / int(bins)
    edges = low + (high - low) * steps
    return ops.concat([edges[:-1], ops.reshape(high, (1,))], 0)


def _places(a, edges):
    """The bin of each element, the last of which includes its upper limit; the number of bins outside of all."""
    bins = edges.shape[0] - 1
    place = ops.searchsorted(edges, a, "right", None) - 1
    place = ops.where(ops.equal(a, edges[-1]), ops.full((), bins - 1, place.dtype), place)
    outside = ops.logical_or(ops.less(place, 0), ops.greater_equal(place, bins))
    return ops.where(ops.logical_or(outside, ops.isnan(a)) if a.dtype.kind == "f" else outside,
                     ops.full((), bins, place.dtype), place)


def histogram(a, bins=10, range=None, density=False, weights=None):
    """The number of elements in each bin, or the sum of their weights; and the limits of the bins.

    With `density`, counts are divided by their sum and the widths of the bins. The last bin includes its upper limit.
    """
    counts, (edges,) = _counts([a], [bins], [range], weights)
    return _density(counts, [edges]) if density else counts, edges


def histogram2d(x, y, bins=10, range=None, density=False, weights=None):
    """The number of points (x, y) in each bin of a grid, and the limits along both dimensions."""
    pair = isinstance(bins, list | tuple) and len(bins) == 2
    counts, (first, second) = histogramdd([x, y], list(bins) if pair else [bins, bins], range, density, weights)
    return counts, first, second


def histogramdd(sample, bins=10, range=None, density=False, weights=None):
    """The number of points in each bin of a grid, as floats, and the limits along each dimension.

    `sample` is a list with the coordinates along each dimension, or an array with a point in each row.
    """
    columns = sample if isinstance(sample, list | tuple) else list(as_tensor(sample).T)
    given = bins if isinstance(bins, list | tuple) else [bins] * len(columns)
    counts, edges = _counts(columns, given, [None] * len(columns) if range is None else range, weights)
    return _density(counts, edges) if density else ops.astype(counts, edges[0].dtype), edges


def _density(counts, edges):
    counts = ops.astype(counts, edges[0].dtype)
    counts = counts / ops.sum(counts, None, False)
    for edge in edges:
        widths = ops.diff(edge, 0, 1, None, None)
        counts = counts / ops.reshape(widths, [-1 if each is edge else 1 for each in edges])
    return counts


def _counts(columns, bins, ranges, weights):
    columns = [ops.flatten(as_tensor(each)) for each in columns]
    edges = [histogram_bin_edges(*each) for each in zip(columns, bins, ranges, strict=True)]
    sizes = [each.shape[0] - 1 for each in edges]
    place, outside = None, None
    for column, limits, size in zip(columns, edges, sizes, strict=True):
        one = _places(ops.astype(column, limits.dtype), limits)
        beyond = ops.equal(one, size)
        place = one if place is None else place * size + one
        outside = beyond if outside is None else ops.logical_or(outside, beyond)
    total = int(numpy.prod(sizes))
    place = ops.where(outside, ops.full((), total, place.dtype), place)
    counts = bincount(ops.astype(place, "int32"), weights, length=total + 1)[:total]
    return ops.reshape(counts, tuple(sizes)), edges
