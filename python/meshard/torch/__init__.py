"""PyTorch programs on meshes."""

from . import _versions  # first: it says so if PyTorch is too old
from . import lowerings
from ._annotations import device_mesh_of, distribute_tensor, fully_shard, mesh_of, parallelize_module, shard, spec_of
from ._compile import backend, compile
from ._held import Held
from ._marks import mark_sharding, sharding_of
from ._pipelines import Pipeline
from ._programs import compare_with_marks
from ._ranks import per_rank, simulated_device_mesh
from ._train import shard_state, train_step

__all__ = ["Held", "Pipeline", "backend", "compare_with_marks", "compile", "device_mesh_of", "distribute_tensor",
           "fully_shard", "mark_sharding", "mesh_of", "parallelize_module", "per_rank", "shard", "shard_state",
           "sharding_of", "simulated_device_mesh", "spec_of", "train_step"]
