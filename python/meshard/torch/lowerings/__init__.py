"""Lowerings of ATen to meshard, by family."""

from . import attention, contractions, convolutions, fourier, linear_algebra, losses
from . import pooling, resampling, special
from . import control, elementwise, normalization, reductions, shapes
from . import cumulative, dynamic, embeddings, grouped, histograms, indexing, padding, random, segments, sorting
from . import weights
