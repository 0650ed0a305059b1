"""A training step as one compiled program: forward, backward, and the update of an optimizer of PyTorch."""

import contextlib
import inspect

import torch
from torch.utils import _pytree as pytree

import meshard as ms

from ._capture import Replaced, capture
from ._compile import Compiled, ambient, input_names, modes, outer_names, signature
from ._convert import to_meshard, to_torch
from ._held import Held
from ._lines import prepare_backward
from ._marks import hold, placed, sharding_of
from ._run import run_graph
from .lowerings.random import keys_from, needs_key, new_key


def targets_of(loss):
    """How many of the last positional arguments of a step belong to the loss: all that it takes but the first."""
    function = loss.forward if isinstance(loss, torch.nn.Module) else loss
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in inspect.signature(function).parameters.values()
              if p.kind in kinds and p.default is inspect.Parameter.empty]
    return max(len(needed) - 1, 0)


class TrainStep:
    """A training step; see train_step()."""

    def __init__(self, model, loss, optimizer, before_update):
        self._model, self._loss, self._optimizer, self._before = model, loss, optimizer, before_update
        self._targets = targets_of(loss)
        self._programs = {}

    def __call__(self, *args, **kwargs):
        state = _State(self._model, self._optimizer)
        inputs, structure = pytree.tree_flatten((args, kwargs))
        key = (structure, tuple(signature(each) for each in inputs), state.signature(), modes(self._model), ambient())
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = _StepProgram(self, state, inputs, structure)
        return program.run(state, inputs)

    def program_of(self, args, kwargs, with_values):
        """(program, names of its inputs, inputs, names of its results, shardings of the state) for these arguments.

        It is the next step's, or without values that of all steps after the first, in which an optimizer makes its
        state.
        """
        inputs, structure = pytree.tree_flatten((args, kwargs))
        state = _State(self._model, self._optimizer)
        program = _StepProgram(self, state, inputs, structure)
        with contextlib.nullcontext() if with_values else program.with_made_state(state):
            if program.made and not with_values:
                state = _State(self._model, self._optimizer)
                program = _StepProgram(self, state, inputs, structure)
            return self._described(program, state, inputs, args, kwargs)

    def _described(self, program, state, inputs, args, kwargs):
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        rates = [torch.tensor(rate, dtype=torch.float64) for rate in state.rates()]
        own = state.names()
        names = [*own, *input_names(args, kwargs), *(f"lr[{i}]" for i in range(len(rates))),
                 *outer_names(program.graph.outer, self._loss)]
        results = [*(names[i] for i in program.graph.written), "loss",
                   *(f"{name} of {state.name_of(i)}" for i, name in program.made)]
        tensors = [*state.tensors(), *tensors, *rates, *program.graph.outer]
        return program, names, tensors, results, state.shardings()


def _hooks_of(parameter):
    """The functions that PyTorch calls with a parameter's gradient, and after it has a gradient."""
    return tuple(parameter._backward_hooks.values() if parameter._backward_hooks else ()), \
        tuple(parameter._post_accumulate_grad_hooks.values() if parameter._post_accumulate_grad_hooks else ())


class _State:
    """The tensors that a step reads and writes: parameters, buffers, and the state of the optimizer."""

    def __init__(self, model, optimizer):
        self.optimizer = optimizer
        self.parameters = dict(model.named_parameters())
        self.buffers = dict(model.named_buffers())
        self.in_groups = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        # (index of the parameter, name) of each tensor of the optimizer's state.
        self._names = {id(parameter): name for name, parameter in self.parameters.items()}
        if any(id(parameter) not in self._names for parameter in self.in_groups):
            raise ValueError("[torch] the optimizer has a parameter that the model does not have")
        self.slots = [(i, name) for i, parameter in enumerate(self.in_groups)
                      for name, value in optimizer.state.get(parameter, {}).items() if isinstance(value, torch.Tensor)]

    def name_of(self, i):
        """The name of a parameter of the optimizer."""
        return self._names[id(self.in_groups[i])]

    def names(self):
        return [*self.parameters, *self.buffers, *(f"{name} of {self.name_of(i)}" for i, name in self.slots)]

    def tensors(self):
        state = self.optimizer.state
        return [*self.parameters.values(), *self.buffers.values(),
                *(state[self.in_groups[i]][name] for i, name in self.slots)]

    def shardings(self):
        """What the tensors are marked with; the optimizer's states as their parameters, if they have their shape."""
        def of_slot(i, name):
            parameter = self.in_groups[i]
            value = self.optimizer.state[parameter][name]
            return sharding_of(value) or (sharding_of(parameter) if value.shape == parameter.shape else None)

        return [*map(sharding_of, self.parameters.values()), *map(sharding_of, self.buffers.values()),
                *(of_slot(i, name) for i, name in self.slots)]

    def rates(self):
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def signature(self):
        options = tuple(tuple((k, _number(v)) for k, v in group.items() if k not in ("params", "lr", "initial_lr"))
                        for group in self.optimizer.param_groups)
        kept = tuple((i, k, v) for i, parameter in enumerate(self.in_groups)
                     for k, v in self.optimizer.state.get(parameter, {}).items() if not isinstance(v, torch.Tensor))
        return repr((options, kept, self.shardings())), tuple(self.slots), \
            tuple((p.requires_grad, _hooks_of(p)) for p in self.parameters.values()), \
            tuple(signature(each) for each in self.tensors())


