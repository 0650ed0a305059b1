"""Arrays of other libraries as tensors: by DLPack, `__array__`, `__array_interface__` or the buffer protocol."""

import sys

import numpy

from . import _meshard
from ._dlpack import from_dlpack

__all__ = []

# The floats of PyTorch that not every version of it exports, under the names of ml_dtypes.
_TORCH_BYTES = {"torch.float8_e4m3fn": "float8_e4m3fn", "torch.float8_e5m2": "float8_e5m2",
                "torch.float8_e4m3fnuz": "float8_e4m3fnuz", "torch.float8_e5m2fnuz": "float8_e5m2fnuz",
                "torch.float8_e8m0fnu": "float8_e8m0fnu"}


def _is_a(x, module, name):
    """Whether x is an instance of a class of a module, which is not imported for that."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(x, found)


def _name(x):
    return f"{type(x).__module__}.{type(x).__qualname__}"


def tensor_of(x, copy=True):
    """A tensor with the elements of an array of another library, which are read now.

    PyTorch's tensors may need gradients, be views that conjugate or negate, and be on any device; derivatives do not
    flow into PyTorch. Values on devices are copied to the host. With `copy` False, the memory is used in place, and with
    None if it can be.

    Raises TypeError for what has no dense elements in memory (sparse, quantized, masked, traced by its own library), or
    elements of a dtype that meshard does not have; BufferError if a copy is needed, but `copy` is False.
    """
    if _is_a(x, "torch", "Tensor"):
        return _of_torch(x, copy)
    if _is_a(x, "jax", "Array"):
        return _of_numpy(numpy.asarray(x), copy)  # of any number of devices
    failure = None
    if hasattr(x, "__dlpack__"):
        try:
            return from_dlpack(x, copy=copy)
        except Exception as error:  # noqa: BLE001  (whatever the other library raises)
            if copy is False:
                raise
            failure = error
    try:
        return _of_numpy(_host_array(x), copy)
    except Exception as error:  # noqa: BLE001
        raise TypeError(f"this {_name(x)} cannot become a tensor: {failure or error}") from failure or error


def _host_array(x):
    for name in ("get", "copy_to_host"):  # of CuPy and Numba
        if hasattr(x, "__cuda_array_interface__") and hasattr(x, name):
            return getattr(x, name)()
    array = numpy.asanyarray(x)  # keeps the mask of a masked array, so that it is not lost silently
    if array.dtype == object:
        raise TypeError("it has elements of NumPy's dtype object")
    return array


def _of_numpy(array, copy):
    return _meshard.from_numpy(array, copy=copy is True, share=copy is not True)


def _refusal_of_torch(torch, x):
    """Why a tensor of PyTorch has no elements to copy, or None."""
    if type(x).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return "its class says what its elements mean: convert it to a plain tensor"
    if x.layout is not torch.strided:
        return f"its layout is {x.layout}: call to_dense()"
    if x.is_quantized:
        return "it is quantized: call dequantize()"
    if x.is_nested:
        return "it is nested: call to_padded_tensor()"
    return "it is on the device meta, without elements" if x.device.type == "meta" else None


def _of_torch(x, copy):
    torch = sys.modules["torch"]
    if refusal := _refusal_of_torch(torch, x):
        raise TypeError(f"this {_name(x)} cannot become a tensor: {refusal}")
    plain = x.detach().cpu().resolve_conj().resolve_neg()
    if copy is False and plain.data_ptr() != x.data_ptr():
        raise BufferError(f"a tensor of this {_name(x)} needs a copy, but copy is False")
    if str(plain.dtype) in _TORCH_BYTES:
        import ml_dtypes
        array = plain.contiguous().view(torch.uint8).numpy().view(getattr(ml_dtypes, _TORCH_BYTES[str(plain.dtype)]))
        return _of_numpy(array, copy)
    try:
        return from_dlpack(plain, copy=copy)
    except Exception as error:  # noqa: BLE001
        if copy is False:
            raise
        raise TypeError(f"this {_name(x)} of {x.dtype} cannot become a tensor: {error}") from error


_meshard.set_foreign_arrays(tensor_of)
