"""Functions and modules of PyTorch as compiled programs."""

import enum
import inspect
import math

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._batches import keep_batches
from ._capture import Replaced, compiled
from ._convert import to_meshard, to_torch
from ._held import Held
from ._marks import placed
from ._run import run_graph
from ._table import decompositions
from .lowerings.random import keys_from, needs_key, new_key


class _Order(enum.Enum):
    """In place of the tokens, None, by which AOTAutograd keeps operations with side effects in order."""

    TOKEN = enum.auto()


class Program:
    """A graph that was captured for certain shapes; compiled when it is first called, and again for other shardings.

    Results from index `kept` on are values that the backward program needs: inputs that nobody writes to themselves,
    and others, which stay on the devices.
    """

    def __init__(self, module, kept, written=()):
        self._module, self._kept = keep_batches(module), kept
        inputs = [node for node in self._module.graph.nodes if node.op == "placeholder"]
        unwritten = {node: i for i, node in enumerate(inputs) if i not in written}
        results = next(node for node in self._module.graph.nodes if node.op == "output").args[0]
        self._passed = {i: unwritten[node] for i, node in enumerate(results) if i >= kept and node in unwritten}
        self._needs_key = needs_key(module)
        self._run = ms.jit(self._record)

    def _record(self, tensors, numbers, key):
        given = iter(tensors)
        inputs = [next(given) if number is None else None if number is _Order.TOKEN else number for number in numbers]
        with keys_from(key):
            results = run_graph(self._module, inputs)
        results = [None if i in self._passed else each for i, each in enumerate(results)]
        self._is_tensor = [isinstance(each, ms.Tensor) for each in results]
        self._others = [None if is_tensor else each for is_tensor, each in zip(self._is_tensor, results, strict=True)]
        return [each for each in results if isinstance(each, ms.Tensor)]

    def __call__(self, *inputs):
        numbers = tuple(None if isinstance(each, torch.Tensor) else _Order.TOKEN if each is None else each
                        for each in inputs)
        # A key for each call: two calls differ, and torch.manual_seed makes them repeatable.
        key = to_meshard(new_key()) if self._needs_key else None
        given = [placed(each) for each in inputs if isinstance(each, torch.Tensor)]
        tensors = iter(self._run(given, numbers, key))
        return tuple(
            inputs[self._passed[i]] if i in self._passed else self._others[i] if not is_tensor else
            Held(next(tensors)) if i >= self._kept else to_torch(next(tensors))
            for i, is_tensor in enumerate(self._is_tensor))


def compile_forward(module, example_inputs):
    """The compiler of forward graphs: AOTAutograd calls it with a torch.fx.GraphModule of ATen operations."""
    from torch._functorch.aot_autograd import make_boxed_func

    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return make_boxed_func(Program(module, kept=math.inf))
    tokens = len(metadata.tokens)
    # What PyTorch's runtime returns to the user or writes to inputs.
    kept = tokens + metadata.num_mutated_inp_runtime_indices + metadata.num_outputs + metadata.num_intermediate_bases
    return make_boxed_func(Program(module, kept, {tokens + i for i in metadata.mutated_inp_runtime_indices}))


def compile_backward(module, example_inputs):
    """The compiler of backward graphs."""
    from torch._functorch.aot_autograd import make_boxed_func

    program = Program(module, kept=math.inf)

    def backward(*inputs):
        if torch.is_grad_enabled():
            raise NotImplementedError("[torch] a compiled backward pass has no derivative (create_graph=True): call "
                                      "torch.autograd.grad(..., create_graph=True) inside the compiled function")
        return program(*inputs)

    return make_boxed_func(backward)


def backend(module, example_inputs, **options):
    """The backend "meshard" of torch.compile. It is found by its entry point, without an import of this package."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    if options:
        raise ValueError(f"[torch] the backend has no option {', '.join(options)}")
    with torch.backends.mkldnn.flags(enabled=False):
        return aot_autograd(fw_compiler=compile_forward, bw_compiler=compile_backward, decompositions=decompositions(),
                            partition_fn=min_cut_rematerialization_partition)(module, example_inputs)


def signature(value):
    """What of an argument is part of a compiled program: the type of a tensor, and any other value itself."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise TypeError(f"[torch] tensors of layout {value.layout} are not supported: use to_dense()")
        if value.is_quantized:
            raise TypeError("[torch] quantized tensors are not supported: use dequantize()")
        # Of the strides, which only as_strided and its like can see, those of contiguous tensors are one case.
        return value.dtype, tuple(value.shape), value.requires_grad, None if value.is_contiguous() else value.stride()
    return type(value), value


def input_names(args, kwargs):
    """The tensors among the arguments, by names such as `args[0]` and `input_ids`."""
    names = []
    for path, value in pytree.tree_flatten_with_path((args, kwargs))[0]:
        keyword = path[0].idx == 1
        text = path[1].key + pytree.keystr(path[2:]) if keyword else f"args{pytree.keystr(path[1:])}"
        if isinstance(value, torch.Tensor):
            names.append(text)
    return names


