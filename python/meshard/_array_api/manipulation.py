"""Manipulation: shapes, order and copies of elements."""

from .common import axes_of, axis_of, ops, shape_tuple
from .creation import as_tensor
from .indexing import repeated_indices

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flatten", "flip",
           "moveaxis",
           "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack"]


def broadcast_arrays(*arrays):
    """The tensors, broadcast to one shape."""
    return ops.broadcast_arrays([as_tensor(each) for each in arrays])


def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast."""
    rank = max((len(shape_tuple(shape)) for shape in shapes), default=0)
    result = [1] * rank
    for shape in map(shape_tuple, shapes):
        for i, size in enumerate(shape, rank - len(shape)):
            if size != 1 and result[i] not in (1, size):
                raise ValueError(f"the shapes {', '.join(map(str, shapes))} cannot be broadcast together")
            if size != 1:
                result[i] = size
    return tuple(result)


broadcast_to = ops.broadcast_to


def concat(arrays, /, *, axis=0):
    """The tensors, one after the other along a dimension; with `axis` None of all elements in row-major order.

        >>> ms.concat([ms.zeros((1, 2)), ms.ones((2, 2))]).shape
        (3, 2)

    Raises InvalidArgumentError if the other dimensions differ.
    """
    arrays = [as_tensor(each) for each in arrays]
    if axis is None:
        arrays, axis = [ops.flatten(each) for each in arrays], 0
    return ops.concat(arrays, axis)


def expand_dims(x, /, axis=0):
    """The tensor with new dimensions of size 1, at a place or at several places of the result.

    >>> ms.expand_dims(ms.ones((2, 3)), 1).shape
    (2, 1, 3)
    """
    if isinstance(axis, int):
        rank = as_tensor(x).ndim + 1
        if not -rank <= axis < rank:
            raise IndexError(f"dimension {axis} is out of range for a result of rank {rank}")
        return ops.expand_dims(x, axis)
    x = as_tensor(x)
    rank = x.ndim + len(axis)
    places = set(axes_of(tuple(axis), rank))
    if len(places) != len(axis):
        raise ValueError(f"the new dimensions {axis} are not distinct")
    sizes = iter(x.shape)
    return ops.reshape(x, tuple(1 if i in places else next(sizes) for i in range(rank)))


def flatten(x, /):
    """All elements in row-major order.

    >>> ms.flatten(ms.asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return ops.flatten(x)


def flip(x, /, *, axis=None):
    """The elements in reverse order along dimensions, by default all.

    >>> ms.flip(ms.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    return ops.flip(x, axis)


def moveaxis(x, source, destination, /):
    """The tensor with dimensions moved to other places; the others keep their order.

    >>> ms.moveaxis(ms.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x)
    return ops.moveaxis(x, axes_of(source, x.ndim), axes_of(destination, x.ndim))


def permute_dims(x, /, axes):
    """The tensor with its dimensions in another order.

    >>> ms.permute_dims(ms.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    return ops.permute_dims(x, axes_of(axes, x.ndim))


def transpose(x, /, axes=None):
    """The tensor with its dimensions in another order, by default reversed.

    >>> ms.transpose(ms.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = as_tensor(x)
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else axes)


def swapaxes(x, axis1, axis2, /):
    """The tensor with two dimensions exchanged.

    >>> ms.swapaxes(ms.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return ops.swapaxes(x, axis1, axis2)


def repeat(x, repeats, /, *, axis=None):
    """Each element `repeats` times, next to each other along a dimension; without one in row-major order.

    `repeats` is an integer or a vector with a number for each element along the dimension, which is read.

    >>> ms.repeat(ms.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = as_tensor(x)
    if isinstance(repeats, int):
        return ops.repeat(x, repeats, axis)
    if axis is None:
        x, axis = ops.flatten(x), 0
    return ops.take(x, repeated_indices(as_tensor(repeats), x.shape[axis]), axis) if x.shape[axis] else x


def reshape(x, /, shape, *, copy=None):
    """The same elements in row-major order in another shape; one size may be -1.

        >>> ms.reshape(ms.arange(6), (2, -1)).tolist()
        [[0, 1, 2], [3, 4, 5]]

    Raises InvalidArgumentError if the shapes have different numbers of elements.
    """
    return ops.reshape(x, shape)


def roll(x, /, shift, *, axis=None):
    """Shifts elements along dimensions, wrapping around; without one in row-major order.

    >>> ms.roll(ms.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    if isinstance(shift, int) and (axis is None or isinstance(axis, int)):
        return ops.roll(x, shift, axis)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        raise ValueError(f"roll has {len(shifts)} shifts for {len(axes)} dimensions")
    for one, by in zip(axes, shifts):
        x = ops.roll(x, by, one)
    return as_tensor(x)


def squeeze(x, /, axis):
    """The tensor without dimensions of size 1.

    >>> ms.squeeze(ms.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = as_tensor(x)
    axes = axes_of(axis, x.ndim)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"dimension {one} has size {x.shape[one]}: only dimensions of size 1 can be removed")
    return ops.squeeze(x, axes)


def stack(arrays, /, *, axis=0):
    """Tensors of one shape along a new dimension.

    >>> ms.stack([ms.zeros(2), ms.ones(2)], axis=1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    return ops.stack([as_tensor(each) for each in arrays], axis)


def tile(x, repetitions, /):
    """Copies of the tensor next to each other along each dimension.

    >>> ms.tile(ms.asarray([1, 2]), (2, 1)).tolist()
    [[1, 2], [1, 2]]
    """
    return ops.tile(x, shape_tuple(repetitions))


def unstack(x, /, *, axis=0):
    """The slices along a dimension, without it, as a tuple.

    >>> [row.tolist() for row in ms.unstack(ms.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x)
    before = (slice(None),) * axis_of(axis, x.ndim)
    return tuple(x[(*before, i)] for i in range(x.shape[axis]))
