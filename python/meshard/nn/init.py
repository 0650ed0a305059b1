"""Initial values of parameters.

Each function returns an initializer: a function `initializer(key, shape, fans, dtype)` that computes a parameter. The
values depend on the key only, not on the mesh. `fans` is the pair (inputs per output, outputs per input) of a weight;
the layer gives them, because a shape is not sufficient: a weight [width, heads, size] has heads * size outputs.
"""

from .._meshard.nn.init import (
    constant, delta_orthogonal, glorot_normal, glorot_uniform, he_normal, he_uniform, lecun_normal, lecun_uniform,
    normal, ones, orthogonal, truncated_normal, uniform, variance_scaling, zeros)

__all__ = ["constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal",
           "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "zeros"]
