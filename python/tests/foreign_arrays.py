"""Arrays of other libraries for the tests: those that are installed, and small ones with one protocol each."""

import array
import importlib.util

import ml_dtypes
import numpy as np

import meshard as ms


class OfDlpack:
    """An array with DLPack alone."""

    def __init__(self, values):
        self._values = np.array(values)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self._values.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class OfArray:
    """An array with `__array__` alone."""

    def __init__(self, values):
        self._values = np.array(values, subok=True)

    def __array__(self, dtype=None, copy=None):
        return self._values.astype(dtype) if dtype else self._values


class OfInterface:
    """An array with `__array_interface__` alone."""

    def __init__(self, values):
        self._values = np.array(values)

    @property
    def __array_interface__(self):
        return self._values.__array_interface__


def _has(dtypes, *kinds):
    return lambda values: values.dtype.kind in kinds or values.dtype.name in dtypes


def _buffer(values):
    if values.ndim == 1 and values.dtype.char in "bBhHiIlLfd":
        return array.array(values.dtype.char, values.tolist())
    return memoryview(np.array(values))


def _torch(values):
    import torch
    if values.dtype == ml_dtypes.bfloat16:
        made = torch.from_numpy(values.astype(np.float32)).to(torch.bfloat16)
    else:
        made = torch.from_numpy(np.array(values))
    kind = values.size % 3
    if made.is_floating_point() and kind == 0:
        made = made.requires_grad_()
    if made.is_complex() and kind == 0:
        made = torch.from_numpy(np.conj(values)).conj()
    if values.ndim == 2 and kind == 1:
        made = made.T.contiguous().T  # strided
    return made


def _jax(values):
    import jax
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(values)


_STANDARD = _has((), "b", "i", "u", "f", "c")

# By name: (makes an array of a NumPy array, whether it can).
LIBRARIES = {
    "numpy": (np.array, lambda values: True),
    "strided": (lambda values: np.flip(np.flip(values).copy()) if values.ndim else np.array(values),
                lambda values: True),
    "scalar": (lambda values: values[()], lambda values: values.ndim == 0),
    "dlpack": (OfDlpack, _STANDARD),
    "array": (OfArray, lambda values: True),
    "interface": (OfInterface, _STANDARD),
    "buffer": (_buffer, lambda values: _STANDARD(values) and values.dtype.kind != "c"),
}
if importlib.util.find_spec("torch"):
    LIBRARIES["torch"] = (_torch, _has(("bfloat16",), "b", "i", "u", "f", "c"))
if importlib.util.find_spec("jax"):
    LIBRARIES["jax"] = (_jax, lambda values: True)


def made_by(library, values):
    """An array of a library with the elements of a NumPy array; a NumPy array if the library lacks the dtype."""
    make, can = LIBRARIES[library]
    return make(values) if can(values) else np.array(values)


def same(one, other):
    """Whether two structures have the same leaves, bit for bit."""
    if ms.tree.structure(one) != ms.tree.structure(other):
        return False
    return all(a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()
               for a, b in zip(ms.tree.leaves(one), ms.tree.leaves(other), strict=True))
