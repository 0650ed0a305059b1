"""torch_xla.experimental.distributed_checkpoint: PyTorch's checkpoints of sharded tensors of the device."""

import collections
import dataclasses
import datetime
import io
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dist_cp
from torch.distributed._shard._utils import narrow_tensor_by_index
from torch.distributed.checkpoint import default_planner
from torch.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from torch.distributed.checkpoint._traverse import set_element, traverse_state_dict
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import LoadPlanner, SavePlanner, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from torch.utils import _pytree as pytree

from . import _extension, _top
from ._meshes import ShardingType
from ._sharded import XLAShardedTensor, unwrapped
from ._sharding import wrap_if_sharded


@dataclasses.dataclass
class _CpuShards:
    """The shards of a tensor on the host."""

    shards: list
    global_shape: torch.Size


def _is_sharded_tensor(x):
    return isinstance(x, XLAShardedTensor) and x.sharding_type != ShardingType.REPLICATED


def _sharded_cpu_state_dict(state_dict):
    """A copy of a state on the host, with split tensors as _CpuShards."""
    def moved(x):
        x = wrap_if_sharded(x)
        if _is_sharded_tensor(x):
            return _CpuShards(x.local_shards, x.shape)
        return unwrapped(x).detach().cpu() if isinstance(x, torch.Tensor) else x

    return pytree.tree_map(moved, state_dict)


def _flattened(state_dict):
    """The state as one dictionary, by dotted names, and the paths of the names."""
    flat, paths = {}, {}

    def visit(path, value):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"two values of the state are called {name}")
        flat[name], paths[name] = value, path

    traverse_state_dict(state_dict, visit, lambda value: isinstance(value, torch.Tensor | _CpuShards))
    return flat, paths


def _indices(value):
    if isinstance(value, _CpuShards):
        return [each.indices for each in value.shards]
    return [places for _, places in _extension._get_local_shard_replica_and_indices([value.global_tensor])[0]]


def _chunk(places):
    return ChunkStorageMetadata(torch.Size(each.start for each in places),
                                torch.Size(each.stop - each.start for each in places))


class _Separated:
    """A state whose split tensors are separated from the rest, which PyTorch's planners can handle."""

    def _separate(self, state_dict):
        flat, self.mappings = _flattened(state_dict)
        flat = {name: wrap_if_sharded(value) for name, value in flat.items()}
        self.sharded_state_dict = {name: value for name, value in flat.items()
                                   if _is_sharded_tensor(value) or isinstance(value, _CpuShards)}
        self.unsharded_state_dict = {name: unwrapped(value) for name, value in flat.items()
                                     if name not in self.sharded_state_dict}
        self._shards = {}

    def _shard(self, index):
        """The shard on the host that an item of a plan refers to."""
        if index.fqn not in self._shards:
            value = self.sharded_state_dict[index.fqn]
            self._shards[index.fqn] = (list(value.shards) if isinstance(value, _CpuShards) else value.local_shards)
        shard = self._shards[index.fqn][index.index]
        if index.offset != _chunk(shard.indices).offsets:
            raise RuntimeError(f"the item {index} is not of shard {index.index}, which begins at "
                               f"{tuple(_chunk(shard.indices).offsets)}")
        return shard


