"""Indexing: take, and x[...] with arrays of integers and masks.

Integers, slices, None and `...` are handled by the extension module; this file has the rest of NumPy's rules, and
assignment, which rebinds the handle to a new value.
"""

import numpy

from .. import _dtypes as dtypes
from .. import _meshard
from .common import COMPLEX, INTEGERS, UNSIGNED, Tensor, axis_of, made_by_numpy, ops, read
from .creation import as_tensor, asarray

__all__ = ["take", "take_along_axis"]

_MASK = ("an index with a traced mask: the number of elements is not known; use where(mask, x, otherwise), or pass the "
         "mask as a constant")


def take(x, indices, /, *, axis=None):
    """The slices at `indices`, which may be negative, along a dimension; x has one dimension if none is given.

    >>> ms.take(ms.asarray([10, 20, 30]), ms.asarray([2, 0])).tolist()
    [30, 10]
    """
    x = as_tensor(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take from a tensor of rank {x.ndim} needs axis=")
        axis = 0
    axis = axis_of(axis, x.ndim)
    return ops.take(x, as_tensor(indices), axis)


def take_along_axis(x, indices, /, *, axis=-1):
    """The elements x[i, ..., indices[i, ..., k], ..., n] along a dimension. Indices may be negative.

    >>> ms.take_along_axis(ms.asarray([[10, 20], [30, 40]]), ms.asarray([[1], [0]])).tolist()
    [[20], [30]]
    """
    x = as_tensor(x)
    return ops.take_along_axis(x, as_tensor(indices), axis)


def _wrapped(indices, size):
    """Indices that count from the end as indices from the beginning."""
    if indices.dtype in UNSIGNED:
        return indices
    if not indices.is_recorded and indices.placement == "host":
        # Known values: most indices are not negative, and errors can be reported.
        values = indices.numpy()
        low, high = (values.min(), values.max()) if values.size else (0, -1)
        if low < -size or high >= size:
            raise IndexError(f"an index is outside a dimension of size {size}")
        if low >= 0:
            return indices
        return made_by_numpy(numpy.where(values < 0, values + values.dtype.type(size), values))
    return ops.where(ops.less(indices, 0), indices + size, indices)


def repeated_indices(repeats, size):
    """The index of each element of a result of repeat() with a number for each element."""
    counts = read(repeats, "repeat with traced numbers: the size of the result depends on them; pass an integer")
    return made_by_numpy(numpy.repeat(numpy.arange(size, dtype=numpy.int32), counts))


# --- keys --------------------------------------------------------------------------------------


class _Key:
    """A key in two parts: a basic one, whose result has a dimension for each array, and the arrays by dimension."""

    def __init__(self, x, key):
        items = key if isinstance(key, tuple) else (key,)
        items = [self._item(item) for item in items]
        used = sum(self._dimensions(item) for item in items)
        if used > x.ndim:
            raise IndexError(f"{used} dimensions are indexed, but the tensor has {x.ndim}")
        if Ellipsis not in [item for item in items if not isinstance(item, Tensor)]:
            items.append(Ellipsis)
        self.basic, self.arrays = [], {}  # of the basic result: dimension -> array of integers
        self._places = []  # of arrays and integers among the items: adjacent ones keep their place
        has_arrays = any(isinstance(item, Tensor) for item in items)
        dimension = result = 0
        for place, item in enumerate(items):
            if item is Ellipsis:
                rest = x.ndim - used
                self.basic += [slice(None)] * rest
                dimension, result = dimension + rest, result + rest
            elif item is None:
                self.basic.append(None)
                result += 1
            elif isinstance(item, slice):
                self.basic.append(item)
                dimension, result = dimension + 1, result + 1
            elif isinstance(item, Tensor):
                self._places.append(place)
                sizes = x.shape[dimension:dimension + self._dimensions(item)]
                for array in self._integers(item, sizes):
                    self.basic.append(None if item.dtype == dtypes.bool and item.ndim == 0 else slice(None))
                    self.arrays[result] = array
                    result += 1
                dimension += self._dimensions(item)
            else:
                size = x.shape[dimension]
                if not -size <= item < size:
                    raise IndexError(f"the index {item} is outside dimension {dimension} of size {size}")
                if has_arrays:
                    self._places.append(place)
                self.basic.append(item)
                dimension += 1
        self.basic = tuple(self.basic)
        self.is_adjacent = all(b - a == 1 for a, b in zip(self._places, self._places[1:]))

    @staticmethod
    def _item(item):
        if item is None or item is Ellipsis or isinstance(item, slice):
            return item
        if isinstance(item, (bool, numpy.bool_)):
            return made_by_numpy(numpy.asarray(item))
        if isinstance(item, (list, numpy.ndarray)):
            array = numpy.asarray(item) if not isinstance(item, list) else as_tensor(item) if item else made_by_numpy(
                numpy.zeros(0, numpy.int32))
            item = as_tensor(array)
        elif _meshard.is_foreign_array(item):
            item = as_tensor(item)
        if isinstance(item, Tensor):
            if item.dtype != dtypes.bool and item.dtype not in INTEGERS:
                raise IndexError(f"a tensor of {item.dtype} cannot be an index: use integers or a mask of bools")
            return item
        if hasattr(item, "__index__"):
            return item.__index__()
        raise IndexError(f"{item!r} cannot be an index: use integers, slices, None, `...`, integer arrays or masks")

    @staticmethod
    def _dimensions(item):
        if item is None or item is Ellipsis:
            return 0
        return item.ndim if isinstance(item, Tensor) and item.dtype == dtypes.bool else 1

    @staticmethod
    def _integers(item, sizes):
        if item.dtype != dtypes.bool:
            yield _wrapped(item, sizes[0])
            return
        if any(size != has for size, has in zip(item.shape, sizes, strict=True) if size != 0 or has == 0):
            raise IndexError(f"the mask has the shape {item.shape}, but it selects from the sizes {sizes}")
        mask = read(item, _MASK)
        found = mask.nonzero() if mask.ndim else (numpy.zeros(int(mask), numpy.int32),)
        for each in found:
            yield made_by_numpy(each.astype(numpy.int32))

    def part(self, x):
        """The basic part."""
        return x[self.basic]

    def geometry(self, part):
        """(indices [..., k], their shape, the dimensions they index, where their dimensions go in the result)."""
        indexed = sorted(self.arrays)
        arrays = [self.arrays[d] for d in indexed]
        if len(arrays) > 1:
            try:
                arrays = ops.broadcast_arrays(arrays)
            except ValueError as error:
                raise IndexError(f"the shapes of the index arrays cannot be broadcast together: "
                                 f"{', '.join(str(a.shape) for a in arrays)}") from error
            widest = "int64" if any(a.dtype in (dtypes.int64, dtypes.uint64) for a in arrays) else "int32"
            arrays = [ops.astype(a, widest) for a in arrays]
        shape = arrays[0].shape
        place = indexed[0] if self.is_adjacent else 0
        return ops.stack(arrays, -1), shape, indexed, place


def _window_dims(rank, indexed, place, batch_rank):
    """The dimensions of the result that are whole dimensions of the operand."""
    whole = rank - len(indexed)
    return [d if d < place else d + batch_rank for d in range(whole)]


def _result_shape(part, arrays, window, shape):
    whole = iter(size for d, size in enumerate(part.shape) if d not in arrays)
    batch = iter(shape)
    return [next(whole) if d in window else next(batch) for d in range(len(window) + len(shape))]


def get_index(x, key):
    """x[key] for a key with arrays, masks or other things."""
    key = _Key(x, key)
    part = key.part(x)
    if not key.arrays:
        return part
    indices, shape, indexed, place = key.geometry(part)
    sizes = [1 if d in key.arrays else size for d, size in enumerate(part.shape)]
    window = _window_dims(part.ndim, indexed, place, len(shape))
    result = _result_shape(part, key.arrays, window, shape)
    if 0 in result:
        return ops.zeros(tuple(result), part.dtype)
    for d in indexed:
        if part.shape[d] == 0:
            raise IndexError(f"an index into dimension {d} of the shape {part.shape}, which has no elements")
    return ops.gather(part, indices, offset_dims=window, collapsed_slice_dims=indexed, start_index_map=indexed,
                      index_vector_dim=len(shape), slice_sizes=sizes)


# --- assignment --------------------------------------------------------------------------------


def _value_for(x, value):
    """The value to assign, in the dtype of x."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, numpy.generic):
        if isinstance(value, complex) and x.dtype not in COMPLEX:
            raise TypeError(f"a complex number cannot be assigned to elements of {x.dtype}")
        if isinstance(value, float) and x.dtype in INTEGERS:
            value = int(value)
        return asarray(value, dtype=x.dtype)
    value = as_tensor(value)
    if value.dtype in COMPLEX and x.dtype not in COMPLEX:
        raise TypeError(f"elements of {value.dtype} cannot be assigned to elements of {x.dtype}")
    return value if value.dtype == x.dtype else ops.astype(value, x.dtype)


def _broadcast_value(value, shape):
    if value.shape == shape:
        return value
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    return ops.broadcast_to(value, shape)


def _position(number):
    """A position as an operand: a recorded program is then the same for all positions."""
    return made_by_numpy(numpy.asarray(number, numpy.int32 if number < 2**31 else numpy.int64))


def _with_part(x, basic, value):
    """x with the elements of a basic key replaced; `value` broadcasts to their shape."""
    items = list(basic)
    named = sum(item is not None and item is not Ellipsis for item in items)
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at:at + 1] = [slice(None)] * (x.ndim - named)
    else:
        items += [slice(None)] * (x.ndim - named)
    starts, steps, sizes, shape, backward = [], [], [], [], []
    for item in items:
        if item is None:
            shape.append(1)
            continue
        size = x.shape[len(starts)]
        if isinstance(item, slice):
            span = range(*item.indices(size))
            count = len(span)
            shape.append(count)
            start, step = (span[-1] if span.step < 0 else span[0], abs(span.step)) if count else (0, 1)
            if count and span.step < 0:
                backward.append(len(starts))
        else:
            start, step, count = item % size, 1, 1
        starts.append(start)
        steps.append(step if count > 1 else 1)
        sizes.append(count)
    value = _broadcast_value(value, tuple(shape))
    if 0 in sizes:
        return x[...]
    value = ops.reshape(value, tuple(sizes))
    if backward:
        value = ops.flip(value, tuple(backward))
    if all(step == 1 for step in steps):
        if tuple(sizes) == x.shape:
            return value
        return ops.dynamic_update_slice(x, value, [_position(start) for start in starts])
    # Elements with gaps: the value and a mask are spread over the shape of x.
    high = [size - start - (count - 1) * step - 1
            for size, start, count, step in zip(x.shape, starts, sizes, steps)]
    gaps = [step - 1 for step in steps]
    spread = ops.pad(value, False if x.dtype == dtypes.bool else 0, starts, high, gaps)
    mask = numpy.zeros(x.shape, bool)
    mask[tuple(slice(start, start + (count - 1) * step + 1, step)
               for start, count, step in zip(starts, sizes, steps))] = True
    return ops.where(made_by_numpy(mask), spread, x)


def _is_basic(item):
    return item is None or item is Ellipsis or isinstance(item, slice) or (
        isinstance(item, int) and not isinstance(item, bool))


def _combined(part, value, how):
    if how == "set":
        return value
    made = _COMBINED[how](part, value)
    if made.shape != part.shape:
        raise ValueError(f"values of the shape {value.shape} do not broadcast to the elements, {part.shape}")
    return made


def updated(x, key, value, how="set"):
    """A new tensor: x with the elements x[key] replaced by `value`, which broadcasts to them, or combined with it."""
    value = _value_for(x, value)
    items = key if isinstance(key, tuple) else (key,)
    if all(map(_is_basic, items)):
        part = x[key]  # checks the key
        return _with_part(x, items, _combined(part, value, how))
    mask = items[0] if len(items) == 1 else None
    if _meshard.is_foreign_array(mask):
        mask = key = as_tensor(mask)
    if isinstance(mask, (Tensor, numpy.ndarray)) and mask.dtype == dtypes.bool and mask.ndim > 0:
        mask = as_tensor(mask)
        if mask.shape != x.shape[:mask.ndim]:
            raise IndexError(f"the mask has the shape {mask.shape}, but the tensor has the shape {x.shape}")
        if value.ndim <= x.ndim - mask.ndim:  # the same for all elements of the mask: its number of them is not needed
            wide = ops.reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
            return ops.where(wide, _combined(x, ops.broadcast_to(value, x.shape), how), x)
    key = _Key(x, key)
    if not key.arrays:
        return _with_part(x, key.basic, _combined(key.part(x), value, how))
    part = key.part(x)
    indices, shape, indexed, place = key.geometry(part)
    window = _window_dims(part.ndim, indexed, place, len(shape))
    result = _result_shape(part, key.arrays, window, shape)
    value = _broadcast_value(value, tuple(result))
    if 0 in result:
        return x[...]
    changed = _SCATTERED[how](part, indices, value, update_window_dims=window, inserted_window_dims=indexed,
                              scatter_dims_to_operand_dims=indexed, index_vector_dim=len(shape))
    return _with_part(x, key.basic, changed)


_COMBINED = {"add": ops.add, "multiply": ops.multiply, "min": ops.minimum, "max": ops.maximum}
_SCATTERED = {"set": ops.scatter_set, "add": ops.scatter_add, "multiply": ops.scatter_multiply,
              "min": ops.scatter_min, "max": ops.scatter_max}


class At:
    """`x.at`: changed elements as a new tensor, `x.at[i].add(1)`; x itself stays as it is."""

    __slots__ = ("_x",)

    def __init__(self, x):
        self._x = x

    def __getitem__(self, key):
        return ElementsAt(self._x, key)

    def __repr__(self):
        return f"{self._x!r}.at"


class ElementsAt:
    """`x.at[key]`: the elements x[key], to be changed. An element that the key has several times is changed so often.
    Indices of traced arrays outside of x change nothing."""

    __slots__ = ("_x", "_key")

    def __init__(self, x, key):
        self._x, self._key = x, key

    def __repr__(self):
        return f"{self._x!r}.at[{self._key!r}]"

    def get(self):
        """x[key]."""
        return self._x[self._key]

    def set(self, values):
        """x with x[key] = values; if the key has an element several times, one of its values."""
        return updated(self._x, self._key, values)

    def add(self, values):
        """x with x[key] += values."""
        return updated(self._x, self._key, values, "add")

    def subtract(self, values):
        """x with x[key] -= values."""
        return self.add(-as_tensor(values))

    def multiply(self, values):
        """x with x[key] *= values."""
        return updated(self._x, self._key, values, "multiply")

    def divide(self, values):
        """x with x[key] /= values."""
        if self._x.dtype.kind in "biu":
            raise TypeError(f"at[].divide of {self._x.dtype}: the quotients are floats; convert x first")
        divisors = updated(ops.ones_like(self._x, None), self._key, values, "multiply")
        return self._x / divisors

    def min(self, values):
        """x with the smaller of x[key] and the values."""
        return updated(self._x, self._key, values, "min")

    def max(self, values):
        """x with the larger of x[key] and the values."""
        return updated(self._x, self._key, values, "max")

    def apply(self, function):
        """x with function(x[key]) in place of x[key], once for each element."""
        return updated(self._x, self._key, function(self._x[self._key]))


def set_index(x, key, value):
    """x[key] = value: rebinds the handle x to the new value."""
    x._rebind(updated(x, key, value))


_meshard.set_index_functions(get_index, set_index)
