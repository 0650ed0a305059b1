"""Functions of PyTorch as graphs of ATen operations, without running them."""

import contextlib
import dataclasses

import torch

from . import _lines
from ._batches import keep_batches
from ._table import decompositions


@dataclasses.dataclass(frozen=True)
class Graph:
    """A graph without writes. Its results: the new values of the inputs that the function writes to, then its own."""

    module: torch.fx.GraphModule
    written: tuple
    """The indices of the inputs that the function writes to."""


@contextlib.contextmanager
def _as_compiled():
    """While active, torch.compiler.is_compiling() is true: libraries then avoid decisions that depend on elements, and
    optimizers keep their step counts in tensors."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


class Captured(Exception):
    pass


def _faked(tensors):
    """A mode of tensors without elements, and such tensors of the same types."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(allow_scalar_outputs=True))
    with mode:
        return mode, [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, requires_grad=each.requires_grad)
                      for each in tensors]


def compiled(function, tensors, compile_forward, compile_backward):
    """A function of such tensors whose forward and backward graphs are given to these compilers."""
    from torch._functorch.aot_autograd import aot_module_simplified

    class Whole(torch.nn.Module):
        def forward(self, *given):
            with _as_compiled():
                return tuple(function(*given))

    mode, fakes = _faked(tensors)
    # Without oneDNN, PyTorch decomposes an LSTM into operations that can be recorded.
    with torch._guards.tracing(torch._guards.TracingContext(mode)), _lines.recorded(), \
            torch.backends.mkldnn.flags(enabled=False):
        return aot_module_simplified(Whole(), fakes, fw_compiler=compile_forward, bw_compiler=compile_backward,
                                     decompositions=decompositions())


def capture(function, tensors):
    """The graph of a function of tensors, without derivatives from outside. Only their types and shapes are read."""
    found = []

    def keep(module, example_inputs):
        metadata = torch._guards.TracingContext.get().fw_metadata
        found.append(Graph(keep_batches(module), tuple(metadata.mutated_inp_runtime_indices)))
        raise Captured

    try:
        with torch.no_grad():
            compiled(function, [each.detach() for each in tensors], keep, keep)
    except Captured:
        pass
    return found[0]
