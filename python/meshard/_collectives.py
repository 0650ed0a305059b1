"""Communication between the devices of a manual region."""

from ._meshard.ops import (
    all_reduce, all_gather, all_gather_invariant, reduce_scatter, all_to_all, collective_permute, ring_shift,
    axis_index, vary)

__all__ = ["all_reduce", "all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "collective_permute",
           "ring_shift", "axis_index", "vary"]
