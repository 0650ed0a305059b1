"""General ops that are not in the standard, under their C++ names."""

from .common import ops

__all__ = ["bitcast_convert", "broadcast_in_dim", "cbrt", "checkpoint_name", "complex", "count_leading_zeros",
           "cumulative_logsumexp", "cumulative_max", "cumulative_min", "digamma", "dot_general", "dynamic_slice",
           "dynamic_update_slice", "einsum", "erf", "erf_inv", "erfc", "exp2", "fmod", "gather", "iota", "lgamma",
           "log_softmax", "logistic", "logsumexp", "max_of_numbers", "one_hot", "outer", "pad", "polygamma", "popcnt",
           "reduce_precision", "reduce_window_max", "reduce_window_min", "reduce_window_sum", "rng_bit_generator",
           "round_nearest_afz", "rsqrt", "scatter_add", "scatter_max", "scatter_min", "scatter_multiply", "scatter_set",
           "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "shift_right_logical", "slice",
           "softmax", "split", "split_sizes", "stop_gradient", "top_k", "truncated_divide", "zeta"]

bitcast_convert = ops.bitcast_convert
broadcast_in_dim = ops.broadcast_in_dim
cbrt = ops.cbrt
checkpoint_name = ops.checkpoint_name
complex = ops.complex
count_leading_zeros = ops.count_leading_zeros
cumulative_logsumexp = ops.cumulative_logsumexp
cumulative_max = ops.cumulative_max
cumulative_min = ops.cumulative_min
digamma = ops.digamma
dot_general = ops.dot_general
dynamic_slice = ops.dynamic_slice
dynamic_update_slice = ops.dynamic_update_slice
erf = ops.erf
erf_inv = ops.erf_inv
erfc = ops.erfc
exp2 = ops.exp2
fmod = ops.fmod
gather = ops.gather
iota = ops.iota
lgamma = ops.lgamma
log_softmax = ops.log_softmax
logistic = ops.logistic
logsumexp = ops.logsumexp
max_of_numbers = ops.max_of_numbers
one_hot = ops.one_hot
outer = ops.outer
pad = ops.pad
polygamma = ops.polygamma
popcnt = ops.popcnt
reduce_precision = ops.reduce_precision
reduce_window_max = ops.reduce_window_max
reduce_window_min = ops.reduce_window_min
reduce_window_sum = ops.reduce_window_sum
rng_bit_generator = ops.rng_bit_generator
round_nearest_afz = ops.round_nearest_afz
rsqrt = ops.rsqrt
scatter_add = ops.scatter_add
scatter_max = ops.scatter_max
scatter_min = ops.scatter_min
scatter_multiply = ops.scatter_multiply
scatter_set = ops.scatter_set
segment_max = ops.segment_max
segment_mean = ops.segment_mean
segment_min = ops.segment_min
segment_prod = ops.segment_prod
segment_sum = ops.segment_sum
shift_right_logical = ops.shift_right_logical
slice = ops.slice
softmax = ops.softmax
split = ops.split
split_sizes = ops.split_sizes
stop_gradient = ops.stop_gradient
top_k = ops.top_k
truncated_divide = ops.truncated_divide
zeta = ops.zeta


def einsum(spec, /, *operands):
    """A sum of products in Einstein's notation: `einsum("ij,jk->ik", a, b)`."""
    return ops.einsum(spec, list(operands))
