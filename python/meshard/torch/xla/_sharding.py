"""torch_xla.distributed.spmd.xla_sharding: sharding of tensors."""

import ast

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import meshard as ms

from ..eager._tensors import DeviceTensor
from . import _extension, _hlo, _runtime
from ._meshes import HybridMesh, Mesh, OpSharding, ShardingType, get_1d_mesh, get_global_mesh, set_global_mesh
from ._sharded import XLAShard, XLAShardedTensor, unwrapped, wrap_as_sharded_tensor

PartitionSpec = tuple
unwrap_sharded_tensor = unwrapped


def _check_rank(t, spec):
    if len(t.shape) != len(spec):
        raise AssertionError(f"Partition spec length ({len(spec)}) should be equal to the input rank ({len(t.shape)}).")


def _wrapped(t, mesh, spec):
    """The tensor as mark_sharding() returns it: axes are given by their numbers."""
    numbers = {name: i for i, name in enumerate(mesh.axis_names or ())}

    def number(axis):
        return tuple(map(number, axis)) if isinstance(axis, tuple | list) else numbers.get(axis, axis)

    return wrap_as_sharded_tensor(t, mesh.mesh_shape, tuple(map(number, spec)))


def mark_sharding(t, mesh, partition_spec):
    """Shards a tensor in place, and returns it as an XLAShardedTensor.

    Raises RuntimeError if its elements are on the devices with another sharding: call clear_sharding() first.
    """
    _check_rank(t, partition_spec)
    _extension._xla_mark_sharding(unwrapped(t), mesh.get_op_sharding(partition_spec))
    return _wrapped(t, mesh, partition_spec)


class ShardingSpec:
    """A mesh and a partition spec for tensors that do not exist yet. `minibatch`: dimension 0 is each host's batch."""

    def __init__(self, mesh, partition_spec, minibatch=False):
        self.mesh, self.partition_spec, self.minibatch = mesh, tuple(partition_spec), minibatch
        self._spec = ms.ShardingSpec(mesh.mesh, mesh.spec(self.partition_spec), minibatch=bool(minibatch))

    def __eq__(self, other):
        return isinstance(other, ShardingSpec) and self._spec == other._spec

    def __hash__(self):
        return hash(self._spec)

    def __repr__(self):
        return f"ShardingSpec(mesh={self.mesh}, partition_spec={self.partition_spec}, minibatch={self.minibatch})"

    def can_apply(self, t):
        return len(t.shape) == len(self.partition_spec)

    def sharding(self, t):
        """The sharding of a tensor; None if the spec has another number of dimensions."""
        if not self.can_apply(t):
            return None
        if self.minibatch and t.shape[0] % _runtime.addressable_runtime_device_count():
            raise RuntimeError("When minibatch is configured, the per-host batch size must be divisible by local "
                               f"runtime device count. Per host input data shape = {list(t.shape)}, local device "
                               f"count = {_runtime.addressable_runtime_device_count()}")
        return self._spec.sharding(tuple(t.shape))

    def xla_spec(self, t):
        """The OpSharding of a tensor; None if the spec has another number of dimensions."""
        sharding = self.sharding(t)
        return sharding and OpSharding.of(sharding)

    def apply(self, t):
        mark_sharding(t, self.mesh, self.partition_spec)


_extension.XlaShardingSpec = ShardingSpec  # its name there


def annotate_custom_sharding(t, mesh, partition_spec):
    """Shards a tensor in place from here on, also if it has another sharding."""
    _check_rank(t, partition_spec)
    _extension._xla_annotate_custom_sharding(unwrapped(t), mesh.get_op_sharding(partition_spec))
    return _wrapped(t, mesh, partition_spec)


def clear_sharding(t):
    """Removes the annotation of a tensor in place, and returns the tensor. No data moves."""
    t = unwrapped(t)
    _extension._xla_clear_sharding(t)
    return t


def wrap_if_sharded(x):
    """A marked tensor of the device as an XLAShardedTensor; anything else as it is."""
    return XLAShardedTensor(x) if isinstance(x, DeviceTensor) and _extension.sharding_of(x) is not None else x


class MarkShardingFunction(torch.autograd.Function):
    """`apply(tensor, mesh, spec)` returns a sharded copy, whose gradient is sharded, too."""

    @staticmethod
    def forward(ctx, torch_tensor, mesh, partition_spec):
        ctx.mesh, ctx.partition_spec = mesh, partition_spec
        return torch.ops.xla.aot_mark_sharding(torch_tensor, str(mesh), str(partition_spec))

    @staticmethod
    def backward(ctx, grad_output):
        made = torch.ops.xla.aot_mark_sharding(grad_output, str(ctx.mesh), str(ctx.partition_spec))
        return made, None, None