class SPMDSavePlanner(_Separated, SavePlanner):
    """Saves the shards of split tensors, and everything else as PyTorch does."""

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        self.is_coordinator = storage_meta if isinstance(storage_meta, bool) else is_coordinator
        self._separate(state_dict)

    def create_local_plan(self):
        plan = default_planner.create_default_local_save_plan(self.unsharded_state_dict, self.is_coordinator)
        items = [item for name, value in self.sharded_state_dict.items() for item in self._items(name, value)]
        return dataclasses.replace(plan, items=[*plan.items, *items], planner_data=self.mappings)

    @staticmethod
    def _items(name, value):
        held = isinstance(value, _CpuShards)
        size = value.global_shape if held else value.shape
        properties = TensorProperties.create_from_tensor(value.shards[0].data if held else value.global_tensor)
        for i, places in enumerate(_indices(value)):
            chunk = _chunk(places)
            yield WriteItem(MetadataIndex(name, chunk.offsets, i), WriteItemType.SHARD,
                            tensor_data=TensorWriteData(chunk, properties, size))

    def create_global_plan(self, all_plans):
        plans, metadata = default_planner.create_default_global_save_plan(dedup_save_plans(all_plans),
                                                                          rewrite_index_hints=False)
        paths = {name: path for plan in plans for name, path in plan.planner_data.items()}
        return plans, dataclasses.replace(metadata, planner_data=paths)

    def finish_plan(self, new_plan):
        return new_plan

    def resolve_data(self, write_item):
        index = write_item.index
        value = (self.unsharded_state_dict[index.fqn] if index.fqn in self.unsharded_state_dict
                 else self._shard(index).unpadded_data)
        if write_item.type == WriteItemType.BYTE_IO:
            file = io.BytesIO()
            torch.save(value, file)
            return file
        return value.detach().cpu()


class SPMDLoadPlanner(_Separated, LoadPlanner):
    """Loads into a state in place: into the shards of split tensors, and into everything else as PyTorch does."""

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.metadata, self.is_coordinator, self.original_state_dict = metadata, is_coordinator, state_dict
        self._separate(state_dict)
        self._pending = {}

    def create_local_plan(self):
        plan = default_planner.create_default_local_load_plan(self.unsharded_state_dict, self.metadata)
        for name, value in self.sharded_state_dict.items():
            plan.items.extend(create_read_items_for_chunk_list(
                name, self.metadata.state_dict_metadata[name], list(map(_chunk, _indices(value)))))
        return plan

    def create_global_plan(self, global_plan):
        return default_planner.create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan):
        return central_plan

    def load_bytes(self, read_item, value):
        set_element(self.original_state_dict, self.mappings[read_item.dest_index.fqn],
                    torch.load(value, weights_only=False))

    def resolve_tensor(self, read_item):
        index = read_item.dest_index
        whole = (self.unsharded_state_dict[index.fqn].detach() if index.fqn in self.unsharded_state_dict
                 else self._shard(index).data)
        return narrow_tensor_by_index(whole, read_item.dest_offsets, read_item.lengths)

    def commit_tensor(self, read_item, tensor):
        name = read_item.dest_index.fqn
        if name not in self.sharded_state_dict:
            return
        if name not in self._pending:
            self._pending[name] = sum(each.unpadded_data.numel() for each in self._shards[name])
        self._pending[name] -= torch.Size(read_item.lengths).numel()
        if self._pending[name] == 0:
            del self._pending[name]
            self.sharded_state_dict[name].load_local_shards_(self._shards.pop(name))


@dataclasses.dataclass
class _CheckpointMetadata:
    step: int
    ts: datetime.datetime


_METADATA = ".manager_metadata"


