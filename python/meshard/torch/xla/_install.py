"""The modules of torch_xla's names."""

import functools
import importlib.abc
import os
import sys
import types

import torch

from ..eager._registration import register_as_xla
from . import _hlo, _metrics

_PACKAGE = "torch_xla"

_ADVICE = {
    "all_reduce": "collectives of a program over a mesh come from its shardings; explicit ones are meshard.all_reduce "
                  "and its like inside meshard.manual, and torch.distributed inside meshard.torch.per_rank",
    "experimental": "meshard has meshard.scan, while_loop, fori_loop and cond for loops, and meshard.pipeline",
    "pallas": "kernels: torch.nn.functional.scaled_dot_product_attention, or a custom call",
    "profiler": "profile with meshard.start_trace()",
    "stablehlo": "meshard.module_text() gives the StableHLO of a module of PyTorch",
    "multiprocessing": "one process has all devices: call the function itself",
}
_ADVICE |= dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "collective_permute"), _ADVICE["all_reduce"])
_ADVICE["custom_kernel"] = _ADVICE["pallas"]
_GENERAL = "docs/tutorials/from-torch-xla.md lists what meshard has in its place"


def _advice(name):
    return next((text for part, text in _ADVICE.items() if part in name), _GENERAL)


def _missing(module, name):
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise AttributeError(f"{module}.{name} is not one of the names of torch_xla that meshard has: {_advice(name)}")


class _Finder(importlib.abc.MetaPathFinder):
    """Reports what to use instead of a missing module."""

    def find_spec(self, name, path=None, target=None):
        if name == _PACKAGE or name.startswith(_PACKAGE + "."):
            raise ModuleNotFoundError(f"{name} is not one of the modules of torch_xla that meshard has: "
                                      f"{_advice(name)}", name=name)
        return None


class _Trace:
    """Does nothing: profiles of meshard name the program's lines instead of such parts."""

    def __init__(self, name="", *args, **kwargs):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class SampleGenerator:
    """A loader that returns the same batch `sample_count` times."""

    def __init__(self, data, sample_count):
        self._data, self._sample_count, self._left = data, sample_count, sample_count

    def __iter__(self):
        return SampleGenerator(self._data, self._sample_count)

    def __len__(self):
        return self._sample_count

    def __next__(self):
        if not self._left:
            raise StopIteration
        self._left -= 1
        return self._data


def _getenv_as(name, type, defval=None):
    return type(os.environ[name]) if name in os.environ else defval


def _check_env_flag(name, default=""):
    return os.environ.get(name, default).upper() in ("ON", "1", "YES", "TRUE", "Y")


def _autocast(device=None, **kwargs):
    """torch.autocast on the device."""
    return torch.autocast("xla", **kwargs)


def _no_xla_backend(*args, **kwargs):
    raise AssertionError("XLA backend is not supported with SPMD. Please use a CPU process group instead.")


def _register_backend():
    import torch.distributed as dist

    dist.Backend.register_backend("xla", _no_xla_backend, devices="xla")
    dist.register_rendezvous_handler("xla", _no_xla_backend)


_ENVIRONMENT = ("PJRT_DEVICE", "CPU_NUM_DEVICES", "TPU_NUM_DEVICES", "LOCAL_RANK", "RANK", "WORLD_SIZE")


