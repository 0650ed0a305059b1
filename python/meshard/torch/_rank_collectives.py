"""Functional forms of the collectives of torch.distributed that write to their arguments; see per_rank()."""

import inspect
import traceback

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed import distributed_c10d
from torch.overrides import TorchFunctionMode

from ._lines import user_place
from ._rank_graphs import ranks_of


class Done:
    """Replaces the handle of an asynchronous collective, whose results are read only after wait()."""

    def __init__(self, before_wait=None):
        self._before_wait = before_wait

    def wait(self, timeout=None):
        if self._before_wait is not None:
            self._before_wait()
        return True

    def is_completed(self):
        return self.wait()

    is_success = is_completed

    def __getattr__(self, name):
        raise NotImplementedError(f"{user_place()}[torch] {name} of an asynchronous collective is not supported: call "
                                  "its wait()")


def _operation(op):
    name = functional.REDUCE_OP_TO_STR.get(op)
    if name is None:
        raise NotImplementedError(f"{user_place()}[torch] the reduction {op} is not supported")
    return name


def _rows(tensor):
    return tensor.reshape(1) if tensor.ndim == 0 else tensor


def _write(output, value, name):
    """Writes to a tensor of as many elements: PyTorch lets parts be concatenated or stacked."""
    if output.numel() != value.numel():
        raise ValueError(f"{user_place()}[torch] {name}: the output of shape {tuple(output.shape)} does not have the "
                         f"{value.numel()} elements of the result")
    output.copy_(value.reshape(output.shape))


def _same_shapes(tensors, shape, name):
    for each in tensors:
        if each.shape != shape:
            raise NotImplementedError(f"{user_place()}[torch] {name} of parts of different sizes is not supported: "
                                      f"{tuple(each.shape)} and {tuple(shape)}. Pad them to one size")


def _index(group, rank, group_rank, name, what):
    """The index in a group of a global rank, or the index itself if it is given as `group_...`."""
    if group_rank is not None:
        return group_rank
    ranks = ranks_of(group)
    if rank not in ranks:
        raise ValueError(f"{user_place()}[torch] {name}: {what}={rank} is not one of the ranks {ranks} of the group. "
                         f"This is the group of rank {dist.get_rank()}: to name a rank of each group, use group_{what}")
    return ranks.index(rank)


def _all_reduce(tensor, op=dist.ReduceOp.SUM, group=None):
    tensor.copy_(functional.all_reduce(tensor, _operation(op), group))


def _all_reduce_coalesced(tensors, op=dist.ReduceOp.SUM, group=None):
    for each, made in zip(tensors, functional.all_reduce_coalesced(tensors, _operation(op), group)):
        each.copy_(made)


def _all_gather(tensor_list, tensor, group=None):
    _same_shapes(tensor_list, tensor.shape, "all_gather")
    made = functional.all_gather_single(_rows(tensor), 0, group)
    for each, part in zip(tensor_list, made.chunk(len(tensor_list)), strict=True):
        each.copy_(part.reshape(each.shape))


def _all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None):
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True):
        _all_gather(outputs, tensor, group)


def _all_gather_single(output_tensor, input_tensor, group=None):
    _write(output_tensor, functional.all_gather_single(_rows(input_tensor), 0, group), "all_gather_into_tensor")


def _scattered(output, input, op, group):
    count = dist.get_world_size(group)
    if input.numel() != count * output.numel():
        raise ValueError(f"{user_place()}[torch] reduce_scatter_tensor: the input of shape {tuple(input.shape)} does "
                         f"not have {count} times the elements of the output of shape {tuple(output.shape)}")
    parts = input.reshape(count * _rows(output).shape[0], *output.shape[1:])
    output.copy_(functional.reduce_scatter_single(parts, _operation(op), 0, group).reshape(output.shape))


def _reduce_scatter_single(output, input, op=dist.ReduceOp.SUM, group=None):
    _scattered(output, input, op, group)


def _reduce_scatter(output, input_list, op=dist.ReduceOp.SUM, group=None):
    _same_shapes(input_list, output.shape, "reduce_scatter")
    _scattered(output, torch.stack(input_list), op, group)


def _all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    _write(output, functional.all_to_all_single(input, output_split_sizes, input_split_sizes, group),
           "all_to_all_single")


def _all_to_all(output_tensor_list, input_tensor_list, group=None):
    _same_shapes([*output_tensor_list, *input_tensor_list], input_tensor_list[0].shape, "all_to_all")
    made = functional.all_to_all_single(torch.stack(input_tensor_list), None, None, group)
    for each, part in zip(output_tensor_list, made.unbind(), strict=True):
        each.copy_(part)


def _broadcast(tensor, src=None, group=None, group_src=None):
    tensor.copy_(functional.broadcast(tensor, _index(group, src, group_src, "broadcast", "src"), group))


_ONE_RANK = "only one rank of the group has the {}, and one program is recorded for all ranks. {}"
_REFUSED = {
    "gather": _ONE_RANK.format("result", "Use all_gather()"),
    "gather_single": _ONE_RANK.format("result", "Use all_gather_into_tensor()"),
    "scatter": _ONE_RANK.format("parts", "Use broadcast(), and select a part by the "
                                "rank; distribute_tensor() with src_data_rank=None takes each rank's own data"),
    **{name: "one program for all ranks cannot send between two of them. permute_tensor() of functional collectives, "
             "or isend() and irecv() on every rank, send values around a group" for name in ("send", "recv")},
    **{name: "Python objects are not values of a program. Send tensors, or make the objects before"
       for name in ("all_gather_object", "gather_object", "send_object_list", "recv_object_list",
                    "broadcast_object_list", "scatter_object_list")},
}

