"""Sorting, searching in sorted vectors, sets of distinct elements."""

import numpy

from .._array_api import set_functions, sorting
from .._array_api.common import made_by_numpy, ops, read
from .._array_api.creation import as_tensor

__all__ = ["argpartition", "argsort", "digitize", "in1d", "intersect1d", "isin", "lexsort", "partition", "searchsorted",
           "setdiff1d", "setxor1d", "sort", "sort_complex", "union1d", "unique", "unique_all", "unique_counts",
           "unique_inverse", "unique_values"]

unique_all, unique_counts = set_functions.unique_all, set_functions.unique_counts
unique_inverse, unique_values = set_functions.unique_inverse, set_functions.unique_values


def sort(a, axis=-1, stable=True):
    """The elements in ascending order along a dimension; without one of all in row-major order."""
    a = as_tensor(a)
    return ops.sort(ops.flatten(a), 0) if axis is None else sorting.sort(a, axis=axis)


def argsort(a, axis=-1, stable=True):
    """The indices that sort the elements along a dimension; without one in row-major order."""
    a = as_tensor(a)
    return ops.argsort(ops.flatten(a), 0) if axis is None else ops.argsort(a, axis)


def sort_complex(a):
    """The elements as complex numbers, in the order of their real and then imaginary parts."""
    a = as_tensor(a)
    if a.dtype.kind != "c":
        a = ops.astype(a, "complex64")
    flat = lexsort((ops.imag(a), ops.real(a)))
    return ops.take_along_axis(a, flat, -1)


def lexsort(keys, axis=-1):
    """The indices that sort by several keys, of which the last one is the first."""
    keys = [as_tensor(each) for each in (keys if isinstance(keys, list | tuple) else as_tensor(keys))]
    order = ops.argsort(keys[0], axis)
    for key in keys[1:]:
        order = ops.take_along_axis(order, ops.argsort(ops.take_along_axis(key, order, axis), axis), axis)
    return order


def partition(a, kth, axis=-1):
    """The elements with those at the places `kth` where sorting puts them. All are sorted."""
    return sort(a, axis)


def argpartition(a, kth, axis=-1):
    """The indices for `partition`."""
    return argsort(a, axis)


def searchsorted(a, v, side="left", sorter=None):
    """The index at which each element of v is inserted into the ascending vector a: before or after equal ones."""
    return ops.searchsorted(as_tensor(a), as_tensor(v), side, sorter)


def digitize(x, bins, right=False):
    """The number of the bin of each element, between limits that ascend or descend."""
    x, bins = as_tensor(x), as_tensor(bins)
    if bins.shape[0] < 2:
        return ops.searchsorted(bins, x, "left" if right else "right", None)
    ascending = ops.searchsorted(bins, x, "left" if right else "right", None)
    descending = ops.searchsorted(ops.flip(bins, 0), x, "right" if right else "left", None)
    return ops.where(ops.less_equal(bins[0], bins[-1]), ascending, bins.shape[0] - descending)


def isin(element, test_elements, assume_unique=False, invert=False):
    """True where an element equals any of the test elements; negated if `invert`."""
    return ops.isin(as_tensor(element), as_tensor(test_elements), invert)


in1d = isin

_SIZE = "the distinct elements of a traced value: their number is not known; pass size="


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, size=None):
    """The distinct elements, or slices along `axis`, in ascending order; also their first indices, the index of each
    element's value, and their counts. NaN are one. It reads the elements, unless `size` says how many there are."""
    ar = as_tensor(ar)
    if size is not None:
        if axis is not None:
            raise ValueError("unique with size= takes no axis=")
        found = ops.unique_all(ar, size)
        values, rest = found.values, (found.indices, found.inverse_indices, found.counts)
    else:
        values, *rest = numpy.unique(read(ar, _SIZE), True, True, True, axis)
        values, rest = made_by_numpy(values), [made_by_numpy(each.astype("int32")) for each in rest]
    wanted = [each for each, is_wanted in zip(rest, (return_index, return_inverse, return_counts), strict=True)
              if is_wanted]
    return (values, *wanted) if wanted else values


def _of_sets(function, ar1, ar2):
    return made_by_numpy(function(read(as_tensor(ar1), _SETS), read(as_tensor(ar2), _SETS)))


_SETS = "a set of traced values: its size is not known; use isin() with masks"


def union1d(ar1, ar2):
    """The distinct elements of both. It reads the elements."""
    return _of_sets(numpy.union1d, ar1, ar2)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The distinct elements that both have; also their first indices in each. It reads the elements."""
    if not return_indices:
        return _of_sets(numpy.intersect1d, ar1, ar2)
    values, *places = numpy.intersect1d(read(as_tensor(ar1), _SETS), read(as_tensor(ar2), _SETS), return_indices=True)
    return (made_by_numpy(values), *(made_by_numpy(each.astype("int32")) for each in places))


def setdiff1d(ar1, ar2, assume_unique=False):
    """The distinct elements of the first that the second has not. It reads the elements."""
    return _of_sets(numpy.setdiff1d, ar1, ar2)


def setxor1d(ar1, ar2, assume_unique=False):
    """The distinct elements that only one of them has. It reads the elements."""
    return _of_sets(numpy.setxor1d, ar1, ar2)
