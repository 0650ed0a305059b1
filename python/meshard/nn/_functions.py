"""Functions of tensors for neural networks, with the names and arguments that they have in C++."""

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


def dropout(x, rate: float, key) -> _meshard.Tensor:
    """Zeroes each element with probability `rate` and divides the others by 1 - rate (Srivastava et al., 2014).

    With None for the key nothing is dropped, as for evaluation. Which elements are dropped depends on the key and their
    position in the whole tensor, not on the mesh.

    Raises InvalidArgumentError unless 0 <= rate < 1.
    """
    return x if key is None else _meshard.ops.dropout(x, rate, key)
