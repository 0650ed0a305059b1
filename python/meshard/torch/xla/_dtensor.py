"""torch_xla.distributed.spmd.api: PyTorch's distribute_tensor() and distribute_module() on meshes of the type "xla"."""

import functools
import inspect

from torch.distributed.tensor import Replicate

from . import _runtime
from ._meshes import Mesh, ShardingType
from ._sharded import XLAShardedTensor
from ._sharding import mark_sharding


def with_xla(func):
    """A function that calls use_spmd() first."""
    @functools.wraps(func)
    def called(*args, **kwargs):
        _runtime.use_spmd()
        return func(*args, **kwargs)

    return called


def auto_policy(mod_name, mod, mesh):
    """Not supported; see xla_distribute_module()."""


def convert_to_xla_mesh(dt_mesh):
    """Converts a DeviceMesh of PyTorch to a mesh of torch_xla."""
    return Mesh(dt_mesh.mesh.flatten().numpy(), tuple(dt_mesh.mesh.size()), dt_mesh.mesh_dim_names)


def convert_to_xla_partition_spec(tensor, placements):
    """Converts placements, one for each axis, to a spec, with one entry for each dimension."""
    axes = [[] for _ in tensor.shape]
    for axis, placement in enumerate(placements):
        if placement.is_shard():
            axes[placement.dim].append(axis)
        elif not placement.is_replicate():
            raise ValueError(f"Unsupported placement type: {type(placement).__name__}")
    return tuple(None if not each else each[0] if len(each) == 1 else tuple(each) for each in axes)


def xla_distribute_tensor(tensor, device_mesh, placements=None):
    """A tensor on the device, sharded by placements; by default replicated."""
    if isinstance(tensor, XLAShardedTensor):
        if tensor.sharding_type not in (None, ShardingType.REPLICATED):
            raise AssertionError("XLAShardedTensor `tensor` is already annotated with non-replication sharding. Clear "
                                 "the existing sharding annotation first, by calling "
                                 "torch_xla.distributed.spmd.clear_sharding API.")
        tensor = tensor.global_tensor
    if placements is None:
        placements = [Replicate()] * device_mesh.ndim
    if len(placements) != device_mesh.ndim:
        raise AssertionError(f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
                             f"{len(placements)}, and device_mesh.ndim: {device_mesh.ndim}.")
    if not tensor.is_meta:
        tensor = tensor.to("xla")
    return mark_sharding(tensor, convert_to_xla_mesh(device_mesh), convert_to_xla_partition_spec(tensor, placements))


def xla_distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """A module whose parameters `partition_fn(name, module, mesh)` shards."""
    if partition_fn is auto_policy:
        raise NotImplementedError("meshard does not shard automatically at run time: meshard.plan() searches for the "
                                  "best shardings of a module, which mark_sharding() then applies")
    if partition_fn is not None:
        for name, each in module.named_modules():
            partition_fn(name, each, device_mesh)
    if input_fn is not None:
        takes_module = len(inspect.signature(input_fn).parameters) == 3
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, device_mesh) if takes_module else
                                         input_fn(inputs, device_mesh))
    if output_fn is not None:
        takes_module = len(inspect.signature(output_fn).parameters) == 3
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, device_mesh) if takes_module
                                     else output_fn(outputs, device_mesh))
    return module
