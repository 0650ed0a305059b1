"""PyTorch programs on meshes."""

from . import lowerings
from ._compile import backend, compile, function
from ._held import Held
from ._marks import mark_sharding
from ._train import train_step

__all__ = ["Held", "backend", "compile", "function", "mark_sharding", "train_step"]
