"""torch_xla's meshes and sharding specs, as wrappers of meshard's."""

import ast
import collections
import enum
import functools

import numpy as np

import meshard as ms

from . import _metrics, _runtime


class ShardingType(enum.IntEnum):
    """torch_xla's types of shardings."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    TILED = 3
    MANUAL = 4
    PARTIAL = 5
    UNKNOWN = 6


class OpSharding:
    """XLA's sharding of a tensor: the device ids of each tile, as `tiles`, or a manual sharding.

    `OpSharding(tile_assignment, group_assignment, replication_groups, type)` is torch_xla's form.
    """

    def __init__(self, tile_assignment, group_assignment, replication_groups, sharding_type):
        kind = ShardingType(sharding_type)
        self.type, self._sharding = kind, None
        if kind == ShardingType.TILED:
            array = np.array(tile_assignment)
            self.tiles = ms.TileAssignment("tiled", dims=array.shape, devices=tuple(array.ravel().tolist()))
        elif kind == ShardingType.PARTIAL:
            groups = [replication_groups[i] for i in np.array(group_assignment).ravel()]
            dims = (*np.array(group_assignment).shape, len(groups[0]))
            self.tiles = ms.TileAssignment("tiled", dims=dims, devices=tuple(sum(map(list, groups), [])),
                                           replicate_on_last_tile_dim=True)
        elif kind == ShardingType.MANUAL:
            self.tiles = ms.TileAssignment("manual")
        else:
            self.tiles = ms.TileAssignment("replicated")

    @classmethod
    def of(cls, sharding):
        """Converts a sharding of meshard."""
        made = cls([], [], [], ShardingType.REPLICATED)
        made.tiles = ms.tile_assignment(sharding).with_device_ids(sharding.mesh)
        made.type, made._sharding = ShardingType[ms.sharding_type(sharding)], sharding
        return made

    def sharding(self, ndim, mesh=None):
        """The sharding of meshard for a tensor of `ndim` dimensions. `mesh`: the mesh of a replicated sharding."""
        if self._sharding is not None:
            return self._sharding
        if self.tiles.kind == "replicated":
            return ms.Sharding.replicated(mesh or all_devices(), ndim)
        if self.tiles.kind == "manual":
            raise RuntimeError("a manual sharding has no spec: each device has its own value")
        return ms.sharding_from_tiles(self.tiles, ndim, _runtime.global_runtime_device_count())

    def __str__(self):
        return str(self.tiles.canonical()) if self.tiles.kind == "tiled" else str(self.tiles)

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, OpSharding) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


@functools.cache
def all_devices():
    """The mesh of all devices along one axis."""
    return ms.mesh_1d(_runtime.global_runtime_device_count())


def _check(condition, text):
    if not condition:
        raise AssertionError(text)


class Mesh:
    """torch_xla's mesh. `mesh` is the mesh of meshard.

    Unlike in torch_xla, it may have only some of the devices, such as [2, 3] or [7, 5, 6, 4] of 8: the program then
    runs on these.
    """

    def __init__(self, device_ids, mesh_shape, axis_names=None):
        ids, shape = np.array(device_ids), tuple(map(int, mesh_shape))
        count, size = _runtime.global_runtime_device_count(), int(np.prod(shape))
        _check(count > 0, "This requires XLA supported device(s).")
        _check(len(ids) <= count, f"Number of device IDs ({len(ids)}) must not be larger than the global number of "
               f"devices ({count})")
        if axis_names is not None:
            axis_names = tuple(axis_names)
            _check(len(shape) == len(axis_names), f"Number of axis names ({len(axis_names)}) must match mesh "
                   f"dimensions ({len(shape)})")
            _check(len(set(axis_names)) == len(axis_names), f"Axis names must be unique, got: {axis_names}")
        _check(len(ids) == size, f"Number of device IDs ({len(ids)}) must match mesh size ({size})")
        _check(len(set(ids.tolist())) == len(ids), f"Device IDs must be unique, got: {ids}")
        limit = "mesh size" if size == count else "the number of devices"
        _check(all(0 <= each < count for each in ids), f"Device IDs must be less than {limit} ({count}), got: {ids}")
        self.device_ids, self.mesh_shape, self.axis_names = ids, shape, axis_names
        self.mesh = ms.Mesh(shape, axis_names, ids.tolist())
        self._op_shardings = {}

    def size(self):
        return int(np.prod(self.mesh_shape))

    def shape(self):
        names = range(len(self.mesh_shape)) if self.axis_names is None else self.axis_names
        return collections.OrderedDict(zip(names, self.mesh_shape, strict=True))

    def get_logical_mesh(self):
        return self.device_ids.reshape(self.mesh_shape)

    def get_axis_name_idx(self, name):
        return self.axis_names.index(name) if name in (self.axis_names or ()) else None

    def sharding(self, spec):
        """Converts a partition spec of torch_xla on this mesh to a sharding of meshard."""
        return ms.Sharding(self.mesh, self.spec(spec), len(spec))

    def spec(self, spec):
        """Converts a partition spec of torch_xla to one of meshard."""
        flat = []
        for each in spec:
            for axis in each if isinstance(each, tuple | list) else (each,):
                if isinstance(axis, tuple | list):
                    raise AssertionError("Partition spec cannot contain nested tuples")
                if axis is not None and type(axis) is not str and not isinstance(axis, int | np.integer):
                    raise ValueError(f"Spec type {type(axis)} is not supported in partition spec")
                if isinstance(axis, str):
                    if axis not in (self.axis_names or ()):
                        raise ValueError(f"Axis name {axis} is not defined in the given mesh")
                    axis = self.axis_names.index(axis)
                elif axis is not None:
                    _check(0 <= axis < len(self.mesh_shape), f"partition_spec ({spec}) contains out of bound index "
                           "into mesh_shape.")
                flat.append(axis)
        used = [axis for axis in flat if axis is not None]
        _check(len(set(used)) == len(used), "Each device mesh dimension should appear at most once in "
               f"partition_spec {spec}.")
        return ms.P(*(tuple(each) if isinstance(each, list) else each for each in spec))

    def get_op_sharding(self, partition_spec):
        spec = tuple(partition_spec)
        found = self._op_shardings.get(spec)
        if found is None:
            _metrics.count("CreateOpSharding")
            found = self._op_shardings[spec] = OpSharding.of(self.sharding(spec))
        return found

    get_op_sharding_v2 = get_op_sharding

    def __str__(self):
        return (f"{{'device_ids': {self.device_ids.tolist()}, 'mesh_shape': {self.mesh_shape}, "
                f"'axis_names': {self.axis_names}}}")

    @classmethod
    def from_str(cls, mesh_str):
        try:
            fields = ast.literal_eval(mesh_str.replace("Mesh", ""))
            return cls(np.array(fields["device_ids"]), fields["mesh_shape"], fields["axis_names"])
        except (ValueError, SyntaxError, KeyError, TypeError):
            return None

    def get_jax_mesh(self):
        import jax

        devices = {each.id: each for each in jax.devices()}
        names = self.axis_names or tuple(map(str, range(len(self.mesh_shape))))
        return jax.sharding.Mesh(np.vectorize(devices.__getitem__, otypes=[object])(self.get_logical_mesh()), names)


class HybridMesh(Mesh):
    """A mesh over slices: `ici_mesh_shape` within each, `dcn_mesh_shape` over them."""

    def __init__(self, *, ici_mesh_shape, dcn_mesh_shape=None, axis_names=None):
        outer = tuple(dcn_mesh_shape or [1] * len(ici_mesh_shape))
        _check(len(ici_mesh_shape) == len(outer), "ici_mesh_shape and dcn_mesh_shape must have the same length")
        attributes = sorted(_runtime.global_runtime_device_attributes(), key=lambda each: _ordinal(each["name"]))
        if "slice_index" in attributes[0] and np.prod(outer) == 1:
            raise ValueError("Provide dcn_mesh_shape to create a mesh for multislice")
        if "slice_index" not in attributes[0] and np.prod(outer) > 1:
            raise ValueError("Invalid dcn_mesh_shape for single slice mesh")
        self.device_attributes, self.ici_mesh_shape, self.dcn_mesh_shape = attributes, tuple(ici_mesh_shape), outer
        topology = ms.Topology([
            ms.DeviceAttributes(i, slice_index=each.get("slice_index"), coords=tuple(each.get("coords", ())),
                                core_on_chip=each.get("core_on_chip", 0))
            for i, each in enumerate(attributes)])
        mesh = ms.hybrid_mesh(topology, tuple(ici_mesh_shape), outer, allow_no_coords=True)
        shape = tuple(x * y for x, y in zip(ici_mesh_shape, outer, strict=True))
        super().__init__(ms.get_logical_mesh(mesh).ravel(), shape, axis_names)


def _ordinal(name):
    return int(name.rpartition(":")[2])


def get_1d_mesh(axis_name=None):
    """The mesh of all devices along one axis."""
    count = _runtime.global_runtime_device_count()
    return Mesh(np.arange(count), (count,), None if axis_name is None else (axis_name,))


_global = None


def set_global_mesh(mesh):
    """Sets the mesh of the process, for torch_xla's functions and for meshard's."""
    global _global
    _global = mesh
    ms.set_global_mesh(mesh and mesh.mesh)


def get_global_mesh():
    """The mesh of set_global_mesh(); None without a call."""
    return _global
