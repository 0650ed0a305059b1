"""Sorting."""

from .common import ops

__all__ = ["argsort", "sort"]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort the elements along a dimension. Equal elements always keep their order."""
    return ops.argsort(x, axis, descending)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in ascending or descending order along a dimension."""
    return ops.sort(x, axis, descending)
