"""Runs unchanged programs of torch_xla on the device of meshard.

    python -m meshard.torch.xla script.py --its-arguments
    python -m meshard.torch.xla -m module --its-arguments

or, as the first lines of a program:

    import meshard.torch.xla
    meshard.torch.xla.install()

The modules `torch_xla`, `torch_xla.core.xla_model`, `torch_xla.runtime`, `torch_xla.distributed.spmd` and others then
provide torch_xla's names for features of meshard; torch_xla itself need not be installed. Tensors are lazy tensors of
meshard on PyTorch's device type "xla". A missing name raises AttributeError, and a missing module ModuleNotFoundError,
with what to use instead.
"""

from ._install import install

__all__ = ["install"]
