"""Discrete Fourier transforms: the `fft` extension of the array API standard."""

import math

from ._array_api.common import COMPLEX, DEFAULT_COMPLEX, DEFAULT_FLOAT, axes_of, axis_of, check_device, ops
from ._array_api.creation import as_tensor
from ._names import shown as _shown

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft",
           "rfftfreq", "rfftn"]
__getattr__, __dir__ = _shown(__name__)


def _scaled(x, norm, length, forward):
    """Applies the norm to an unnormalized forward transform, or to an inverse that was divided by its length."""
    if norm == "backward":
        return x
    if norm not in ("ortho", "forward"):
        raise ValueError(f"unknown norm {norm!r} of a transform: use 'backward', 'ortho' or 'forward'")
    factor = math.sqrt(length) if norm == "ortho" else length
    return x / factor if forward else x * factor


def _along_one(op, x, n, axis, norm, forward, length=None):
    x = as_tensor(x)
    axis_of(axis, x.ndim)
    length = length or n or x.shape[axis]
    return _scaled(op(x, n, axis), norm, length, forward)


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform along a dimension, which is first truncated or padded with zeros to n elements.

    >>> ms.fft.fft(ms.asarray([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _along_one(ops.fft, x, n, axis, norm, True)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of fft.

    >>> ms.fft.ifft(ms.asarray([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _along_one(ops.ifft, x, n, axis, norm, False)


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The elements 0 to n / 2 of the transform of real numbers.

    >>> ms.fft.rfft(ms.ones(4)).tolist()
    [(4+0j), 0j, 0j]
    """
    return _along_one(ops.rfft, x, n, axis, norm, True)


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of rfft: n real numbers, by default 2 * (size - 1).

    >>> ms.fft.irfft(ms.fft.rfft(ms.asarray([1.0, 2.0, 3.0, 4.0]))).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    x = as_tensor(x)
    return _along_one(ops.irfft, x, n, axis, norm, False, n or 2 * (x.shape[axis] - 1))


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The real transform of Hermitian-symmetric numbers, of which the first half is given: n numbers."""
    x = as_tensor(x)
    return _along_one(ops.hfft, x, n, axis, norm, True, n or 2 * (x.shape[axis] - 1))


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of hfft."""
    return _along_one(ops.ihfft, x, n, axis, norm, False)


def _axes_and_sizes(x, s, axes):
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = axes_of(tuple(axes), x.ndim)
    sizes = [None] * len(axes) if s is None else [None if size == -1 else size for size in s]
    if len(sizes) != len(axes):
        raise ValueError(f"{len(sizes)} sizes are given for {len(axes)} dimensions")
    return axes, sizes


def _complex(x):
    if x.dtype in COMPLEX:
        return x
    return ops.astype(x, "complex128" if x.dtype == "float64" else DEFAULT_COMPLEX)


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """The transform along several dimensions, by default all, each first truncated or padded to its size of `s`.

    >>> ms.fft.fftn(ms.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    x = as_tensor(x)
    for axis, size in zip(*_axes_and_sizes(x, s, axes), strict=True):
        x = fft(x, n=size, axis=axis, norm=norm)
    return _complex(x)


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of fftn."""
    x = as_tensor(x)
    for axis, size in zip(*_axes_and_sizes(x, s, axes), strict=True):
        x = ifft(x, n=size, axis=axis, norm=norm)
    return _complex(x)


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The transform of real numbers along several dimensions; along the last of them as rfft."""
    x = as_tensor(x)
    axes, sizes = _axes_and_sizes(x, s, axes)
    x = rfft(x, n=sizes[-1], axis=axes[-1], norm=norm)
    for axis, size in zip(axes[:-1], sizes[:-1]):
        x = fft(x, n=size, axis=axis, norm=norm)
    return x


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of rfftn. The last size of `s` is that of the result."""
    x = as_tensor(x)
    axes, sizes = _axes_and_sizes(x, s, axes)
    for axis, size in zip(axes[:-1], sizes[:-1]):
        x = ifft(x, n=size, axis=axis, norm=norm)
    return irfft(x, n=sizes[-1], axis=axes[-1], norm=norm)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of fft over n samples with the distance d.

    >>> ms.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    check_device(device)
    return ops.fftfreq(n, d, DEFAULT_FLOAT if dtype is None else dtype)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of rfft over n samples with the distance d."""
    check_device(device)
    return ops.rfftfreq(n, d, DEFAULT_FLOAT if dtype is None else dtype)


def fftshift(x, /, *, axes=None):
    """Moves frequency 0 from the front to the middle along dimensions, by default all.

    >>> ms.fft.fftshift(ms.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return ops.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift."""
    return ops.ifftshift(x, axes)
