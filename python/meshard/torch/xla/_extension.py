"""torch_xla._XLAC: the names of torch_xla's extension module that programs use."""

import signal

import torch

import meshard as ms
from meshard import _meshard

from .._convert import to_meshard
from ..eager._tensors import DeviceTensor, is_local, recorded_values, wrap
from . import _hlo, _metrics, _runtime
from ._meshes import OpSharding, ShardingType, all_devices, get_global_mesh


def device_tensor(t):
    """Checks that a tensor is on the device, and returns it. Raises RuntimeError for another one."""
    t = getattr(t, "global_tensor", t)
    if not isinstance(t, DeviceTensor):
        raise RuntimeError(f"Input tensor is not an XLA tensor: {t.device} {tuple(t.shape)} {t.dtype}; call "
                           ".to(\"xla\")")
    return t


def is_manual(t):
    """Whether each device has its own value of a tensor."""
    return is_local(t.value)


def sharding_of(t):
    """The sharding that torch_xla would show: the mark, or the compiler's choice for a computed value; None without."""
    if t.sharding is not None:
        return t.sharding
    value = t.value
    if value.sharding is not None or value.is_recorded or not value.placement.startswith("device"):
        return value.sharding
    if value.stored_sharding is not None:
        return None  # cleared
    return ms.Sharding.replicated(all_devices(), value.ndim)


def _get_xla_sharding_spec(t):
    t = device_tensor(t)
    if is_manual(t):
        return "{manual}"
    sharding = sharding_of(t)
    return "" if sharding is None else str(OpSharding.of(sharding))


def _get_xla_sharding_type(t):
    t = device_tensor(t)
    if is_manual(t):
        return ShardingType.MANUAL
    sharding = sharding_of(t)
    return None if sharding is None else ShardingType[ms.canonical_type(sharding)]


def _get_xla_op_sharding(t):
    t = device_tensor(t)
    if is_manual(t):
        return OpSharding([], [], [], ShardingType.MANUAL)
    sharding = sharding_of(t)
    return None if sharding is None else OpSharding.of(sharding)


def _is_replicated(sharding):
    return ms.tile_assignment(sharding).canonical().kind == "replicated"


def mark(t, sharding):
    """Marks a tensor in place. Raises RuntimeError if its elements are on the devices with another sharding."""
    t = device_tensor(t)
    before, value = t.sharding, t.value
    if before is not None:
        same = before.mesh == sharding.mesh and OpSharding.of(before) == OpSharding.of(sharding)
        if same:
            return
        if not value.is_recorded and not _is_replicated(before):
            raise RuntimeError(f"Existing annotation must be cleared first: the tensor {tuple(t.shape)} is sharded as "
                               f"{OpSharding.of(before)}, not as {OpSharding.of(sharding)}; call clear_sharding(t)")
    if value.placement == "host":
        _metrics.count("VirtualDeviceUsage")
    noted = _hlo.operands(t)
    t.mark(sharding)
    _hlo.note_mark(t, noted, sharding)


def _xla_mark_sharding(t, op_sharding):
    mark(t, op_sharding.sharding(t.ndim))


def _xla_annotate_custom_sharding(t, op_sharding):
    """The same elements with another sharding from here on. They move when the program runs."""
    t = device_tensor(t)
    sharding, noted = op_sharding.sharding(t.ndim), _hlo.operands(t)
    if not t._steps:
        t._storage.sharding = None
        t.write(ms.sharding_constraint(t.value, sharding))
    t.mark(sharding)
    _hlo.note_mark(t, noted, sharding)


def _xla_clear_sharding(t):
    t = device_tensor(t)
    storage = t._storage
    if t._steps:
        t._mark, t._seen = None, -1
        return
    storage.sharding = None
    storage.value = ms.clear_sharding(storage.value)


def _replace(t, value):
    """Gives a tensor another value, local or not, in place."""
    if t._steps:
        raise RuntimeError(f"the tensor {tuple(t.shape)} is a view and cannot become local by itself: call clone() "
                           "before")
    t._storage.sharding = None
    t._storage.write(value)


def _mark_manual_sharding(t, op_sharding=None):
    """Turns the tensor, from here on, into a local value of each device."""
    t = device_tensor(t)
    if is_manual(t):
        return
    if not t.value.is_recorded:
        raise RuntimeError("a tensor with elements cannot be marked manual: only a recorded value can")
    sharding = sharding_of(t)
    mesh = sharding.mesh if sharding is not None else _mesh()
    noted = _hlo.operands(t)
    _replace(t, ms.mark_manual_sharding(t.value, mesh))
    _hlo.note_call(t, "Sharding", noted, "{manual}")


