"""Programs of PyTorch as functions of meshard, for explain(), plan(), predict(), check_sharded() and module_text()."""

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._capture import capture
from ._compile import call_with, flatten_results, input_names
from ._dtypes import to_meshard
from ._marks import placed, sharding_of
from ._ranks import PerRank
from ._run import run_graph
from ._table import decompositions
from ._train import TrainStep
from .lowerings.random import keys_from, needs_key, new_key


def _abstract(tensor):
    sharding = sharding_of(tensor)
    return ms.abstract_tensor(tuple(tensor.shape), to_meshard(tensor.dtype), *([] if sharding is None else [sharding]))


def is_program(what):
    """Whether this is a module, a method of one, a training step, or an exported program of PyTorch."""
    return isinstance(what, (torch.nn.Module, TrainStep, PerRank, torch.export.ExportedProgram)) \
        or isinstance(getattr(what, "__self__", None), torch.nn.Module)


def as_function(what, args, kwargs, with_values=False):
    """(function, args, kwargs) of meshard for a program of PyTorch and its arguments.

    The function takes parameters, buffers and the tensors among the arguments by their names. They have elements only
    `with_values`.
    """
    if isinstance(what, PerRank):
        return what.as_function(args, kwargs, with_values)
    name, module, names, tensors = (_of_step if isinstance(what, TrainStep) else
                                    _of_exported if isinstance(what, torch.export.ExportedProgram) else
                                    _of_module)(what, args, kwargs)
    return _function_of(name, module, names, tensors, placed if with_values else _abstract)


def _of_module(what, args, kwargs):
    module = what if isinstance(what, torch.nn.Module) else what.__self__
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    flat, structure = pytree.tree_flatten((args, kwargs))
    inputs = [each for each in flat if isinstance(each, torch.Tensor)]

    def whole(*tensors):
        results, _ = flatten_results(call_with(what, module, state, flat, structure, tensors))
        return [each for each in results if isinstance(each, torch.Tensor)]

    graph = capture(whole, [*state.values(), *inputs])
    names = [*state, *input_names(args, kwargs)]
    return type(module).__name__, graph.module, names, [*state.values(), *inputs]


def _of_exported(program, args, kwargs):
    if not args and not kwargs and program.example_inputs is not None:
        args, kwargs = program.example_inputs
    program = program.run_decompositions(decompositions())
    state = {**program.state_dict, **program.constants}
    flat = iter(pytree.tree_flatten((args, kwargs))[0])
    names, tensors = [], []
    for spec in program.graph_signature.input_specs:
        names.append(spec.target or spec.arg.name)
        tensors.append(state[spec.target] if spec.target is not None else next(flat))
    return "forward", program.graph_module, names, tensors


def _of_step(step, args, kwargs):
    graph, names, tensors = step.graph_of(args, kwargs)
    return "train_step", graph.module, names, tensors


def _function_of(name, module, names, tensors, convert):
    """A function of the named tensors that records the graph, and the tensors as meshard's."""
    others = {i: each for i, each in enumerate(tensors) if not isinstance(each, torch.Tensor)}
    names = [each for i, each in enumerate(names) if i not in others]
    needed = {"random key": convert(new_key())} if needs_key(module) else {}

    def function(**values):
        given = iter(values[each] for each in names)
        inputs = [others[i] if i in others else next(given) for i in range(len(tensors))]
        with keys_from(values.get("random key")):
            return [each for each in run_graph(module, inputs) if isinstance(each, ms.Tensor)]

    function.__name__ = name
    converted = [convert(each) for each in tensors if isinstance(each, torch.Tensor)]
    return function, (), {**dict(zip(names, converted, strict=True)), **needed}
