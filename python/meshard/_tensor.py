"""The methods of Tensor that are made of functions of the namespace."""

import sys

import numpy

from . import _meshard
from ._array_api import (
    elementwise,
    indexing,
    info,
    manipulation,
    searching,
    statistical,
    utility,
)
from ._array_api.common import DEVICE, check_device, ops
from ._errors import Error

Tensor = _meshard.Tensor


def _array_namespace(self, /, *, api_version=None):
    """The module meshard, which has the functions of the array API standard."""
    if api_version is not None and api_version not in info.VERSIONS:
        raise ValueError(f"unsupported version {api_version!r} of the array API: use one of {', '.join(info.VERSIONS)}")
    return sys.modules[__package__]


def _array(self, dtype=None, copy=None):
    """The elements as a NumPy array: read-only unless a copy is asked for."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {dtype} of a tensor of {self.dtype} needs a copy, but copy is False")
        return array.astype(dtype)
    return array.copy() if copy else array


def _repr(self):
    text = self._text()
    if text is not None:
        return f"Tensor({text})"
    try:
        array = self.numpy()
    except Error as error:  # for example a donated value
        return f"Tensor({error.message.splitlines()[0]})"
    if array.size == 0 and array.shape != (0,):
        return f"Tensor([], shape={array.shape}, dtype={array.dtype})"
    if array.dtype.kind == "V":  # NumPy cannot print the dtypes of ml_dtypes
        body = numpy.array2string(array.astype(numpy.float32), separator=", ", prefix="Tensor(")
    else:
        body = numpy.array2string(array, separator=", ", prefix="Tensor(")
    return f"Tensor({body}, dtype={array.dtype})"


def _str(self):
    text = self._text()
    return text if text is not None else str(self.numpy())


def _format(self, spec):
    return format(self.item(), spec) if spec else str(self)


def _iter(self):
    if self.ndim == 0:
        raise TypeError("iteration over a tensor of rank 0")
    return (self[i] for i in range(self.shape[0]))


def _contains(self, element):
    return bool(ops.any(ops.equal(self, element)))


def _to_device(self, device, /, *, stream=None):
    """The tensor itself: the array API sees one device; shardings place values."""
    check_device(device)
    if stream is not None:
        raise ValueError("stream must be None")
    return self


def _tolist(self):
    """The elements as nested lists of Python numbers."""
    return self.numpy().tolist()


def _astype(self, dtype, *, copy=True):
    """The elements converted to a dtype."""
    return ops.astype(self, dtype)


def _part(self, made):
    """A value that would be a view in NumPy: an assignment to its elements is an error while `self` is alive."""
    return _meshard.mark_part(made, self)


def _reshape(self, *shape):
    """The same elements in row-major order in another shape; one size may be -1."""
    return _part(self, ops.reshape(self, shape[0] if len(shape) == 1 else shape))


def _transpose(self, *axes):
    """The tensor with its dimensions in another order, by default reversed."""
    if not axes or axes == (None,):
        return _part(self, manipulation.transpose(self))
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return _part(self, manipulation.permute_dims(self, axes))


def _squeeze(self, axis=None):
    """The tensor without dimensions of size 1, by default all of them."""
    if axis is None:
        axis = tuple(i for i, size in enumerate(self.shape) if size == 1)
    return _part(self, manipulation.squeeze(self, axis))


def _copy(self):
    """A new handle of the same value."""
    return self[...]


def _transposed(self):
    if self.ndim != 2:
        raise ValueError(f"T needs a matrix, not a tensor of rank {self.ndim}: use mT or permute_dims")
    return _part(self, ops.matrix_transpose(self))


def _reduction(function, *names):
    """A method that also takes the arguments by position, as NumPy's."""
    if "correction" in names:
        def method(self, axis=None, *, correction=0.0, keepdims=False):
            return function(self, axis=axis, correction=correction, keepdims=keepdims)
    elif "dtype" in names:
        def method(self, axis=None, dtype=None, *, keepdims=False):
            return function(self, axis=axis, dtype=dtype, keepdims=keepdims)
    else:
        def method(self, axis=None, *, keepdims=False):
            return function(self, axis=axis, keepdims=keepdims)
    method.__doc__ = function.__doc__
    return method