def _small_modules():
    """The modules with few names, as a dictionary from modules to names."""
    from torch.utils.checkpoint import checkpoint

    from . import _checkpoint, _fsdp

    policies = {name: getattr(_fsdp, name) for name in (
        "always_wrap_policy", "lambda_auto_wrap_policy", "transformer_auto_wrap_policy", "size_based_auto_wrap_policy",
        "recursive_wrap")}
    optimizers = {name: getattr(torch.optim, name) for name in ("SGD", "Adam", "AdamW")}
    trace = {"Trace": _Trace, "StepTrace": _Trace}
    return {
        "core": {}, "debug": {}, "utils": {}, "experimental": {}, "_internal": {}, "amp.syncfree": optimizers,
        "core.xla_env_vars": {name: name for name in _ENVIRONMENT},
        "distributed": {}, "distributed.fsdp.wrap": policies, "distributed.xla_backend": {},
        "distributed.fsdp": {"SpmdFullyShardedDataParallel": _fsdp.SpmdFullyShardedDataParallel},
        "distributed.fsdp.utils": {"checkpoint_module": _checkpoint_module},
        "distributed.xla_multiprocessing": {"spawn": lambda fn, args=(), nprocs=None, **kwargs: fn(0, *args)},
        "debug.profiler": trace,
        "experimental.spmd_fully_sharded_data_parallel": {
            "SpmdFullyShardedDataParallel": _fsdp.SpmdFullyShardedDataParallel},
        "experimental.distributed_checkpoint": {name: getattr(_checkpoint, name) for name in (
            "CheckpointManager", "SPMDSavePlanner", "SPMDLoadPlanner", "prime_optimizer")},
        "experimental.distributed_checkpoint._helpers": {name: getattr(_checkpoint, name) for name in (
            "_sharded_cpu_state_dict", "_CpuShards", "_is_sharded_tensor")},
        "utils.utils": {"SampleGenerator": SampleGenerator, "getenv_as": _getenv_as,
                        "check_env_flag": _check_env_flag},
        "utils.checkpoint": {"checkpoint": checkpoint},
        "amp": {"autocast": _autocast, "GradScaler": torch.amp.GradScaler},
        "_internal.tpu": {"version": lambda: 0, "num_available_chips": lambda: 0},
        "_internal.utils": {"parse_xla_device": lambda name: (name.rpartition(":")[0], int(name.rpartition(":")[2]))},
        "distributed.spmd": _spmd_names(),
    }


def _checkpoint_module(module):
    """A module whose forward pass is computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    forward = module.forward
    module.forward = lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **kwargs)
    return module


_SPMD = ("XLAShard XLAShardedTensor Mesh HybridMesh ShardingType ShardingSpec XLAPatchedLinear MarkShardingFunction "
         "mark_sharding mark_sharding_with_gradients clear_sharding get_1d_mesh wrap_if_sharded "
         "xla_patched_nn_linear_forward set_global_mesh get_global_mesh _mark_manual_sharding enable_manual_sharding "
         "disable_manual_sharding apply_backward_optimization_barrier shard_as annotate_custom_sharding").split()


def _spmd_names():
    from . import _dtensor, _sharding

    names = {name: getattr(_sharding, name) for name in _SPMD}
    return names | {name: getattr(_dtensor, name) for name in (
        "xla_distribute_tensor", "xla_distribute_module", "auto_policy")}


def _modules():
    """The modules of torch_xla by their names."""
    from . import _dtensor, _extension, _loader, _model, _runtime, _sharded, _sharding, _top

    made = {"": _top, "_XLAC": _extension, "core.xla_model": _model, "runtime": _runtime, "debug.metrics": _metrics,
            "distributed.parallel_loader": _loader, "distributed.spmd.xla_sharding": _sharding,
            "distributed.spmd.xla_sharded_tensor": _sharded, "distributed.spmd.api": _dtensor}
    for name, names in _small_modules().items():
        made[name] = types.ModuleType(f"{_PACKAGE}.{name}")
        vars(made[name]).update(names)
    return {f"{_PACKAGE}.{name}".rstrip("."): module for name, module in made.items()}


def _read_environment():
    """Applies torch_xla's environment variables for the devices."""
    if "CPU_NUM_DEVICES" in os.environ:
        os.environ.setdefault("MESHARD_CPU_DEVICES", os.environ["CPU_NUM_DEVICES"])
    if os.environ.get("PJRT_DEVICE"):
        os.environ.setdefault("MESHARD_PLATFORM", os.environ["PJRT_DEVICE"].lower())


@functools.cache
def install():
    """Makes torch_xla's modules importable, and registers meshard's device as PyTorch's device type "xla".

    Call it before the first tensor of the device and before torch_xla is imported. The variables CPU_NUM_DEVICES and
    PJRT_DEVICE are read. Raises RuntimeError if torch_xla itself was imported.
    """
    if _PACKAGE in sys.modules:
        raise RuntimeError("torch_xla was imported before meshard.torch.xla.install()")
    _read_environment()
    register_as_xla()
    modules = _modules()
    for name, module in modules.items():
        if "__getattr__" not in vars(module):
            module.__getattr__ = functools.partial(_missing, name)
        module.__path__ = []
        sys.modules[name] = module
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
    sys.meta_path.insert(0, _Finder())
    _register_backend()
    _metrics.count_reads()
    _hlo.start()