def _mesh():
    return get_global_mesh().mesh if get_global_mesh() is not None else all_devices()


def _spmd_full_to_shard_shape(t):
    t = device_tensor(t)
    sharding = sharding_of(t)
    if sharding is None:
        raise RuntimeError(f"the tensor {tuple(t.shape)} has no sharding: call mark_sharding() before")
    made = wrap(ms.enable_manual_sharding(t.value, sharding.mesh, sharding.spec))
    _hlo.note_call(made, "SPMDFullToShardShape", [t], "{manual}")
    return made


def _spmd_shard_to_full_shape(t, op_sharding, full_shape, dtype):
    t = device_tensor(t)
    if not is_manual(t):
        raise RuntimeError(f"the tensor {tuple(t.shape)} is not manual: call _mark_manual_sharding() before")
    mesh = _mesh_of_manual(t, op_sharding)
    sharding = op_sharding.sharding(len(full_shape), mesh)
    made = wrap(ms.disable_manual_sharding(t.value, sharding.mesh, sharding.spec, tuple(full_shape)), sharding=sharding)
    _hlo.note_call(made, "SPMDShardToFullShape", [t], OpSharding.of(sharding))
    return made


def _mesh_of_manual(t, op_sharding):
    if op_sharding._sharding is not None:
        return op_sharding._sharding.mesh
    return ms.Mesh.parse(t.value.placement.rpartition(" of ")[2])


def _name(device_id):
    return f"{_runtime.device_type()}:{device_id}"


def _sharded_value(t):
    t = device_tensor(t)
    if t.value.is_recorded:
        t.value.block_until_ready()
    if sharding_of(t) is None or t.value.stored_sharding is None:
        t.mark(ms.Sharding.replicated(all_devices(), t.ndim))
    return t.value


def _shards_of(t):
    """The local shards of a tensor in the order of device ids."""
    value = _sharded_value(t)
    return value, sorted(ms.local_shards(value), key=lambda each: each.device_id)


def _padded(shard, shape):
    """The elements of a shard with zeros up to the shard shape."""
    data = torch.from_numpy(shard.data.copy())
    if tuple(data.shape) == shape:
        return data
    made = torch.zeros(shape, dtype=data.dtype)
    made[tuple(map(slice, data.shape))] = data
    return made


