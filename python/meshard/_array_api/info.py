"""Inspection: what the namespace offers."""

from .. import _dtypes as dtypes
from .common import DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INTEGER, DEVICE, check_device
from .data_types import isdtype

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

_STANDARD = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
             "complex64", "complex128")


class _Info:
    """The inspection functions of the array API."""

    def capabilities(self):
        """What the namespace can do. Data-dependent shapes need values that can be read: not inside jit."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self):
        """The only device."""
        return DEVICE

    def default_dtypes(self, *, device=None):
        """The dtypes of Python numbers and of indices."""
        check_device(device)
        return {"real floating": DEFAULT_FLOAT, "complex floating": DEFAULT_COMPLEX, "integral": DEFAULT_INTEGER,
                "indexing": DEFAULT_INTEGER}

    def devices(self):
        """The only device, in a list."""
        return [DEVICE]

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of the standard by name, of one kind or of any of a tuple of kinds."""
        check_device(device)
        all_dtypes = {name: getattr(dtypes, name) for name in _STANDARD}
        return all_dtypes if kind is None else {n: d for n, d in all_dtypes.items() if isdtype(d, kind)}


_INFO = _Info()


def __array_namespace_info__():
    """The inspection functions: capabilities, default_device, default_dtypes, devices, dtypes."""
    return _INFO
