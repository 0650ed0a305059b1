"""The rank and coordinates that a program reads, as symbols that differ by rank."""

import contextlib
import functools
import os
import sys

import torch
import torch.distributed as dist

from ._capture import changed_attributes
from ._lines import is_library, prepare_backward, user_place
from ._rank_graphs import axes_of, groups_along, ranks_of, stride_of

_PROGRAMS = tuple(os.path.join(os.path.dirname(dist.__file__), folder, "") for folder in (
    "algorithms", "fsdp", "nn", "pipelining", "tensor"))
"""The folders of PyTorch that compute with the rank. Others ask for that of this process, for its groups and logs."""


def _computes(file):
    return not is_library(file) or file.startswith(_PROGRAMS) and os.path.basename(file) != "_collective_utils.py"


def _coordinate(ranks, index):
    """This rank's place along a dimension of nested lists of ranks, as a number that differs by rank."""
    from torch.distributed._ops import device_mesh  # noqa: F401: registers the operator

    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        full = torch.tensor(ranks, dtype=torch.int, device="cpu")
    return torch.ops.device_mesh._runtime_compute_coordinate_on_dim(full, index)


_FSDP = "Gather its parameters by collectives, or use meshard.torch.fully_shard() and compile the module"


@contextlib.contextmanager
def symbolic_ranks(mesh, other):
    """While active, the rank and the coordinates that a program reads are symbols, not those of this process.

    Yields the mode in which the program must run. `other(tensor)` is the input that replaces a tensor from outside.
    """
    from torch.distributed import _functional_collectives, distributed_c10d
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
    from torch.distributed.nn import functional as differentiable
    from torch.distributed.tensor import DTensor, _collective_utils
    from torch.nn.parallel import DistributedDataParallel

    from ._rank_collectives import InPlace, permute_tensor  # a PyTorch without torch.distributed cannot import it

    get_rank, get_backend, group_rank = dist.get_rank, dist.get_backend, vars(dist.ProcessGroup)["rank"].__get__
    global_rank_of, group_rank_of = distributed_c10d.get_global_rank, distributed_c10d.get_group_rank
    inner = {get_rank.__code__, group_rank_of.__code__}

    in_place, engine = InPlace(lambda group: rank_in(group)), torch.autograd._engine_run_backward
    # Its rank only chooses one of several parts of one shape.
    of_shapes = {differentiable._AllGather.backward.__code__}

    def own_backend(group=None):
        # torch.distributed.nn computes gradients in another way for backends without reduce-scatter.
        return "nccl" if sys._getframe(1).f_code.co_filename == differentiable.__file__ else get_backend(group)

    def asks():
        """The frame that computes with the rank, or None, and whether it reads the rank through another function."""
        frame, indirect = sys._getframe(2), False
        while frame.f_code in inner:
            frame, indirect = frame.f_back, True
        return (frame if _computes(frame.f_code.co_filename) and frame.f_code not in of_shapes else None), indirect

    def rank_in(group=None):
        if group is None or group is dist.GroupMember.WORLD:
            return _coordinate([list(range(dist.get_world_size()))], 0)
        return _coordinate(groups_along(axes_of(ranks_of(group), mesh), mesh), 0)

    def own_get_rank(group=None):
        return get_rank(group) if asks()[0] is None else rank_in(group)

    def own_group_rank(group):
        frame, indirect = asks()
        if frame is None:
            return group_rank(group)()
        if indirect:
            raise ValueError(f"{frame.f_code.co_filename}:{frame.f_lineno}: [torch] write torch.distributed.get_rank() "
                             "in full: a function imported by its own name returns the rank of this process")
        return rank_in(group)

    def local_rank(self, mesh_dim=None):
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError("[torch] get_local_rank() of a mesh with several dimensions needs mesh_dim")
            mesh_dim = 0
        names = self.mesh_dim_names or ()
        return self._sym_get_coordinate(names.index(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim)

    def get_coordinate(self):
        own = self._coordinate_on_dim
        return own and [self._sym_get_coordinate(i) for i in range(self.ndim)]

    def with_lines(differentiate):
        """Gives gradients the lines of the operations that they differentiate, not the line of the call."""

        @functools.wraps(differentiate)
        def at_lines(tensors, *args, **kwargs):
            for each in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
                prepare_backward(each)
            return differentiate(tensors, *args, **kwargs)

        return at_lines

    def run_backward(*args, **kwargs):
        with in_place:  # PyTorch left the mode to call backward() or grad()
            return engine(*args, **kwargs)

    def own_permute(tensor, src_dst, group, tag=""):
        name = _functional_collectives._resolve_group_name(group, tag)
        return permute_tensor(tensor, list(src_dst), name)

    def of_other(method):
        return lambda self, *args, **kwargs: method(other(self), *args, **kwargs)

    def refuse_hooks(name, instead):
        def refuse(*args, **kwargs):
            raise NotImplementedError(f"{user_place()}[torch] {name} is not supported: its hooks and streams are not "
                                      f"part of a program. {instead}")

        return refuse

    def stride(group):
        found = stride_of(ranks_of(group), mesh)
        if found is None:
            raise NotImplementedError(f"{user_place()}[torch] the ranks {ranks_of(group)} of a group are not evenly "
                                      "spaced, so arithmetic on them fails: use group_src, group_dst or group_peer")
        return found

    def own_global_rank(group, group_rank):
        if not isinstance(group_rank, torch.SymInt):
            return global_rank_of(group, group_rank)
        if group is dist.group.WORLD:
            return group_rank
        return rank_in() + (group_rank - rank_in(group)) * stride(group)

    def own_rank_in_group(group, global_rank):
        if not isinstance(global_rank, torch.SymInt):
            return group_rank_of(group, global_rank)
        if group is dist.group.WORLD:
            return global_rank
        return rank_in(group) + (global_rank - rank_in()) // stride(group)

    def own_mode():
        # DTensor gathers and chunks on CPUs, whose process groups had no all-to-all, unless this is not None.
        return True

    changes = [(dist, "get_rank", own_get_rank), (dist.ProcessGroup, "rank", own_group_rank),
               (DeviceMesh, "get_local_rank", local_rank), (DeviceMesh, "get_coordinate", get_coordinate),
               (DeviceMesh, "get_rank", lambda self: rank_in()), (_collective_utils, "local_tensor_mode", own_mode),
               (_functional_collectives, "permute_tensor", own_permute),
               *((owner, "get_global_rank", own_global_rank) for owner in (dist, distributed_c10d)),
               *((owner, "get_group_rank", own_rank_in_group) for owner in (dist, distributed_c10d)),
               *((dist, name, lambda *args, **kwargs: None) for name in ("barrier", "monitored_barrier")),
               *((differentiable, name, lambda *args, **kwargs: None) for name in (
                   "_not_supported_under_compile", "_deprecated")),
               (distributed_c10d, "_check_not_self_rank", lambda *args: None),
               (dist, "get_backend", own_backend),
               (torch.autograd, "_engine_run_backward", run_backward),
               *((DTensor, name, of_other(vars(DTensor)[name])) for name in (
                   "to_local", "redistribute", "full_tensor")),
               (DistributedDataParallel, "forward", refuse_hooks(
                   "DistributedDataParallel", "Call the module itself, and average the gradients by all_reduce()")),
               (FSDPState, "_root_pre_forward", refuse_hooks("fully_shard()", _FSDP)),
               (FullyShardedDataParallel, "forward", refuse_hooks("FullyShardedDataParallel", _FSDP)),
               *((torch.autograd, name, with_lines(getattr(torch.autograd, name))) for name in ("backward", "grad"))]
    changes = [(owner, name, value) for owner, name, value in changes if name in vars(owner)]
    with changed_attributes(changes):
        yield in_place
