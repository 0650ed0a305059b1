"""Embeddings: rows of a table, and sums, means and maxima of bags of rows."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast
from .indexing import _int64, _lowest, _scattered_slices
from .sorting import searchsorted

_SUM, _MEAN, _MAX = range(3)


@lowers("aten.embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    # All options concern only the backward operation; that of sparse gradients has no lowering.
    if 0 in indices.shape:
        return ms.zeros(tuple(indices.shape) + tuple(weight.shape[1:]), dtype=weight.dtype)
    return ms.take(weight, _int64(indices), axis=0)


@lowers("aten.embedding_dense_backward")
def embedding_dense_backward(gradient, indices, num_weights, padding_idx, scale_grad_by_freq):
    dtype = to_torch(gradient.dtype)
    width = gradient.shape[-1]
    rows = cast(ms.reshape(gradient, (-1, width)), torch.float32 if dtype.itemsize == 2 else dtype)
    indices = ms.reshape(_int64(indices), (-1,))
    if 0 in rows.shape:
        return ms.zeros((num_weights, width), dtype=gradient.dtype)
    if scale_grad_by_freq:
        counts = ms.zeros((num_weights,), dtype=ms.int64)
        counts = _scattered_slices("sum", counts, 0, indices, ms.ones(indices.shape, dtype=ms.int64))
        uses = ms.take(counts, indices, axis=0)
        rows = ms.divide(rows, ms.expand_dims(cast(uses, to_torch(rows.dtype)), axis=1))
    # A row of padding has no gradient.
    kept = ms.not_equal(indices, padding_idx)
    rows = ms.where(ms.expand_dims(kept, axis=1), rows, ms.zeros_like(rows))
    made = _scattered_slices("sum", ms.zeros((num_weights, width), dtype=rows.dtype), 0, indices, rows)
    return cast(made, dtype)


@lowers("aten.embedding_renorm")
def embedding_renorm(weight, indices, max_norm, norm_type):
    """The table with the indexed rows scaled to norms of at most `max_norm`; other rows are unchanged."""
    indices = ms.reshape(_int64(indices), (-1,))
    if 0 in indices.shape:
        return weight
    used = _scattered_slices("set", ms.zeros(weight.shape[:1], dtype=ms.bool), 0, indices,
                             ms.ones(indices.shape, dtype=ms.bool))
    norms = ms.linalg.vector_norm(weight, axis=tuple(range(1, weight.ndim)), keepdims=True, ord=norm_type)
    scale = ms.divide(max_norm, ms.add(norms, 1e-7))
    used = ms.reshape(used, used.shape + (1,) * (weight.ndim - 1))
    return ms.where(ms.logical_and(used, ms.greater(norms, max_norm)), ms.multiply(weight, scale), weight)


def _bags(indices, offsets, include_last_offset):
    """The bag of each index, and the number of bags; bags are consecutive and start at the offsets."""
    starts = offsets[:-1] if include_last_offset else offsets
    places = ms.arange(0, indices.shape[0], 1, dtype=ms.int64)
    return ms.subtract(searchsorted(_int64(starts), places, right=True), 1), starts.shape[0]


def _in_bags(kind, start, bags, count, rows):
    into = ms.full((count,) + tuple(rows.shape[1:]), start, dtype=rows.dtype)
    return _scattered_slices(kind, into, 0, bags, rows) if 0 not in rows.shape else into


@lowers("aten._embedding_bag", "aten._embedding_bag_forward_only")
def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=_SUM, sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=-1):
    """The bags' sums, means or maxima, the bag of each index, the bags' sizes, and the indices of the maxima."""
    dtype = to_torch(weight.dtype)
    indices = _int64(indices)
    bags, count = _bags(indices, offsets, include_last_offset)
    kept = ms.not_equal(indices, padding_idx)
    # An index of padding belongs to no bag: an index beyond the end is dropped.
    places = ms.where(kept, bags, ms.full((), count, dtype=ms.int64))
    sizes = _in_bags("sum", 0, places, count, ms.ones(indices.shape, dtype=ms.int64))
    rows = ms.take(weight, indices, axis=0) if indices.shape[0] else ms.zeros((0, weight.shape[1]), dtype=weight.dtype)
    rows = cast(rows, torch.float32) if dtype.itemsize == 2 else rows
    if per_sample_weights is not None:
        rows = ms.multiply(rows, ms.expand_dims(cast(per_sample_weights, to_torch(rows.dtype)), axis=1))
    largest = ms.zeros((count, weight.shape[1]), dtype=ms.int64)
    if mode == _MAX:
        made = _in_bags("amax", _lowest(dtype), places, count, rows)
        full = ms.greater(ms.expand_dims(sizes, axis=1), 0)
        if indices.shape[0]:
            # The first place of a bag whose row has the maximum.
            hit = ms.equal(rows, ms.take(made, ms.clip(places, 0, count - 1), axis=0))
            at = ms.where(hit, ms.iota(ms.int64, rows.shape, 0), ms.full((), indices.shape[0], dtype=ms.int64))
            first = _in_bags("amin", indices.shape[0] - 1, places, count, at)
            largest = ms.where(full, ms.take(indices, first, axis=0), ms.full((), -1, dtype=ms.int64))
        made = ms.where(full, made, ms.zeros_like(made))
    else:
        made = _in_bags("sum", 0, places, count, rows)
        if mode == _MEAN:
            divisor = ms.maximum(sizes, ms.ones_like(sizes))
            made = ms.divide(made, ms.expand_dims(cast(divisor, to_torch(made.dtype)), axis=1))
    return cast(made, dtype), bags, sizes, largest


@lowers("aten._embedding_bag_dense_backward")
def embedding_bag_dense_backward(gradient, indices, bags, sizes, largest, num_weights, scale_grad_by_freq, mode,
                                 per_sample_weights, padding_idx=-1):
    dtype = to_torch(gradient.dtype)
    gradient = cast(gradient, torch.float32) if dtype.itemsize == 2 else gradient
    width = gradient.shape[1]
    if 0 in indices.shape or 0 in gradient.shape:
        return ms.zeros((num_weights, width), dtype=gradient.dtype)
    if mode == _MAX:
        columns = ms.iota(ms.int64, largest.shape, 1)
        # An index of -1, of an empty bag, is out of range and dropped.
        places = ms.where(ms.less(largest, 0), ms.full((), num_weights, dtype=ms.int64), largest)
        made = ms.scatter_add(ms.zeros((num_weights, width), dtype=gradient.dtype), ms.stack([places, columns], axis=2),
                              gradient, inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1),
                              index_vector_dim=2)
        return cast(made, dtype)
    if mode == _MEAN:
        divisor = cast(ms.maximum(sizes, ms.ones_like(sizes)), to_torch(gradient.dtype))
        gradient = ms.divide(gradient, ms.expand_dims(divisor, axis=1))
    rows = ms.take(gradient, _int64(bags), axis=0)
    if per_sample_weights is not None:
        rows = ms.multiply(rows, ms.expand_dims(cast(per_sample_weights, to_torch(rows.dtype)), axis=1))
    return cast(embedding_dense_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq), dtype)


@lowers("aten._embedding_bag_backward")
def embedding_bag_backward(gradient, indices, offsets, bags, sizes, largest, num_weights, scale_grad_by_freq, mode,
                           sparse, per_sample_weights, padding_idx=-1):
    if sparse:
        raise NotImplementedError("[torch] embedding_bag with sparse gradients is not supported: use sparse=False")
    return embedding_bag_dense_backward(gradient, indices, bags, sizes, largest, num_weights, scale_grad_by_freq, mode,
                                        per_sample_weights, padding_idx)


@lowers("aten._embedding_bag_per_sample_weights_backward")
def embedding_bag_per_sample_weights_backward(gradient, weight, indices, offsets, bags, mode, padding_idx=-1):
    indices = _int64(indices)
    if 0 in indices.shape:
        return ms.zeros(indices.shape, dtype=gradient.dtype)
    products = ms.multiply(ms.take(gradient, _int64(bags), axis=0), ms.take(weight, indices, axis=0))
    made = ms.sum(products, axis=1)
    return ms.where(ms.not_equal(indices, padding_idx), made, ms.zeros_like(made))
