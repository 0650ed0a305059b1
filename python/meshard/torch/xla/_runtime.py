"""torch_xla.runtime."""

import os
import warnings

import meshard as ms


def device_type():
    """The platform of the devices in capitals: "CPU", "TPU", "CUDA"."""
    named = os.environ.get("PJRT_DEVICE") or os.environ.get("MESHARD_PLATFORM")
    return (named.split(":")[0] if named else ms.platform_name(ms.mesh_1d())).upper()


def set_device_type(pjrt_device):
    """Chooses the platform, before the first tensor."""
    os.environ["PJRT_DEVICE"] = pjrt_device
    ms.configure_runtime(platform=pjrt_device.lower())


def use_spmd(auto=False):
    """Does nothing: programs always run on the meshes of their tensors."""
    if auto:
        warnings.warn("meshard has no automatic sharding at run time: shard what the compiler shall not choose with "
                      "mark_sharding, or search for shardings with meshard.plan", stacklevel=2)
    os.environ["XLA_USE_SPMD"] = "1"


def is_spmd():
    return os.environ.get("XLA_USE_SPMD", "0").lower() in ("1", "true", "yes")


def global_runtime_device_count():
    return len(ms.devices())


def addressable_runtime_device_count():
    return len(ms.devices(local=True))


def _attributes(device):
    made = {"name": f"{device_type()}:{device.id}", "coords": list(device.coords), "core_on_chip": device.core_on_chip}
    if device.slice_index is not None:
        made["slice_index"] = device.slice_index
    return made


def global_runtime_device_attributes():
    return [_attributes(each) for each in ms.runtime_topology().devices]


def runtime_device_attributes(device):
    wanted = int(device.rpartition(":")[2])
    return next(each for each in global_runtime_device_attributes() if each["name"].endswith(f":{wanted}"))


def process_count():
    return 1 + max(each.process_index for each in ms.runtime_topology().devices)


def process_index():
    local = ms.devices(local=True)[0]
    return next(each.process_index for each in ms.runtime_topology().devices if each.id == local.id)


host_index = process_index


def local_process_count():
    return 1


def global_device_count():
    """Always 1: a program sees one device, whose tensors are on the devices of meshes."""
    return 1


world_size = local_device_count = addressable_device_count = global_device_count


def global_ordinal():
    return 0


local_ordinal = global_ordinal


def is_bf16_supported():
    return True


def get_master_ip():
    return os.environ.get("MASTER_ADDR", "localhost")


def initialize_cache(path, readonly=False):
    """Does nothing: compiled programs are always kept, in the cache folder (MESHARD_CACHE)."""
