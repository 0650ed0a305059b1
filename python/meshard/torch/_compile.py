"""Functions and modules of PyTorch as compiled programs."""

import contextlib
import copy
import enum
import functools
import inspect
import math
import weakref

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._arguments import Arguments, check_overlaps
from ._batches import keep_batches
from ._capture import Replaced, compiled
from ._convert import to_meshard, to_torch
from ._held import Held
from ._lines import is_own
from ._marks import hold, is_alone, is_captured, placed
from ._modules import ModuleState, tensor_type
from ._run import run_graph
from .eager._tensors import DeviceTensor, wrap
from .lowerings.random import keys_from, needs_key, new_key


class _Place(enum.Enum):
    """A placeholder for an input among the constants of a program."""

    TOKEN = enum.auto()  # None, by which AOTAutograd keeps operations with side effects in order
    DONATED = enum.auto()  # a tensor whose memory is used for its new value


_OFFSET_AT = {"aten.as_strided.default": 3, "aten.as_strided_copy.default": 3, "aten.as_strided_scatter.default": 4}


def _offsets(module, inputs):
    """For the index of each input whose storage is read at an absolute offset: (its offset, the operation)."""
    found = {}
    for node in module.graph.nodes:
        place = _OFFSET_AT.get(str(node.target))
        if place is None or (node.args[place] if len(node.args) > place else node.kwargs.get("storage_offset")) is None:
            continue
        source = node.args[0]
        while source.op == "call_function" and getattr(source.target, "is_view", False):
            source = source.args[0]
        if source.op == "placeholder" and isinstance(source.meta.get("val"), torch.Tensor):
            found[inputs.index(source)] = source.meta["val"].storage_offset(), str(node.target)
    return found


class Program:
    """A graph that was captured for certain shapes; compiled at its first call, and again for other shardings.

    Results from index `kept` on are values that the backward program needs: inputs that the program does not write to
    are passed on, and other values stay on the devices. Results in `held` stay there, too. `written` has pairs of an
    input and the result that replaces it, which stays on the devices if the input is there, and reuses its memory if
    there is no backward program.
    """

    def __init__(self, module, kept, written=(), held=()):
        self._module, self._kept, self._held = keep_batches(module), kept, frozenset(held)
        self._written = dict(written)
        self._input_of = {result: position for position, result in self._written.items()}
        inputs = [node for node in self._module.graph.nodes if node.op == "placeholder"]
        unwritten = {node: i for i, node in enumerate(inputs) if i not in self._written}
        results = next(node for node in self._module.graph.nodes if node.op == "output").args[0]
        self._passed = {i: unwritten[node] for i, node in enumerate(results) if i >= kept and node in unwritten}
        self._donates = kept >= len(results)
        self._offsets = _offsets(self._module, inputs)
        numbers = (torch.SymInt, torch.SymFloat, torch.SymBool)
        self._numbers = {i for i, node in enumerate(results) if isinstance(node, torch.fx.Node)
                         and isinstance(node.meta.get("val"), numbers)}
        self._needs_key = needs_key(module)
        # Sizes are integers: other ones are another program.
        self._run = ms.jit(self._record, donate_argnums=0, static_argnums=2)

    def _record(self, donated, tensors, numbers, key):
        donated, tensors = iter(donated), iter(tensors)
        inputs = [next(donated) if number is _Place.DONATED else next(tensors) if number is None else
                  None if number is _Place.TOKEN else number for number in numbers]
        with keys_from(key):
            results = run_graph(self._module, inputs)
        results = [None if i in self._passed else each for i, each in enumerate(results)]
        for position, result in self._written.items():
            if isinstance(inputs[position], ms.Tensor) and inputs[position].sharding is not None:
                # What is written stays where it was, so that the next call is the same program.
                results[result] = ms.sharding_constraint(results[result], inputs[position].sharding)
        self._is_tensor = [isinstance(each, ms.Tensor) for each in results]
        self._others = [None if is_tensor else each for is_tensor, each in zip(self._is_tensor, results, strict=True)]
        return [each for each in results if isinstance(each, ms.Tensor)]

    def __call__(self, *inputs):
        for i, (offset, name) in self._offsets.items():
            if inputs[i].storage_offset() != offset:
                raise NotImplementedError(
                    f"[torch] {name} with a storage_offset reads from the storage of an argument that begins at "
                    f"{inputs[i].storage_offset()} there, but the program was captured for one that begins at "
                    f"{offset}: slice the tensor, or leave the storage_offset out")
        stays = {position for position in self._written if isinstance(inputs[position], Held)}
        donated, given, numbers = [], [], []
        for position, each in enumerate(inputs):
            if not isinstance(each, torch.Tensor | float):
                numbers.append(_Place.TOKEN if each is None else each)
            elif position in stays and self._donates:
                numbers.append(_Place.DONATED)
                donated.append(each.value)
            else:
                numbers.append(None)
                given.append(each if isinstance(each, float) else placed(each))
        # A key for each call: two calls differ, and torch.manual_seed makes them repeatable.
        key = to_meshard(new_key()) if self._needs_key else None
        tensors = iter(self._run(donated, given, tuple(numbers), key))
        # Where the arguments are, the results are: on the device "meshard", or on PyTorch's CPU.
        returned = wrap if any(isinstance(each, DeviceTensor) for each in inputs) else to_torch
        results = []
        for i, is_tensor in enumerate(self._is_tensor):
            if i in self._passed:
                results.append(inputs[self._passed[i]])
            elif not is_tensor:
                results.append(self._others[i])
            elif i in self._numbers:
                results.append(to_torch(next(tensors)).item())
            elif self._input_of.get(i) in stays:
                results.append(inputs[self._input_of[i]])  # which PyTorch's runtime copies to itself
                results[-1].assign(next(tensors))
            elif i >= self._kept or i in self._held:
                results.append(Held(next(tensors)))
            else:
                results.append(returned(next(tensors)))
        return tuple(results)


