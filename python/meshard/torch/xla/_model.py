"""torch_xla.core.xla_model."""

import contextlib
import sys
import time

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from . import _extension, _runtime, _top
from ._sharding import optimization_barrier_  # noqa: F401  (one of the module's names)

REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR, REDUCE_MIN, REDUCE_MAX = "sum", "mul", "and", "or", "min", "max"

get_ordinal = get_local_ordinal = _runtime.global_ordinal
xrt_world_size = _runtime.world_size
mark_step = _top.sync


def is_xla_tensor(tensor):
    return tensor.device.type == "xla"


def get_xla_supported_devices(max_devices=None):
    return ["xla:0"]


def is_master_ordinal(local=True):
    return local or _runtime.process_index() == 0


def master_print(*args, fd=sys.stdout, local=False, flush=False):
    if is_master_ordinal(local):
        print(*args, file=fd, flush=flush)


def xla_device(n=None, devkind=None):
    return _top.device(n)


def xla_real_devices(devices=None):
    for each in devices or ():
        if str(each) not in ("xla:0", "xla"):
            raise RuntimeError(f"Invalid device format: {each}")
    return [f"{_runtime.device_type()}:0"]


def xla_device_hw(device):
    return xla_real_devices([device])[0].partition(":")[0]


def xla_device_kind(device=None):
    return _runtime.device_type()


def xla_replication_devices(local_devices=None):
    return _top.real_devices()


def unlazy(tensors):
    ms.block_until_ready([_extension.device_tensor(each).value for each in tensors])


def wait_device_ops(devices=()):
    """Waits for all programs that were launched."""
    ms.block_until_ready()


def add_step_closure(closure, args=(), run_async=False):
    """Calls a function after the next sync()."""
    _top._closures.append((closure, args))


def reduce_gradients(optimizer, groups=None, pin_layout=True):
    """Does nothing: gradients of a program over a mesh cover the whole batch."""


def optimizer_step(optimizer, barrier=False, optimizer_args=None, groups=None, pin_layout=True):
    loss = optimizer.step(**(optimizer_args or {}))
    if barrier:
        _top.sync()
    return loss


def save(data, file_or_path, master_only=True, global_master=False):
    """torch.save() of data whose tensors are on the CPU."""
    if not master_only or is_master_ordinal(not global_master):
        torch.save(pytree.tree_map_only(torch.Tensor, lambda each: each.detach().cpu(), data), file_or_path)


def send_cpu_data_to_device(datas, device, input_sharding=None):
    """Moves the CPU tensors of a structure to the device: sharded where a ShardingSpec fits, all others replicated."""
    if type(datas) is torch.Tensor:
        datas = [datas]
    leaves, around = pytree.tree_flatten(datas)
    places = [i for i, each in enumerate(leaves) if isinstance(each, torch.Tensor) and each.device.type == "cpu"]
    for i, made in zip(places, _extension.send([leaves[i] for i in places], input_sharding), strict=True):
        leaves[i] = made
    return pytree.tree_unflatten(leaves, around)


def rendezvous(tag, payload=b"", replicas=()):
    return [payload]


def do_on_ordinals(target, data=(), ordinals=(0,)):
    return target(*data)


def mesh_reduce(tag, data, reduce_fn):
    return reduce_fn([data])


def set_rng_state(seed, device=None):
    torch.manual_seed(seed)


def get_rng_state(device=None):
    return torch.initial_seed()


@contextlib.contextmanager
def fork_rng(device=None, enabled=True):
    with torch.random.fork_rng(devices=(), enabled=enabled):
        yield


def get_memory_info(device=None):
    stats = ms.memory_stats(ms.devices(local=True)[0].id)
    return {"bytes_used": stats.bytes_in_use, "bytes_limit": stats.bytes_limit}


def broadcast_master_param(model):
    """Does nothing: one program has one copy of the parameters."""


class RateTracker:
    """Samples per second."""

    def __init__(self, smooth_factor=None):
        self._start = self._before = time.time()
        self._count, self._partial, self._rate, self._smooth = 0, 0, 0.0, smooth_factor or 0.4

    def add(self, count):
        self._count += count
        self._partial += count

    def rate(self):
        now = time.time()
        current, self._before = self._partial / max(now - self._before, 1e-9), now
        self._partial = 0
        self._rate = current if self._rate == 0 else self._rate * (1 - self._smooth) + current * self._smooth
        return self._rate

    def global_rate(self):
        return self._count / max(time.time() - self._start, 1e-9)
