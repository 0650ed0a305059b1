"""The registration of the device with PyTorch."""

import ctypes
import functools
import os
import warnings

import torch
import torch.optim.optimizer as _optimizer
from torch.utils import _foreach_utils

import meshard as ms

from . import _autocast, _autograd, _factories, _host, _loading, _tensors


class _Module:
    """The module that PyTorch requires of a device: torch.meshard."""

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def set_device(device):
        pass

    @staticmethod
    def _is_in_bad_fork():
        return False

    @staticmethod
    def manual_seed_all(seed):
        pass

    manual_seed = manual_seed_all

    # Random numbers of the device begin with PyTorch's generator of the CPU.
    @staticmethod
    def get_rng_state(device=None):
        return torch.get_rng_state()

    @staticmethod
    def set_rng_state(state, device=None):
        torch.set_rng_state(state)

    @staticmethod
    def get_amp_supported_dtype():
        return [torch.bfloat16, torch.float16]

    @staticmethod
    def synchronize(device=None):
        sync()


@functools.cache
def device():
    """The device "meshard" of PyTorch. The first call registers it; a process can have only one device of this kind.

    In a process with the names of torch_xla (meshard.torch.xla), it is the device "xla". From then on, meshard's
    advice, such as that a line compiles another program in each step, is reported as a UserWarning, unless
    `ms.set_advice_handler()` sets another handler.
    """
    if _library:
        return torch.device(_tensors.DEVICE.type)
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend("meshard", _Module, device_guard=_keep(_autograd.guard(_TYPES.PrivateUse1)))
    return _registered("meshard", "PrivateUse1")


_library = []
_TYPES = torch._C._autograd.DeviceType


def _registered(name, key):
    _tensors.DEVICE = torch.device(name, 0)
    _library.append(torch.library.Library("aten", "IMPL"))
    _factories.register(_library[0], key)
    _autograd.install()
    _library.append(_autocast.register(_library[0], key, name))
    _library.append(_host.register(name))
    _loading.register(_tensors.DEVICE)
    # Optimizers update lists of tensors, as on other accelerators.
    for each in (_optimizer, _foreach_utils):
        each._foreach_supported_types.append(_tensors.DeviceTensor)
    ms.set_advice_handler(lambda advice: warnings.warn(repr(advice), stacklevel=1))
    return torch.device(name)


def register_as_xla():
    """Registers the device under PyTorch's built-in device type "xla"."""
    if _library:
        if _tensors.DEVICE.type == "xla":
            return
        raise RuntimeError("[torch] the device of meshard is \"meshard\" in this process: call "
                           "meshard.torch.xla.install() before meshard.torch.device()")
    _guard_xla()
    _tensors.is_as_torch_xla[0] = True
    _registered("xla", "XLA")
    _library[0].impl("as_strided_", _with_strides, "XLA")


def _with_strides(tensor, *places):
    # PyTorch has this operation for all device types but "xla". It changes no elements.
    of_others = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
    return torch.ops.aten.as_strided_.default.redispatch(of_others, tensor, *places)


def _guard_xla():
    """Tells PyTorch that the type "xla" has a device.

    Autograd and `to` use the type's device guard, which torch_xla registers in C++. Python can make guards, but PyTorch
    registers them only for the type PrivateUse1: this function moves the guard to the place of "xla" in PyTorch's
    table.
    """
    xla, private = int(_TYPES.XLA), int(_TYPES.PrivateUse1)
    library = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libc10.so"))
    guards = (ctypes.c_void_p * (private + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    if guards[xla]:
        raise RuntimeError("[torch] another package has registered the device type \"xla\": start Python without "
                           "torch_xla")
    guard = _keep(_autograd.guard(_TYPES.XLA))
    if not torch._C._acc.register_python_privateuseone_device_guard(guard):
        raise RuntimeError("[torch] another package has registered a device with PyTorch")
    guards[xla], guards[private] = guards[private], None


_guards = []


def _keep(guard):
    _guards.append(guard)
    return guard


def sync(*tensors):
    """Computes the recorded operations of these tensors, or of all live tensors, and waits for the results."""
    ms.block_until_ready([each.value for each in tensors] if tensors else _tensors.recorded_values())
    if not tensors:
        ms.block_until_ready()  # what is launched already
