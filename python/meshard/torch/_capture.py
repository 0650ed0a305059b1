"""Functions of PyTorch as graphs of ATen operations, without running them."""

import builtins
import contextlib
import dataclasses
import functools

import torch
import torch.overrides
from torch.utils import _pytree as pytree

from . import _checkpoints, _functions, _lines
from ._batches import keep_batches
from ._held import Held
from ._table import RESULTS, decompositions


@dataclasses.dataclass(frozen=True)
class Graph:
    """A graph without writes. Its results: new values of written inputs, then the function's own results."""

    module: torch.fx.GraphModule
    written: tuple
    """The indices of the inputs that the function writes to."""
    outer: tuple
    """Tensors that the function uses without taking them as arguments: the last inputs."""


@contextlib.contextmanager
def changed_attributes(changes):
    """While active, each (owner, name, value) of the changes is an attribute of its owner."""
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _as_compiled():
    """While active, torch.compiler.is_compiling() is true: libraries then avoid decisions that depend on elements, and
    optimizers keep their step counts in tensors. Python's max and min of numbers that tensors hold are recorded.
    torch.distributions check no elements, unless validate_args=True asks for it, as with torch.compile."""
    return changed_attributes([
        (torch.compiler, "_is_compiling_flag", True), (torch.distributions.Distribution, "_validate_args", False),
        *_checkpoints.changes, *_functions.changes,
        (builtins, "max", _recorded(max, torch.sym_max)), (builtins, "min", _recorded(min, torch.sym_min))])


def _recorded(function, symbolic):
    """Python's max or min. If the numbers are known only when the program runs, it is recorded."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        numbers = (int, float, torch.SymInt, torch.SymFloat)
        if len(args) > 1 and not kwargs and any(isinstance(each, torch.SymFloat) for each in args) \
                and all(isinstance(each, numbers) for each in args):
            return functools.reduce(symbolic, args)
        return function(*args, **kwargs)

    return called


class _Numbers(torch.overrides.TorchFunctionMode):
    """Makes tensors of numbers that are known only when the program runs, and calls functions that do not read elements
    in place of those that do. Raises an error for what a graph cannot contain."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and args and isinstance(args[0], (torch.SymFloat, torch.SymInt)):
            return torch.scalar_tensor(args[0], **{k: v for k, v in kwargs.items() if k in ("dtype", "device")})
        if func.__name__ == "__set__" and func.__self__ is torch.Tensor.data:
            raise NotImplementedError(f"{_lines.user_place()}[torch] a tensor in place of another one, by `.data =`: "
                                      "write the elements with copy_(), under torch.no_grad()")
        return _functions.FUNCTIONS.get(func, func)(*args, **kwargs)


@contextlib.contextmanager
def as_captured():
    """While active, functions run as they do while their graph is captured."""
    with _as_compiled(), _Numbers():
        yield


class Captured(Exception):
    pass


