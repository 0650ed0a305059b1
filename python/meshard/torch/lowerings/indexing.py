"""Gathers, scatters, and writes into parts of a tensor."""

import math

import torch

import meshard as ms

from .._dtypes import to_meshard, to_torch
from .._table import lowers
from ._helpers import as_dtype, cast, dimension
from .dynamic import refuse


def _int64(index):
    return index if to_torch(index.dtype) == torch.int64 else ms.astype(index, ms.int64)


def _from_front(index, size):
    """Indices with negative ones counted from the end."""
    index = _int64(index)
    return ms.where(ms.less(index, 0), ms.add(index, size), index)


def _at_least_1d(x):
    return x if x.ndim else ms.reshape(x, (1,))


def _lowest(dtype):
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype):
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _corner(x, shape):
    """The leading part of a tensor with these sizes."""
    return x if tuple(x.shape) == tuple(shape) else x[tuple(slice(0, n) for n in shape)]


def _with_corner(x, part):
    """`x` with its leading part replaced."""
    if tuple(x.shape) == tuple(part.shape):
        return part
    return ms.dynamic_update_slice(x, part, [0] * x.ndim)


# Elements along one dimension.


@lowers("aten.gather")
def gather(x, dim, index, sparse_grad=False):
    # A sparse gradient concerns only the backward operation.
    shape, x, index = index.shape, _at_least_1d(x), _at_least_1d(index)
    if 0 in shape:
        return ms.zeros(shape, dtype=x.dtype)
    dim = dimension(dim, x.ndim)
    x = _corner(x, tuple(x.shape[d] if d == dim else n for d, n in enumerate(index.shape)))
    return ms.reshape(ms.take_along_axis(x, _int64(index), axis=dim), shape)


_SCATTERS = {"set": ms.scatter_set, "sum": ms.scatter_add, "prod": ms.scatter_multiply, "amax": ms.scatter_max,
             "amin": ms.scatter_min}


def _scatter_along(kind, x, dim, index, source):
    """Combines source[i, j, k] with x[index[i, j, k], j, k], for dimension 0; `source` has the sizes of `index`."""
    others = tuple(d for d in range(x.ndim) if d != dim)
    part = _corner(x, tuple(x.shape[d] if d == dim else n for d, n in enumerate(index.shape)))
    made = _SCATTERS[kind](part, ms.expand_dims(index, axis=index.ndim), source, inserted_window_dims=(dim,),
                           input_batching_dims=others, scatter_indices_batching_dims=others,
                           scatter_dims_to_operand_dims=(dim,), index_vector_dim=index.ndim)
    return _with_corner(x, made)


def _scattered_slices(kind, x, dim, index, source):
    """Combines slice i of source, along a dimension, with slice index[i] of x."""
    return _SCATTERS[kind](x, ms.reshape(index, (-1, 1)), source,
                           update_window_dims=tuple(d for d in range(x.ndim) if d != dim),
                           inserted_window_dims=(dim,), scatter_dims_to_operand_dims=(dim,), index_vector_dim=1)


def _reduced_into(scattered, kind, x, index, source, include_self):
    """Combines the elements of `source` with those of `x`; `scattered(kind, x, index, source)` writes them."""
    dtype = to_torch(x.dtype)
    if dtype == torch.bool:
        boolean = {"sum": "amax", "prod": "amin"}.get(kind, kind)
        x, source = cast(x, torch.uint8), cast(source, torch.uint8)
        return cast(_reduced_into(scattered, boolean, x, index, source, include_self), torch.bool)
    if kind == "mean":
        total = _reduced_into(scattered, "sum", x, index, source, include_self)
        count_dtype = torch.int64 if not (dtype.is_floating_point or dtype.is_complex) else torch.float32
        ones = ms.ones(x.shape, dtype=to_meshard(count_dtype))
        added = ms.ones(source.shape, dtype=ones.dtype)
        if not include_self:
            ones = scattered("set", ones, index, ms.zeros_like(added))
        count = scattered("sum", ones, index, added)
        count = ms.where(ms.equal(count, 0), ms.ones_like(count), count)
        if count_dtype == torch.int64:
            return cast(ms.floor_divide(cast(total, torch.int64), count), dtype)
        return cast(ms.divide(total, cast(count, dtype)), dtype)
    if not include_self and kind != "set":
        start = {"sum": 0, "prod": 1}.get(kind)
        if start is None:
            start = _lowest(dtype) if kind == "amax" else _highest(dtype)
        x = scattered("set", x, index, ms.full(source.shape, start, dtype=x.dtype))
    return scattered(kind, x, index, source)


