"""Convolutions."""

import string

import torch

import meshard as ms

from .._table import lowers
from ._helpers import array


def _spatial(values, rank):
    """A list of one value for each spatial dimension; a single value applies to all."""
    values = [values] if isinstance(values, int) else list(values)
    return values * rank if len(values) == 1 else values


def _layout(rank):
    letters = "".join(c for c in string.ascii_uppercase if c not in "NCIO")[:rank]
    return "NC" + letters, "OI" + letters, "NC" + letters


def _is_product(weight, padding, groups):
    """Whether a convolution is one matrix product at each strided position."""
    return groups == 1 and all(n == 1 for n in weight.shape[2:]) and not any(padding)


def _strided(x, stride):
    """The positions of x that a kernel of one element reads."""
    return x if all(s == 1 for s in stride) else x[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]


@lowers("aten.convolution", "aten.convolution_overrideable")
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """x [batch, features, ...] with weight [out, in / groups, ...], or [in, out / groups, ...] if transposed."""
    rank = weight.ndim - 2
    stride, padding, dilation = (_spatial(each, rank) for each in (stride, padding, dilation))
    output_padding = _spatial(output_padding, rank)
    if transposed:
        made = _transposed(x, weight, stride, padding, dilation, output_padding, groups)
    else:
        size = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                for n, p, d, k, s in zip(x.shape[2:], padding, dilation, weight.shape[2:], stride)]
        if 0 in x.shape or 0 in weight.shape:
            made = ms.zeros((x.shape[0], weight.shape[0], *size), dtype=x.dtype)
        else:
            if _is_product(weight, padding, groups):
                x, stride = _strided(x, stride), [1] * rank
            made = ms.nn.convolution(x, weight, strides=stride, padding=[(p, p) for p in padding],
                                  kernel_dilation=dilation, feature_groups=groups, layout=_layout(rank))
    return made if bias is None else made + ms.reshape(bias, (1, -1) + (1,) * rank)


def _transposed(x, weight, stride, padding, dilation, output_padding, groups):
    """The gradient of a convolution with respect to its input: a convolution of the dilated x."""
    rank = weight.ndim - 2
    features, each, *kernel = weight.shape
    size = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1
            for n, s, p, d, k, o in zip(x.shape[2:], stride, padding, dilation, kernel, output_padding)]
    if 0 in x.shape or 0 in weight.shape:
        return ms.zeros((x.shape[0], each * groups, *size), dtype=x.dtype)
    grouped = ms.reshape(weight, (groups, features // groups, each, *kernel))
    turned = ms.reshape(ms.swapaxes(grouped, 1, 2), (groups * each, features // groups, *kernel))
    turned = ms.flip(turned, axis=tuple(range(2, 2 + rank))) if rank else turned
    reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
    return ms.nn.convolution(x, turned, padding=[(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding)],
                          input_dilation=stride, kernel_dilation=dilation, feature_groups=groups, layout=_layout(rank))


@lowers("aten.convolution_backward", "aten.convolution_backward_overrideable")
def convolution_backward(grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
                         output_mask=(True, True, True)):
    def forward(x, weight):
        return convolution(x, weight, None, stride, padding, dilation, transposed, output_padding, groups)

    of_x = of_weight = of_bias = None
    if output_mask[0]:
        of_x = ms.vjp(lambda x: forward(x, weight), x)[1](grad)[0]
    rank = weight.ndim - 2
    stride, padding = _spatial(stride, rank), _spatial(padding, rank)
    if output_mask[1] and not transposed and _is_product(weight, padding, groups):
        # XLA's CPU compiler has slow code for this convolution, whose window is as large as x.
        positions = [0, *range(2, x.ndim)]
        product = ms.tensordot(grad, _strided(x, stride), axes=(positions, positions))
        of_weight = ms.reshape(product, weight.shape)
    elif output_mask[1]:
        of_weight = ms.vjp(lambda weight: forward(x, weight), weight)[1](grad)[0]
    if output_mask[2]:
        of_bias = ms.sum(grad, axis=(0, *range(2, grad.ndim)))
    return of_x, of_weight, of_bias


@lowers("aten.conv_tbc")
def conv_tbc(x, weight, bias, pad=0):
    """x [time, batch, in] with weight [size, in, out]."""
    made = ms.nn.convolution(x, weight, padding=[(pad, pad)], layout=("XNC", "XIO", "XNC"))
    return made + bias


@lowers("aten.conv_tbc_backward")
def conv_tbc_backward(grad, x, weight, bias, pad):
    return ms.vjp(lambda *each: conv_tbc(*each, pad), x, weight, bias)[1](grad)


def _im2col(x, kernel_size, dilation, padding, stride):
    """The patches of x [batch, features, height, width] as [batch, features * kernel elements, positions]."""
    batch, features = x.shape[:2]
    padded = ms.pad(x, array(0, dtype=x.dtype), (0, 0, *padding), (0, 0, *padding))
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1
              for n, p, d, k, s in zip(x.shape[2:], padding, dilation, kernel_size, stride)]
    parts = []
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            top, left = i * dilation[0], j * dilation[1]
            parts.append(padded[:, :, top:top + (counts[0] - 1) * stride[0] + 1:stride[0],
                                left:left + (counts[1] - 1) * stride[1] + 1:stride[1]])
    made = ms.stack(parts, axis=2)
    return ms.reshape(made, (batch, features * len(parts), counts[0] * counts[1]))


@lowers("aten.im2col")
def im2col(x, kernel_size, dilation, padding, stride):
    options = [_spatial(each, 2) for each in (kernel_size, dilation, padding, stride)]
    if x.ndim == 3:
        return _im2col(ms.expand_dims(x, axis=0), *options)[0]
    return _im2col(x, *options)


@lowers("aten.col2im")
def col2im(x, output_size, kernel_size, dilation, padding, stride):
    """The sum of the patches that im2col makes, at their places."""
    options = [_spatial(each, 2) for each in (kernel_size, dilation, padding, stride)]
    batched = x if x.ndim == 3 else ms.expand_dims(x, axis=0)
    features = batched.shape[1] // (options[0][0] * options[0][1])
    image = ms.zeros((batched.shape[0], features, *output_size), dtype=x.dtype)
    made = ms.vjp(lambda y: _im2col(y, *options), image)[1](batched)[0]
    return made if x.ndim == 3 else made[0]