def outer_names(tensors, function):
    """Names of the tensors from outside that a function uses, by its variables: `temperature`, `teacher.0.weight`."""
    names, function = {}, getattr(function, "__func__", function)
    if inspect.isfunction(function):
        found = inspect.getclosurevars(function)
        for name, value in {**found.globals, **found.nonlocals}.items():
            if isinstance(value, torch.nn.Module):
                names |= {id(each): f"{name}.{inner}" for inner, each in (*value.named_parameters(),
                                                                         *value.named_buffers())}
            names[id(value)] = name
    return [names.get(id(each), f"outer[{i}]") for i, each in enumerate(tensors)]


def ambient():
    """The state of PyTorch that captured programs depend on."""
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
            *((device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
              for device in ("cpu", "cuda")))


def modes(module):
    """Whether each module trains."""
    return tuple(each.training for each in module.modules())


class Compiled:
    """A module or function of PyTorch that runs as compiled programs; see compile()."""

    def __init__(self, what):
        owner = getattr(what, "__self__", what)
        self.what, self.module = what, owner if isinstance(owner, torch.nn.Module) else None
        self._programs = {}

    def state(self):
        """The parameters and buffers of the module, by name."""
        return {} if self.module is None else {**dict(self.module.named_parameters()),
                                               **dict(self.module.named_buffers())}

    def __call__(self, *args, **kwargs):
        state = self.state()
        flat, structure = pytree.tree_flatten((args, kwargs))
        key = (structure, *map(signature, flat), *((name, signature(each)) for name, each in state.items()),
               modes(self.module) if state else (), ambient())
        program = self._programs.get(key)
        if program is None or not program.is_current():
            program = self._programs[key] = _CompiledCall(self.what, self.module, state, flat, structure)
        return program([*state.values(), *(each for each in flat if isinstance(each, torch.Tensor))])

    def __getattr__(self, name):
        return getattr(self.what, name)


_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, enum.Enum)


def flatten_results(result):
    """The leaves of a result, and its structure.

    Raises TypeError for an object that may have tensors inside where they are not seen.
    """
    leaves, structure = pytree.tree_flatten(result)
    for path, leaf in pytree.tree_flatten_with_path(result)[0]:
        if not isinstance(leaf, (torch.Tensor, *_CONSTANTS)):
            raise TypeError(f"[torch] the result{pytree.keystr(path)} is a {type(leaf).__module__}."
                            f"{type(leaf).__qualname__}, whose tensors are not known: return tensors, or register "
                            "its class with torch.utils._pytree.register_pytree_node")
    return leaves, structure


_TENSOR = object()
"""In place of a tensor among results."""


def call_with(what, module, state, flat, structure, tensors):
    """`what(*args, **kwargs)` with other tensors: those of the module's state, by its names, then the arguments'."""
    given = iter(tensors[len(state):])
    args, kwargs = pytree.tree_unflatten(
        [next(given) if isinstance(each, torch.Tensor) else each for each in flat], structure)
    if module is None:
        return what(*args, **kwargs)
    # What the module and others have in closures, too, is replaced there.
    others = {id(tensor): other for tensor, other in zip(state.values(), tensors)}
    with torch.nn.utils.stateless._reparametrize_module(module, dict(zip(state, tensors)), tie_weights=True), \
            Replaced(others):
        return what(*args, **kwargs)


class _CompiledCall:
    """The forward and backward programs of one signature."""

    def __init__(self, what, module, state, flat, structure):
        def whole(*tensors):
            result = call_with(what, module, state, flat, structure, tensors)
            results, self._structure = flatten_results(result)
            self._others = [_TENSOR if isinstance(each, torch.Tensor) else each for each in results]
            return [each for each in results if isinstance(each, torch.Tensor)]

        tensors = [*state.values(), *(each for each in flat if isinstance(each, torch.Tensor))]
        self._run, self._outer = compiled(whole, tensors, compile_forward, compile_backward)
        self._outer_signatures = [signature(each) for each in self._outer]

    def is_current(self):
        """Whether the tensors from outside are of the types that the programs were compiled for."""
        return all(signature(tensor) == known for tensor, known in zip(self._outer, self._outer_signatures))

    def __call__(self, tensors):
        results = iter(self._run(*tensors, *self._outer))
        all_results = [next(results) if each is _TENSOR else each for each in self._others]
        return pytree.tree_unflatten(all_results, self._structure)


def compile(what):
    """A module or function of PyTorch as one compiled program for each signature of its arguments.

    The Python code runs once for a signature: the types of the tensors, the values of all other arguments, and whether
    modules train. What it does to the values of tensors is recorded; a decision that depends on their elements is an
    error at its line. torch.compile(what, backend="meshard") reads the Python code instead, and can break it into
    several programs. Results take part in PyTorch's autograd.
    """
    return Compiled(what)
