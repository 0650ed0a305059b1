"""Programs of PyTorch as functions of meshard, for explain(), plan(), predict(), check_sharded() and module_text()."""

import dataclasses
import itertools
import re
from collections.abc import Callable

import torch

import meshard as ms

from ._arguments import Arguments
from ._capture import capture
from ._compile import Compiled, call_of, compile, outer_names
from ._dtypes import to_meshard
from ._held import Held
from ._marks import placed, sharding_of
from ._ranks import PerRank
from ._run import NUMBERS, module_of, numbered, place_of, run_graph
from ._train import TrainStep
from .lowerings.random import keys_from, needs_key, new_key


def _abstract(tensor, sharding):
    return ms.abstract_tensor(tuple(tensor.shape), to_meshard(tensor.dtype), *([] if sharding is None else [sharding]))


def _sharding_of(tensor):
    return sharding_of(tensor) or (tensor.value.sharding if isinstance(tensor, Held) else None)


def is_program(what):
    """Whether this is a module, a method of one, a compiled one, a training step, or an exported program of PyTorch."""
    return isinstance(what, (torch.nn.Module, Compiled, TrainStep, PerRank, torch.export.ExportedProgram, _Program)) \
        or isinstance(getattr(what, "__self__", None), torch.nn.Module)


@dataclasses.dataclass
class _Program:
    """A program of named tensors."""

    name: str
    names: list
    tensors: list
    """Of PyTorch. Other values, such as the numbers that an exported program takes, stay as they are."""
    record: Callable
    """From tensors of meshard in place of those of PyTorch, and a random key or None, to results of meshard."""
    needs_key: bool
    results: list
    """The names of the results. Those that replace an input have its name."""
    donated: int = 0
    """The first so many inputs may be overwritten."""
    shardings: list | None = None
    """Of the first tensors; those that have none, and the others, are sharded as they are marked."""

    def as_function(self, with_values):
        """(function, args, kwargs), as as_function() returns them."""
        shardings = [*(self.shardings or ()), *[None] * (len(self.tensors) - len(self.shardings or ()))]
        is_tensor = [isinstance(each, torch.Tensor) for each in self.tensors]
        names = list(itertools.compress(self.names, is_tensor))

        def function(**values):
            given = iter(values[each] for each in names)
            inputs = [next(given) if tensor else other for tensor, other in zip(is_tensor, self.tensors)]
            return [each for each in self.record(inputs, values.get("random key")) if isinstance(each, ms.Tensor)]

        function.__name__ = self.name
        converted = [placed(each) if with_values else _abstract(each, sharding or _sharding_of(each))
                     for each, sharding in itertools.compress(zip(self.tensors, shardings), is_tensor)]
        key = {"random key": placed(new_key()) if with_values else _abstract(new_key(), None)} if self.needs_key else {}
        return function, (), {**dict(zip(names, converted, strict=True)), **key}


def as_function(what, args, kwargs, with_values=False):
    """(function, args, kwargs) of meshard for a program of PyTorch and its arguments.

    The function takes parameters, buffers and the tensors among the arguments by their names. They have elements only
    if `with_values` is true.
    """
    if isinstance(what, PerRank):
        return what.as_function(args, kwargs, with_values)
    return _program_of(what, args, kwargs, with_values).as_function(with_values)


def _program_of(what, args, kwargs, with_values=False):
    if isinstance(what, _Program):
        return what
    if isinstance(what, TrainStep):
        return _of_step(what, args, kwargs, with_values)
    if isinstance(what, torch.export.ExportedProgram) and not args and not kwargs and what.example_inputs is not None:
        args, kwargs = what.example_inputs
    return _of_module(what, args, kwargs)


def _recording(module):
    def record(inputs, key):
        with keys_from(key):
            return run_graph(module, inputs)

    return record


