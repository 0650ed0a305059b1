"""Meshes, layouts, specs, shardings and topologies."""

from . import layout
from ._meshard import (UNCONSTRAINED, AxisHops, AxisRef, AxisSet, DeviceAttributes, DeviceGroup, DeviceGroups,
                       IotaGroups, Layout, Mesh, MeshAxis, MeshHops, MeshScope, OpSharding, Partial, PartitionSpec,
                       Placements, RankMap, Replicate, RingMesh, Shard, Sharding, ShardingSpec, Submeshes,
                       TileAssignment, Topology, assign_torus, axes_are_unnamed, axes_of_groups, axis_tile_assignment,
                       canonical_type, get_logical_mesh, global_mesh, granules_of, hybrid_mesh, is_axis_name, mesh_1d,
                       mesh_dict_text, mesh_hops, mesh_on, overlap, parse_mesh_dict, parse_shardy_mesh,
                       parse_shardy_sharding, platform_name, replica_groups, require_global_mesh, ring_mesh,
                       runtime_topology, same_platform, set_global_mesh, sharding_from_tiles, sharding_type,
                       shardy_text, tile_array, tile_assignment, tile_groups, torus_mesh, tpu_generations,
                       tpu_topology)
from ._pictures import Picture, picture

__all__ = ["UNCONSTRAINED", "AxisHops", "AxisRef", "AxisSet", "DeviceAttributes", "DeviceGroup", "DeviceGroups",
           "IotaGroups", "Layout", "Mesh", "MeshAxis", "MeshHops", "MeshScope", "OpSharding", "P", "Partial",
           "PartitionSpec", "Picture", "Placements", "RankMap", "Replicate", "RingMesh", "Shard", "Sharding",
           "ShardingSpec", "Submeshes", "TileAssignment", "Topology", "assign_torus", "axes_are_unnamed",
           "axes_of_groups", "axis_tile_assignment", "canonical_type", "get_logical_mesh", "global_mesh",
           "granules_of", "hybrid_mesh", "is_axis_name", "layout", "mesh_1d", "mesh_dict_text", "mesh_hops", "mesh_on",
           "overlap", "parse_mesh_dict", "parse_shardy_mesh", "parse_shardy_sharding", "picture", "platform_name",
           "replica_groups", "require_global_mesh", "ring_mesh", "runtime_topology", "same_platform", "set_global_mesh",
           "sharding_from_tiles", "sharding_type", "shardy_text", "tile_array", "tile_assignment", "tile_groups",
           "torus_mesh", "tpu_generations", "tpu_topology"]

P = PartitionSpec
