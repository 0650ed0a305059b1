"""Lowerings of ATen to meshard, by family."""

from . import contractions, control, elementwise, reductions, shapes