class _StepProgram:
    """The program of one signature.

    `made` has (index of the parameter, name) of each state that the optimizer makes in its first step.
    """

    def __init__(self, step, state, inputs, structure):
        self._step, self._structure = step, structure
        self._shardings, self._in_groups = state.shardings(), state.in_groups
        tensors = state.tensors()
        self.state_size = len(tensors)
        given = [*tensors, *(each for each in inputs if isinstance(each, torch.Tensor)),
                 *(torch.tensor(rate, dtype=torch.float64) for rate in state.rates())]
        self._options = _tensor_options(state.optimizer.param_groups)
        self._is_input = [isinstance(each, torch.Tensor) for each in inputs]
        self._others = inputs

        def whole(*flat):
            flat = list(flat)
            return self._trace(state, flat[:len(tensors)], flat[len(tensors):])

        self.graph = capture(whole, given)
        self.needs_key = needs_key(self.graph.module)
        self._run = ms.jit(self.record, donate_argnums=0)

    @contextlib.contextmanager
    def with_made_state(self, state):
        """While active, the optimizer has the state that the step makes, without elements."""
        kept = state.optimizer.state
        results = next(iter(reversed(self.graph.module.graph.nodes))).args[0]
        made = type(kept)(kept.default_factory, {parameter: dict(own) for parameter, own in kept.items()})
        for (i, name), node in zip(self.made, results[len(results) - len(self.made):], strict=True):
            value = node.meta["val"]
            made[state.in_groups[i]][name] = torch.empty(value.shape, dtype=value.dtype, device="meta")
        state.optimizer.state = made
        try:
            yield
        finally:
            state.optimizer.state = kept

    def _trace(self, state, tensors, rest):
        step, optimizer = self._step, self._step._optimizer
        names = list(state.parameters)
        leaves = [tensor.detach().requires_grad_(parameter.requires_grad)
                  for tensor, parameter in zip(tensors, state.parameters.values())]
        for leaf, parameter in zip(leaves, state.parameters.values()):
            for register, hooks in zip((leaf.register_hook, leaf.register_post_accumulate_grad_hook),
                                       _hooks_of(parameter)):
                for hook in hooks:
                    register(hook)
        buffers = dict(zip(state.buffers, tensors[len(leaves):]))
        slots = tensors[len(leaves) + len(buffers):]
        inputs = iter(rest)
        flat = [next(inputs) if is_input else other for is_input, other in zip(self._is_input, self._others)]
        args, kwargs = pytree.tree_unflatten(flat, self._structure)
        rates = [rate.item() for rate in inputs]
        count = self._step._targets
        model_args, targets = (args[:-count], args[-count:]) if count else (args, ())
        of = {id(parameter): leaf for parameter, leaf in zip(state.parameters.values(), leaves)}
        swapped = {**dict(zip(names, leaves)), **buffers}
        others = dict(zip(map(id, [*state.parameters.values(), *state.buffers.values()]), [*leaves, *buffers.values()]))
        with torch.enable_grad(), Replaced(others):
            output = torch.func.functional_call(step._model, swapped, model_args, kwargs, tie_weights=True)
            loss = step._loss(output, *targets)
            prepare_backward(loss)
            loss.backward()
        self.made = []
        with _swapped(optimizer, of, state, slots, rates, self._options):
            if step._before is not None:
                step._before([leaf for leaf in leaves if leaf.requires_grad])
            optimizer.step()
            made = []
            for i, parameter in enumerate(state.in_groups):
                for name, value in optimizer.state.get(of[id(parameter)], {}).items():
                    if isinstance(value, torch.Tensor) and (i, name) not in state.slots:
                        self.made.append((i, name))
                        made.append(value)
        return [loss.detach(), *made]

    def record(self, state, rest, key):
        """The results for tensors of meshard: the new state, the loss, and the state that is made."""
        with keys_from(key):
            results = run_graph(self.graph.module, [*state, *rest])
        # What is marked stays so; the state that an optimizer makes is sharded as its parameter.
        parameters = [self._in_groups[i] for i, _ in self.made]
        shardings = [*(self._shardings[i] if i < len(self._shardings) else None for i in self.graph.written), None,
                     *(sharding_of(each) for each in parameters)]
        shapes = [*(None for _ in self.graph.written), None, *(tuple(each.shape) for each in parameters)]
        return [value if sharding is None or shape not in (None, tuple(value.shape))
                else ms.sharding_constraint(value, sharding)
                for value, sharding, shape in zip(results, shardings, shapes, strict=True)]

    def run(self, state, inputs):
        tensors = state.tensors()
        values = [placed(each) for each in tensors]
        others = [each for each in inputs if isinstance(each, torch.Tensor)]
        rates = [torch.tensor(rate, dtype=torch.float64) for rate in state.rates()]
        others += [*rates, *self.graph.outer]
        results = self._run(values, [placed(each) for each in others], to_meshard(new_key()) if self.needs_key else None)
        written = self.graph.written
        for index, value in zip(written, results):
            if index < len(tensors):
                hold(tensors[index], value)
            else:
                with torch.no_grad():
                    others[index - len(tensors)].copy_(to_torch(value))
        loss, *made = results[len(written):]
        optimizer = self._step._optimizer
        for (i, name), value in zip(self.made, made):
            optimizer.state[state.in_groups[i]][name] = Held(value)
        return Held(loss)


