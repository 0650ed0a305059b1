"""Functions and modules of PyTorch as compiled programs."""

import functools

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._convert import to_meshard, to_torch
from ._held import Held
from ._marks import placed
from ._run import run_graph
from ._table import LOWERINGS
from .lowerings.random import keys_from, needs_key, new_key


@functools.cache
def decompositions():
    """PyTorch's decompositions of the overloads that the table of lowerings does not have."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    table = {**decomposition_table, **core_aten_decompositions()}
    return {overload: function for overload, function in table.items() if str(overload) not in LOWERINGS}


class Program:
    """A graph that was captured for certain shapes; compiled when it is first called, and again for other shardings.

    Results from index `kept` on stay on the devices: they are values that the backward program needs.
    """

    def __init__(self, module, kept):
        self._module, self._kept = module, kept
        self._needs_key = needs_key(module)
        self._run = ms.jit(self._record)

    def _record(self, tensors, numbers, key):
        given = iter(tensors)
        inputs = [next(given) if number is None else number for number in numbers]
        with keys_from(key):
            results = run_graph(self._module, inputs)
        self._is_tensor = [isinstance(each, ms.Tensor) for each in results]
        self._others = [None if is_tensor else each for is_tensor, each in zip(self._is_tensor, results, strict=True)]
        return [each for each in results if isinstance(each, ms.Tensor)]

    def __call__(self, *inputs):
        numbers = tuple(None if isinstance(each, torch.Tensor) else each for each in inputs)
        # A key for each call: two calls differ, and torch.manual_seed makes them repeatable.
        key = to_meshard(new_key()) if self._needs_key else None
        given = [placed(each) for each in inputs if isinstance(each, torch.Tensor)]
        tensors = iter(self._run(given, numbers, key))
        return tuple(
            (Held(next(tensors)) if i >= self._kept else to_torch(next(tensors))) if is_tensor else self._others[i]
            for i, is_tensor in enumerate(self._is_tensor))


def _returned(count):
    """How many results of a forward graph PyTorch's runtime returns to the user or writes to inputs."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return count
    return metadata.num_mutated_inp_runtime_indices + metadata.num_outputs + metadata.num_intermediate_bases


def compile_forward(module, example_inputs):
    """The compiler of forward graphs: AOTAutograd calls it with a torch.fx.GraphModule of ATen operations."""
    from torch._functorch.aot_autograd import make_boxed_func

    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    return make_boxed_func(Program(module, _returned(len(results))))


def compile_backward(module, example_inputs):
    """The compiler of backward graphs."""
    from torch._functorch.aot_autograd import make_boxed_func

    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    return make_boxed_func(Program(module, len(results)))


def function(f):
    """`f` as a compiled function of tensors, with its backward program; without the guards of torch.compile."""
    from torch._functorch.aot_autograd import aot_function

    return aot_function(f, fw_compiler=compile_forward, bw_compiler=compile_backward,
                        decompositions=decompositions())


def backend(module, example_inputs, **options):
    """The backend "meshard" of torch.compile. It is found by its entry point, without an import of this package."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    if options:
        raise ValueError(f"[torch] the backend has no option {', '.join(options)}")
    return aot_autograd(fw_compiler=compile_forward, bw_compiler=compile_backward, decompositions=decompositions(),
                        partition_fn=min_cut_rematerialization_partition)(module, example_inputs)


def compile(what):
    """A module or function of PyTorch as one compiled program for each signature of its arguments.

    It is `torch.compile(what, backend="meshard", fullgraph=True, dynamic=False)`: what cannot be captured as a whole is
    an error at its line. Use torch.compile itself where graph breaks are wanted.
    """
    return torch.compile(what, backend=backend, fullgraph=True, dynamic=False)
