"""Replacements for features that PyTorch has only on the CPU or for devices that are registered in C++."""

import torch


class _Generators(type(torch._C.Generator)):
    def __instancecheck__(cls, given):
        return isinstance(given, torch._C.Generator)


def register(name):
    """Makes torch.Generator(device=name) a generator of the CPU, and pin_memory() a copy; returns what must be kept.

    The device's random numbers start from a generator of the CPU, and it needs no pinned host memory.
    """
    class Generator(torch._C.Generator, metaclass=_Generators):
        __doc__ = torch._C.Generator.__doc__

        def __new__(cls, device="cpu"):
            return torch._C.Generator("cpu" if torch.device(device).type == name else device)

    torch.Generator = Generator
    # Operations for whole layers of transformers, which only devices with kernels for them have.
    torch.backends.mha.set_fastpath_enabled(False)
    library = torch.library.Library("aten", "IMPL")
    library.impl("_pin_memory", lambda tensor, device=None: tensor.clone(), "CPU")
    return library