_IN_PLACE = {
    "all_reduce": _all_reduce, "all_reduce_coalesced": _all_reduce_coalesced,
    "all_gather": _all_gather, "all_gather_coalesced": _all_gather_coalesced,
    **dict.fromkeys(("all_gather_into_tensor", "all_gather_single", "_all_gather_base"), _all_gather_single),
    "reduce_scatter": _reduce_scatter,
    **dict.fromkeys(("reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base"), _reduce_scatter_single),
    "all_to_all_single": _all_to_all_single, "all_to_all": _all_to_all, "broadcast": _broadcast,
}


def refuse(name, place=None, cause=None):
    place = user_place() if place is None else place
    raise NotImplementedError(f"{place}[torch] {name}() is not supported: {_REFUSED[name]}") from cause


def refused_in(error):
    """The unsupported function of torch.distributed that an error came from; None for other errors."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((code.co_name for code in codes
                 if code.co_name in _REFUSED and code.co_filename == distributed_c10d.__file__), None)


class _Exchange:
    """Sends and receives of every rank that have not been matched yet, by group and tag."""

    def __init__(self):
        self._sent, self._received = {}, {}

    def add(self, kind, tensor, peer, group_peer, group, tag):
        group = group or dist.group.WORLD
        if group_peer is not None and not (isinstance(group_peer, int) and group_peer == -1):
            peer = group_peer
        elif group is not dist.group.WORLD:
            peer = distributed_c10d.get_group_rank(group, peer)
        pending = self._sent if kind == "isend" else self._received
        pending.setdefault((group, tag), []).append((tensor.detach().clone() if kind == "isend" else tensor, peer))
        self._place = user_place()
        return Done(lambda: self.finish(group, tag))

    def finish(self, group, tag):
        sent, received = self._sent.pop((group, tag), []), self._received.pop((group, tag), [])
        if len(sent) != len(received):
            raise NotImplementedError(f"{self._place}[torch] isend() and irecv() are supported where every rank of a "
                                      f"group does both: {len(sent)} isend and {len(received)} irecv were called "
                                      "before wait()")
        if sent:
            made = exchange([each for each, _ in sent], [peer for _, peer in sent], [each for each, _ in received],
                            [peer for _, peer in received], functional._resolve_group_name(group))
            with torch.no_grad():
                for (each, _), value in zip(received, made):
                    each.copy_(value)

    def end(self):
        if self._sent or self._received:
            raise NotImplementedError(f"{self._place}[torch] the program ends without wait() for this isend or irecv")


class InPlace(TorchFunctionMode):
    """While active, functional collectives replace in-place ones, by whatever name these were imported."""

    def __init__(self, rank_in):
        super().__init__()
        self._rank_in, self._exchange = rank_in, _Exchange()
        self._functions = {getattr(distributed_c10d, name): (name, own) for name, own in _IN_PLACE.items()
                           if hasattr(distributed_c10d, name)}
        self._functions |= {distributed_c10d.reduce: ("reduce", self._reduce)}
        self._functions |= {getattr(distributed_c10d, name): (name, self._exchange) for name in ("isend", "irecv")}
        self._functions |= {getattr(distributed_c10d, name): (name, None) for name in _REFUSED
                            if hasattr(distributed_c10d, name)}

    def _reduce(self, tensor, dst=None, op=dist.ReduceOp.SUM, group=None, group_dst=None):
        index = _index(group, dst, group_dst, "reduce", "dst")
        total = functional.all_reduce(tensor, _operation(op), group)
        tensor.copy_(torch.where(torch.full((), self._rank_in(group)) == index, total, tensor))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, own = self._functions.get(func, (None, None))
        if name is None:
            return func(*args, **(kwargs or {}))
        given = dict(inspect.signature(func).bind(*args, **(kwargs or {})).arguments)
        if own is None:
            refuse(name)
        if own is self._exchange:
            peer = given.get("dst" if name == "isend" else "src")
            group_peer = given.get("group_dst" if name == "isend" else "group_src")
            if peer is None and group_peer is None:
                raise NotImplementedError(f"{user_place()}[torch] {name}() without the other rank is not supported")
            return own.add(name, given["tensor"], peer, group_peer, given.get("group"), given.get("tag", 0))
        asynchronous = given.pop("async_op", False)
        given["group"] = given.get("group") or dist.group.WORLD
        with torch.no_grad():  # PyTorch differentiates none of these
            own(**given)
        return Done() if asynchronous else None

    def end(self):
        self._exchange.end()


@torch.library.custom_op("meshard::exchange", mutates_args=())
def exchange(sent: list[torch.Tensor], targets: list[int], received: list[torch.Tensor],
             sources: list[int], group: str) -> list[torch.Tensor]:
    """The values that each rank receives: sent[i] goes to rank targets[i] of the group, result j is sources[j]'s."""
    return [each.clone() for each in received]


@exchange.register_fake
def _(sent, targets, received, sources, group):
    return [torch.empty_like(each) for each in received]


@torch.library.custom_op("meshard::permute_tensor", mutates_args=())
def permute_tensor(x: torch.Tensor, targets: list[int], group: str) -> torch.Tensor:
    """The value of the rank whose target this rank is. PyTorch's function supports only parts of one size."""
    return x.clone()


@permute_tensor.register_fake
def _(x, targets, group):
    return torch.empty_like(x)


def _keep_targets(ctx, inputs, output):
    _, ctx.targets, ctx.group = inputs


def _permute_back(ctx, cotangent):
    sources = [ctx.targets.index(i) for i in range(len(ctx.targets))]
    return permute_tensor(cotangent.contiguous(), sources, ctx.group), None, None


permute_tensor.register_autograd(_permute_back, setup_context=_keep_targets)