def compile_forward(module, example_inputs, returned=math.inf):
    """The compiler of forward graphs: AOTAutograd calls it with a torch.fx.GraphModule of ATen operations.

    The captured function returns `returned` tensors to PyTorch. Further results stay on the devices if no gradient
    flows to them.
    """
    from torch._functorch.aot_autograd import make_boxed_func

    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return make_boxed_func(Program(module, kept=math.inf))
    tokens, count = len(metadata.tokens), metadata.num_mutated_inp_runtime_indices
    # What PyTorch's runtime returns to the user or writes to inputs.
    kept = tokens + count + metadata.num_outputs + metadata.num_intermediate_bases
    written = [(tokens + position, tokens + i) for i, position in enumerate(metadata.mutated_inp_runtime_indices)]
    results = next(node for node in module.graph.nodes if node.op == "output").args[0]
    for position, result in written:
        value = results[result].meta["val"]
        if metadata.input_info[position - tokens].mutates_metadata and (
                not value.is_contiguous() or value.storage_offset()):
            raise NotImplementedError("[torch] the function changes the strides of an argument in place, as t_(), "
                                      "transpose_() and as_strided_() do: use t(), transpose() or as_strided()")
    held = [tokens + count + i for i, info in enumerate(metadata.output_info)
            if i >= returned and not info.requires_grad]
    return make_boxed_func(Program(module, kept, written, held))


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


def signature(value):
    """What a compiled program depends on in an argument: the type of a tensor, and any other value itself."""
    if isinstance(value, torch.Tensor):
        return tensor_type(value)
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


