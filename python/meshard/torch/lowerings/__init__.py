"""Lowerings of ATen to meshard, by family."""

from . import contractions, elementwise, reductions, shapes
