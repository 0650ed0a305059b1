"""Programs that are written for torch_xla, as they are, on the device of meshard.

    python -m meshard.torch.xla script.py --its-arguments
    python -m meshard.torch.xla -m module --its-arguments

or, as the first lines of a program:

    import meshard.torch.xla
    meshard.torch.xla.install()

The modules `torch_xla`, `torch_xla.core.xla_model`, `torch_xla.runtime`, `torch_xla.distributed.spmd` and their like
then have torch_xla's names for what meshard has; torch_xla itself need not be installed. The tensors are lazy tensors
of meshard on PyTorch's device type "xla". A name that is missing is an AttributeError, and a module that is missing a
ModuleNotFoundError, which say what to use.
"""

from ._install import install

__all__ = ["install"]
