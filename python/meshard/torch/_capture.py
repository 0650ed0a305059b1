"""Functions of PyTorch as graphs of ATen operations, without running them."""

import dataclasses

import torch

from . import _lines
from ._compile import decompositions


@dataclasses.dataclass(frozen=True)
class Graph:
    """A graph without writes. Its results are the new values of the inputs that the function writes to, then its own."""

    module: torch.fx.GraphModule
    written: tuple
    """The indices of the inputs that the function writes to."""


class _Captured(Exception):
    pass


def capture(function, tensors):
    """The graph of a function of tensors, none of which needs a gradient from outside. Only types and shapes are read."""
    from torch._functorch.aot_autograd import aot_function
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    found = []

    def keep(module, example_inputs):
        metadata = torch._guards.TracingContext.get().fw_metadata
        found.append(Graph(module, tuple(metadata.mutated_inp_runtime_indices)))
        raise _Captured

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(allow_scalar_outputs=True))
    with mode:
        fakes = [torch.empty(each.shape, dtype=each.dtype) for each in tensors]
    tracing = torch._guards.TracingContext(mode)
    try:
        with torch._guards.tracing(tracing), torch.no_grad(), _lines.recorded():
            aot_function(function, fw_compiler=keep, bw_compiler=keep, decompositions=decompositions())(*fakes)
    except _Captured:
        pass
    return found[0]
