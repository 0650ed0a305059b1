"""Reductions of consecutive segments of a dimension."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast, dimension

_REDUCTIONS = {"sum": (ms.sum, 0), "mean": (ms.sum, 0), "prod": (ms.prod, 1), "max": (ms.max, float("-inf")),
               "min": (ms.min, float("inf"))}


def _bounds(lengths, offsets):
    """The first place of each segment, and the place after its last."""
    if offsets is not None:
        return offsets[..., :-1], offsets[..., 1:]
    ends = ms.cumulative_sum(lengths, axis=-1)
    return ms.subtract(ends, lengths), ends


def _members(bounds, data, axis):
    """Which elements each segment has: bools [batch..., segments, elements, 1...]."""
    first, last = (cast(ms.expand_dims(each, axis=axis + 1), torch.int64) for each in bounds)
    places = ms.iota(ms.int64, first.shape[:-1] + (data.shape[axis],), axis + 1)
    inside = ms.logical_and(ms.greater_equal(places, first), ms.less(places, last))
    return ms.reshape(inside, inside.shape + (1,) * (data.ndim - axis - 1))


def _spread(values, members, axis):
    """For each element, the value of its segment; zero for elements outside of segments."""
    each = ms.expand_dims(values, axis=axis + 1)
    return ms.sum(ms.where(members, each, ms.zeros((), dtype=values.dtype)), axis=axis)


def _reduced(data, members, axis, reduce, start):
    return _REDUCTIONS[reduce][0](
        ms.where(members, ms.expand_dims(data, axis=axis), ms.full((), start, dtype=data.dtype)), axis=axis + 1)


@lowers("aten.segment_reduce")
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    if indices is not None:
        raise NotImplementedError("[torch] indices of segment_reduce are not supported: pass lengths or offsets")
    axis = dimension(axis, data.ndim)
    bounds = _bounds(lengths, offsets)
    members = _members(bounds, data, axis)
    start = _REDUCTIONS[reduce][1]
    made = _reduced(data, members, axis, reduce, start)
    if initial is not None and reduce in ("max", "min"):
        made = (ms.maximum if reduce == "max" else ms.minimum)(made, ms.full((), initial, dtype=data.dtype))
    elif initial is not None:
        made = ms.multiply(made, initial) if reduce == "prod" else ms.add(made, initial)
    if reduce == "mean":
        counts = ms.sum(cast(members, torch.int64), axis=axis + 1)
        mean = ms.divide(made, cast(ms.maximum(counts, ms.ones_like(counts)), to_torch(data.dtype)))
        # The mean of nothing is NaN, unless an initial value is given.
        empty = ms.full((), float("nan"), dtype=data.dtype) if initial is None else made
        made = ms.where(ms.equal(counts, 0), empty, mean)
    return made


@lowers("aten._segment_reduce_backward")
def segment_reduce_backward(gradient, output, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    axis = dimension(axis, data.ndim)
    members = _members(_bounds(lengths, offsets), data, axis)
    dtype = to_torch(data.dtype)

    def counted(chosen):
        return ms.sum(cast(chosen, dtype), axis=axis + 1)

    if reduce == "mean":
        counts = counted(members)
        gradient = ms.divide(gradient, ms.maximum(counts, ms.ones_like(counts)))
    if reduce in ("sum", "mean"):
        return _spread(gradient, members, axis)
    if reduce == "prod":
        zero = ms.equal(data, ms.zeros_like(data))
        zeros = counted(ms.logical_and(members, ms.expand_dims(zero, axis=axis)))
        others = ms.where(zero, ms.ones_like(data), data)
        product = ms.multiply(_reduced(others, members, axis, "prod", 1), 1 if initial is None else initial)
        # The product of the other elements of the segment: it is zero if one of them is.
        rest = ms.divide(_spread(ms.multiply(gradient, product), members, axis), others)
        left = ms.subtract(_spread(zeros, members, axis), cast(zero, dtype))
        return ms.where(ms.equal(left, 0), rest, ms.zeros_like(rest))
    wanted = ms.expand_dims(output, axis=axis + 1)
    candidates = ms.expand_dims(data, axis=axis)
    # Equal elements share the gradient.
    hit = ms.logical_or(ms.equal(candidates, wanted), ms.logical_and(ms.isnan(candidates), ms.isnan(wanted)))
    hit = ms.logical_and(members, hit)
    counts = counted(hit)
    shared = ms.divide(gradient, ms.maximum(counts, ms.ones_like(counts)))
    return ms.sum(ms.where(hit, ms.expand_dims(shared, axis=axis + 1), ms.zeros((), dtype=data.dtype)), axis=axis)