def is_outside(tensor):
    """Whether a tensor that a function uses while it is captured was not made from its arguments."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, Held) \
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


_VALUES = ("data", "grad", "T", "mT", "H", "mH", "real", "imag")
"""The properties of a tensor that depend on its elements."""


class Replaced(torch.overrides.TorchFunctionMode):
    """Lets a function use other tensors in place of some, which it finds in closures, modules or globals."""

    def __init__(self, others):
        super().__init__()
        self._others = others  # by the id of the tensor in whose place they are

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.__name__ != "__get__" or func.__self__.__name__ in _VALUES:
            args, kwargs = pytree.tree_map_only(torch.Tensor, self.other, (args, kwargs))
        return func(*args, **kwargs)

    def other(self, tensor):
        return self._others.get(id(tensor), tensor)


class OuterTensors(Replaced):
    """Replaces tensors from outside by inputs, and notes those that have none yet.

    In the first run, tensors without an input are replaced, too, so that nothing is written to them.
    """

    def __init__(self, others, is_first):
        super().__init__(others)
        self._is_first = is_first
        self.used, self.new = set(), {}

    is_outside = staticmethod(is_outside)

    def stand_in(self, tensor):
        """A tensor of the same type, whose elements do not matter."""
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype,
                                   requires_grad=tensor.requires_grad)

    def other(self, tensor):
        if self.is_outside(tensor):
            if id(tensor) in self._others:
                self.used.add(id(tensor))
            else:
                self.new[id(tensor)] = tensor
                if self._is_first:
                    self._others[id(tensor)] = self.stand_in(tensor)
        return super().other(tensor)


_ADVICE = ('the elements of a tensor: use torch.where, or torch.compile(..., backend="meshard"), which can break the '
           "graph there")


def with_outer(run, function, tensors, mode_of=OuterTensors, advice=_ADVICE):
    """(`run(function, tensors)`, outer), where the tensors from outside that the function uses are inputs, too.

    Tensors with elements that the function itself makes differ in each run; they stay constants.
    """
    outer, before = {}, None
    count = len(tensors)  # PyTorch's runtime keeps the function, which must not keep the tensors
    while True:
        modes = [mode_of({}, False)]

        def whole(*given):
            modes.append(mode_of(dict(zip(outer, given[count:])), before is None))
            with modes[-1]:
                return function(*given[:count])

        error = None
        try:
            with _lines.of_decisions(advice):
                result = run(whole, [*tensors, *outer.values()])
        except Exception as raised:
            error = raised
        mode = modes[-1]
        if mode.new and (before is None or before & mode.used):
            before = set(mode.new)
            outer |= mode.new
        elif error is not None:
            raise error
        elif outer.keys() <= mode.used:
            return result, tuple(outer.values())
        else:
            outer = {key: tensor for key, tensor in outer.items() if key in mode.used}


_LOST = ("[torch] backward() in a compiled function gives gradients to tensors from outside, where they would be "
         "lost: train with meshard.torch.train_step() a model that has them, call backward() on the function's "
         "result, or use torch.autograd.grad() in it")


def _fake(tensor):
    """A tensor without elements of the same type; like the other, it may be a part of a larger storage."""
    first = tensor.storage_offset()
    if not first:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype,
                                   requires_grad=tensor.requires_grad)
    size = 0 if 0 in tensor.shape else 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    storage = torch.empty(first + size, dtype=tensor.dtype)
    part = storage.as_strided(tensor.shape, tensor.stride(), first).detach()
    return part.requires_grad_(tensor.requires_grad)


def faked(tensors):
    """A mode of tensors without elements, and such tensors of the same types."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(allow_scalar_outputs=True))
    dispatch = mode.dispatch

    def dispatched(func, types, args=(), kwargs=None):
        results = RESULTS.get(str(func))
        kwargs = kwargs or {}
        return dispatch(func, types, args, kwargs) if results is None else results(*args, **kwargs)

    mode.dispatch = dispatched
    with mode:
        return mode, [_fake(each) for each in tensors]


def compile_graphs(function, tensors, compile_forward, compile_backward):
    """A function of such tensors. Its forward and backward graphs are passed to these compilers."""
    from torch._functorch.aot_autograd import aot_module_simplified

    class Whole(torch.nn.Module):
        def forward(self, *given):
            with as_captured():
                results = tuple(function(*given))
            if any(each.is_leaf and each.grad is not None for each in given):
                raise ValueError(_LOST)
            return results

    mode, fakes = faked(tensors)
    # Without oneDNN, PyTorch decomposes an LSTM into operations that can be recorded.
    with torch._guards.tracing(torch._guards.TracingContext(mode)), _lines.recorded(), \
            torch.backends.mkldnn.flags(enabled=False):
        try:
            return aot_module_simplified(Whole(), fakes, fw_compiler=compile_forward, bw_compiler=compile_backward,
                                         decompositions=decompositions())
        except RuntimeError as error:
            if "mirrored meta" in str(error):  # of an input of AOTAutograd
                raise ValueError(_LOST) from error
            raise


def compiled(function, tensors, compile_forward, compile_backward):
    """(run, outer): a compiled function of such tensors, and the tensors from outside that it uses.

    `run` takes the outer tensors after its own. Its forward and backward graphs are passed to the compilers.
    """
    def run(whole, inputs):
        return compile_graphs(whole, inputs, compile_forward, compile_backward)

    return with_outer(run, function, tensors)


def capture(function, tensors):
    """The graph of a function of tensors, without derivatives from outside. Only their types and shapes are read."""
    found = []

    def keep(module, example_inputs):
        metadata = torch._guards.TracingContext.get().fw_metadata
        found[:] = [(keep_batches(module), tuple(metadata.mutated_inp_runtime_indices))]
        raise Captured

    def run(whole, inputs):
        try:
            count = len(tensors)
            compile_graphs(whole, [*(each.detach() for each in inputs[:count]), *inputs[count:]], keep, keep)
        except Captured:
            return found[0]

    with torch.no_grad():
        (module, written), outer = with_outer(run, function, tensors)
    return Graph(module, written, outer)
