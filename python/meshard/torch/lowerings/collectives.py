"""Collectives of torch.distributed over axes of a mesh, for the values of each rank inside a manual region.

These take axes in place of a process group: graphs with groups are rewritten by _rank_graphs before they are recorded.
"""

import math

import torch

import meshard as ms

from .._dtypes import to_torch
from ._helpers import cast


def _reduction(op):
    """The name of a reduction, given by name or as a ReduceOp."""
    name = op if isinstance(op, str) else getattr(getattr(op, "op", op), "name", str(op))
    return name.lower()


def all_reduce(x, op, mesh, axes):
    if not axes:
        return x
    op = _reduction(op)
    x = ms.vary(x, axes)
    if to_torch(x.dtype).is_floating_point or to_torch(x.dtype).is_complex:
        if op == "avg":
            return ms.all_reduce(x, axes) / ms.full((), _size(mesh, axes), dtype=x.dtype)
    kind = {"sum": "sum", "product": "prod", "min": "min", "max": "max"}.get(op)
    if kind is None:
        raise NotImplementedError(f"[torch] the all-reduce {op} of {x.dtype} is not supported")
    if x.dtype == ms.bool and kind in ("sum", "prod"):
        # PyTorch adds bools as numbers and keeps whether the sum is not zero.
        kind = "max" if kind == "sum" else "min"
    return ms.all_reduce(x, axes, kind)


def _size(mesh, axes):
    return math.prod(mesh.axis_size(each) for each in axes)


def all_gather(x, mesh, axes):
    """The values of all ranks along dimension 0."""
    if x.ndim == 0:
        x = ms.expand_dims(x, axis=0)
    return ms.all_gather(x, axes, 0) if axes else x


def reduce_scatter(x, op, mesh, axes):
    if not axes:
        return x
    op, size = _reduction(op), _size(mesh, axes)
    if x.shape[0] % size:
        raise ValueError(f"[torch] a reduce-scatter of {x.shape[0]} rows over {size} ranks")
    if op == "sum" and x.dtype != ms.bool:
        return ms.reduce_scatter(x, axes, 0)
    if op == "avg" and to_torch(x.dtype).is_floating_point:
        return ms.reduce_scatter(x, axes, 0) / ms.full((), size, dtype=x.dtype)
    reduce = {"product": ms.prod, "min": ms.min, "max": ms.max}.get(op)
    if reduce is None or x.dtype == ms.bool:
        raise NotImplementedError(f"[torch] the reduce-scatter {op} of {x.dtype} is not supported")
    parts = ms.all_to_all(x, axes, 0, 0)
    return ms.astype(reduce(ms.reshape(parts, (size, x.shape[0] // size, *x.shape[1:])), axis=0), x.dtype)


def all_to_all(x, output_sizes, input_sizes, mesh, axes):
    """Part i of dimension 0 goes to rank i of the group. All parts must have one size."""
    size = _size(mesh, axes)
    for sizes in (output_sizes, input_sizes):
        if sizes and set(sizes) != {x.shape[0] // size} or x.shape[0] % size:
            raise NotImplementedError(f"[torch] an all-to-all of parts of different sizes is not supported: "
                                      f"{list(sizes)} of {x.shape[0]} rows over {size} ranks. Pad them to one size")
    return ms.all_to_all(x, axes, 0, 0) if axes else x


def all_to_all_dimensions(x, gather_dim, shard_dim, mesh, axes):
    """Shards `shard_dim` instead of `gather_dim`."""
    return ms.all_to_all(x, axes, shard_dim, gather_dim) if axes else x


def permute(x, targets, mesh, axes):
    """Rank i of the group sends its value to rank targets[i]."""
    if sorted(targets) != list(range(_size(mesh, axes))):
        raise NotImplementedError(f"[torch] permute_tensor: {targets} does not send one value to each rank")
    return ms.collective_permute(x, axes, list(enumerate(targets))) if axes else x


def exchange(xs, targets, mesh, axes):
    """A permutation of each tensor in a list."""
    return [permute(x, own, mesh, axes) for x, own in zip(xs, targets, strict=True)]


def broadcast(x, source, mesh, axes):
    """The value of one rank of the group: the sum of this value and of zeros from the others."""
    if not axes:
        return x
    dtype = to_torch(x.dtype)
    value = ms.astype(x, ms.int32) if x.dtype == ms.bool else x
    # -0.0 + x is x for every x; 0.0 + -0.0 is not.
    zero = ms.full(tuple(x.shape), -0.0 if dtype.is_floating_point else 0, dtype=value.dtype)
    mine = ms.equal(ms.axis_index(list(axes)), ms.full((), source, dtype=ms.int32))
    total = ms.all_reduce(ms.vary(ms.where(mine, value, zero), axes), axes)
    return cast(total, dtype)


def coalesced(function):
    """The same collective of each tensor in a list."""

    def each(xs, *args):
        return [function(x, *args) for x in xs]

    return each


def identity(x):
    return x


def rank_value(mesh, values):
    """A number of each rank, listed by ranks in mesh order, as a tensor of rank 0: int64, float64 or bool."""
    if isinstance(values[0], bool):
        return cast(rank_value(mesh, tuple(map(int, values))), torch.bool)
    axes = [axis for axis in mesh.axis_names if mesh.axis_size(axis) > 1]
    strides = {axis: math.prod(mesh.axis_size(each) for each in axes[i + 1:]) for i, axis in enumerate(axes)}
    steps = {axis: values[strides[axis]] - values[0] for axis in axes}
    exact = all(isinstance(value, int) for value in values)

    def linear(i):
        return values[0] + sum(step * (i // strides[axis] % mesh.axis_size(axis)) for axis, step in steps.items())

    if exact and all(value == linear(i) for i, value in enumerate(values)):
        total = ms.full((), values[0], dtype=ms.int64)
        for axis, step in steps.items():
            if step:
                total = total + ms.astype(ms.axis_index([axis]), ms.int64) * ms.full((), step, dtype=ms.int64)
        return total
    table = ms.mark_manual_sharding(ms.asarray(list(values), dtype=ms.int64 if exact else ms.float64), mesh)
    return ms.squeeze(ms.dynamic_slice(table, [ms.axis_index(axes)], [1]), axis=0)


def constant(value, mesh):
    """A constant of the program, which is the same on every rank."""
    return ms.mark_manual_sharding(value, mesh)


def slice_at(x, dim, mesh, starts, size):
    """`size` elements along a dimension, from a start that may differ by rank."""
    begin = [rank_value(mesh, starts) if d == dim else 0 for d in range(x.ndim)]
    return ms.dynamic_slice(x, begin, [size if d == dim else n for d, n in enumerate(x.shape)])


def select_at(x, dim, mesh, starts):
    return ms.squeeze(slice_at(x, dim, mesh, starts, 1), axis=dim)


def update_at(x, part, dim, mesh, starts):
    """x with elements along a dimension replaced, from a start that may differ by rank."""
    return ms.dynamic_update_slice(x, part, [rank_value(mesh, starts) if d == dim else 0 for d in range(x.ndim)])


def update_row_at(x, part, dim, mesh, starts):
    return update_at(x, ms.expand_dims(part, axis=dim), dim, mesh, starts)


def padded_at(gradient, shape, dim, mesh, starts):
    """Zeros with the part of each rank at its place."""
    return update_at(ms.zeros(tuple(shape), dtype=gradient.dtype), gradient, dim, mesh, starts)


def padded_row_at(gradient, shape, dim, mesh, starts):
    return padded_at(ms.expand_dims(gradient, axis=dim), shape, dim, mesh, starts)