def _of_module(what, args, kwargs):
    compiled = what if isinstance(what, Compiled) else compile(what)
    what, module, state = compiled._what, compiled._owner, compiled._state()
    arguments, results = Arguments(args, kwargs), []
    tensors = [*state.values(), *arguments.tensors]
    call = call_of(what, module, state, arguments, lambda found: results.append(found))

    def differentiable(*given):
        """The function may take derivatives itself, also by tensors that require gradients outside."""
        with torch.enable_grad():
            made = call(*(each.detach().requires_grad_() if tensor.requires_grad else each
                          for each, tensor in zip(given, tensors)))
        return [each.detach() for each in made]

    graph = capture(differentiable if torch.is_grad_enabled() else call, tensors)
    names = [*state, *arguments.names, *outer_names(graph.outer, what)]
    name = getattr(what, "__name__", "function") if module is None else type(module).__name__
    return _Program(name, names, [*tensors, *graph.outer], _recording(graph.module), needs_key(graph.module),
                    [*(names[i] for i in graph.written), *results[-1].names])


def _of_step(step, args, kwargs, with_values):
    program, names, tensors, results, shardings = step.program_of(args, kwargs, with_values)
    size = program.state_size

    def record(inputs, key):
        return program.record(inputs[:size], inputs[size:], key)

    return _Program("train_step", names, tensors, record, program.needs_key, results, size, shardings)


def compare_with_marks(program, whole, *args, topology, **options):
    """Compares a program for ranks with what the partitioner inserts for marked inputs, as a ReportDiff.

        f = mt.per_rank(step, mesh, in_specs=P("data"), module=model)      # model has DTensors, step has collectives
        print(mt.compare_with_marks(f, plain_step, tokens, targets, topology="v5p:2x2x2"))

    `whole` is the same module or function without collectives, for whole tensors, and is called with the same
    arguments. Its parameters and arguments have the shardings of the inputs of the same names in the program; the name
    of a variable that holds a module is ignored. The first side of the difference is the program, and the second one is
    `whole` with marks. `options` are the options of explain(). Raises ValueError if `whole` has no input with the name
    and shape of an input that the program splits.
    """
    if not isinstance(program, PerRank):
        raise TypeError(f"[torch] expected what per_rank() returns, not a {type(program).__qualname__}")
    inputs = program.inputs(args)
    made = _program_of(whole if is_program(whole) else Compiled(whole), args, {})
    places = {}
    for i, (name, tensor) in enumerate(zip(made.names, made.tensors)):
        for each in (name, name.partition(".")[2]):
            places.setdefault((each, tuple(tensor.shape)), i)
    names, shardings = list(made.names), [None] * len(made.tensors)
    for one in inputs:
        # A parametrized parameter, such as one that is gathered for its use, is that of the same name.
        place = places.get((re.sub(r"parametrizations\.(\w+)\.original$", r"\1", one.name), one.shape))
        if one.stacked:
            raise ValueError(f"[torch] {one.name} has one value for each rank, and no whole tensor to mark")
        if place is not None:
            names[place], shardings[place] = one.name, one.sharding
        elif not one.sharding.is_fully_replicated:
            raise ValueError(f"[torch] {one.name} of shape {one.shape} is {one.spec} in the program, but `whole` "
                             f"has no such input, only {', '.join(made.names)}")
    marked = dataclasses.replace(made, names=names, shardings=shardings)
    written = ms.explain(program, *args, topology=topology, **options)
    return written.diff(ms.explain(marked, topology=topology, **options))


# --- modules of StableHLO -----------------------------------------------------------------------------

# Without the phase that meshard gives an operation if a lowering takes derivatives.
_LOCATION = re.compile(rf'loc\("(?:jvp\(\)/|transpose\(jvp\(\)\)/|optimizer\(\)/)?([^"\n]*)"\("{NUMBERS}":(\d+):1\)\)')
_PLACE = re.compile(rf'"{NUMBERS}:(\d+)"')
_ARGUMENT = re.compile(r'(%arg\d+: tensor<[^>]*>+)(?: \{(.*?)\})? loc\("([^"\n]*)"\)')
_RESULT = re.compile(r'(tensor<[^>]*>+)(?: \{(.*?)\})?(?=, tensor<|\)? \{$|\)$)')
_SHARDING = re.compile(r"sdy\.sharding = #sdy\.sharding<.*?\]>")


