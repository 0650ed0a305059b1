"""XLAShardedTensor: a tensor of the device with its sharding."""

import dataclasses

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.utils._pytree import tree_map

from . import _extension, _runtime


@dataclasses.dataclass
class XLAShard:
    """A copy of one device's shard. `indices`: slices of the whole tensor, or `...` if it is replicated."""

    data: torch.Tensor
    indices: object
    shard_device: str
    replica_id: int

    def _unpadded(self):
        return ... if self.indices is Ellipsis else tuple(slice(0, each.stop - each.start) for each in self.indices)

    @property
    def unpadded_data(self):
        return self.data[self._unpadded()]

    @unpadded_data.setter
    def unpadded_data(self, value):
        self.data[self._unpadded()] = value


class XLAShardedTensor(DTensor):
    """A wrapper of a tensor of the device, `global_tensor`, returned by mark_sharding(). Results are wrapped, too."""

    __slots__ = ("global_tensor", "mesh_shape", "partition_spec", "_cached_spec")

    @staticmethod
    def __new__(cls, elem, mesh_shape=None, partition_spec=None, *, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=requires_grad)
        inner = elem.global_tensor if isinstance(elem, XLAShardedTensor) else elem
        made.global_tensor = inner.detach() if requires_grad else inner
        made.mesh_shape = mesh_shape or getattr(elem, "mesh_shape", None)
        made.partition_spec = partition_spec if partition_spec is not None else getattr(elem, "partition_spec", None)
        made._cached_spec = None
        return made

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        made = func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs or {}))
        return tree_map(lambda each: XLAShardedTensor(each) if isinstance(each, torch.Tensor) else each, made)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super(DTensor, cls).__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents=None):
        return f"XLAShardedTensor({self.global_tensor})"

    @property
    def local_shards(self):
        places = _extension._get_local_shard_replica_and_indices([self.global_tensor])[0]
        return [XLAShard(data, indices, device, replica) for (data, device), (replica, indices)
                in zip(_extension._get_local_shards([self.global_tensor])[0], places, strict=True)]

    def load_local_shards_(self, shards):
        """Replaces the elements by shards, one for each device, in the order of `local_shards`."""
        _extension._load_local_shards(self.global_tensor, [each.data for each in shards],
                                      [each.shard_device for each in shards])
        self.invalidate_spec_cache()

    @property
    def sharding_spec(self):
        return _extension._get_xla_sharding_spec(self.global_tensor)

    @property
    def sharding_type(self):
        return _extension._get_xla_sharding_type(self.global_tensor)

    @property
    def _spec(self):
        if self._cached_spec is not None:
            return self._cached_spec
        for name in ("mesh_shape", "partition_spec"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} must be specified to create DTensorSpec: mark_sharding() and "
                                 "wrap_as_sharded_tensor() set it, and results of operations do not have it")
        devices = torch.arange(_runtime.global_runtime_device_count())[:torch.Size(self.mesh_shape).numel()]
        placements = tuple(self._placement(axis) for axis in range(len(self.mesh_shape)))
        meta = TensorMeta(self.global_tensor.shape, self.global_tensor.stride(), self.global_tensor.dtype)
        self._cached_spec = DTensorSpec(mesh=DeviceMesh("xla", devices.reshape(self.mesh_shape)),
                                        placements=placements, tensor_meta=meta)
        return self._cached_spec

    def _placement(self, axis):
        for dim, entry in enumerate(self.partition_spec):
            if axis in (entry if isinstance(entry, tuple) else (entry,)):
                return Shard(dim)
        return Replicate()

    @property
    def placements(self):
        try:
            return self._spec.placements
        except ValueError as error:
            raise ValueError("Placements not available: XLAShardedTensor requires mesh_shape and partition_spec to be "
                             "set. Use mark_sharding() to properly initialize sharding information.") from error

    def invalidate_spec_cache(self):
        self._cached_spec = None

    def redistribute(self, device_mesh, placements, *, async_op=False):
        """The tensor with other placements over a mesh of torch_xla."""
        if len(placements) != len(device_mesh.mesh_shape):
            raise ValueError(f"Number of placements ({len(placements)}) must match mesh dimensions "
                             f"({len(device_mesh.mesh_shape)})")
        spec = [None] * self.global_tensor.ndim
        for axis, placement in enumerate(placements):
            if isinstance(placement, Partial):
                raise NotImplementedError("Partial placement is not supported: use Shard or Replicate")
            if isinstance(placement, Shard):
                if placement.dim >= len(spec):
                    raise IndexError(f"Shard dimension {placement.dim} is out of bounds for tensor with {len(spec)} "
                                     "dimensions")
                spec[placement.dim] = axis
        tensor = self.global_tensor.clone() if async_op else self.global_tensor
        _extension._xla_annotate_custom_sharding(tensor, device_mesh.get_op_sharding(tuple(spec)))
        return XLAShardedTensor(tensor, device_mesh.mesh_shape, tuple(spec))


def unwrapped(tensor):
    """The tensor in an XLAShardedTensor; any other value as it is."""
    return tensor.global_tensor if isinstance(tensor, XLAShardedTensor) else tensor


def wrap_as_sharded_tensor(t, mesh_shape=None, partition_spec=None):
    """Wraps a tensor as an XLAShardedTensor with this mesh shape and spec, or sets them in an XLAShardedTensor."""
    if not isinstance(t, XLAShardedTensor):
        return XLAShardedTensor(t, mesh_shape, partition_spec)
    if mesh_shape is not None:
        t.mesh_shape = mesh_shape
    if partition_spec is not None:
        t.partition_spec = partition_spec
    t.invalidate_spec_cache()
    return t