def _argsort(self, axis=-1, *, descending=False, stable=True):
    """The indices that sort the elements along a dimension."""
    return ops.argsort(self, axis, descending)


def _sort(self, axis=-1, *, descending=False, stable=True):
    """The elements in order along a dimension. Unlike NumPy's method it returns a new tensor."""
    return ops.sort(self, axis, descending)


def _rounded(self, digits=None):
    """The nearest integers, or numbers with some digits behind the point."""
    from .numpy import round
    return round(self, digits or 0)


def _cumulative(function):
    def method(self, axis=None, dtype=None):
        x = ops.flatten(self) if axis is None else self
        return function(x, axis=0 if axis is None else axis, dtype=dtype)

    method.__doc__ = function.__doc__
    return method


def _named(doc):
    """A method of one line, with its documentation."""
    def with_doc(method):
        method.__doc__ = doc
        return method
    return with_doc


_METHODS = {
    "__array_namespace__": _array_namespace, "__array__": _array, "__repr__": _repr, "__str__": _str,
    "__format__": _format, "__iter__": _iter, "__contains__": _contains, "to_device": _to_device,
    "tolist": _tolist, "astype": _astype, "reshape": _reshape, "transpose": _transpose, "squeeze": _squeeze,
    "copy": _copy,
    "flatten": manipulation.flatten, "argsort": _argsort, "sort": _sort,
    "ravel": _named("The elements as a vector, in row-major order.")(
        lambda self: _part(self, manipulation.flatten(self))),
    "cumsum": _cumulative(statistical.cumulative_sum), "cumprod": _cumulative(statistical.cumulative_prod),
    "sum": _reduction(statistical.sum, "dtype"), "prod": _reduction(statistical.prod, "dtype"),
    "mean": _reduction(statistical.mean), "max": _reduction(statistical.max), "min": _reduction(statistical.min),
    "var": _reduction(statistical.var, "correction"), "std": _reduction(statistical.std, "correction"),
    "all": _reduction(utility.all), "any": _reduction(utility.any), "argmax": _reduction(searching.argmax),
    "argmin": _reduction(searching.argmin), "nonzero": searching.nonzero,
    "clip": _named("The elements, limited to `min` and `max`; with None, not limited there.")(
        lambda self, min=None, max=None: _meshard.clip(self, min, max)),
    "conj": _named("The complex conjugates.")(lambda self: ops.conj(self)),
    "round": _named("The nearest integers, halves to even, in the same dtype.")(lambda self: elementwise.round(self)),
    "dot": _named("The matrix product with `other`, as matmul().")(lambda self, other: ops.matmul(self, other)),
    "repeat": _named("Each element along `axis` several times, as repeat().")(
        lambda self, repeats, axis=None: manipulation.repeat(self, repeats, axis=axis)),
    "swapaxes": _named("The tensor with two dimensions swapped.")(
        lambda self, axis1, axis2: _part(self, ops.swapaxes(self, axis1, axis2))),
    "take": _named("The elements at `indices` along `axis`, as take().")(
        lambda self, indices, axis=None: indexing.take(self, indices, axis=axis)),
}
_METHODS |= {
    "__divmod__": lambda self, other: (self // other, self % other),
    "__rdivmod__": lambda self, other: (other // self, other % self),
    "__round__": _rounded,
}
for _name, _method in _METHODS.items():
    if "<" in getattr(_method, "__qualname__", ""):  # made here: errors of calls name the method
        _method.__name__, _method.__qualname__ = _name, f"Tensor.{_name}"
    setattr(Tensor, _name, _method)

Tensor.at = property(lambda self: indexing.At(self), doc="Changed elements as a new tensor: `x.at[i].add(1)`.")
Tensor.device = property(lambda self: DEVICE, doc="The device in the sense of the array API: always the only one.")
Tensor.T = property(_transposed, doc="The transposed matrix.")
Tensor.mT = property(lambda self: _part(self, ops.matrix_transpose(self)), doc="The matrices, the last two dimensions, transposed.")
Tensor.real = property(lambda self: _part(self, ops.real(self)), doc="The real parts.")
Tensor.imag = property(lambda self: _part(self, ops.imag(self)), doc="The imaginary parts.")
Tensor.itemsize = property(lambda self: self.dtype.itemsize, doc="The size of an element in bytes.")
