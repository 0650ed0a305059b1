"""The backend "meshard" of torch.compile."""

import torch
from torch._dynamo import config
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.variables.builder import VariableBuilder
from torch._functorch.partitioners import min_cut_rematerialization_partition

from ._compile import compile_backward, compile_forward
from ._table import decompositions
from .eager._tensors import DeviceTensor

# torch.compile would run what takes tensors of the device eagerly: a tensor of a class with a __torch_dispatch__ is an
# object to it, unless the class is one of these.
config.traceable_tensor_subclasses.add(DeviceTensor)
VariableBuilder._type_dispatch()[DeviceTensor] = VariableBuilder.wrap_tensor


def backend(module, example_inputs, **options):
    """The backend "meshard" of torch.compile. PyTorch finds its entry point without an import of this package."""
    if options:
        raise ValueError(f"[torch] the backend \"meshard\" takes no options: leave out {', '.join(options)}")
    with torch.backends.mkldnn.flags(enabled=False):
        return aot_autograd(fw_compiler=compile_forward, bw_compiler=compile_backward, decompositions=decompositions(),
                            partition_fn=min_cut_rematerialization_partition)(module, example_inputs)