def module_text(what, args, kwargs):
    """The StableHLO module of a program. Operations are named by phase and by module, as in JAX.

    `transpose(jvp())/model/layers/0/mlp/dot_general` is a product of the backward pass of `model.layers.0.mlp`.
    """
    program = None if isinstance(what, PerRank) else _program_of(what, args, kwargs)

    def traced():
        function, _, values = (what.as_function(args, kwargs, False) if program is None else
                               program.as_function(False))
        return ms.trace_program(function, **values).module_text()

    try:
        with numbered() as nodes:
            text = traced()
    except Exception:
        traced()  # raises the same error at the user's line
        raise
    text = _with_names(text, nodes)
    return text if program is None else _with_boundary(text, program)


def _with_names(text, nodes):
    """The text with the user's lines and names by phase and module, in place of numbers of nodes."""
    phases = _phases(nodes)

    def location(match):
        node = nodes[int(match[2]) - 1]
        path = module_of(node).replace(".", "/")
        name = phases.get(node, "") + (f"{path}/" if path else "") + match[1]
        place = place_of(node)
        return f'loc("{name}"' + (f'("{_quoted(place[0])}":{place[1]}:1))' if place else ")")

    def line(match):
        place = place_of(nodes[int(match[1]) - 1])
        return '"' + (f"{_quoted(place[0].rpartition('/')[2])}:{place[1]}" if place else "") + '"'

    return _PLACE.sub(line, _LOCATION.sub(location, text))


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _phases(nodes):
    """The prefixes of the nodes' names: gradients depend on forward nodes, and optimizer nodes on gradients."""
    forward, backward, optimizer = "jvp()/", "transpose(jvp())/", "optimizer()/"
    phases = {node: backward for node in nodes if node.meta.get("autograd_backward")}
    if phases:
        for node in nodes:  # in topological order
            if node not in phases and any(phases.get(each) in (backward, optimizer) for each in node.all_input_nodes):
                phases[node] = optimizer
        for node in reversed(nodes):
            if phases.get(node) in (forward, backward):
                for each in node.all_input_nodes:
                    phases.setdefault(each, forward)
        for node in nodes:
            if node not in phases and any(phases.get(each) == forward for each in node.all_input_nodes):
                phases[node] = forward
    return phases


def _with_boundary(text, program):
    """The text with the names of results and the inputs that these replace."""
    begin = text.index("func.func public @main(")
    end = text.index("\n", begin)
    arguments, arrow, results = text[begin:end].partition(") -> ")
    if not arrow:
        return text
    donated = program.names[:program.donated]
    names = iter(program.results)
    replaced = {}  # from the name of an input to the number and sharding of the result that replaces it
    count = itertools.count()

    def result(match):
        name, number = next(names), next(count)
        sharding = _SHARDING.search(match[2] or "")
        if name in donated:
            replaced[name] = number, match[1], sharding and sharding[0]
        return f'{match[1]} {{{match[2] + ", " if match[2] else ""}jax.result_info = "{_quoted(name)}"}}'

    def argument(match):
        name = match[3]
        if name not in donated:
            return match[0]
        number, kind, sharding = replaced.get(name, (None, None, None))
        own = _SHARDING.search(match[2] or "")
        # Which memory is used for which result is the compiler's choice where it chooses the shardings.
        same = own is not None and own[0] == sharding and match[1].endswith(f" {kind}")
        donor = f"tf.aliasing_output = {number} : i32" if same else "jax.buffer_donor = true"
        return f'{match[1]} {{{match[2] + ", " if match[2] else ""}{donor}}} loc("{name}")'

    results = _RESULT.sub(result, results)
    return text[:begin] + _ARGUMENT.sub(argument, arguments) + arrow + results + text[end:]
