"""Shapes, order and copies of elements; joining and splitting; elements by their indices."""

import numpy

from .._array_api import indexing, manipulation, searching
from .._array_api.common import axes_of, axis_of, ops
from .._array_api.creation import as_tensor

__all__ = ["append", "apply_along_axis", "apply_over_axes", "argwhere", "array_split", "atleast_1d", "atleast_2d",
           "atleast_3d", "block", "broadcast_arrays", "broadcast_to", "column_stack", "compress", "concat",
           "concatenate", "delete", "diagonal", "dsplit", "dstack", "expand_dims", "extract", "flip", "fliplr",
           "flipud", "flatnonzero", "hsplit", "hstack", "insert", "ix_", "moveaxis", "ndim", "nonzero", "pad",
           "permute_dims", "ravel", "ravel_multi_index", "repeat", "reshape", "resize", "roll", "rollaxis", "rot90",
           "shape", "size", "split", "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tile", "transpose",
           "trim_zeros", "unravel_index", "unstack", "vsplit", "vstack"]


def ndim(a):
    """The number of dimensions."""
    return as_tensor(a).ndim


def shape(a):
    """The sizes of the dimensions."""
    return as_tensor(a).shape


def size(a, axis=None):
    """The number of elements, or the size of a dimension."""
    a = as_tensor(a)
    return a.size if axis is None else a.shape[axis]


def reshape(a, shape):
    """The elements in row-major order in another shape; one size may be -1."""
    return ops.reshape(as_tensor(a), shape)


def ravel(a):
    """All elements in row-major order."""
    return ops.flatten(as_tensor(a))


