"""Communication between the devices of a manual region."""

from . import _meshard

__all__ = ["all_reduce", "all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "collective_permute",
           "ring_shift", "axis_index", "vary"]

_ops = _meshard.ops

all_reduce = _ops.all_reduce
all_gather = _ops.all_gather
all_gather_invariant = _ops.all_gather_invariant
reduce_scatter = _ops.reduce_scatter
all_to_all = _ops.all_to_all
collective_permute = _ops.collective_permute
ring_shift = _ops.ring_shift
axis_index = _ops.axis_index
vary = _ops.vary
