"""Functions and modules of PyTorch as compiled programs."""

import functools

import torch

import meshard as ms

from ._convert import to_meshard, to_torch
from ._run import run_graph
from ._table import LOWERINGS


@functools.cache
def decompositions():
    """PyTorch's decompositions of the overloads that the table of lowerings does not have."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    table = {**decomposition_table, **core_aten_decompositions()}
    return {overload: function for overload, function in table.items() if str(overload) not in LOWERINGS}


class Program:
    """A graph that was captured for certain shapes, compiled when it is first called."""

    def __init__(self, module):
        self._module = module
        self._run = ms.jit(self._record)

    def _record(self, tensors, numbers):
        given = iter(tensors)
        inputs = [next(given) if number is None else number for number in numbers]
        flat, self._structure = torch.utils._pytree.tree_flatten(run_graph(self._module, inputs))
        self._constants = [None if isinstance(each, ms.Tensor) else each for each in flat]
        return [each for each in flat if isinstance(each, ms.Tensor)]

    def __call__(self, *inputs):
        numbers = tuple(None if isinstance(each, torch.Tensor) else each for each in inputs)
        tensors = [to_meshard(each) for each in inputs if isinstance(each, torch.Tensor)]
        results = iter(self._run(tensors, numbers))
        flat = [to_torch(next(results)) if constant is None else constant for constant in self._constants]
        return torch.utils._pytree.tree_unflatten(flat, self._structure)


def compiler(module, example_inputs):
    """The compiler that torch.compile calls with a graph of ATen operations."""
    from torch._functorch.aot_autograd import make_boxed_func

    return make_boxed_func(Program(module))


def function(f):
    """`f` as a compiled function of tensors, with its backward program; without torch.compile's guards."""
    from torch._functorch.aot_autograd import aot_function

    return aot_function(f, fw_compiler=compiler, bw_compiler=compiler, decompositions=decompositions())
