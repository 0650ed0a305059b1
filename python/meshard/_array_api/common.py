"""What the chapters share: dtypes by kind, the device, operands."""

import numpy

from .. import _dtypes as dtypes
from .. import _meshard
from .._dtypes import DTYPES
from .._errors import UnimplementedError

ops = _meshard.ops
Tensor = _meshard.Tensor

SIGNED = frozenset((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64))
UNSIGNED = frozenset((dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64))
INTEGERS = SIGNED | UNSIGNED
COMPLEX = frozenset((dtypes.complex64, dtypes.complex128))
FLOATS = frozenset(DTYPES) - INTEGERS - COMPLEX - {dtypes.bool}
INEXACT = FLOATS | COMPLEX

DEFAULT_INTEGER = dtypes.int32
DEFAULT_FLOAT = dtypes.float32
DEFAULT_COMPLEX = dtypes.complex64
INT32 = numpy.iinfo(numpy.int32)


class Device:
    """The device of the array API: all devices of the process.

    In meshard, shardings place values on devices, so the array API's functions see one device.
    """

    __slots__ = ()

    def __repr__(self):
        return "Device('all')"

    def __reduce__(self):
        return "DEVICE"


DEVICE = Device()


def check_device(device):
    """Raises an error unless the argument `device` of a function is the only one, or None."""
    if device is not None and device is not DEVICE:
        raise ValueError(f"unsupported device {device!r}: place values with mark_sharding, and pass None or x.device "
                         f"here")


def dtype_of(dtype):
    """The dtype object of a dtype, scalar type or name."""
    found = numpy.dtype(dtype)
    if found not in _KNOWN:
        raise TypeError(f"meshard has no element type {dtype!r}")
    return found


_KNOWN = frozenset(DTYPES)


def axes_of(axis, rank):
    """The dimensions that an argument `axis` names, not negative and in the given order; all for None."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(axis_of(one, rank) for one in axes)


def axis_of(axis, rank):
    """A dimension that is not negative."""
    if not -rank <= axis < rank:
        raise IndexError(f"dimension {axis} is out of range for a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def read(x, what):
    """The elements as a NumPy array, for a function whose result depends on them.

    @error a traced value; `what` says what to do instead.
    """
    if x.is_traced:
        raise UnimplementedError(what)
    return x.numpy()


def made_by_numpy(array):
    """A tensor of a NumPy array that nobody else holds."""
    return _meshard.from_numpy(numpy.asarray(array), share=True)


def shape_tuple(shape):
    """The argument `shape` of a function as a tuple."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