class Compiled:
    """A module or function of PyTorch that runs as compiled programs; see compile()."""

    _OWN = ("_what", "_owner", "_module", "_programs", "_forward")

    def __init__(self, what):
        owner = getattr(what, "__self__", what)
        self._what, self._owner = what, owner if isinstance(owner, torch.nn.Module) else None
        self._module = None if self._owner is None else ModuleState(self._owner)
        self._programs = {}
        self._forward = None  # for methods of the module

    def _state(self):
        """The parameters and buffers of the module, by name."""
        if self._module is None:
            return {}
        self._module.number()
        return self._module.by_name()

    def __call__(self, *args, **kwargs):
        module = self._module
        number = None if module is None else module.number()
        arguments = Arguments(args, kwargs)
        key = (number, arguments.description, *map(signature, arguments.tensors), ambient())
        for program in self._programs.get(key, ()):
            if program.outside.is_current():
                break
        else:
            program = _CompiledCall(self._what, self._owner, {} if module is None else module.by_name(), arguments)
            if module is not None:
                module.add_alias(number)
            self._programs.setdefault(key, []).append(program)
        return program(arguments, [] if module is None else module.tensors)

    def __getattr__(self, name):
        if name in Compiled._OWN:  # of an instance that is not initialized yet
            raise AttributeError(name)
        value = getattr(self._what, name)
        if not inspect.ismethod(value) or value.__self__ is not self._what:
            return value

        @functools.wraps(value)
        def method(*args, **kwargs):
            with self._compiled_forward():
                result = value(*args, **kwargs)
            return self if result is self._what else result  # eval(), train(), to(), ...

        return method

    @contextlib.contextmanager
    def _compiled_forward(self):
        """While active, calls of the module run as compiled programs, as those in its method `generate`."""
        if self._what is not self._owner:
            yield
            return
        attributes = self._owner.__dict__
        if self._forward is None:
            self._forward = Compiled(self._owner.forward)
        before = attributes.get("forward", self)
        attributes["forward"] = self._forward
        try:
            yield
        finally:
            if before is self:
                attributes.pop("forward", None)
            else:
                attributes["forward"] = before

    def __setattr__(self, name, value):
        if name in Compiled._OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._what, name, value)

    def __deepcopy__(self, memo):
        return Compiled(copy.deepcopy(self._what, memo))

    def __reduce__(self):
        return Compiled, (self._what,)


def call_with(what, module, state, tensors, args, kwargs):
    """`what(*args, **kwargs)` with other tensors in place of those of the module's state."""
    if module is None:
        with _KeptAttributes():
            return what(*args, **kwargs)
    # What the module and others have in closures, too, is replaced there.
    others = {id(tensor): other for tensor, other in zip(state.values(), tensors)}
    own = dict(zip(state, tensors))
    with _KeptAttributes(module, tensors), \
            torch.nn.utils.stateless._reparametrize_module(module, own, tie_weights=True), Replaced(others):
        result = what(*args, **kwargs)
    _write_assigned(module, own, state, tensors)
    return result


def _write_assigned(module, own, names, tensors):
    """Writes the values that a module assigned to its buffers (`self.mean = ...`) to the original tensors."""
    for name, tensor in zip(names, tensors):
        value = own[name]
        if value is tensor:
            continue
        if not isinstance(value, torch.Tensor) or value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise TypeError(f"[torch] {type(module).__name__} assigns {name} another type or shape than it has")
        with torch.no_grad():
            tensor.copy_(value)


class _KeptAttributes:
    """Restores the attributes of the owner's modules and of all called modules; a context manager.

    A value of a program has no elements outside of the program, so that a module that holds one is unusable, also in
    PyTorch. Raises TypeError for an attribute that became such a value, unless an error is already raised. The owner's
    own tensors are exempt: recurrent layers have a second list of them.
    """

    def __init__(self, owner=None, tensors=()):
        self._owner, self._own = owner, set(map(id, tensors))

    def __enter__(self):
        self._before = {}
        for module in () if self._owner is None else self._owner.modules():
            self._keep(module, ())
        self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._keep)

    def _keep(self, module, args):
        if id(module) not in self._before and not is_own(module):
            contents = {name: copy.copy(value) for name, value in module.__dict__.items()
                        if type(value) in (list, dict) and name not in ("_parameters", "_buffers", "_modules")}
            self._before[id(module)] = module, dict(module.__dict__), contents

    def __exit__(self, kind, error, traceback):
        self._handle.remove()
        names = [f"{type(module).__name__} keeps a value of the program as its attribute {name}"
                 for module, attributes, contents in self._before.values()
                 for name in self._restored(module.__dict__, attributes, contents)]
        if names and error is None:
            raise TypeError(f"[torch] {names[0]}: return it, or register a buffer with register_buffer()")

    def _restored(self, now, attributes, contents):
        """Restores the attributes that have values of a program; the names of those that have more than own tensors."""
        found = {name: [each for each in pytree.tree_leaves(value)
                        if isinstance(each, torch.Tensor) and is_captured(each)]
                 for name, value in now.items() if value is not attributes.get(name) or name in contents}
        for name in filter(found.get, found):
            if name not in attributes:
                del now[name]
                continue
            value = now[name] = attributes[name]
            if name in contents:
                value.clear()
                value.update(contents[name]) if type(value) is dict else value.extend(contents[name])
        return [name for name, values in found.items() if not {*map(id, values)} <= self._own]


