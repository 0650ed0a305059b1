"""Set functions: distinct elements. They read the elements; inside jit pass `size`."""

from collections import namedtuple

import numpy

from .. import _meshard
from .common import made_by_numpy, ops, read
from .creation import as_tensor

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

_All = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
_Counts = namedtuple("UniqueCounts", ["values", "counts"])
_Inverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])

_SIZE = ("the distinct elements of a traced value: their number is not known; pass size=, the number of values to "
         "return")


def _unique(x):
    """The distinct elements with indices, inverse indices and counts. Each NaN is distinct."""
    x = as_tensor(x)
    found = numpy.unique(read(x, _SIZE), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    dtype = "int32" if x.size < 2**31 else "int64"
    values, indices, inverse, counts = found
    rest = (made_by_numpy(each.astype(dtype)) for each in (indices, inverse.reshape(x.shape), counts))
    indices, inverse, counts = rest
    if _meshard.is_differentiating():  # not a constant
        return ops.take(ops.flatten(x), indices), indices, inverse, counts
    return made_by_numpy(values), indices, inverse, counts


def unique_all(x, /, *, size=None):
    """The distinct elements in ascending order, with the index of their first occurrence, the index of each element's
    value, and how often each occurs.

    Each NaN is distinct. With `size` the result has that many values: the last one is repeated with the count 0, or
    larger ones are left out.
    """
    if size is None:
        return _All(*_unique(x))
    found = ops.unique_all(x, size)
    return _All(found.values, found.indices, found.inverse_indices, found.counts)


def unique_counts(x, /, *, size=None):
    """The distinct elements and how often each occurs; see unique_all."""
    if size is None:
        found = _unique(x)
        return _Counts(found[0], found[3])
    return _Counts(*ops.unique_counts(x, size))


def unique_inverse(x, /, *, size=None):
    """The distinct elements and the index of each element's value; see unique_all."""
    if size is None:
        found = _unique(x)
        return _Inverse(found[0], found[2])
    return _Inverse(*ops.unique_inverse(x, size))


def unique_values(x, /, *, size=None):
    """The distinct elements; see unique_all.

    >>> ms.unique_values(ms.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return _unique(x)[0] if size is None else ops.unique_values(x, size)


def isin(x1, x2, /, *, invert=False):
    """True where an element of x1 equals any element of x2; negated if `invert`.

    >>> ms.isin(ms.asarray([1, 2, 3]), ms.asarray([3, 1])).tolist()
    [True, False, True]
    """
    return ops.isin(x1, x2, invert)
