"""DLPack: arrays of other libraries in, and tensors out, without a copy where they are in host memory."""

from . import _meshard
from ._array_api.common import check_device

__all__ = ["from_dlpack"]

_CPU = 1
_HOST_KINDS = (1, 3, 11)  # the host's memory, and pinned host memory of CUDA and ROCm
_VERSION = (1, 1)


def _export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of the value, which is computed first if needed.

    A value in host memory, on one device of a CPU platform, or replicated on them is exported without a copy, as memory
    that must not be written; it stays alive and unchanged as long as the consumer uses it, also if the tensor is
    deleted or donated. Any other value is copied to the host, which `copy=False` makes an error (BufferError).
    """
    return _meshard.dlpack_export(self, stream, max_version, dl_device, copy)


def _device(self):
    """(1, 0): values are exported in host memory."""
    return (_CPU, 0)


def _capsule(x, copy):
    if callable(getattr(x, "is_neg", None)) and x.is_neg():  # PyTorch would export the elements without their sign
        raise BufferError("Can't export tensors with the negative bit set, use tensor.resolve_neg()")
    kind = x.__dlpack_device__()[0] if hasattr(x, "__dlpack_device__") else _CPU
    arguments = {"max_version": _VERSION}
    if kind not in _HOST_KINDS:
        if copy is False:
            raise BufferError(f"the array is in the memory of a device, {x.__dlpack_device__()}, so it must be copied, "
                              "but copy is False")
        arguments["dl_device"] = (_CPU, 0)
    elif copy is False:
        arguments["copy"] = copy  # True: the elements are copied here
    try:
        return x.__dlpack__(**arguments)
    except TypeError:  # from before version 2023.12 of the standard
        if kind not in _HOST_KINDS:
            raise BufferError("the array is in the memory of a device, and cannot be copied to the host by DLPack: do "
                              "so with its own library") from None
        return x.__dlpack__()


def from_dlpack(x, /, *, device=None, copy=None):
    """A tensor of an array of another library (PyTorch, JAX, NumPy, ...), in host memory.

    Nothing is copied if the array is dense, row-major and aligned to its elements; then nobody may write to it while
    the tensor exists, and placing the tensor may use the memory in place. `copy=True` always copies, `copy=False`
    raises BufferError if a copy is needed. Arrays in the memory of other devices are copied to the host if their library can
    do so. `x` may also be a DLPack capsule, or a tensor, which is returned.
    """
    check_device(device)
    if isinstance(x, _meshard.Tensor):
        return _meshard.copy_tensor(x) if copy else _meshard.same_tensor(x)
    capsule = _capsule(x, copy) if hasattr(x, "__dlpack__") else x
    return _meshard.dlpack_import(capsule, copy)


_meshard.Tensor.__dlpack__ = _export
_meshard.Tensor.__dlpack_device__ = _device
