"""Sorting."""

from .common import ops

__all__ = ["argsort", "sort"]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort the elements along a dimension. Equal elements always keep their order.

    >>> ms.argsort(ms.asarray([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    return ops.argsort(x, axis, descending)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in ascending or descending order along a dimension.

    >>> ms.sort(ms.asarray([30, 10, 20]), descending=True).tolist()
    [30, 20, 10]
    """
    return ops.sort(x, axis, descending)
