"""PyTorch programs on meshes."""

from . import lowerings
from ._compile import function

__all__ = ["function"]