def _shard_shape(value):
    tiles = [value.stored_sharding.num_tiles(dim) for dim in range(value.ndim)]
    return tuple(-(-size // n) for size, n in zip(value.shape, tiles, strict=True))


def _get_local_shards(tensors):
    """For each tensor, the shards of this process with the names of their devices."""
    made = []
    for t in tensors:
        value, shards = _shards_of(t)
        shape = _shard_shape(value)
        made.append([(_padded(each, shape), _name(each.device_id)) for each in shards])
    return made


def _get_local_shard_replica_and_indices(tensors):
    made = []
    for t in tensors:
        value, shards = _shards_of(t)
        if _is_replicated(value.stored_sharding):
            made.append([(each.device_id, ...) for each in shards])
            continue
        replicas = {device: i for group in ms.tile_groups(value.stored_sharding)[1]
                    for i, device in enumerate(sorted(group))}
        made.append([(replicas[each.device_id], [slice(*part.indices(size)) for part, size in
                                        zip(each.index, value.shape, strict=True)]) for each in shards])
    return made


def _load_local_shards(t, data, devices):
    t = device_tensor(t)
    sharding = sharding_of(t)
    if sharding is None or _is_replicated(sharding):
        raise RuntimeError("Cannot load shards into a replicated tensor")
    value, shards = _shards_of(t)
    if len(data) != len(shards):
        raise RuntimeError(f"{len(data)} shards are given for {len(shards)} devices")
    shape = _shard_shape(value)
    for each in data:
        if tuple(each.shape) != shape:
            raise RuntimeError(f"a shard has the shape {tuple(each.shape)}, and must have {shape}")
    places = {_name(each.device_id): each for each in shards}
    by_position = sorted(zip(devices, data, strict=True), key=lambda each: places[each[0]].position)
    parts = []
    for name, each in by_position:
        sizes = tuple(map(len, (range(*part.indices(size)) for part, size in
                                zip(places[name].index, value.shape, strict=True))))
        parts.append(each[tuple(map(slice, sizes))].detach().contiguous().numpy())
    t.write(ms.load_local_shards(value, parts))


def _global_tensor_from_cpu_shards(shards, op_sharding, global_shape=None):
    """A tensor made of one CPU tensor for each device."""
    sharding = op_sharding.sharding(shards[0].ndim)
    if _is_replicated(sharding):
        sharding = ms.Sharding.replicated(sharding.mesh, shards[0].ndim)
    ids = ms.get_logical_mesh(sharding.mesh).ravel().tolist()
    if len(shards) != len(ids):
        raise RuntimeError(f"{len(shards)} shards are given for {len(ids)} devices")
    if any(each.shape != shards[0].shape for each in shards):
        raise RuntimeError("the shards have different shapes")
    tiles = [sharding.num_tiles(dim) for dim in range(shards[0].ndim)]
    full = tuple(size * n for size, n in zip(shards[0].shape, tiles, strict=True))
    shape = full if global_shape is None else tuple(global_shape)
    fits = len(shape) == len(full) and all(
        -(-size // n) == part for size, n, part in zip(shape, tiles, shards[0].shape, strict=True))
    if not fits:
        raise RuntimeError(f"Invalid global shape {shape}: shards {tuple(shards[0].shape)} of {op_sharding} make "
                           f"{full}, less what is padded")
    order = sorted(range(len(ids)), key=ids.__getitem__)
    parts = [None] * len(ids)
    for shard, position in zip(shards, order, strict=True):
        parts[position] = shard.detach().contiguous().numpy()
    value = ms.from_shards(parts, sharding.mesh, sharding.spec, shape)
    return wrap(value, sharding=sharding)


def send(tensors, sharding_spec=None):
    """CPU tensors on the device; those that the spec fits are sharded, and all others replicated, at once."""
    made = []
    for each in tensors:
        sharding = sharding_spec and sharding_spec.sharding(each)
        if sharding is None:
            sharding = ms.Sharding.replicated(all_devices(), each.ndim)
        made.append(wrap(ms.mark_sharding(to_meshard(each), sharding), sharding=sharding))
    return made


def _get_xla_tensors_hlo(tensors):
    return _hlo.text([device_tensor(each) for each in tensors])


def _get_xla_tensors_text(tensors):
    return "\n".join(each.value.to_string() for each in map(device_tensor, tensors))


def _get_xla_tensor_debug_info(t):
    """Describes where a tensor's elements are, in torch_xla's format.

    For a tensor on the host, recorded operations run first, because a program sends it when it runs.
    """
    t = device_tensor(t)
    if t.value.placement == "host":
        ms.block_until_ready(recorded_values())
    value, sharding = t.value, sharding_of(t)
    lines = [f"XLATensor {{\nTensor ID: {id(t)}", "Device: SPMD:0" if _runtime.is_spmd() else "Device: " + _name(0)]
    lines.append(f"XLA Shape: {_hlo.shape_text(value)}")
    lines.append(f"ShardingSpec: {'None' if t.sharding is None else OpSharding.of(t.sharding)}")
    data = f"\n  Data Device: SPMD:0\n  Data Shape: {_hlo.shape_text(value)}\n"
    if value.is_recorded:
        lines += [f"IR: {value.placement}", "XLAData: None", "Tensor on host: None"]
    elif value.placement == "host" and not _meshard.num_copies(value):
        lines += ["IR: None", "XLAData: None", f"Tensor on host: with size {list(t.shape)}"]
    elif value.placement == "host":
        lines += ["IR: xla::device_data", f"XLAData: {data}  Copies: {_meshard.num_copies(value)}",
                  "Tensor on host: None"]
    else:
        held = value.stored_sharding or sharding
        count = held.mesh.size if held is not None else 1
        lines += ["IR: xla::device_data",
                  f"XLAData: XLAShardedData: {data}  OpSharding: {OpSharding.of(held)}\n  NumShards: {count}",
                  "Tensor on host: None"]
    return "\n".join([*lines, "}"])


def _get_graph_hash(tensors):
    return hash(_hlo.text([device_tensor(each) for each in tensors])).to_bytes(8, "little", signed=True)


def _xla_get_auto_sharding():
    return False


def _xla_get_default_device():
    return "xla:0"


def _ensure_xla_coordinator_initialized(global_rank, world_size, master_addr, port=None):
    """Does nothing: a run of several processes of meshard needs no coordinator."""


_ended = []
_handlers = []


def _activate_preemption_sync_manager():
    """From now on, records SIGTERM instead of ending the process."""
    _ended.clear()
    _handlers.append(signal.signal(signal.SIGTERM, lambda number, frame: _ended.append(number)))


def _deactivate_preemption_sync_manager():
    if _handlers:
        signal.signal(signal.SIGTERM, _handlers.pop())


def _sync_point_reached(step):
    """Whether SIGTERM arrived, after which a program should save its checkpoint."""
    return bool(_ended)