def _scatter(kind, x, dim, index, source, include_self=True):
    shape = x.shape
    if 0 in index.shape:
        return x
    x, index = _at_least_1d(x), _int64(_at_least_1d(index))
    dim = dimension(dim, x.ndim)
    if isinstance(source, ms.Tensor):
        source = _corner(_at_least_1d(source), index.shape)
    else:
        source = ms.full(index.shape, source, dtype=x.dtype)

    def scattered(kind, x, index, source):
        return _scatter_along(kind, x, dim, index, source)

    return ms.reshape(_reduced_into(scattered, kind, x, index, source, include_self), shape)


_REDUCE = {"add": "sum", "multiply": "prod"}


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(x, dim, index, source):
    return _scatter("set", x, dim, index, source)


@lowers("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_with(x, dim, index, source, reduce):
    return _scatter(_REDUCE[reduce], x, dim, index, source)


@lowers("aten.scatter_add")
def scatter_add(x, dim, index, source):
    return _scatter("sum", x, dim, index, source)


@lowers("aten.scatter_reduce.two")
def scatter_reduce(x, dim, index, source, reduce, include_self=True):
    return _scatter(reduce, x, dim, index, source, include_self)


# Slices along one dimension.


@lowers("aten.index_select")
def index_select(x, dim, index):
    if not x.ndim:
        return x
    dim = dimension(dim, x.ndim)
    index = _at_least_1d(index)
    shape = tuple(index.shape[0] if d == dim else n for d, n in enumerate(x.shape))
    return ms.zeros(shape, dtype=x.dtype) if 0 in shape else ms.take(x, _int64(index), axis=dim)


def _slices(kind, x, dim, index, source, include_self=True):
    shape = x.shape
    x, index = _at_least_1d(x), _at_least_1d(index)
    dim = dimension(dim, x.ndim)
    source = ms.reshape(source, tuple(index.shape[0] if d == dim else n for d, n in enumerate(x.shape)))
    if 0 in source.shape:
        return ms.reshape(x, shape)

    def scattered(kind, x, index, source):
        return _scattered_slices(kind, x, dim, index, source)

    index = _from_front(index, x.shape[dim])
    return ms.reshape(_reduced_into(scattered, kind, x, index, source, include_self), shape)


@lowers("aten.index_add")
def index_add(x, dim, index, source, alpha=1):
    if alpha != 1:
        source = ms.multiply(source, as_dtype(alpha, to_torch(source.dtype)))
    return _slices("sum", x, dim, index, source)


@lowers("aten.index_copy")
def index_copy(x, dim, index, source):
    return _slices("set", x, dim, index, source)


@lowers("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(x, dim, index, value):
    value = as_dtype(value, to_torch(x.dtype))
    dim_of_x = dimension(dim, x.ndim)
    count = _at_least_1d(index).shape[0]
    shape = tuple(count if d == dim_of_x else n for d, n in enumerate(x.shape or (1,)))
    return _slices("set", x, dim, index, ms.broadcast_to(value, shape))


_INDEX_REDUCE = {"prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}


@lowers("aten.index_reduce")
def index_reduce(x, dim, index, source, reduce, include_self=True):
    return _slices(_INDEX_REDUCE[reduce], x, dim, index, source, include_self)


# Indices of several dimensions.


def _is_mask(index):
    return index is not None and to_torch(index.dtype) in (torch.bool, torch.uint8)


def _dimension_numbers(x, indices):
    """Which dimensions are indexed, the shape of the indices, and where it appears in the result."""
    at = [d for d, index in enumerate(indices) if index is not None]
    found = [_from_front(indices[d], x.shape[d]) for d in at]
    found = ms.broadcast_arrays(*found) if len(found) > 1 else found
    adjacent = at == list(range(at[0], at[0] + len(at)))
    first = at[0] if adjacent else 0
    shape = tuple(found[0].shape)
    rest = [d for d in range(x.ndim) if d not in at]
    windows = [p if p < first else p + len(shape) for p in range(len(rest))]
    result = [x.shape[d] for d in rest]
    result[first:first] = shape
    return at, ms.stack(found, axis=len(shape)), tuple(windows), tuple(result)


@lowers("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(x, indices):
    if any(_is_mask(each) for each in indices):
        refuse("an index that is a mask", "torch.where")
    if all(each is None for each in indices):
        return x
    at, starts, windows, shape = _dimension_numbers(x, indices)
    if 0 in shape:
        return ms.zeros(shape, dtype=x.dtype)
    sizes = tuple(1 if d in at else n for d, n in enumerate(x.shape))
    return ms.gather(x, starts, offset_dims=windows, collapsed_slice_dims=tuple(at), start_index_map=tuple(at),
                     index_vector_dim=starts.ndim - 1, slice_sizes=sizes)


def _put_mask(x, at, mask, values, accumulate):
    """x[..., mask, ...] = values: the values follow one another in the order of the true elements."""
    if 0 in x.shape:
        return x
    mask = cast(mask, torch.bool)
    rank, rest = mask.ndim, x.ndim - mask.ndim
    # One dimension for the elements of the mask, followed by the values' other dimensions.
    flat = ms.reshape(x, x.shape[:at] + (-1,) + x.shape[at + rank:]) if rank else ms.expand_dims(x, axis=at)
    chosen = ms.reshape(mask, (-1,))
    values = ms.reshape(values, (1,) * (rest + 1 - values.ndim) + tuple(values.shape))
    if values.shape[at] != 1:
        place = ms.subtract(ms.cumulative_sum(cast(chosen, torch.int64), axis=0), 1)
        place = ms.clip(place, 0, values.shape[at] - 1)
        values = ms.take(values, place, axis=at)
    chosen = ms.reshape(chosen, (-1,) + (1,) * (x.ndim - at - rank))
    plus = ms.logical_or if to_torch(x.dtype) == torch.bool else ms.add
    added = plus(flat, values) if accumulate else ms.broadcast_to(values, flat.shape)
    return ms.reshape(ms.where(chosen, added, flat), x.shape)


def _mask_as_places(x, indices, values):
    """A mask among indices of one element as indices of all its places, of which the false ones are out of range."""
    masks = [each for each in indices if _is_mask(each)]
    others = [each for each in indices if each is not None and not _is_mask(each)]
    if len(masks) > 1 or any(tuple(each.shape) not in ((), (1,)) for each in others):
        raise NotImplementedError("[torch] index_put with a mask and indices of several elements is not supported")
    mask = cast(masks[0], torch.bool)
    made = []
    for each in indices:
        if not _is_mask(each):
            made.append(each)
            continue
        first = len(made)
        made += [ms.reshape(ms.where(mask, ms.iota(ms.int64, mask.shape, d), x.shape[first + d]), (-1,))
                 for d in range(mask.ndim)]
    # The values follow one another in the order of the true elements.
    at = [d for d, each in enumerate(made) if each is not None]
    axis = at[0] if at == list(range(at[0], at[0] + len(at))) else 0
    axis += values.ndim - (x.ndim - len(at) + 1)
    if axis >= 0 and values.shape[axis] != 1:
        values = ms.take(values, ms.clip(_places_in_source(mask), 0, values.shape[axis] - 1), axis=axis)
    return made, values


@lowers("aten.index_put", "aten._unsafe_index_put", "aten._index_put_impl")
def index_put(x, indices, values, accumulate=False, unsafe=False):
    values = cast(values, to_torch(x.dtype))
    if any(_is_mask(each) for each in indices):
        if values.size == 0:
            return x  # no element of the mask is set
        given = [(d, each) for d, each in enumerate(indices) if each is not None]
        if len(given) == 1:
            return _put_mask(x, *given[0], values, accumulate)
        indices, values = _mask_as_places(x, indices, values)
    if all(each is None for each in indices):
        values = ms.broadcast_to(values, x.shape)
        plus = ms.logical_or if to_torch(x.dtype) == torch.bool else ms.add
        return plus(x, values) if accumulate else values
    at, starts, windows, shape = _dimension_numbers(x, indices)
    if 0 in shape:
        return x
    values = ms.reshape(values, values.shape[max(values.ndim - len(shape), 0):])
    values = ms.broadcast_to(values, shape)

    def scattered(kind, x, starts, values):
        return _SCATTERS[kind](x, starts, values, update_window_dims=windows, inserted_window_dims=tuple(at),
                               scatter_dims_to_operand_dims=tuple(at), index_vector_dim=starts.ndim - 1)

    return _reduced_into(scattered, "sum" if accumulate else "set", x, starts, values, True)


@lowers("aten.take")
def take(x, index):
    if 0 in index.shape:
        return ms.zeros(index.shape, dtype=x.dtype)
    flat = ms.reshape(x, (-1,))
    made = ms.take(flat, ms.reshape(_from_front(index, flat.shape[0]), (-1,)), axis=0)
    return ms.reshape(made, index.shape)


@lowers("aten.put")
def put(x, index, source, accumulate=False):
    flat = ms.reshape(x, (-1,))
    made = _slices("sum" if accumulate else "set", flat, 0, ms.reshape(index, (-1,)), ms.reshape(source, (-1,)))
    return ms.reshape(made, x.shape)


@lowers("aten.nonzero_static")
def nonzero_static(x, *, size, fill_value=-1):
    """The indices [size, rank] of the first elements that are not zero, filled up with `fill_value`."""
    if not size or not x.ndim or 0 in x.shape:
        return ms.full((size, x.ndim), fill_value, dtype=ms.int64)
    found = ms.reshape(cast(x, torch.bool), (-1,))
    # An index beyond the end is dropped.
    places = ms.where(found, _places_in_source(found), ms.full((), size, dtype=ms.int64))
    columns = [_scattered_slices("set", ms.full((size,), fill_value, dtype=ms.int64), 0, places,
                                 ms.reshape(ms.iota(ms.int64, x.shape, d), (-1,))) for d in range(x.ndim)]
    return ms.stack(columns, axis=1)


# Masks.


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(x, mask, value):
    return ms.where(cast(mask, torch.bool), as_dtype(value, to_torch(x.dtype)), x)


def _places_in_source(mask):
    """For each true element of a mask in row-major order, its number."""
    return ms.subtract(ms.cumulative_sum(cast(ms.reshape(mask, (-1,)), torch.int64), axis=0), 1)


@lowers("aten.masked_scatter")
def masked_scatter(x, mask, source):
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    x, mask = ms.broadcast_to(x, shape), ms.broadcast_to(mask, shape)
    if 0 in shape or 0 in source.shape:
        return x
    source = ms.reshape(source, (-1,))
    places = ms.clip(_places_in_source(mask), 0, source.shape[0] - 1)
    return ms.where(mask, ms.reshape(ms.take(source, places, axis=0), shape), x)


@lowers("aten.masked_scatter_backward")
def masked_scatter_backward(gradient, mask, sizes):
    count = math.prod(sizes)
    flat = ms.reshape(gradient, (-1,))
    mask = ms.reshape(ms.broadcast_to(mask, gradient.shape), (-1,))
    if not count or not flat.shape[0]:
        return ms.zeros(tuple(sizes), dtype=gradient.dtype)
    # An index beyond the end is dropped.
    places = ms.where(mask, _places_in_source(mask), ms.full((), count, dtype=ms.int64))
    made = _scattered_slices("sum", ms.zeros((count,), dtype=gradient.dtype), 0, places, flat)
    return ms.reshape(made, tuple(sizes))


# Writes into slices.


def _range(start, end, step, size):
    first, last, step = slice(start, end, step).indices(size)
    return first, max(last, first), step


def _padded(part, dim, shape, first, step):
    """Zeros of a shape that hold `part` from index `first` on, in steps, along a dimension."""
    low, high, interior = [0] * part.ndim, [0] * part.ndim, [0] * part.ndim
    count = part.shape[dim]
    if not count:
        return ms.zeros(tuple(shape), dtype=part.dtype)
    low[dim], interior[dim] = first, step - 1
    high[dim] = shape[dim] - first - (count - 1) * step - 1
    return ms.pad(part, ms.zeros((), dtype=part.dtype), low, high, interior)


@lowers("aten.slice_scatter", "aten.slice_scatter_copy")
def slice_scatter(x, source, dim=0, start=None, end=None, step=1):
    dim = dimension(dim, x.ndim)
    first, last, step = _range(start, end, step, x.shape[dim])
    count = -(-(last - first) // step)
    source = ms.broadcast_to(cast(source, to_torch(x.dtype)),
                             tuple(count if d == dim else n for d, n in enumerate(x.shape)))
    if 0 in source.shape:
        return x
    if step == 1:
        return ms.dynamic_update_slice(x, source, [first if d == dim else 0 for d in range(x.ndim)])
    index = ms.arange(first, last, step, dtype=ms.int64)
    return _scattered_slices("set", x, dim, index, source)


@lowers("aten.select_scatter")
def select_scatter(x, source, dim, index):
    dim = dimension(dim, x.ndim)
    if isinstance(index, ms.Tensor):
        shape = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
        source = ms.broadcast_to(ms.expand_dims(cast(source, to_torch(x.dtype)), axis=dim), shape)
        index = _from_front(index, x.shape[dim])
        return ms.dynamic_update_slice(x, source, [index if d == dim else 0 for d in range(x.ndim)])
    index %= x.shape[dim]
    source = ms.broadcast_to(source, tuple(n for d, n in enumerate(x.shape) if d != dim))
    return slice_scatter(x, ms.expand_dims(source, axis=dim), dim, index, index + 1)


@lowers("aten.slice_backward")
def slice_backward(gradient, input_sizes, dim, start, end, step):
    dim = dimension(dim, gradient.ndim)
    first, _, step = _range(start, end, step, input_sizes[dim])
    return _padded(gradient, dim, input_sizes, first, step)


@lowers("aten.select_backward")
def select_backward(gradient, input_sizes, dim, index):
    dim = dimension(dim, gradient.ndim + 1)
    if isinstance(index, ms.Tensor):
        return select_scatter(ms.zeros(tuple(input_sizes), dtype=gradient.dtype), gradient, dim, index)
    return _padded(ms.expand_dims(gradient, axis=dim), dim, input_sizes, index % input_sizes[dim], 1)


def _diagonal_last(rank, dim1, dim2):
    dim1, dim2 = dimension(dim1, rank), dimension(dim2, rank)
    return tuple(d for d in range(rank) if d not in (dim1, dim2)) + (dim1, dim2)


@lowers("aten.diagonal", "aten.diagonal_copy")
def diagonal(x, offset=0, dim1=0, dim2=1):
    x = ms.permute_dims(x, _diagonal_last(x.ndim, dim1, dim2))
    rows, columns = x.shape[-2:]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - first_row, columns - first_column), 0)
    if not count or 0 in x.shape:
        return ms.zeros(x.shape[:-2] + (count,), dtype=x.dtype)
    part = x[..., first_row:first_row + count, first_column:first_column + count]
    return ms.linalg.diagonal(part)


@lowers("aten.diagonal_scatter")
def diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    order = _diagonal_last(x.ndim, dim1, dim2)
    matrices = ms.permute_dims(x, order)
    rows, columns = matrices.shape[-2:]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - first_row, columns - first_column), 0)
    if not count or 0 in x.shape:
        return x
    source = ms.broadcast_to(cast(source, to_torch(x.dtype)), matrices.shape[:-2] + (count,))
    low, high = [0] * source.ndim, [0] * source.ndim
    low[-1], high[-1] = first_row, rows - first_row - count
    by_row = ms.expand_dims(ms.pad(source, ms.zeros((), dtype=x.dtype), low, high), axis=source.ndim)
    places = [ms.iota(ms.int32, (rows, columns), axis) for axis in (0, 1)]
    on = ms.equal(ms.subtract(places[1], places[0]), offset)
    made = ms.where(on, by_row, matrices)
    return ms.permute_dims(made, tuple(order.index(d) for d in range(x.ndim)))


@lowers("aten.diagonal_backward")
def diagonal_backward(gradient, input_sizes, offset, dim1, dim2):
    return diagonal_scatter(ms.zeros(tuple(input_sizes), dtype=gradient.dtype), gradient, offset, dim1, dim2)


@lowers("aten.diag_embed")
def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    size = x.shape[-1] + abs(offset)
    dim1, dim2 = dimension(dim1, x.ndim + 1), dimension(dim2, x.ndim + 1)
    shape = list(x.shape[:-1])
    for d in sorted((dim1, dim2)):
        shape.insert(d, size)
    return diagonal_backward(x, shape, offset, dim1, dim2)


# Windows and strides.


def _windows(count, size, step):
    """The indices [count, size] of windows."""
    starts = ms.multiply(ms.iota(ms.int64, (count, size), 0), step)
    return ms.add(starts, ms.iota(ms.int64, (count, size), 1))


@lowers("aten.unfold", "aten.unfold_copy")
def unfold(x, dimension_, size, step):
    scalar = not x.ndim
    x = _at_least_1d(x)
    dim = dimension(dimension_, x.ndim)
    count = (x.shape[dim] - size) // step + 1
    shape = tuple(count if d == dim else n for d, n in enumerate(x.shape)) + (size,)
    if scalar:
        return ms.reshape(x, (size,)) if size else ms.zeros((0,), dtype=x.dtype)
    if 0 in shape:
        return ms.zeros(shape, dtype=x.dtype)
    return ms.moveaxis(ms.take(x, _windows(count, size, step), axis=dim), dim + 1, x.ndim)


@lowers("aten.unfold_backward")
def unfold_backward(gradient, input_sizes, dim, size, step):
    if not input_sizes:
        return ms.reshape(gradient, ()) if size else ms.zeros((), dtype=gradient.dtype)
    dim = dimension(dim, len(input_sizes))
    zeros = ms.zeros(tuple(input_sizes), dtype=gradient.dtype)
    if 0 in gradient.shape:
        return zeros
    count = gradient.shape[dim]
    # A dimension of size 1 stands for all: istft() has one window for all of a batch.
    gradient = ms.broadcast_to(gradient, (*(count if d == dim else n for d, n in enumerate(input_sizes)), size))
    rows = ms.moveaxis(gradient, gradient.ndim - 1, dim + 1)
    rows = ms.reshape(rows, rows.shape[:dim] + (count * size,) + rows.shape[dim + 2:])
    return _scattered_slices("sum", zeros, dim, ms.reshape(_windows(count, size, step), (-1,)), rows)


def _storage_places(size, stride, offset):
    """The place in the storage of each element of a strided tensor, in row-major order."""
    place = ms.full(tuple(size), offset, dtype=ms.int64)
    for d, step in enumerate(stride):
        place = ms.add(place, ms.multiply(ms.iota(ms.int64, tuple(size), d), step))
    return ms.reshape(place, (-1,))


def _storage(x, node, size, stride, offset):
    """The elements in the order of the storage, the dimensions in that order, and the offset from the first element."""
    known = None if node is None else node.args[0].meta.get("val")
    strides = torch.empty(x.shape, device="meta").stride() if known is None else known.stride()
    order = sorted(range(x.ndim), key=lambda d: -strides[d])
    expected = 1
    for d in reversed(order):
        if x.shape[d] != 1 and strides[d] != expected:
            raise NotImplementedError(f"[torch] as_strided of a tensor with gaps: shape {tuple(x.shape)}, strides "
                                      f"{tuple(strides)}; call contiguous() first")
        expected *= x.shape[d]
    first = 0 if known is None else known.storage_offset()
    offset = 0 if offset is None else offset - first
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    if offset < 0 or last >= math.prod(x.shape):
        raise NotImplementedError("[torch] as_strided reads elements of the storage that are not in the tensor")
    return ms.reshape(ms.permute_dims(x, tuple(order)) if x.ndim else x, (-1,)), order, offset


@lowers("aten.as_strided", "aten.as_strided_copy", "prims.as_strided", with_node=True)
def as_strided(x, size, stride, storage_offset=None, node=None):
    """Elements of the storage of `x`, which must be dense; its dimensions may have any order."""
    if 0 in tuple(size):
        return ms.zeros(tuple(size), dtype=x.dtype)
    flat, _, offset = _storage(x, node, size, stride, storage_offset)
    return ms.reshape(ms.take(flat, _storage_places(size, stride, offset), axis=0), tuple(size))


@lowers("aten.as_strided_scatter", "prims.as_strided_scatter", with_node=True)
def as_strided_scatter(x, source, size, stride, storage_offset=None, node=None):
    if 0 in tuple(size):
        return x
    flat, order, offset = _storage(x, node, size, stride, storage_offset)
    source = ms.reshape(ms.broadcast_to(cast(source, to_torch(x.dtype)), tuple(size)), (-1,))
    made = _scattered_slices("set", flat, 0, _storage_places(size, stride, offset), source)
    made = ms.reshape(made, tuple(x.shape[d] for d in order))
    return ms.permute_dims(made, tuple(order.index(d) for d in range(x.ndim))) if x.ndim else made