@torch.library.custom_op("xla::aot_mark_sharding", mutates_args=())
def _aot_mark_sharding(t: torch.Tensor, mesh: str, partition_spec: str) -> torch.Tensor:
    return unwrapped(mark_sharding(t.clone(), Mesh.from_str(mesh), ast.literal_eval(partition_spec)))


@_aot_mark_sharding.register_fake
def _aot_mark_sharding_fake(t, mesh, partition_spec):
    return torch.empty_like(t)


def mark_sharding_with_gradients(t, mesh, partition_spec):
    """A copy of a tensor that is sharded; so is its gradient."""
    _check_rank(t, partition_spec)
    return MarkShardingFunction.apply(unwrapped(t), mesh, tuple(partition_spec))


def shard_as(a, b):
    """Shards the tensors of two structures alike: if one of a pair has a sharding, the other one gets it."""
    (left, around), (right, other) = tree_flatten(a), tree_flatten(b)
    if around != other:
        raise AssertionError(f"a and b must have the same structure. got {around} and {other}")
    pairs = [_alike(x, y) for x, y in zip(left, right, strict=True)]
    return tuple(tree_unflatten([pair[i] for pair in pairs], around) for i in range(2))


def _alike(x, y):
    if x is None or y is None:
        if x is not y:
            raise AssertionError("None must be in both structures")
        return x, y
    x, y = unwrapped(x).clone(), unwrapped(y).clone()
    found = _extension.sharding_of(x) or _extension.sharding_of(y)
    if found is None:
        raise NotImplementedError("shard_as of two tensors without shardings: mark one of them")
    for each in (x, y):
        each.mark(found)
    return x, y


def _mark_manual_sharding(t):
    _extension._mark_manual_sharding(unwrapped(t))
    return wrap_as_sharded_tensor(t)


def _mesh_or_global(mesh):
    mesh = mesh or get_global_mesh()
    if mesh is None:
        raise RuntimeError("there is no mesh: give one, or call set_global_mesh()")
    return mesh


def enable_manual_sharding(t, partition_spec, *, mesh=None):
    """Each device's part of a tensor, split by a spec, as a local value."""
    mesh = _mesh_or_global(mesh)
    t = unwrapped(mark_sharding(unwrapped(t), mesh, partition_spec))
    return _wrapped(_extension._spmd_full_to_shard_shape(t), mesh, partition_spec)


def disable_manual_sharding(t, partition_spec, full_shape, *, mesh=None):
    """The whole tensor whose parts are a local value."""
    mesh = _mesh_or_global(mesh)
    t = unwrapped(_mark_manual_sharding(unwrapped(t)))
    made = _extension._spmd_shard_to_full_shape(t, mesh.get_op_sharding(partition_spec), full_shape, t.dtype)
    return _wrapped(made, mesh, partition_spec)


class XLAPatchedLinear(torch.autograd.Function):
    """`apply(input, weight, bias=None)`: torch.nn.functional.linear without flattening of dimensions."""

    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        product = torch.einsum("...n,mn->...m", input, weight)
        return product if bias is None else product + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (torch.einsum("...m,mn->...n", grad_output, weight) if needs[0] else None,
                torch.einsum("...m,...n->mn", grad_output, input) if needs[1] else None,
                torch.einsum("...m->m", grad_output) if bias is not None and needs[2] else None)


def xla_patched_nn_linear_forward(m, input):
    return XLAPatchedLinear.apply(input, m.weight, m.bias)


class EinsumLinear(torch.nn.Linear):
    """A torch.nn.Linear that does not flatten dimensions."""

    def forward(self, input):
        return xla_patched_nn_linear_forward(self, input)


def apply_xla_patch_to_nn_linear(module):
    """Replaces the torch.nn.Linear in a module by EinsumLinear, and returns the module."""
    for each in module.modules():
        if type(each) is torch.nn.Linear:
            each.__class__ = EinsumLinear
    return module


def apply_backward_optimization_barrier(m):
    """Separates the backward pass of a module from the rest of the program."""
    def apart(module, grad_input, grad_output):
        held = [each.grad for each in module.parameters() if each.grad is not None]
        held += [each for each in grad_input if each is not None]
        optimization_barrier_(held)

    m.register_full_backward_hook(apart)


def optimization_barrier_(tensors):
    """The compiler moves no operation across this point."""
    if not tensors:
        return
    tensors = [unwrapped(each) for each in tensors]
    noted, made = _hlo.operands(*tensors), ms.optimization_barrier([each.value for each in tensors])
    for each, value in zip(tensors, made, strict=True):
        each.write(value)
    _hlo.note_barrier(tensors, noted)
