"""General ops that are not in the standard, under their C++ names."""

from .._meshard.ops import (
    bitcast_convert, broadcast_in_dim, cbrt, checkpoint_name, complex, count_leading_zeros, cumulative_logsumexp,
    cumulative_max, cumulative_min, digamma, dot_general, dynamic_slice, dynamic_update_slice, erf, erf_inv, erfc, exp2,
    fmod, gather, iota, lgamma, log_softmax, logistic, logsumexp, max_of_numbers, one_hot, outer, pad, polygamma,
    popcnt, reduce_precision, reduce_window_max, reduce_window_min, reduce_window_sum, rng_bit_generator,
    round_nearest_afz, rsqrt, scatter_add, scatter_max, scatter_min, scatter_multiply, scatter_set, segment_max,
    segment_mean, segment_min, segment_prod, segment_sum, shift_right_logical, slice, softmax, split, split_sizes,
    stop_gradient, top_k, truncated_divide, zeta)
from .common import ops

__all__ = ["bitcast_convert", "broadcast_in_dim", "cbrt", "checkpoint_name", "complex", "count_leading_zeros",
           "cumulative_logsumexp", "cumulative_max", "cumulative_min", "digamma", "dot_general", "dynamic_slice",
           "dynamic_update_slice", "einsum", "erf", "erf_inv", "erfc", "exp2", "fmod", "gather", "iota", "lgamma",
           "log_softmax", "logistic", "logsumexp", "max_of_numbers", "one_hot", "outer", "pad", "polygamma", "popcnt",
           "reduce_precision", "reduce_window_max", "reduce_window_min", "reduce_window_sum", "rng_bit_generator",
           "round_nearest_afz", "rsqrt", "scatter_add", "scatter_max", "scatter_min", "scatter_multiply", "scatter_set",
           "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "shift_right_logical", "slice",
           "softmax", "split", "split_sizes", "stop_gradient", "top_k", "truncated_divide", "zeta"]


def einsum(spec, /, *operands):
    """A sum of products in Einstein's notation: `einsum("ij,jk->ik", a, b)`.

    >>> a, b = ms.asarray([[1, 2], [3, 4]]), ms.asarray([10, 100])
    >>> ms.einsum("ij,j->i", a, b).tolist()
    [210, 430]
    """
    return ops.einsum(spec, list(operands))
