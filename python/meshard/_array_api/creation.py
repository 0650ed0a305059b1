"""Creation: tensors of numbers, lists, arrays and other libraries' arrays."""

import math

import numpy

from .. import _dtypes as dtypes
from .. import _meshard
from .._dlpack import from_dlpack
from .._foreign_arrays import tensor_of
from .common import (
    COMPLEX,
    DEFAULT_COMPLEX,
    DEFAULT_FLOAT,
    DEFAULT_INTEGER,
    FLOATS,
    INT32,
    Tensor,
    check_device,
    dtype_of,
    ops,
)

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace",
           "meshgrid",
           "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like"]


_MOST_HOST_ELEMENTS = 1 << 16  # more elements are made on the devices
_MOST_HOST_FLOATS = 1 << 22  # on the devices, a product and a sum may be rounded once or twice


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of `obj`: a tensor, a number, nested lists of these, an array of NumPy or of another library.

    Python numbers get the default dtype of their kind: int32 (int64 for integers that need it), float32, complex64.
    Memory of read-only NumPy arrays is used in place unless `copy` is True; with `copy` False it must be possible.

        >>> ms.asarray([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], dtype=int32)
        >>> ms.asarray(np.arange(3.0), dtype="bfloat16").dtype
        dtype(bfloat16)

    Raises ValueError with `copy=False` if a copy is needed.
    """
    check_device(device)
    if isinstance(obj, Tensor):
        if dtype is None or obj.dtype == dtype:
            return obj[...] if copy else obj  # a new handle: in-place operations rebind one handle only
        _check_no_copy(copy, obj)
        return ops.astype(obj, dtype)
    if isinstance(obj, (bool, int, float, complex)) and not isinstance(obj, numpy.generic):
        _check_no_copy(copy, obj)
        return _of_numpy(_array_of_numbers(obj, dtype))
    if isinstance(obj, (list, tuple, range)):
        _check_no_copy(copy, obj)
        return _of_sequence(obj, dtype)
    if isinstance(obj, (numpy.ndarray, numpy.generic)):
        array = obj
    elif _meshard.is_foreign_array(obj):
        # copied, because the other library may write to its memory
        return _as_dtype(tensor_of(obj, copy=copy is not False), dtype)
    else:
        array = numpy.asarray(obj)
    if dtype is not None and array.dtype != dtype:
        _check_no_copy(copy, obj)
        return ops.astype(_meshard.from_numpy(array, copy=True), dtype)
    if copy is False:
        return _meshard.from_numpy(array, share=True)
    return _meshard.from_numpy(array, copy=copy is True)


def as_tensor(x):
    """A tensor, number or array as a tensor."""
    return x if isinstance(x, Tensor) else asarray(x)


def _as_dtype(x, dtype):
    return x if dtype is None or x.dtype == dtype else ops.astype(x, dtype)


def _check_no_copy(copy, obj):
    if copy is False:
        raise ValueError(f"a tensor of a {type(obj).__name__} needs a copy: copy=False is not possible")


def _of_numpy(array):
    return _meshard.from_numpy(array, share=True)


def _default_dtype(array):
    """The default dtype of the kind of an array that NumPy made of Python numbers."""
    kind = array.dtype.kind
    if kind == "i":
        fits = array.size == 0 or (array.min() >= INT32.min and array.max() <= INT32.max)
        return DEFAULT_INTEGER if fits else dtypes.int64
    if kind == "f":
        return DEFAULT_FLOAT
    return DEFAULT_COMPLEX if kind == "c" else array.dtype


def _array_of_numbers(numbers, dtype):
    if dtype is None:
        array = numpy.asarray(numbers)
        return array.astype(_default_dtype(array))
    dtype = dtype_of(dtype)
    if dtype.kind in "iub":
        return numpy.array(numbers, dtype=dtype)
    with numpy.errstate(over="ignore"):  # a number above the largest becomes infinity
        return numpy.array(numbers, dtype=dtype)


def _leaves(nested):
    for each in nested:
        if isinstance(each, (list, tuple, range)):
            yield from _leaves(each)
        else:
            yield each


def _of_sequence(nested, dtype):
    """Nested lists of numbers, tensors and arrays of one shape."""
    numbers = True
    for leaf in _leaves(nested):
        if isinstance(leaf, (Tensor, numpy.ndarray, numpy.generic)) or _meshard.is_foreign_array(leaf):
            numbers = False
            break
    if numbers:
        return _of_numpy(_array_of_numbers(nested, dtype))
    return _as_dtype(_stacked(nested), dtype)


def _stacked(nested):
    if isinstance(nested, (list, tuple, range)):
        return ops.stack([_stacked(each) for each in nested])
    return as_tensor(nested)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... below stop; 0, 1, ... below `start` if it is the only number.

    The default dtype is int32 (int64 if needed) for integers, otherwise float32.

    >>> ms.arange(5).tolist(), ms.arange(1, 2, 0.5).tolist()
    ([0, 1, 2, 3, 4], [1.0, 1.5])
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("the step of arange must not be 0")
    if dtype is None:
        if all(isinstance(each, int) for each in (start, stop, step)):
            fits = all(INT32.min <= each <= INT32.max for each in (start, stop))
            dtype = DEFAULT_INTEGER if fits else dtypes.int64
        else:
            dtype = DEFAULT_FLOAT
    dtype = dtype_of(dtype)
    count = max(math.ceil((stop - start) / step), 0)
    if count == 0:
        return ops.zeros((0,), dtype)
    if dtype in FLOATS and all(float(each).is_integer() for each in (start, step)):
        first, by = int(start), int(step)
        if abs(first) + abs(by) * count < 2**24:
            return ops.arange(first, first + by * count, by, dtype)
    # Not an op: its bounds are not rounded to the dtype, and unsigned dtypes have negative steps.
    if isinstance(start, int) and isinstance(step, int):
        last = start + (count - 1) * step
        wide = numpy.uint64 if max(start, last) > 2**63 - 1 else numpy.int64
        if wide is numpy.int64 and (dtype == dtypes.int32 or dtype == dtypes.int64):
            if INT32.min <= min(start, stop, last) and max(start, stop, last) <= INT32.max:
                return ops.arange(start, stop, step, dtype)
        if count > _MOST_HOST_ELEMENTS:
            if wide is numpy.int64 and start >= -2**63:
                beyond = last + (1 if step > 0 else -1)
                if -2**63 <= beyond < 2**63:
                    return _as_dtype(ops.arange(start, beyond, step, dtypes.int64), dtype)
            numbers = ops.astype(ops.arange(0, count, 1, dtypes.int64), dtypes.uint64)  # modulo 2**64
            first, by = (_of_numpy(numpy.array(each % 2**64, dtype=numpy.uint64)) for each in (start, step))
            return _as_dtype(ops.add(ops.multiply(numbers, by), first), dtype)
        values = numpy.array(range(start, start + count * step, step), dtype=wide)
    elif count > _MOST_HOST_FLOATS:
        numbers = ops.astype(ops.arange(0, count, 1, dtypes.int64), dtypes.float64)
        return _as_dtype(ops.add(ops.multiply(numbers, float(step)), float(start)), dtype)
    else:
        values = start + numpy.arange(count, dtype=numpy.float64) * step
    return _of_numpy(values.astype(dtype))


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` evenly spaced numbers from start to stop, which is included unless `endpoint` is False.

    >>> ms.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    check_device(device)
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    if dtype is None:
        dtype = DEFAULT_COMPLEX if is_complex else DEFAULT_FLOAT
    dtype = dtype_of(dtype)
    if 0 < num <= _MOST_HOST_ELEMENTS:  # in float64, rounded once
        return _of_numpy(numpy.linspace(start, stop, num, endpoint=endpoint).astype(dtype))
    if dtype in COMPLEX or is_complex:
        part = dtypes.float64 if dtype == dtypes.complex128 else dtypes.float32
        start, stop = complex(start), complex(stop)
        return ops.complex(ops.linspace(start.real, stop.real, num, part, endpoint),
                           ops.linspace(start.imag, stop.imag, num, part, endpoint))
    if dtype in FLOATS:
        return ops.linspace(start, stop, num, dtype, endpoint)
    return ops.astype(ops.linspace(start, stop, num, dtypes.float64, endpoint), dtype)


def zeros(shape, *, dtype=None, device=None):
    """A tensor of zeros. The default dtype is float32.

    >>> ms.zeros((2, 3)).tolist(), ms.zeros(2, dtype=ms.int32).tolist()
    ([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 0])
    """
    check_device(device)
    return ops.zeros(shape, DEFAULT_FLOAT if dtype is None else dtype)


def ones(shape, *, dtype=None, device=None):
    """A tensor of ones. The default dtype is float32.

    >>> ms.ones((2, 3)).tolist(), ms.ones(2, dtype="bfloat16").dtype
    ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], dtype(bfloat16))
    """
    check_device(device)
    return ops.ones(shape, DEFAULT_FLOAT if dtype is None else dtype)


def empty(shape, *, dtype=None, device=None):
    """A tensor whose elements have no particular value: zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """A tensor of equal elements: a number, or a tensor of rank 0. The default dtype is that of `fill_value`.

    >>> ms.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    check_device(device)
    if isinstance(fill_value, bool | int | float):  # a constant, also while a function is traced
        return ops.full(shape, fill_value, asarray(fill_value).dtype if dtype is None else dtype)
    value = asarray(fill_value)
    if value.dtype in COMPLEX:  # a real dtype is an error
        return ops.full(shape, value, value.dtype if dtype is None else dtype)
    return ops.broadcast_to(asarray(fill_value, dtype=dtype), shape)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape of x and by default of its dtype.

    >>> ms.zeros_like(ms.asarray([1, 2])).tolist()
    [0, 0]
    """
    check_device(device)
    return ops.zeros_like(x, dtype)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of the shape of x and by default of its dtype.

    >>> ms.ones_like(ms.asarray([1, 2]), dtype=ms.float32).tolist()
    [1.0, 1.0]
    """
    check_device(device)
    return ops.ones_like(x, dtype)


def empty_like(x, /, *, dtype=None, device=None):
    """A tensor of the shape of x whose elements have no particular value: zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """Equal elements in the shape of x and by default of its dtype.

    >>> ms.full_like(ms.asarray([1, 2]), 7).tolist()
    [7, 7]
    """
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def _diagonal(k, rows, columns):
    """The diagonal k; of those outside the matrix the nearest one, which is outside too."""
    return max(-rows, min(k, columns))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on diagonal k, zeros elsewhere; diagonal 1 is just above the main one.

    >>> ms.eye(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    check_device(device)
    k = _diagonal(k, n_rows, n_rows if n_cols is None else n_cols)
    return ops.eye(n_rows, n_cols, k, DEFAULT_FLOAT if dtype is None else dtype)


def tri(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on diagonal k and below, zeros above.

    >>> ms.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    check_device(device)
    k = _diagonal(k, n_rows, n_rows if n_cols is None else n_cols)
    return ops.tri(n_rows, n_cols, k, DEFAULT_FLOAT if dtype is None else dtype)


def tril(x, /, *, k=0):
    """The elements of each matrix on diagonal k and below; the others are zero.

    >>> ms.tril(ms.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return ops.tril(x, _diagonal(k, *x.shape[-2:]) if x.ndim > 1 else k)


def triu(x, /, *, k=0):
    """The elements of each matrix on diagonal k and above; the others are zero.

    >>> ms.triu(ms.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return ops.triu(x, _diagonal(k, *x.shape[-2:]) if x.ndim > 1 else k)


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of all points of a grid, from the coordinates along each of its dimensions.

    >>> x, y = ms.meshgrid(ms.arange(3), ms.arange(2))
    >>> x.tolist(), y.tolist()
    ([[0, 1, 2], [0, 1, 2]], [[0, 0, 0], [1, 1, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"unknown indexing {indexing!r} of meshgrid: use 'xy' or 'ij'")
    return ops.meshgrid(list(arrays), indexing)
