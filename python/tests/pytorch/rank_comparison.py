"""Compares a program for ranks with LocalTensorMode, and its collectives with those that explain() reports."""

import collections
import json
import math
import re
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as funcol
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.tensor import DTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import meshard as ms
import meshard.torch as mt

KINDS = {"all_reduce": "all-reduce", "all_gather_into_tensor": "all-gather", "reduce_scatter_tensor": "reduce-scatter",
         "all_to_all_single": "all-to-all", "shard_dim_alltoall": "all-to-all", "allreduce_": "all-reduce",
         "permute_tensor": "collective-permute", "broadcast": "all-reduce"}
"""Of the operations of PyTorch. A broadcast is a sum with zeros."""


def parts_of(tensor, mesh, spec):
    """A whole tensor as the parts that a spec gives the ranks of a mesh, in order of their ids."""
    ranks = {}
    for rank in range(math.prod(mesh.shape)):
        at = dict(zip(mesh.axis_names, (int(i) for i in torch.unravel_index(torch.tensor(rank), tuple(mesh.shape)))))
        part = tensor
        for dim, axes in enumerate(spec):
            for axis in [axes] if isinstance(axes, str) else axes or ():
                part = part.chunk(mesh.axis_size(axis), dim)[at[axis]]
        ranks[rank] = part.clone()
    return LocalTensor(ranks)


def local(result):
    result = result.to_local() if isinstance(result, DTensor) else result
    return result.wait() if isinstance(result, funcol.AsyncCollectiveTensor) else result


class Collectives(TorchDispatchMode):
    """While active, counts the collectives that a program calls: (kind, axes, bytes that one rank gets)."""

    def __init__(self, mesh):
        super().__init__()
        self.found, self._mesh = collections.Counter(), mesh

    def _axes(self, group):
        """The axes along which the ranks of a group differ."""
        group = dist.distributed_c10d._resolve_process_group(group) if isinstance(group, str) else group
        ranks = torch.tensor(dist.get_process_group_ranks(group))
        places = torch.unravel_index(ranks, tuple(self._mesh.shape))
        return tuple(name for name, own in zip(self._mesh.axis_names, places) if len(own.unique()) > 1)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # its own operations are counted
        made = func(*args, **(kwargs or {}))
        namespace, name, *_ = str(func).split(".")
        many = name.removesuffix("_coalesced")
        if namespace in ("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "meshard") and many in KINDS:
            group = next(each for each in reversed(args) if isinstance(each, str | dist.ProcessGroup))
            for each in made if isinstance(made, (list, tuple)) else (made,):
                self.found[KINDS[many], self._axes(group), each.numel() * each.element_size()] += 1
        elif namespace == "c10d" and name == "allreduce_":
            group = dist.ProcessGroup.unbox(args[1])
            for each in args[0]:
                self.found["all-reduce", self._axes(group), each.numel() * each.element_size()] += 1
        elif namespace == "c10d":
            raise NotImplementedError(f"{func} is not counted")
        return made


class Permuted(torch.autograd.Function):
    """permute_tensor() of LocalTensors: that of PyTorch fails for them, and it sends parts of different sizes."""

    @staticmethod
    def forward(ctx, x, targets, groups, found):
        ctx.targets, ctx.groups, ctx.found = targets, groups, found
        found(x)
        return LocalTensor({group[target]: x._local_tensors[group[i]].clone() for group in groups
                            for i, target in enumerate(targets)})

    @staticmethod
    def backward(ctx, cotangent):
        sources = [ctx.targets.index(i) for i in range(len(ctx.targets))]
        return Permuted.apply(cotangent, sources, ctx.groups, ctx.found), None, None, None


_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i1": 1}


def recorded_in(text, mesh):
    """The collectives of a StableHLO module: (kind, axes, bytes that one rank gets)."""
    found = collections.Counter()
    pattern = (r'"stablehlo\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute)"\(.*?'
               r"(?:replica_groups|source_target_pairs) = dense<(.*?)> : .*?-> tensor<((?:\d+x)*)(\w+)>")
    for kind, groups, sizes, dtype in re.findall(pattern, text, flags=re.DOTALL):
        places = [torch.unravel_index(torch.tensor(group), tuple(mesh.shape)) for group in json.loads(groups)]
        axes = tuple(name for i, name in enumerate(mesh.axis_names) if any(len(at[i].unique()) > 1 for at in places))
        elements = math.prod(int(size) for size in sizes.split("x") if size)
        found[kind.replace("_", "-"), axes, elements * _BYTES[dtype]] += 1
    return found


def by_axes(found):
    """{(kind, axes): bytes}"""
    total = collections.Counter()
    for (kind, axes, size), count in found.items():
        total[kind, axes] += size * count
    return total


class Comparison:
    """A program of the catalog on 8 ranks."""

    def __init__(self, make, mesh):
        self.mesh = mesh
        self.program = make(mt.simulated_device_mesh(mesh))

        def step(*arguments):
            results = self.program.step(*arguments)
            return [local(each) for each in results]

        self.step = step
        self.per_rank = mt.per_rank(step, mesh, self.program.specs, module=self.program.module)

    def wanted(self):
        """The results of every rank in LocalTensorMode, and the collectives that the program calls."""
        arguments = self.program.arguments
        specs = pytree._broadcast_to_and_flatten(self.program.specs, pytree.tree_structure(arguments),
                                                 lambda each: isinstance(each, ms.P))
        leaves, structure = pytree.tree_flatten(arguments)
        given = pytree.tree_unflatten([parts_of(each, self.mesh, spec) for each, spec in zip(leaves, specs)], structure)
        called = Collectives(self.mesh)

        def permute_tensor(x, targets, group):
            mesh, dim = group

            def count(x):
                part = x._local_tensors[0]
                axes = (self.mesh.axis_names[dim],)
                called.found["collective-permute", axes, part.numel() * part.element_size()] += 1

            return Permuted.apply(x, targets, mesh.mesh.movedim(dim, -1).flatten(0, -2).tolist(), count)

        with mock.patch.object(funcol, "permute_tensor", permute_tensor), LocalTensorMode(8), torch.no_grad(), called:
            return self.step(*given), called.found

    def error(self, wanted):
        """The largest difference of an element, relative to the largest element of that result."""
        results = self.per_rank(*self.program.arguments)
        worst = 0.0
        for want, got in zip(wanted, results, strict=True):
            ranks = want._local_tensors if isinstance(want, LocalTensor) else dict.fromkeys(range(8), want)
            for rank, own in ranks.items():
                assert got[rank].shape == own.shape and got[rank].dtype == own.dtype, (got[rank].shape, own.shape)
                scale = float(own.abs().max()) if own.numel() else 0.0
                worst = max(worst, float((got[rank] - own).abs().max()) / max(scale, 1e-6))
        return worst

    def recorded(self):
        return recorded_in(ms.module_text(self.per_rank, *self.program.arguments), self.mesh)

    def reported(self):
        """The collectives of the compiled program. XLA combines some all-reduces into one."""
        found = self.explained().collectives
        return collections.Counter((each.kind, tuple(each.axes), each.bytes_out) for each in found)

    def explained(self, topology="cpu:8", **options):
        return ms.explain(self.per_rank, *self.program.arguments, topology=topology, **options)