class CheckpointManager:
    """Checkpoints of steps in a folder, every `save_interval` steps and after SIGTERM; keeps the last `max_to_keep`."""

    def __init__(self, path, save_interval, max_to_keep=0, max_pending_async=1, num_of_threads=1, process_group=None,
                 chkpt_on_preemption=True):
        if not dist.is_initialized():
            raise AssertionError("A process group is required.")
        if save_interval <= 0 or max_pending_async <= 0 or max_to_keep < 0:
            raise AssertionError("save_interval and max_pending_async must be positive, max_to_keep not negative")
        self.base_path, self.save_interval, self.max_to_keep = os.path.join(path, ""), save_interval, max_to_keep
        self.num_of_threads, self.chkpt_on_preemption = num_of_threads, chkpt_on_preemption
        self.pg = process_group or dist.new_group()
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._slots, self._lock, self._futures = threading.Semaphore(max_pending_async), threading.Lock(), []
        self._tracked = self._found()
        if chkpt_on_preemption:
            _extension._activate_preemption_sync_manager()

    def _files(self):
        from fsspec.core import url_to_fs

        return url_to_fs(self.base_path)

    def _found(self):
        files, base = self._files()
        files.makedirs(base, exist_ok=True)
        found = []
        for each in files.ls(base, detail=False):
            place = os.path.join(each, _METADATA)
            if files.exists(place):
                with files.open(place, "rb") as file:
                    found.append(pickle.load(file))
        return collections.deque(sorted(found, key=lambda each: each.ts))

    def _path(self, step):
        return os.path.join(self.base_path, str(step))

    def _delete(self, step):
        files, base = self._files()
        place = os.path.join(base, str(step))
        if dist.get_rank(self.pg) == 0 and files.exists(place):
            files.rm(place, recursive=True)

    def _save(self, step, state_dict):
        from torch.distributed.checkpoint._fsspec_filesystem import FsspecWriter

        with self._lock:
            self._delete(step)
            dist_cp.save(state_dict=state_dict, planner=SPMDSavePlanner(), process_group=self.pg,
                         storage_writer=FsspecWriter(self._path(step), thread_count=self.num_of_threads,
                                                     per_thread_copy_ahead=0))
            metadata = _CheckpointMetadata(step, datetime.datetime.now())
            self._tracked = collections.deque(each for each in self._tracked if each.step != step)
            self._tracked.append(metadata)
            if dist.get_rank(self.pg) == 0:
                files, base = self._files()
                with files.open(os.path.join(base, str(step), _METADATA), "wb") as file:
                    pickle.dump(metadata, file)
            while self.max_to_keep and len(self._tracked) > self.max_to_keep:
                self._delete(self._tracked.popleft().step)

    def should_save(self, step):
        ended = self.chkpt_on_preemption and self.reached_preemption(step)
        return step % self.save_interval == 0 or ended

    def save(self, step, state_dict, force=False):
        """Saves a checkpoint if one is due at this step. Returns whether it did."""
        if not (force or self.should_save(step)):
            return False
        _top.sync()
        self._save(step, state_dict)
        return True

    def save_async(self, step, state_dict, force=False):
        """Like save(), but in a thread, with the current state."""
        if not (force or self.should_save(step)):
            return False
        _top.sync()
        held = _sharded_cpu_state_dict(state_dict)
        self._slots.acquire()
        future = self._pool.submit(self._save, step, held)
        future.add_done_callback(lambda _: self._slots.release())
        self._futures.append(future)
        return True

    def restore(self, step, state_dict):
        """Loads the checkpoint of a step into a state, in place."""
        from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader

        if step not in self.all_steps():
            raise AssertionError(f"Cannot restore from untracked step {step}. Valid steps are: {self.all_steps()}")
        dist_cp.load(state_dict=state_dict, storage_reader=FsspecReader(self._path(step)), planner=SPMDLoadPlanner(),
                     process_group=self.pg)

    def all_steps(self):
        return sorted(each.step for each in self._tracked)

    def join(self):
        """Waits for the checkpoints of save_async()."""
        wait(self._futures)
        futures, self._futures = self._futures, []
        for each in futures:
            each.result()

    def reached_preemption(self, step):
        if not self.chkpt_on_preemption:
            raise AssertionError("Preemption detection not enabled. Please set `chkpt_on_preemption`  when creating "
                                 "the CheckpointManager")
        return _extension._sync_point_reached(step)


def prime_optimizer(optimizer):
    """Makes the states of an optimizer, with a step of zero gradients, so that a checkpoint can be loaded into them."""
    _top.sync()
    for group in optimizer.param_groups:
        for each in group["params"]:
            if each.requires_grad:
                each.grad = torch.zeros_like(each, requires_grad=False)
    optimizer.step()
    _top.sync()
    return optimizer
