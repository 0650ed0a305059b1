"""Pooling."""

import itertools
import math

import numpy as np
import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import array, cast


def _listed(values, rank):
    values = [values] if isinstance(values, int) else list(values)
    return values * rank if len(values) == 1 else values


def _lowest(dtype):
    """The smallest value of a dtype, as a number."""
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


class _Windows:
    """The windows of a pooling: counts and places, for each of the last `rank` dimensions."""

    def __init__(self, x, rank, kernel_size, stride, padding=0, dilation=1, ceil_mode=False):
        self.rank, self.leading = rank, tuple(x.shape[:x.ndim - rank])
        self.sizes = tuple(x.shape[x.ndim - rank:])
        self.kernel = _listed(kernel_size, rank)
        self.stride = _listed(stride, rank) if stride not in (None, [], ()) else self.kernel
        self.padding, self.dilation = _listed(padding, rank), _listed(dilation, rank)
        self.counts = tuple(self._count(*each, ceil_mode)
                            for each in zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation))
        # What the windows reach after the last element; negative where they leave elements out.
        self.after = [(c - 1) * s + d * (k - 1) + 1 - n - p for c, s, d, k, n, p in zip(
            self.counts, self.stride, self.dilation, self.kernel, self.sizes, self.padding)]

    @staticmethod
    def _count(size, kernel, stride, padding, dilation, ceil_mode):
        free = size + 2 * padding - dilation * (kernel - 1) - 1
        count = -(-free // stride) + 1 if ceil_mode else free // stride + 1
        # The last window starts inside the input or its left padding.
        return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count

    def options(self):
        """The arguments of a window reduction over all dimensions."""
        ones = (1,) * len(self.leading)
        # A window reduction takes no negative padding; elements after the last window are left out by its count.
        padding = [(0, 0)] * len(ones) + [(p, max(a, 0)) for p, a in zip(self.padding, self.after)]
        return dict(window=(*ones, *self.kernel), strides=(*ones, *self.stride),
                    window_dilation=(*ones, *self.dilation), padding=padding)

    def offsets(self):
        return itertools.product(*(range(k) for k in self.kernel))

    def padded(self, x, value):
        """x with padding before, and as many elements after as the windows reach."""
        zeros = (0,) * len(self.leading)
        return ms.pad(x, array(value, dtype=x.dtype), (*zeros, *self.padding), (*zeros, *self.after))

    def taken(self, padded, offset):
        """The elements at this offset in each window."""
        return padded[(slice(None),) * len(self.leading) + tuple(
            slice(o * d, o * d + (c - 1) * s + 1, s)
            for o, d, c, s in zip(offset, self.dilation, self.counts, self.stride))]

    def positions(self, offset):
        """The flat index of those elements in the input, and whether they are in it, as arrays of NumPy."""
        flat, inside = np.zeros((1,) * self.rank, np.int64), np.ones((1,) * self.rank, bool)
        for axis in range(self.rank):
            at = np.arange(self.counts[axis]) * self.stride[axis] - self.padding[axis] \
                + offset[axis] * self.dilation[axis]
            shape = [-1 if d == axis else 1 for d in range(self.rank)]
            flat = flat * self.sizes[axis] + at.reshape(shape)
            inside = inside & ((at >= 0) & (at < self.sizes[axis])).reshape(shape)
        return np.broadcast_to(flat, self.counts), np.broadcast_to(inside, self.counts)


def _average(x, rank, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = _Windows(x, rank, kernel_size, stride, padding, 1, ceil_mode)
    if 0 in windows.counts or 0 in x.shape:
        return ms.zeros((*windows.leading, *windows.counts), dtype=x.dtype)
    dtype = to_torch(x.dtype)
    narrow = dtype in (torch.float16, torch.bfloat16)
    total = ms.reduce_window_sum(cast(x, torch.float32) if narrow else x, **windows.options())
    divisor = np.full((1,) * rank, divisor_override or 1, np.int64)
    if divisor_override is None:
        for axis in range(rank):
            begin = np.arange(windows.counts[axis]) * windows.stride[axis] - windows.padding[axis]
            size = windows.sizes[axis]
            end = np.minimum(begin + windows.kernel[axis], size + windows.padding[axis])
            count = end - begin if count_include_pad else np.minimum(end, size) - np.maximum(begin, 0)
            divisor = divisor * count.reshape([-1 if d == axis else 1 for d in range(rank)])
    if dtype.is_floating_point or dtype.is_complex:
        made = total / array(divisor.astype(np.float64), dtype=total.dtype)
    else:
        made = ms.truncated_divide(total, array(divisor, dtype=total.dtype))
    return cast(made, dtype)


@lowers("aten.avg_pool1d")
def avg_pool1d(x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True):
    return _average(x, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@lowers("aten.avg_pool2d")
def avg_pool2d(x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return _average(x, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lowers("aten.avg_pool3d")
def avg_pool3d(x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return _average(x, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@lowers("aten.avg_pool2d_backward")
def avg_pool2d_backward(grad, x, *options):
    return ms.vjp(lambda x: _average(x, 2, *options), x)[1](grad)[0]


@lowers("aten.avg_pool3d_backward")
def avg_pool3d_backward(grad, x, *options):
    return ms.vjp(lambda x: _average(x, 3, *options), x)[1](grad)[0]


def _largest(x, windows):
    """The largest element of each window, and its flat index in the last dimensions (of equal ones the first)."""
    dtype = to_torch(x.dtype)
    if 0 in x.shape or 0 in windows.counts:
        shape = (*windows.leading, *windows.counts)
        return ms.zeros(shape, dtype=x.dtype), ms.zeros(shape, dtype=ms.int64)
    # Two computations, so that the second one disappears from programs that do not use the indices.
    values = ms.reduce_window_max(x, **windows.options())
    padded = windows.padded(x, _lowest(dtype))
    best = where = None
    for offset in windows.offsets():
        flat, inside = windows.positions(offset)
        value, at = windows.taken(padded, offset), array(flat)
        if best is None:
            # The first element inside is the answer if all are the lowest value.
            first, found = flat.copy(), inside.copy()
            for other in windows.offsets():
                f, i = windows.positions(other)
                first, found = np.where(~found & i, f, first), found | i
            best, where = ms.full(value.shape, _lowest(dtype), dtype=x.dtype), array(first)
            where = ms.broadcast_to(where, value.shape)
        better = ms.greater(value, best)
        if dtype.is_floating_point:
            better = ms.logical_or(better, ms.isnan(value))
        if not inside.all():
            better = ms.logical_and(better, array(inside))
        best, where = ms.where(better, value, best), ms.where(better, at, where)
    return values, where


def _register_max(rank):
    def forward(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        return _largest(x, _Windows(x, rank, kernel_size, stride, padding, dilation, ceil_mode))

    def backward(grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
        if 0 in grad.shape:
            return ms.zeros_like(x)
        # Not a sum of selected slices: XLA's CPU compiler would find the indices anew for each of them.
        return scattered(grad, indices, x.shape, rank)

    lowers(f"aten.max_pool{rank}d_with_indices")(forward)
    lowers(f"aten.max_pool{rank}d_with_indices_backward")(backward)
    if rank > 1:
        lowers(f"aten.max_pool{rank}d")(lambda *args, **kwargs: forward(*args, **kwargs)[0])


for _rank in (1, 2, 3):
    _register_max(_rank)


def scattered(updates, indices, shape, rank):
    """Zeros of a shape, with updates added at flat indices into its last `rank` dimensions."""
    leading = tuple(shape[:len(shape) - rank])
    batch, size = tuple(range(len(leading))), math.prod(shape[len(shape) - rank:])
    updates, indices = ms.reshape(updates, (*leading, -1)), ms.reshape(indices, (*leading, -1, 1))
    made = ms.scatter_add(ms.zeros((*leading, size), dtype=updates.dtype), indices, updates,
                          inserted_window_dims=(len(batch),), input_batching_dims=batch,
                          scatter_indices_batching_dims=batch, scatter_dims_to_operand_dims=(len(batch),),
                          index_vector_dim=len(batch) + 1)
    return ms.reshape(made, tuple(shape))


def _adaptive_windows(size, count):
    """Indices [count, longest window], and which of them are in the window, as arrays of NumPy."""
    begin = np.arange(count) * size // count
    end = -(-(np.arange(1, count + 1) * size) // count)
    at = begin[:, None] + np.arange(int((end - begin).max()) if count else 0)
    return np.minimum(at, max(size - 1, 0)), at < end[:, None]


def _adaptive_average(x, rank, output_size):
    output_size = [x.shape[x.ndim - rank + d] if n is None else n for d, n in enumerate(_listed(output_size, rank))]
    dtype = to_torch(x.dtype)
    if 0 in x.shape or 0 in output_size:
        return ms.zeros((*x.shape[:x.ndim - rank], *output_size), dtype=x.dtype)
    if dtype in (torch.float16, torch.bfloat16):
        x = cast(x, torch.float32)
    for axis, count in zip(range(x.ndim - rank, x.ndim), output_size):
        size = x.shape[axis]
        at, inside = _adaptive_windows(size, count)
        shape = (*x.shape[:axis], *at.shape, *x.shape[axis + 1:])
        if size % count == 0:
            x = ms.mean(ms.reshape(x, shape), axis=axis + 1)
            continue
        taken = ms.reshape(ms.take(x, array(at.reshape(-1)), axis=axis), shape)
        along = (1,) * axis + at.shape + (1,) * (x.ndim - axis - 1)
        taken = ms.where(array(inside.reshape(along)), taken, ms.zeros_like(taken))
        lengths = inside.sum(1).astype(np.float64).reshape(along[:axis + 1] + along[axis + 2:])
        x = ms.sum(taken, axis=axis + 1) / array(lengths, dtype=x.dtype)
    return cast(x, dtype)


def _register_adaptive(rank, *names):
    lowers(*(f"aten.{name}" for name in names))(lambda x, output_size: _adaptive_average(x, rank, output_size))
    lowers(*(f"aten.{name}_backward" for name in names if name[0] == "_"))(
        lambda grad, x: ms.vjp(lambda x: _adaptive_average(x, rank, grad.shape[grad.ndim - rank:]), x)[1](grad)[0])


_register_adaptive(1, "adaptive_avg_pool1d")
_register_adaptive(2, "_adaptive_avg_pool2d", "adaptive_avg_pool2d")
_register_adaptive(3, "_adaptive_avg_pool3d", "adaptive_avg_pool3d")


def _window_maximum(x, indices, inside):
    """The largest element of each window, and its flat index.

    `indices[d]` [..., count, length] are the places of the windows in each of the last dimensions, with the leading
    dimensions of x before them if they differ between rows. `inside[d]` tells which of them count (None: all).
    """
    rank = len(indices)
    leading = tuple(x.shape[:x.ndim - rank])
    sizes = tuple(x.shape[x.ndim - rank:])
    counts, lengths = [each.shape[-2] for each in indices], [each.shape[-1] for each in indices]
    flat = valid = None
    for axis, (at, counted) in enumerate(zip(indices, inside)):
        place = [1] * (2 * rank)
        place[axis], place[rank + axis] = counts[axis], lengths[axis]
        at = ms.reshape(at, (*at.shape[:-2], *place))
        flat = at if flat is None else flat * sizes[axis] + at
        if counted is not None:
            counted = array(counted.reshape(place))
            valid = counted if valid is None else ms.logical_and(valid, counted)
    windows = (*counts, math.prod(lengths))
    own = flat.ndim > 2 * rank
    flat = ms.reshape(ms.broadcast_to(flat, (*(leading if own else ()), *counts, *lengths)),
                      (*(leading if own else ()), *windows))
    rows = ms.reshape(x, (*leading, math.prod(sizes)))
    if own:
        taken = ms.take_along_axis(rows, ms.reshape(flat, (*leading, math.prod(windows))), axis=-1)
    else:
        taken = ms.take(rows, ms.reshape(flat, (math.prod(windows),)), axis=len(leading))
    taken = ms.reshape(taken, (*leading, *windows))
    dtype = to_torch(x.dtype)
    if valid is not None:
        valid = ms.reshape(ms.broadcast_to(valid, (*counts, *lengths)), windows)
        taken = ms.where(valid, taken, array(_lowest(dtype), dtype=x.dtype))
    best = ms.argmax(taken, axis=-1, keepdims=True)
    value = ms.take_along_axis(taken, best, axis=-1)
    at = ms.take_along_axis(ms.broadcast_to(flat, taken.shape), best, axis=-1)
    shape = (*leading, *counts)
    return ms.reshape(value, shape), cast(ms.reshape(at, shape), torch.int64)


def _register_adaptive_max(rank):
    def forward(x, output_size):
        output_size = _listed(output_size, rank)
        if 0 in x.shape or 0 in output_size:
            shape = (*x.shape[:x.ndim - rank], *output_size)
            return ms.zeros(shape, dtype=x.dtype), ms.zeros(shape, dtype=ms.int64)
        windows = [_adaptive_windows(*each) for each in zip(x.shape[x.ndim - rank:], output_size)]
        return _window_maximum(x, [array(at) for at, _ in windows], [inside for _, inside in windows])

    lowers(f"aten.adaptive_max_pool{rank}d")(forward)
    lowers(f"aten.adaptive_max_pool{rank}d_backward")(
        lambda grad, x, indices: scattered(grad, indices, x.shape, rank))


_register_adaptive_max(2)
_register_adaptive_max(3)


def _register_fractional(rank):
    def forward(x, kernel_size, output_size, random_samples):
        """`random_samples` [batch or more, features, rank] shift the windows; without a batch, the first ones do."""
        kernel, output_size = _listed(kernel_size, rank), _listed(output_size, rank)
        leading = tuple(x.shape[:x.ndim - rank])
        samples = ms.reshape(random_samples[:math.prod(leading[:-1])], (*leading, rank))
        indices = []
        for axis in range(rank):
            size, count, length = x.shape[x.ndim - rank + axis], output_size[axis], kernel[axis]
            # PyTorch reads the samples of two dimensions as (width, height), and of three as (time, height, width).
            sample = samples[..., rank - 1 - axis if rank == 2 else axis][..., None]
            if count > 1:
                alpha = array((size - length) / (count - 1), dtype=x.dtype)
                step = ms.arange(count - 1, dtype=x.dtype)
                begin = cast(ms.trunc((step + sample) * alpha) - ms.trunc(sample * alpha), torch.int64)
                last = ms.full((*leading, 1), size - length, dtype=ms.int64)
                begin = ms.concat([begin, last], axis=-1)
            else:
                begin = ms.full((*leading, 1), size - length, dtype=ms.int64)
            indices.append(begin[..., None] + ms.arange(length, dtype=ms.int64))
        return _window_maximum(x, indices, [None] * rank)

    def backward(grad, x, kernel_size, output_size, indices):
        return scattered(grad, indices, x.shape, rank)

    lowers(f"aten.fractional_max_pool{rank}d")(forward)
    lowers(f"aten.fractional_max_pool{rank}d_backward")(backward)


_register_fractional(2)
_register_fractional(3)


def _register_unpool(rank):
    def forward(x, indices, output_size, stride=None, padding=None):
        """Zeros of the output size, with the elements of x at flat indices."""
        shape = (*x.shape[:x.ndim - rank], *output_size)
        if 0 in x.shape:
            return ms.zeros(shape, dtype=x.dtype)
        leading = tuple(x.shape[:x.ndim - rank])
        rows = math.prod(leading)
        made = ms.scatter_set(ms.zeros((rows, math.prod(output_size)), dtype=x.dtype),
                              ms.reshape(indices, (rows, -1, 1)), ms.reshape(x, (rows, -1)),
                              inserted_window_dims=(1,), input_batching_dims=(0,),
                              scatter_indices_batching_dims=(0,), scatter_dims_to_operand_dims=(1,),
                              index_vector_dim=2)
        return ms.reshape(made, shape)

    lowers(f"aten.max_unpool{rank}d")(forward)


_register_unpool(2)
_register_unpool(3)
