"""Products of matrices and tensors, and the results of factorizations."""

from collections import namedtuple

from .common import ops
from .creation import as_tensor
from .data_types import result_type

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
QRResult = namedtuple("QRResult", ["Q", "R"])

matmul = ops.matmul
matrix_transpose = ops.matrix_transpose


def tensordot(x1, x2, /, *, axes=2):
    """The sum of products over dimensions of both: the last `axes` of x1 with the first of x2, or a pair of lists."""
    x1, x2 = as_tensor(x1), as_tensor(x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(f"tensordot over {axes} dimensions of tensors of rank {x1.ndim} and {x2.ndim}")
        first, second = range(x1.ndim - axes, x1.ndim), range(axes)
    else:
        first, second = axes
    return ops.tensordot(x1, x2, tuple(first), tuple(second))


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of conj(x1) * x2 along a dimension, counted from the last; the others broadcast."""
    x1, x2 = as_tensor(x1), as_tensor(x2)
    if axis >= 0:
        raise ValueError(f"the dimension {axis} of vecdot must be negative: it is counted from the last")
    if x1.ndim >= -axis and x2.ndim >= -axis and x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"the sizes of dimension {axis} differ: {x1.shape} and {x2.shape}")
    result = ops.vecdot(x1, x2, axis)
    if result.dtype.kind in "iu":  # narrow integers are summed in wider ones
        return ops.astype(result, result_type(x1, x2))
    return result
