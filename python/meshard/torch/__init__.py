"""PyTorch programs on meshes."""

from . import _versions  # first: it says so if PyTorch is too old
from . import lowerings
from ._annotations import device_mesh_of, distribute_tensor, fully_shard, mesh_of, parallelize_module, shard, spec_of
from ._compile import compile
from ._held import Held
from ._marks import mark_sharding, sharding_of
from ._pipelines import Pipeline
from ._programs import compare_with_marks
from ._ranks import per_rank, simulated_device_mesh
from ._train import shard_state, train_step
from .eager._registration import device, sync
from .eager._tensors import DeviceTensor

__all__ = ["DeviceTensor", "Held", "Pipeline", "backend", "compare_with_marks", "compile", "device", "device_mesh_of",
           "distribute_tensor", "fully_shard", "mark_sharding", "mesh_of", "parallelize_module", "per_rank", "shard",
           "shard_state", "sharding_of", "simulated_device_mesh", "spec_of", "sync", "train_step"]


def __getattr__(name):
    if name != "backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._dynamo import backend  # which has torch.compile take tensors of the device, and takes a second to import

    globals()[name] = backend
    return backend
