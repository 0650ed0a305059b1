"""Lowerings of ATen to meshard, by family."""

from . import attention, contractions, convolutions, fourier, linear_algebra, losses
from . import pooling, resampling, special
from . import control, elementwise, reductions, shapes
from . import cumulative, dynamic, embeddings, histograms, indexing, padding, random, segments, sorting, weights
