"""Utility functions: truth of all elements, and differences."""

from .common import ops

__all__ = ["all", "any", "diff"]


def all(x, /, *, axis=None, keepdims=False):
    """True if all elements along dimensions are true, or not zero.

    >>> ms.all(ms.asarray([[True, False], [True, True]]), axis=1).tolist()
    [False, True]
    """
    return ops.all(x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """True if any element along dimensions is true, or not zero.

    >>> ms.any(ms.asarray([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    return ops.any(x, axis, keepdims)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbors along a dimension, taken n times.

    >>> ms.diff(ms.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    return ops.diff(x, axis, n, prepend, append)
