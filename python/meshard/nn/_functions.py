"""Functions of tensors for neural networks, with the names and arguments that they have in C++."""

import typing

from .. import _meshard
from .._meshard.ops import (
    avg_pool, batch_norm, binary_cross_entropy, celu, conv1d, conv2d, conv3d, conv_transpose, convolution,
    cross_entropy, dot_product_attention, elu, geglu, gelu, glu, group_norm, hard_sigmoid, hard_silu, hard_tanh,
    layer_norm, leaky_relu, linear, log_sigmoid, log_softmax, logistic, max_pool, mish, one_hot, relu, relu6,
    rms_norm, rotary_embedding, selu, silu, soft_sign, softmax, softplus, swiglu)

__all__ = ["avg_pool", "batch_norm", "binary_cross_entropy", "celu", "conv1d", "conv2d", "conv3d", "conv_transpose",
           "convolution", "cross_entropy", "dot_product_attention", "dropout", "elu", "geglu", "gelu",
           "glu", "group_norm", "hard_sigmoid", "hard_silu", "hard_tanh", "layer_norm", "leaky_relu",
           "linear", "log_sigmoid", "log_softmax", "logistic", "max_pool", "mish", "one_hot", "relu",
           "relu6", "rms_norm", "rotary_embedding", "selu", "silu", "soft_sign", "softmax", "softplus",
           "swiglu"]


def dropout(x, rate: float, key, broadcast_axes: int | typing.Sequence[int] = ()) -> _meshard.Tensor:
    """Zeroes each element with probability `rate` and divides the others by 1 - rate (Srivastava et al., 2014).

    With None for the key nothing is dropped, as for evaluation. Which elements are dropped depends on the key and their
    position in the whole tensor, not on the mesh.

    Along `broadcast_axes` all elements are kept or dropped together: for x [batch, height, width, features], (1, 2)
    drops whole features of a sample (spatial dropout; Tompson et al., 2015), 0 the same elements of all samples.

    Raises InvalidArgumentError unless 0 <= rate <= 1, and OutOfRangeError for an axis that x does not have.

    >>> kept = ms.nn.dropout(ms.ones(1000), 0.25, ms.random.key(0))
    >>> bool(((kept == 0) | (abs(kept - 4 / 3) < 1e-6)).all())
    True
    """
    if key is None:
        return x
    axes = (broadcast_axes,) if isinstance(broadcast_axes, int) else broadcast_axes
    return _meshard.nn.dropout(x, rate, key, axes) if axes else _meshard.ops.dropout(x, rate, key)
