"""Meshes, layouts, specs, shardings and topologies."""

from ._meshard import (UNCONSTRAINED, AxisRef, AxisSet, Mesh, MeshAxis, Partial, PartitionSpec, Placements, Replicate,
                       Shard, Sharding)

__all__ = ["UNCONSTRAINED", "AxisRef", "AxisSet", "Mesh", "MeshAxis", "P", "Partial", "PartitionSpec", "Placements",
           "Replicate", "Shard", "Sharding"]

P = PartitionSpec
