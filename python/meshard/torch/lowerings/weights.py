"""Weights that are computed from a direction and a length."""

import meshard as ms

from .._table import lowers
from ._helpers import dimension


@lowers("aten._weight_norm_interface_backward")
def weight_norm_backward(gradient, direction, length, norms, dim):
    """The gradients of direction and length; the norms are over all dimensions of the direction but `dim`."""
    others = tuple(d for d in range(direction.ndim) if d != dimension(dim, direction.ndim))
    norms = ms.astype(norms, direction.dtype)
    along = ms.divide(ms.sum(ms.multiply(gradient, direction), axis=others, keepdims=True), norms)
    across = ms.subtract(gradient, ms.multiply(ms.divide(direction, norms), along))
    return ms.multiply(ms.divide(length, norms), across), along
