"""torch_xla's fully sharded data parallelism, and its policies for wrapping."""

import torch
from torch import nn

from . import _extension
from ._meshes import get_global_mesh
from ._sharding import apply_backward_optimization_barrier, mark_sharding


def always_wrap_policy(*args, **kwargs):
    return True


def lambda_auto_wrap_policy(module, recurse, unwrapped_params, lambda_fn):
    """Wraps the modules for which a function is true."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, unwrapped_params, transformer_layer_cls):
    """Wraps the modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(module, recurse, unwrapped_params, min_num_params=int(1e8), force_leaf_modules=None,
                                exclude_wrap_modules=None):
    """Wraps modules with at least `min_num_params` parameters that are not wrapped yet."""
    if force_leaf_modules is None:
        force_leaf_modules = {nn.MultiheadAttention}
    if exclude_wrap_modules is None:
        exclude_wrap_modules = {nn.ModuleList, nn.ModuleDict}
    without = force_leaf_modules if recurse else exclude_wrap_modules
    return unwrapped_params >= min_num_params and not isinstance(module, tuple(without))


def recursive_wrap(module, auto_wrap_policy, wrapper_cls, ignored_modules=(), ignored_params=(),
                   only_wrap_children=False, **kwargs):
    """Wraps the submodules that a policy selects. Returns the module, and the number of wrapped parameters."""
    count = sum(each.numel() for each in module.parameters() if not any(each is other for other in ignored_params))
    if not auto_wrap_policy(module=module, recurse=True, unwrapped_params=count):
        return module, 0
    wrapped = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        made, number = recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs)
        setattr(module, name, made)
        wrapped += number
    rest = count - wrapped
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, unwrapped_params=rest):
        return wrapper_cls(module, **kwargs), count
    return module, wrapped


def _spec(shape, dim, axis):
    return tuple(axis if i == dim else None for i in range(len(shape)))


class SpmdFullyShardedDataParallel(nn.Module):
    """A module whose parameters are split over the axis "fsdp" of a mesh, each along its largest dimension.

    Outputs are split along dimension 0 over "fsdp" and `extra_data_axis`, or by `shard_output(output, mesh)`.
    """

    def __init__(self, module, *, mesh=None, shard_output=None, auto_wrap_policy=None, auto_wrapper_callable=None,
                 extra_data_axis=None):
        if isinstance(module, SpmdFullyShardedDataParallel):
            raise RuntimeError("Cannot wrap a module that is already wrapped with FSDP")
        if isinstance(module, nn.ModuleList | nn.ModuleDict):
            raise RuntimeError(f"FSDP must wrap a module that has a forward method, not a {type(module).__name__}")
        mesh = mesh if mesh is not None else get_global_mesh()
        if mesh is None:
            raise ValueError("No mesh is provided and no global mesh is set. Please provide a mesh.")
        if "fsdp" not in (mesh.axis_names or ()):
            raise ValueError("The mesh must have an axis named 'fsdp'.")
        if extra_data_axis and extra_data_axis not in mesh.axis_names:
            raise ValueError(f"The provided {extra_data_axis} axis is not in the mesh.")
        super().__init__()
        if auto_wrap_policy is not None:
            for name, each in module.named_modules():
                if isinstance(each, SpmdFullyShardedDataParallel):
                    raise ValueError(f"Expected {name} to NOT be SpmdFullyShardedDataParallel if using an "
                                     "`auto_wrap_policy`")
            recursive_wrap(module, auto_wrap_policy, auto_wrapper_callable or SpmdFullyShardedDataParallel,
                           only_wrap_children=True, mesh=mesh, shard_output=shard_output)
        self._orig_module, self._mesh = module.to("xla"), mesh
        self._shard_output, self._data_axes = shard_output, (extra_data_axis, "fsdp") if extra_data_axis else "fsdp"
        for each in module.parameters():
            if each.ndim and not _extension._get_xla_sharding_spec(each):
                mark_sharding(each, mesh, _spec(each.shape, each.shape.index(max(each.shape)), "fsdp"))
        apply_backward_optimization_barrier(module)

    @property
    def module(self):
        return self._orig_module

    def forward(self, *args, **kwargs):
        output = self.module(*args, **kwargs)
        if self._shard_output is not None:
            self._shard_output(output, self._mesh)
            return output
        first = output[0] if isinstance(output, tuple) else output
        if not isinstance(first, torch.Tensor):
            raise RuntimeError(f"The output type is not supported: {type(output)}. Please provide your own "
                               "shard_output callable.")
        mark_sharding(first, self._mesh, _spec(first.shape, 0, self._data_axes))
        return output

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def __getitem__(self, key):
        return self.module[key]
