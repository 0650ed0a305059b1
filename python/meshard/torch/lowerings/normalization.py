"""Batch normalization. PyTorch's decompositions of it have 10 to 25 operations, which would all be captured."""

import math

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast
from .reductions import mean_and_variance


def _computed(dtype):
    """The dtype in which PyTorch normalizes elements of a dtype."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _cast(value, dtype):
    return None if value is None else cast(value, dtype)


def _by_channel(value, x):
    """Reshapes values of channels so that they broadcast to x."""
    return ms.reshape(value, (x.shape[1],) + (1,) * (x.ndim - 2))


def _others(x):
    """All dimensions except the channels."""
    return (0, *range(2, x.ndim))


@lowers("aten._native_batch_norm_legit_no_training")
def batch_norm_of_averages(x, weight, bias, running_mean, running_var, momentum, eps):
    result = to_torch(x.dtype)
    dtype = _computed(result)
    x, weight, bias, mean, variance = (_cast(each, dtype) for each in (x, weight, bias, running_mean, running_var))
    scale = ms.rsqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    y = x * _by_channel(scale, x) + _by_channel(shift, x)
    nothing = ms.zeros((0,), dtype=x.dtype)  # as PyTorch's for CPUs
    return cast(y, result), cast(nothing, result), cast(nothing, result)


def _averaged(new, old, momentum):
    if old is None:
        return None
    dtype = torch.promote_types(to_torch(new.dtype), to_torch(old.dtype))
    return momentum * cast(new, dtype) + (1 - momentum) * cast(old, dtype)


@lowers("aten._native_batch_norm_legit_functional")
def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        return *batch_norm_of_averages(x, weight, bias, running_mean, running_var, momentum, eps), \
            running_mean, running_var
    result = to_torch(x.dtype)
    dtype = _computed(result)
    x, weight, bias = (_cast(each, dtype) for each in (x, weight, bias))
    mean, variance, _ = mean_and_variance(x, _others(x), 0, False)
    rstd = ms.rsqrt(variance + eps)
    y = (x - _by_channel(mean, x)) * _by_channel(rstd, x)
    y = y if weight is None else y * _by_channel(weight, x)
    y = y if bias is None else y + _by_channel(bias, x)
    count = math.prod(x.shape) / x.shape[1]
    new_mean = _averaged(mean, running_mean, momentum)
    new_variance = None if running_var is None else _averaged(variance * (count / (count - 1)), running_var, momentum)
    return cast(y, result), cast(mean, result), cast(rstd, result), new_mean, new_variance


@lowers("aten.native_batch_norm_backward")
def batch_norm_backward(gradient, x, weight, running_mean, running_var, save_mean, save_rstd, training, eps,
                        output_mask):
    result = to_torch(x.dtype)
    dtype, of_weight = _computed(result), result if weight is None else to_torch(weight.dtype)
    gradient, x, weight = (_cast(each, dtype) for each in (gradient, x, weight))
    mean = cast(save_mean if training else running_mean, dtype)
    rstd = cast(save_rstd, dtype) if training else ms.rsqrt(cast(running_var, dtype) + eps)
    centered = x - _by_channel(mean, x)
    total = ms.sum(gradient, axis=_others(x))
    product = ms.sum(gradient * centered, axis=_others(x))
    scale = _by_channel(rstd if weight is None else rstd * weight, x)
    if training:
        each = 1.0 / (math.prod(x.shape) / x.shape[1])
        gradient = gradient - centered * _by_channel(product * each * (rstd * rstd), x) - _by_channel(total * each, x)
    return (cast(gradient * scale, result), cast(product * rstd, of_weight) if output_mask[1] else None,
            cast(total, of_weight) if output_mask[2] else None)
