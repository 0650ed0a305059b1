"""Products of groups of consecutive rows, each with its own matrix, as for the experts of a model."""

import torch

import meshard as ms

from .._table import lowers
from ._helpers import cast, wide


class _Blocks:
    """Rows of consecutive groups, which end at `ends`, in blocks of equal size, each of one group.

    Sizes of groups are known only when the program runs. If blocks have the mean size of a group, `count` blocks, at
    most twice as many as groups, suffice for any sizes, so that at most twice the necessary work is done.
    """

    def __init__(self, rows, ends):
        self.rows, self.groups = rows, ends.shape[0]
        self.size = max(-(-rows // self.groups), 1)
        self.count = rows // self.size + self.groups
        self._ends = cast(ends, torch.int64)
        self._begins = _exclusive(self._ends)
        blocks = ms.floor_divide(self._ends - self._begins + (self.size - 1), self.size)
        self._block_ends = ms.cumulative_sum(blocks, axis=0)
        self._block_begins = _exclusive(self._block_ends)
        self.group = _group(ms.iota(ms.int64, (self.count,), 0), self._block_ends)

    def _of_blocks(self, values):
        return ms.expand_dims(ms.take(values, ms.minimum(self.group, self.groups - 1), axis=0), axis=1)

    def split(self, x):
        """The rows x[rows, n] as [count, size, n], with zeros where a block has no row."""
        if not self.rows:
            return ms.zeros((self.count, self.size, x.shape[1]), dtype=x.dtype)
        block = ms.expand_dims(ms.iota(ms.int64, (self.count,), 0), axis=1)
        offset = ms.expand_dims(ms.iota(ms.int64, (self.size,), 0), axis=0)
        place = (block - self._of_blocks(self._block_begins)) * self.size + offset + self._of_blocks(self._begins)
        inside = ms.logical_and(ms.less(place, self._of_blocks(self._ends)),
                                ms.less(ms.expand_dims(self.group, axis=1), self.groups))
        found = ms.take(x, ms.where(inside, place, ms.zeros_like(place)), axis=0)
        return ms.where(ms.expand_dims(inside, axis=2), found, ms.zeros((), dtype=x.dtype))

    def joined(self, x):
        """The rows [rows, n] of blocks [count, size, n]; zeros for rows after the last group."""
        row = ms.iota(ms.int64, (self.rows,), 0)
        group = _group(row, self._ends)
        known = ms.minimum(group, self.groups - 1)
        place = ms.take(self._block_begins, known, axis=0) * self.size + row - ms.take(self._begins, known, axis=0)
        inside = ms.less(group, self.groups)
        found = ms.take(ms.reshape(x, (self.count * self.size, x.shape[2])),
                        ms.where(inside, place, ms.zeros_like(place)), axis=0)
        return ms.where(ms.expand_dims(inside, axis=1), found, ms.zeros((), dtype=x.dtype))


def _exclusive(ends):
    return ms.concat([ms.zeros((1,), dtype=ends.dtype), ends[:-1]], axis=0)


def _group(places, ends):
    """How many groups end at each place or before it."""
    return ms.sum(cast(ms.greater_equal(ms.expand_dims(places, axis=1), ms.expand_dims(ends, axis=0)), torch.int64),
                  axis=1)


def _rows_by_matrices(x, matrices, ends):
    """x[rows, k] @ matrices[group of the row, k, n]."""
    blocks = _Blocks(x.shape[0], ends)
    chosen = ms.take(matrices, ms.minimum(blocks.group, blocks.groups - 1), axis=0)
    return blocks.joined(ms.matmul(blocks.split(x), chosen))


def _sums_over_rows(x, y, ends):
    """[groups, k, n]: for each group, the product of x[rows, k], transposed, and y[rows, n]."""
    blocks = _Blocks(x.shape[0], ends)
    products = ms.matmul(ms.swapaxes(blocks.split(x), 1, 2), blocks.split(y))
    return ms.segment_sum(products, blocks.group, blocks.groups)


@lowers("aten._grouped_mm")
def grouped_mm(a, b, offs=None, bias=None, out_dtype=None):
    if bias is not None:
        raise NotImplementedError("[torch] bias of _grouped_mm is not supported: add it to the result")

    def computed(a, b):
        if offs is None:
            return ms.matmul(a, b)
        if (a.ndim, b.ndim) == (2, 3):
            return _rows_by_matrices(a, b, offs)
        if (a.ndim, b.ndim) == (3, 2):
            return ms.swapaxes(_rows_by_matrices(ms.swapaxes(b, 0, 1), ms.swapaxes(a, 1, 2), offs), 0, 1)
        return _sums_over_rows(ms.swapaxes(a, 0, 1), b, offs)

    made = wide(computed)(a, b)
    return made if out_dtype is None else cast(made, out_dtype)


@lowers("transformers.grouped_mm_fallback")
def grouped_mm_fallback(x, matrices, offs):
    return _rows_by_matrices(x, matrices, offs)


@lowers("transformers.grouped_mm_fallback_backward")
def grouped_mm_fallback_backward(x, matrices, offs, gradient):
    return (_rows_by_matrices(gradient, ms.swapaxes(matrices, 1, 2), offs), _sums_over_rows(x, gradient, offs))