def resize(a, new_shape):
    """The elements in row-major order in another shape, repeated as often as needed."""
    new_shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    flat, wanted = ravel(a), int(numpy.prod(new_shape, dtype=numpy.int64))
    if not flat.size or not wanted:
        return ops.zeros(new_shape, flat.dtype)
    return ops.reshape(ops.tile(flat, (-(-wanted // flat.size),))[:wanted], new_shape)


def transpose(a, axes=None):
    """The dimensions in another order, by default reversed."""
    return manipulation.transpose(as_tensor(a), axes)


permute_dims = transpose


def moveaxis(a, source, destination):
    """The dimensions `source` at the places `destination`; the others keep their order."""
    return manipulation.moveaxis(as_tensor(a), source, destination)


def rollaxis(a, axis, start=0):
    """The dimension `axis` before the dimension `start`."""
    a = as_tensor(a)
    axis, start = axis_of(axis, a.ndim), start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - (start > axis))


def swapaxes(a, axis1, axis2):
    """Two dimensions exchanged."""
    return ops.swapaxes(as_tensor(a), axis1, axis2)


def expand_dims(a, axis):
    """New dimensions of size 1 at places of the result."""
    return manipulation.expand_dims(as_tensor(a), axis)


def squeeze(a, axis=None):
    """Without dimensions of size 1: those of `axis`, by default all."""
    a = as_tensor(a)
    return manipulation.squeeze(a, tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis)


def atleast_1d(*arys):
    """Numbers as vectors of one element."""
    return _each(arys, lambda x: ops.reshape(x, (1,)) if x.ndim == 0 else x)


def atleast_2d(*arys):
    """Numbers and vectors as matrices of one row."""
    return _each(arys, lambda x: ops.reshape(x, (1, -1)) if x.ndim < 2 else x)


def atleast_3d(*arys):
    """A vector of n as [1, n, 1], a matrix as [m, n, 1]."""
    return _each(arys, lambda x: x if x.ndim > 2 else ops.reshape(x, (*x.shape, 1) if x.ndim == 2 else (1, -1, 1)))


def _each(arrays, function):
    made = tuple(function(as_tensor(each)) for each in arrays)
    return made[0] if len(made) == 1 else made


def broadcast_to(array, shape):
    """The array, repeated along new dimensions and those of size 1."""
    return ops.broadcast_to(as_tensor(array), shape)


def broadcast_arrays(*args):
    """The arrays, broadcast to one shape."""
    return tuple(manipulation.broadcast_arrays(*args))


def concatenate(arrays, axis=0, dtype=None):
    """The arrays, one after the other along a dimension; with `axis` None of all elements in row-major order."""
    made = manipulation.concat([as_tensor(each) for each in arrays], axis=axis)
    return made if dtype is None else ops.astype(made, dtype)


concat = concatenate


def stack(arrays, axis=0):
    """Arrays of one shape along a new dimension."""
    return ops.stack([as_tensor(each) for each in arrays], axis)


def unstack(x, axis=0):
    """The slices along a dimension, without it."""
    return manipulation.unstack(x, axis=axis)


def vstack(tup):
    """The arrays as rows, one below the other."""
    return concatenate([atleast_2d(each) for each in tup], 0)


def hstack(tup):
    """The arrays side by side: vectors along their only dimension, others along the second."""
    parts = [atleast_1d(each) for each in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup):
    """The arrays along a third dimension."""
    return concatenate([atleast_3d(each) for each in tup], 2)


def column_stack(tup):
    """Vectors as the columns of a matrix, beside matrices."""
    parts = [as_tensor(each) for each in tup]
    return concatenate([ops.reshape(each, (-1, 1)) if each.ndim < 2 else each for each in parts], 1)


def block(arrays):
    """Nested lists of blocks as one array: the innermost lists along the last dimension."""
    depth, rank = _depth(arrays), _largest_rank(arrays)
    return _block(arrays, depth, max(depth, rank))


def _depth(arrays):
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _largest_rank(arrays):
    return max(map(_largest_rank, arrays)) if isinstance(arrays, list) else as_tensor(arrays).ndim


def _block(arrays, depth, rank):
    if not isinstance(arrays, list):
        x = as_tensor(arrays)
        return ops.reshape(x, (1,) * (rank - x.ndim) + tuple(x.shape))
    return ops.concat([_block(each, depth - 1, rank) for each in arrays], rank - depth)


def append(arr, values, axis=None):
    """`values` behind `arr`, along a dimension or in row-major order."""
    return concatenate([arr, values], axis)


def split(ary, indices_or_sections, axis=0):
    """A number of equal parts along a dimension, or the parts between the given indices."""
    ary = as_tensor(ary)
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError(f"the size {ary.shape[axis]} of dimension {axis} does not divide into {indices_or_sections} "
                         f"equal parts: use array_split")
    return array_split(ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    """`split`, whose first parts may be larger by one element."""
    ary = as_tensor(ary)
    axis = axis_of(axis, ary.ndim)
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        parts = indices_or_sections
        if parts < 1:
            raise ValueError(f"array_split into {parts} parts")
        bounds = [size // parts * i + min(i, size % parts) for i in range(parts + 1)]
    else:
        bounds = [0, *map(int, indices_or_sections), size]
    before = (slice(None),) * axis
    return [ary[(*before, slice(first, last))] for first, last in zip(bounds, bounds[1:], strict=False)]


def vsplit(ary, indices_or_sections):
    """`split` along the first dimension."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """`split` along the second dimension, of vectors along the only one."""
    return split(ary, indices_or_sections, 0 if as_tensor(ary).ndim == 1 else 1)


def dsplit(ary, indices_or_sections):
    """`split` along the third dimension."""
    return split(ary, indices_or_sections, 2)


def repeat(a, repeats, axis=None):
    """Each element a number of times; one number, or one for each element along the dimension."""
    repeats = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return manipulation.repeat(as_tensor(a), repeats, axis=axis)


def tile(A, reps):
    """Copies of the array next to each other along each dimension."""
    return manipulation.tile(as_tensor(A), reps)


def flip(m, axis=None):
    """The elements in reverse order along dimensions, by default all."""
    return ops.flip(as_tensor(m), axis)


def flipud(m):
    """The rows in reverse order."""
    return flip(m, 0)


def fliplr(m):
    """The columns in reverse order."""
    return flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    """The array turned k times by 90 degrees, from the first of two dimensions to the second."""
    m = as_tensor(m)
    first, second = axes_of(axes, m.ndim)
    k %= 4
    if k == 2:
        return flip(m, (first, second))
    if k == 0:
        return m
    turned = flip(m, second) if k == 1 else m
    turned = swapaxes(turned, first, second)
    return turned if k == 1 else flip(turned, second)


def roll(a, shift, axis=None):
    """The elements shifted along dimensions, wrapping around; without one in row-major order."""
    return manipulation.roll(as_tensor(a), shift, axis=axis)


def pad(array, pad_width, mode="constant", constant_values=0):
    """Elements before and after each dimension: numbers, or copies of others.

    `pad_width` and `constant_values` are one number, (before, after), or these for each dimension. Modes: `"constant"`,
    `"edge"`, `"reflect"`, `"symmetric"`, `"wrap"`.
    """
    array = as_tensor(array)
    widths = _pairs(pad_width, array.ndim)
    if mode == "constant":
        for axis, ((low, high), numbers) in enumerate(zip(widths, _pairs(constant_values, array.ndim), strict=True)):
            for width, number, is_low in ((low, numbers[0], True), (high, numbers[1], False)):
                if width:
                    size = list(array.shape)
                    size[axis] = int(width)
                    part = ops.astype(ops.broadcast_to(as_tensor(number), tuple(size)), array.dtype)
                    array = ops.concat([part, array] if is_low else [array, part], axis)
        return array
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"unknown mode {mode!r} of pad: use 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'")
    for axis, (low, high) in enumerate(widths):
        if low or high:
            places = numpy.pad(numpy.arange(array.shape[axis], dtype="int32"), (int(low), int(high)), mode=mode)
            array = ops.take(array, as_tensor(places), axis)
    return array


def _pairs(given, rank):
    """One number, a pair, or pairs for each dimension, as pairs for each dimension."""
    if isinstance(given, dict):
        return [tuple(numpy.broadcast_to(given.get(i, given.get(i - rank, 0)), 2)) for i in range(rank)]
    array = numpy.asarray(given)
    return [tuple(pair.tolist()) for pair in numpy.broadcast_to(array, (rank, 2))]


def _place(index, size, name):
    if not -size <= index < size:
        raise IndexError(f"the index {index} of {name} is outside a dimension of size {size}")
    return index + size if index < 0 else index


def insert(arr, obj, values, axis=None):
    """`values` before the elements at the indices `obj`: a number, a slice or a list."""
    arr = as_tensor(arr)
    if axis is None:
        arr, axis = ops.flatten(arr), 0
    axis = axis_of(axis, arr.ndim)
    size = arr.shape[axis]
    given = numpy.arange(size)[obj] if isinstance(obj, slice) else numpy.asarray(obj)
    places = [_place(int(each), size + 1, "insert") if each >= 0 else _place(int(each), size, "insert")
              for each in given.reshape(-1)]
    values = as_tensor(values)
    if given.ndim == 0:  # one place: the values may have several rows
        values = moveaxis(values, 0, axis) if values.ndim == arr.ndim and values.ndim > 1 else values
        shape = list(arr.shape)
        shape[axis] = values.shape[axis] if values.ndim == arr.ndim else 1
        places *= shape[axis]
    else:
        shape = [*arr.shape[:axis], len(places), *arr.shape[axis + 1:]]
    values = ops.astype(ops.broadcast_to(values, tuple(shape)), arr.dtype)
    order = numpy.argsort(places, kind="stable")
    target = [places[i] + rank for rank, i in enumerate(order)]
    source = numpy.empty(size + len(places), "int32")
    is_new = numpy.zeros(len(source), bool)
    is_new[target] = True
    source[is_new], source[~is_new] = size + order, numpy.arange(size)
    return ops.take(ops.concat([arr, values], axis), as_tensor(source), axis)


def delete(arr, obj, axis=None):
    """The array without the elements at the indices `obj`: a number, a slice, a list or a mask."""
    arr = as_tensor(arr)
    if axis is None:
        arr, axis = ops.flatten(arr), 0
    kept = numpy.delete(numpy.arange(arr.shape[axis], dtype="int32"), obj)
    return ops.take(arr, as_tensor(kept), axis_of(axis, arr.ndim))


def trim_zeros(filt, trim="fb"):
    """A vector without the zeros at its front, back or both. It reads the elements."""
    filt = as_tensor(filt)
    found = nonzero(filt)[0].numpy()
    if not found.size:
        return filt[:0]
    first, last = found[0] if "f" in trim.lower() else 0, found[-1] + 1 if "b" in trim.lower() else filt.shape[0]
    return filt[int(first):int(last)]


def take(a, indices, axis=None):
    """The slices at `indices` along a dimension; without one of all elements in row-major order."""
    a = as_tensor(a)
    if axis is None:
        a, axis = ops.flatten(a), 0
    return indexing.take(a, as_tensor(indices), axis=axis)


def take_along_axis(arr, indices, axis=-1):
    """The elements arr[i, ..., indices[i, ..., k], ...] along a dimension."""
    arr = as_tensor(arr)
    if axis is None:
        arr, axis = ops.flatten(arr), 0
    return indexing.take_along_axis(arr, as_tensor(indices), axis=axis)


def compress(condition, a, axis=None):
    """The slices where a vector of bools is true. It reads the condition."""
    return take(a, flatnonzero(condition), axis)


def extract(condition, arr):
    """The elements where the condition is true. It reads the condition."""
    return take(arr, flatnonzero(condition))


def nonzero(a):
    """The indices of the elements that are not zero, for each dimension a vector. It reads the elements."""
    return searching.nonzero(as_tensor(a))


def flatnonzero(a):
    """The indices in row-major order of the elements that are not zero. It reads the elements."""
    return nonzero(ravel(a))[0]


def argwhere(a):
    """The indices of the elements that are not zero, one in each row. It reads the elements."""
    a = as_tensor(a)
    if a.ndim == 0:
        return ops.zeros((len(nonzero(ops.reshape(a, (1,)))[0].numpy()), 0), "int32")
    return ops.stack(list(nonzero(a)), 1)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The elements [i, i + offset] of two dimensions, along the last dimension."""
    return ops.diagonal(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def ix_(*args):
    """Vectors as the indices of a grid."""
    rank = len(args)
    vectors = [as_tensor(each) for each in args]
    vectors = [flatnonzero(each) if str(each.dtype) == "bool" else each for each in vectors]
    return tuple(ops.reshape(each, [-1 if j == i else 1 for j in range(rank)]) for i, each in enumerate(vectors))


def ravel_multi_index(multi_index, dims):
    """The index in row-major order of elements with these indices."""
    total = as_tensor(multi_index[0])
    for index, size in zip(multi_index[1:], dims[1:], strict=True):
        total = total * int(size) + as_tensor(index)
    return total


def unravel_index(indices, shape):
    """The indices along each dimension of elements with these indices in row-major order."""
    rest, found = as_tensor(indices), []
    for size in reversed((shape,) if isinstance(shape, int) else tuple(shape)):
        found.append(ops.remainder(rest, int(size)))
        rest = ops.floor_divide(rest, int(size))
    return tuple(reversed(found))


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d of each vector along a dimension, by vmap: it is called once, with a traced vector."""
    from .._transforms import vmap
    arr = as_tensor(arr)
    axis = axis_of(axis, arr.ndim)
    others = arr.shape[:axis] + arr.shape[axis + 1:]
    rows = ops.reshape(moveaxis(arr, axis, -1), (-1, arr.shape[axis]))
    made = vmap(lambda row: as_tensor(func1d(row, *args, **kwargs)))(rows)
    inner = made.shape[1:]
    made = ops.reshape(made, (*others, *inner))
    places = tuple(range(len(others), made.ndim))
    return moveaxis(made, places, tuple(range(axis, axis + len(inner)))) if inner else made


def apply_over_axes(func, a, axes):
    """func(a, axis) for each dimension, which stays with size 1 if func removes it."""
    a = as_tensor(a)
    for axis in axes_of(axes, a.ndim):
        made = as_tensor(func(a, axis))
        a = made if made.ndim == a.ndim else expand_dims(made, axis)
    return a