class CalledModules:
    """The modules that are called while a function is captured; a context manager."""

    def __enter__(self):
        self._called = {}
        self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._add)
        return self

    def _add(self, module, args):
        if not is_own(module):
            self._called[id(module)] = module

    def __exit__(self, *error):
        self._handle.remove()

    def outside(self, owner, tensors):
        """The Outside of a function that uses these tensors and those of these modules that are not the owner's."""
        own = {id(each) for each in owner.modules()} if owner is not None else set()
        return _Outside([each for key, each in self._called.items() if key not in own], tensors)


class _Outside:
    """Modules and tensors from outside that a captured function uses."""

    def __init__(self, modules, tensors):
        self.tensors = tensors
        self._types = list(map(tensor_type, tensors))
        self._states = [ModuleState(each) for each in modules]
        self._numbers = [each.number() for each in self._states]

    def is_current(self):
        """Whether the function was captured for the current ones."""
        return [each.number() for each in self._states] == self._numbers \
            and list(map(tensor_type, self.tensors)) == self._types


def call_of(what, module, state, arguments, keep):
    """A function of the tensors of a module's state and of Arguments.

    It returns the tensors of the result, then those that became part of an argument; `keep` is called with the Results.
    """
    def whole(*tensors):
        own, given = tensors[:len(state)], tensors[len(state):]
        with arguments.with_tensors(given) as (args, kwargs):
            results = arguments.results(call_with(what, module, state, own, args, kwargs), given)
        keep(results)
        return [_without_unknown_offset(each) for each in results.tensors]

    return whole


def _without_unknown_offset(tensor):
    """A copy of a view whose offset only the running program has: PyTorch would make it a view of an argument."""
    return tensor if isinstance(tensor.storage_offset(), int) else tensor.clone()


class _CompiledCall:
    """The forward and backward programs of one signature."""

    def __init__(self, what, module, state, arguments):
        def keep(results):
            self._results = results

        def forward_compiler(graph, example_inputs):
            self._written = torch._guards.TracingContext.get().fw_metadata.mutated_inp_runtime_indices
            return compile_forward(graph, example_inputs, self._results.state_begin)

        self._written, self._names = (), list(state)
        # PyTorch's runtime keeps the function, which must not keep the arguments of the first call.
        function = [call_of(what, module, state, arguments, keep)]
        with CalledModules() as called:
            self._run, outer = compiled(lambda *tensors: function[0](*tensors),
                                        [*state.values(), *arguments.tensors], forward_compiler, compile_backward)
        function.clear()
        self.outside = called.outside(module, outer)

    def __call__(self, arguments, state):
        outer = self.outside.tensors
        tensors = [*state, *arguments.tensors, *outer]
        if self._written:
            check_overlaps(self._written, tensors, lambda: [
                *self._names, *arguments.names, *(f"outer[{i}]" for i in range(len(outer)))])
            # What it changes of its own, such as the averages of batch normalization and caches, stays on the devices.
            for i in self._written:
                is_argument = len(state) <= i < len(state) + len(arguments.tensors)
                stays = not is_argument or arguments.is_in_object(i - len(state)) and is_alone(tensors[i])
                if stays and not isinstance(tensors[i], Held | DeviceTensor) \
                        and not weakref.getweakrefcount(tensors[i]):
                    hold(tensors[i], placed(tensors[i]))
        return self._results.repeat(arguments, self._run(*tensors))


def compile(what):
    """A module, function or exported program of PyTorch as one compiled program for each signature of its arguments.

    The Python code runs once for a signature: the types of the tensors, the values of all other arguments, and whether
    modules train. Operations on tensors are recorded; a decision that depends on their elements is an error that names
    its line. torch.compile(what, backend="meshard") reads the Python code instead, and can break it into several
    programs. Results take part in PyTorch's autograd.

    Tensors may also be in lists, dictionaries and objects among the arguments, such as the caches of `transformers`,
    and may change there; they stay on the devices. Methods of a module, such as `mt.compile(model).generate(...)`, run
    in Python, and the forward passes in them as compiled programs.

    >>> model = torch.nn.Linear(4, 2)
    >>> y = mt.compile(model)(torch.ones(3, 4))
    >>> tuple(y.shape), torch.allclose(y, model(torch.ones(3, 4)), atol=1e-5)
    ((3, 2), True)
    """
    return Compiled(what.module() if isinstance(what, torch.export.ExportedProgram) else what)