def _number(option):
    """An option of an optimizer, with the numbers of its tensors."""
    return pytree.tree_map_only(torch.Tensor, lambda each: each.item() if each.numel() == 1 else each, option)


def _tensor_options(groups):
    """For each group, the options but the learning rate that have tensors, with their numbers."""
    return [{name: _number(option) for name, option in group.items() if name not in ("params", "lr")
             and any(isinstance(each, torch.Tensor) for each in pytree.tree_leaves(option))} for group in groups]


@contextlib.contextmanager
def _swapped(optimizer, of, state, slots, rates, options):
    """While active, the optimizer's parameters, states, learning rates and other options are those of the trace."""
    groups, before = optimizer.param_groups, optimizer.state
    # "capturable" computes with tensors what depends on the step, instead of numbers; a program is fused by itself.
    changed = {"params", "lr", "capturable", "fused"}.union(*options)
    kept = [{name: group[name] for name in changed if name in group} for group in groups]
    traced = type(before)(before.default_factory)
    for parameter in state.in_groups:
        if parameter in before:
            traced[of[id(parameter)]] = {k: v for k, v in before[parameter].items()
                                         if not isinstance(v, torch.Tensor)}
    for (i, name), value in zip(state.slots, slots):
        traced[of[id(state.in_groups[i])]][name] = value
    try:
        for group, rate, numbers in zip(groups, rates, options):
            own = {"params": [of[id(parameter)] for parameter in group["params"]], "lr": rate, "capturable": True,
                   "fused": False, **numbers}
            group.update({name: value for name, value in own.items() if name in group})
        optimizer.state = traced
        yield
    finally:
        optimizer.state = before
        for group, own in zip(groups, kept):
            group.update(own)


def train_step(model, loss, optimizer, *, before_update=None):
    """A function that trains `model` for one step in one compiled program, and returns the loss.

        step = train_step(model, torch.nn.functional.cross_entropy, torch.optim.AdamW(model.parameters()))
        for images, labels in data:
            value = step(images, labels)

    The step's arguments are the model's, followed by those of `loss` after the first: a loss of (output, target) takes
    the last one. A loss of the output alone, such as `lambda output: output.loss`, leaves all arguments to the model.
    `before_update` is called between the backward pass and the update with the parameters, whose gradients it may
    change: `lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 1.0)`.

    Parameters, buffers and the optimizer's state stay on the devices, sharded as the parameters are marked; PyTorch
    reads them from there when it needs them (state_dict, printing, another forward pass). The learning rate is an input
    of the program, so that schedulers cost nothing; another value of another option is another program.
    """
    model = model._what if isinstance(model, Compiled) else model
    return TrainStep(model, loss, optimizer, before_update)
