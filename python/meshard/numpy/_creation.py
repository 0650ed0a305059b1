"""Arrays of numbers, ranges, grids, diagonals."""

import numpy

from .._array_api import creation
from .._array_api.common import ops
from .._array_api.creation import as_tensor, empty_like, ones_like, zeros_like

__all__ = ["arange", "array", "asarray", "ascontiguousarray", "copy", "diag", "diagflat", "empty", "empty_like", "eye",
           "fromfunction", "full", "full_like", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid",
           "ones", "ones_like", "tri", "tril", "tril_indices", "triu", "triu_indices", "vander", "zeros", "zeros_like"]


def array(object, dtype=None, copy=True):
    """A tensor of numbers, nested lists, a tensor or an array of any library."""
    return creation.asarray(object, dtype=dtype, copy=True if copy else None)


def asarray(a, dtype=None):
    """A tensor of `a`; `a` itself if it is a tensor of that dtype."""
    return creation.asarray(a, dtype=dtype)


def ascontiguousarray(a, dtype=None):
    """asarray(): tensors have no strides."""
    return asarray(a, dtype)


def copy(a):
    """A tensor with the values of `a`."""
    return creation.asarray(a, copy=True)


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... below stop; 0, 1, ... below `start` if it is the only number."""
    return creation.arange(start, stop, step, dtype=dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None):
    """`num` evenly spaced numbers from start to stop; with `retstep` also their distance."""
    made = creation.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
    return (made, (stop - start) / max(num - bool(endpoint), 1)) if retstep else made


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    """base ** numbers that are evenly spaced from start to stop."""
    return creation.asarray(numpy.logspace(start, stop, num, endpoint, base), dtype=dtype or "float32")


def geomspace(start, stop, num=50, endpoint=True, dtype=None):
    """`num` numbers from start to stop, each the same multiple of the one before."""
    return creation.asarray(numpy.geomspace(start, stop, num, endpoint), dtype=dtype or "float32")


def zeros(shape, dtype=None):
    """A tensor of zeros. The default dtype is float32."""
    return creation.zeros(shape, dtype=dtype)


def ones(shape, dtype=None):
    """A tensor of ones. The default dtype is float32."""
    return creation.ones(shape, dtype=dtype)


def empty(shape, dtype=None):
    """A tensor whose elements have no particular value: zeros."""
    return creation.zeros(shape, dtype=dtype)


def full(shape, fill_value, dtype=None):
    """A tensor of one number, or of values that broadcast to the shape."""
    value = as_tensor(fill_value)
    if value.ndim == 0:
        return creation.full(shape, fill_value, dtype=dtype)
    return ops.broadcast_to(creation.asarray(value, dtype=dtype), shape)


def full_like(a, fill_value, dtype=None):
    """`full` in the shape and by default the dtype of `a`."""
    a = as_tensor(a)
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def eye(N, M=None, k=0, dtype=None):
    """Ones on diagonal k, zeros elsewhere."""
    return creation.eye(N, M, k=k, dtype=dtype)


def identity(n, dtype=None):
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """Ones on diagonal k and below, zeros above."""
    return creation.tri(N, M, k=k, dtype=dtype)


def tril(m, k=0):
    """The elements of each matrix on diagonal k and below; the others are zero."""
    return creation.tril(as_tensor(m), k=k)


def triu(m, k=0):
    """The elements of each matrix on diagonal k and above; the others are zero."""
    return creation.triu(as_tensor(m), k=k)


def tril_indices(n, k=0, m=None):
    """The indices of the elements on diagonal k and below, of a matrix of n x m."""
    return tuple(map(_int32, numpy.tril_indices(n, k, m)))


def triu_indices(n, k=0, m=None):
    """The indices of the elements on diagonal k and above, of a matrix of n x m."""
    return tuple(map(_int32, numpy.triu_indices(n, k, m)))


def floating(a):
    """A tensor of floats: integers and bools as float32."""
    a = as_tensor(a)
    return ops.astype(a, "float32") if a.dtype.kind in "biu" else a


def _int32(array):
    return creation.asarray(array.astype("int32"))


def diag(v, k=0):
    """The matrix with a vector on diagonal k; of a matrix, diagonal k."""
    v = as_tensor(v)
    if v.ndim == 2:
        return ops.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, not a tensor of rank {v.ndim}")
    size = v.shape[0] + abs(k)
    if not v.shape[0]:
        return creation.zeros((size, size), dtype=v.dtype)
    column = ops.arange(0, size, 1, "int32")
    place = ops.clip(column - max(k, 0), 0, v.shape[0] - 1)
    on_diagonal = ops.equal(column - k, ops.expand_dims(ops.arange(0, size, 1, "int32"), 1))
    return ops.where(on_diagonal, ops.broadcast_to(ops.take(v, place, 0), (size, size)), ops.zeros((), v.dtype))


def diagflat(v, k=0):
    """`diag` of all elements in row-major order."""
    return diag(ops.flatten(as_tensor(v)), k)


def vander(x, N=None, increasing=False):
    """The powers 0 to N - 1 of each number, in descending order unless `increasing`."""
    x = as_tensor(x)
    powers = range(x.shape[0] if N is None else N)
    columns = [ops.ones_like(x, None)]
    for _ in powers[1:]:
        columns.append(columns[-1] * x)
    columns = columns[:len(powers)]
    if not columns:
        return creation.zeros((x.shape[0], 0), dtype=x.dtype)
    return ops.stack(columns if increasing else columns[::-1], 1)


def meshgrid(*xi, indexing="xy", sparse=False):
    """The coordinates of all points of a grid; with `sparse` each only along its own dimension."""
    vectors = [as_tensor(x) for x in xi]
    if not sparse:
        return creation.meshgrid(*vectors, indexing=indexing)
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = 1, 0
    shapes = ([-1 if i == place else 1 for i in range(len(vectors))] for place in places)
    return [ops.reshape(x, shape) for x, shape in zip(vectors, shapes, strict=True)]


def indices(dimensions, dtype="int32", sparse=False):
    """The index of each element along each dimension, stacked; with `sparse` a tuple, each only along its own."""
    rank = len(dimensions)
    shape = lambda i: [-1 if j == i else 1 for j in range(rank)]
    each = [ops.reshape(ops.arange(0, size, 1, dtype), shape(i)) for i, size in enumerate(dimensions)]
    if sparse:
        return tuple(each)
    if not each:
        return creation.zeros((0,), dtype=dtype)
    return ops.stack([ops.broadcast_to(one, tuple(dimensions)) for one in each], 0)


def fromfunction(function, shape, dtype=None, **kwargs):
    """function(i, j, ...) of the index of each element."""
    return as_tensor(function(*indices(shape, dtype or "float32"), **kwargs))
