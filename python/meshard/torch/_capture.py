"""Functions of PyTorch as graphs of ATen operations, without running them."""

import builtins
import contextlib
import dataclasses
import functools

import torch
import torch.overrides

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
    optimizers keep their step counts in tensors. Python's max and min of numbers that tensors hold are recorded."""
    before = torch.compiler._is_compiling_flag
    extremes = builtins.max, builtins.min
    torch.compiler._is_compiling_flag = True
    builtins.max, builtins.min = _recorded(max, torch.sym_max), _recorded(min, torch.sym_min)
    try:
        yield
    finally:
        builtins.max, builtins.min = extremes
        torch.compiler._is_compiling_flag = before


def _recorded(function, symbolic):
    """Python's max or min, which records that of numbers that are known only when the program runs."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        numbers = (int, float, torch.SymInt, torch.SymFloat)
        if len(args) > 1 and not kwargs and any(isinstance(each, torch.SymFloat) for each in args) \
                and all(isinstance(each, numbers) for each in args):
            return functools.reduce(symbolic, args)
        return function(*args, **kwargs)

    return called


class _Numbers(torch.overrides.TorchFunctionMode):
    """Makes tensors of numbers that are known only when the program runs."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and args and isinstance(args[0], (torch.SymFloat, torch.SymInt)):
            return torch.scalar_tensor(args[0], **{k: v for k, v in kwargs.items() if k in ("dtype", "device")})
        return func(*args, **kwargs)


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
            with _as_compiled(), _Numbers():
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
