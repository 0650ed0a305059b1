"""Resampling of images: interpolation and sampling at the points of a grid."""

import itertools
import math

import numpy as np
import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import array, as_dtype, cast

_NEAREST, _NEAREST_EXACT, _LINEAR, _CUBIC = "nearest", "nearest-exact", "linear", "cubic"


def _ratio(size, count, align_corners, scale, real):
    """The distance of two results in the input."""
    if align_corners:
        return real((size - 1) / (count - 1)) if count > 1 else real(0)
    return real(1 / scale) if scale is not None and scale > 0 else real(size) / real(count)


def _cubic_weights(t, a):
    """The weights of four neighbors of a point at the distance t from the second one."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _taps(kind, size, count, align_corners, scale, real):
    """Indices [taps, count] into a dimension, and their weights (None: one tap with weight 1), as arrays of NumPy."""
    at = np.arange(count, dtype=real)
    if kind in (_NEAREST, _NEAREST_EXACT):
        ratio = _ratio(size, count, False, scale, real)
        point = np.floor((at + real(0.5 if kind == _NEAREST_EXACT else 0)) * ratio)
        return np.minimum(point.astype(np.int64), size - 1)[None], None
    ratio = _ratio(size, count, align_corners, scale, real)
    point = ratio * at if align_corners else ratio * (at + real(0.5)) - real(0.5)
    if kind == _LINEAR:
        point = np.maximum(point, 0)
        first = np.minimum(np.floor(point).astype(np.int64), size - 1)
        part = np.clip(point - first, 0, 1).astype(real)
        return np.stack([first, np.minimum(first + 1, size - 1)]), np.stack([1 - part, part])
    first = np.floor(point).astype(np.int64)
    weights = np.stack(_cubic_weights((point - first).astype(real), real(-0.75)))
    return np.clip(first + np.arange(-1, 3)[:, None], 0, size - 1), weights


def _antialias_taps(kind, size, count, align_corners, scale, real):
    """Like _taps(), for kernels that widen when the result has fewer elements."""
    ratio = _ratio(size, count, align_corners, scale, real)
    width = {"linear": 2, "cubic": 4, "lanczos": 6}[kind]
    support = width / 2 * ratio if ratio >= 1 else real(width / 2)
    inverse = 1 / ratio if ratio >= 1 else real(1)
    center = ratio * (np.arange(count, dtype=real) + real(0.5))
    begin = np.maximum((center - support + real(0.5)).astype(np.int64), 0)
    end = np.minimum((center + support + real(0.5)).astype(np.int64), size)
    at = begin + np.arange(max(int((end - begin).max()), 1))[:, None]
    x = np.abs((at - center + real(0.5)) * inverse)
    if kind == "linear":
        weights = np.maximum(1 - x, 0)
    elif kind == "cubic":
        a = real(-0.5)
        weights = np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1,
                           np.where(x < 2, (((x - 5) * x + 8) * x - 4) * a, 0))
    else:
        weights = np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    weights = np.where(at < end, weights, 0)
    total = weights.sum(0)
    weights = (weights / np.where(total == 0, 1, total)).astype(real)
    return np.minimum(at, size - 1), weights


def _resampled(x, rank, kind, output_size, align_corners, scales, taps=_taps):
    """x with its last `rank` dimensions resampled to the output size."""
    dtype = to_torch(x.dtype)
    if not dtype.is_floating_point and kind not in (_NEAREST, _NEAREST_EXACT):
        raise NotImplementedError(f"[torch] {kind} interpolation of {dtype}")
    real = np.float64 if dtype == torch.float64 else np.float32
    if dtype in (torch.float16, torch.bfloat16):
        x = cast(x, torch.float32)
    # The last dimension first, as PyTorch does.
    for d in reversed(range(rank)):
        axis = x.ndim - rank + d
        size, count = x.shape[axis], output_size[d]
        if kind in (_LINEAR, _CUBIC) and size == count and taps is _taps and (align_corners or not scales[d]):
            continue
        indices, weights = taps(kind, size, count, align_corners, scales[d], real)
        made = None
        for k in range(len(indices)):
            taken = ms.take(x, array(indices[k]), axis=axis)
            if weights is not None:
                along = [-1 if a == axis else 1 for a in range(x.ndim)]
                taken = taken * array(weights[k].reshape(along), dtype=x.dtype)
            made = taken if made is None else made + taken
        x = made
    return cast(x, dtype)


def _vec_sizes(x, rank, output_size, scale_factors):
    sizes = x.shape[x.ndim - rank:]
    if output_size is not None:
        return list(output_size), [None] * rank
    return [int(math.floor(float(n) * s)) for n, s in zip(sizes, scale_factors)], list(scale_factors)


def _register(name, rank, kind, aligned, taps=_taps):
    def forward(x, output_size, *options):
        align_corners, scales = (options[0], options[1:]) if aligned else (False, options)
        return _resampled(x, rank, kind, output_size, align_corners, [*scales, *[None] * rank][:rank], taps)

    def vec(x, output_size, *options):
        align_corners = options[0] if aligned else False
        size, scales = _vec_sizes(x, rank, output_size, options[-1] if output_size is None else None)
        return _resampled(x, rank, kind, size, align_corners, scales, taps)

    def backward(grad, output_size, input_size, *options):
        zeros = ms.zeros(tuple(input_size), dtype=grad.dtype)
        return ms.vjp(lambda x: forward(x, output_size, *options), zeros)[1](grad)[0]

    lowers(f"aten.{name}")(forward)
    lowers(f"aten.{name}.vec")(vec)
    lowers(f"aten.{name}_backward")(backward)


for _rank in (1, 2, 3):
    _register(f"upsample_nearest{_rank}d", _rank, _NEAREST, False)
    _register(f"_upsample_nearest_exact{_rank}d", _rank, _NEAREST_EXACT, False)
_register("upsample_linear1d", 1, _LINEAR, True)
_register("upsample_bilinear2d", 2, _LINEAR, True)
_register("upsample_trilinear3d", 3, _LINEAR, True)
_register("upsample_bicubic2d", 2, _CUBIC, True)
_register("_upsample_bilinear2d_aa", 2, "linear", True, _antialias_taps)
_register("_upsample_bicubic2d_aa", 2, "cubic", True, _antialias_taps)
_register("_upsample_lanczos2d_aa", 2, "lanczos", True, _antialias_taps)


def _clipped(x, size):
    """Coordinates clipped to a dimension, with slope 0 at its ends and beyond."""
    low, high = ms.zeros_like(x), ms.full_like(x, size - 1)
    return ms.where(x <= 0, low, ms.where(x >= size - 1, high, x))


def _reflected(x, low, high):
    """Coordinates reflected at twice `low` and `high`, halved."""
    if low == high:
        return ms.zeros_like(x)
    begin, span = low / 2, (high - low) / 2
    x = ms.abs(x - begin)
    flips = ms.stop_gradient(ms.floor(x / span))
    extra = x - flips * span
    even = ms.equal(ms.remainder(flips, ms.full_like(flips, 2)), ms.zeros_like(flips))
    return ms.where(even, extra + begin, span - extra + begin)


def _padded(x, size, padding_mode, align_corners):
    if padding_mode == 0:
        return x
    if padding_mode == 2:
        x = _reflected(x, 0, 2 * (size - 1)) if align_corners else _reflected(x, -1, 2 * size - 1)
    return _clipped(x, size)


def _sampled(x, grid, interpolation_mode, padding_mode, align_corners):
    """The values of x [batch, features, ...] at the points of the grid [batch, ..., rank]; (x, y, z) from -1 to 1."""
    rank, sizes = x.ndim - 2, x.shape[2:]
    dtype = to_torch(x.dtype)
    if dtype in (torch.float16, torch.bfloat16):
        return cast(_sampled(cast(x, torch.float32), cast(grid, torch.float32), interpolation_mode, padding_mode,
                             align_corners), dtype)
    rows = ms.reshape(x, (*x.shape[:2], math.prod(sizes)))
    batch, shape = grid.shape[0], tuple(grid.shape[1:-1])
    points = []
    for d, size in enumerate(sizes):
        point = ms.reshape(grid[..., rank - 1 - d], (batch, math.prod(shape)))
        point = (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2
        points.append(point)

    def values(coordinates):
        """The elements [batch, features, points] at whole coordinates; 0 outside."""
        flat = inside = None
        for at, size in zip(coordinates, sizes):
            valid = ms.logical_and(at >= 0, at <= size - 1)
            at = cast(ms.where(valid, at, ms.zeros_like(at)), torch.int64)
            flat = at if flat is None else flat * size + at
            inside = valid if inside is None else ms.logical_and(inside, valid)
        shape = (*x.shape[:2], flat.shape[-1])
        taken = ms.take_along_axis(rows, ms.broadcast_to(flat[:, None], shape), axis=-1)
        return ms.where(ms.broadcast_to(inside[:, None], shape), taken, ms.zeros_like(taken))

    if interpolation_mode == 2:
        floors = [ms.stop_gradient(ms.floor(p)) for p in points]
        weights = [_cubic_weights(p - f, -0.75) for p, f in zip(points, floors)]
    else:
        points = [_padded(p, n, padding_mode, align_corners) for p, n in zip(points, sizes)]
        if interpolation_mode == 1:
            made = values([ms.stop_gradient(ms.round(p)) for p in points])
            return ms.reshape(made, (*x.shape[:2], *shape))
        floors = [ms.stop_gradient(ms.floor(p)) for p in points]
        weights = [(1 - (p - f), p - f) for p, f in zip(points, floors)]
    made = None
    for offset in itertools.product(range(len(weights[0])), repeat=rank):
        at, weight = [], None
        for d, k in enumerate(offset):
            place = floors[d] + (k - 1 if interpolation_mode == 2 else k)
            if interpolation_mode == 2:
                place = ms.stop_gradient(ms.trunc(_padded(place, sizes[d], padding_mode, align_corners)))
            at.append(place)
            weight = weights[d][k] if weight is None else weight * weights[d][k]
        part = values(at) * weight[:, None]
        made = part if made is None else made + part
    return ms.reshape(made, (*x.shape[:2], *shape))


@lowers("aten.grid_sampler_2d", "aten._grid_sampler_2d_cpu_fallback", "aten.grid_sampler_3d")
def grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners):
    return _sampled(x, grid, interpolation_mode, padding_mode, align_corners)


@lowers("aten.grid_sampler_2d_backward", "aten._grid_sampler_2d_cpu_fallback_backward",
        "aten.grid_sampler_3d_backward")
def grid_sampler_backward(grad, x, grid, interpolation_mode, padding_mode, align_corners, output_mask=(True, True)):
    options = (interpolation_mode, padding_mode, align_corners)
    of_x = ms.vjp(lambda x: _sampled(x, grid, *options), x)[1](grad)[0] if output_mask[0] else None
    of_grid = ms.vjp(lambda grid: _sampled(x, grid, *options), grid)[1](grad)[0]
    return of_x, of_grid
