"""A training step as one compiled program: forward, backward, and the update of an optimizer of PyTorch."""

import contextlib
import inspect
from itertools import chain

import torch
from torch.utils import _pytree as pytree

import meshard as ms
from meshard import P

from ._annotations import spec_split_further, with_axis
from ._capture import capture
from ._compile import CalledModules, Compiled, ambient, call_with, input_names, outer_names, signature
from ._convert import to_host, to_meshard
from ._first_step import first_states
from ._held import Held
from ._lines import prepare_backward
from ._marks import hold, marks_made, placed, sharding_of, state_sharding_of, set_state_sharding
from ._modules import ModuleState, gradient_hooks, tensor_type
from ._optimizers import RATES, Powers, number_of, swapped, traced_states
from ._run import run_graph
from .lowerings.random import keys_from, needs_key, new_key


def targets_of(loss):
    """How many of a step's last positional arguments are the loss's: all of its parameters except the first."""
    function = loss.forward if isinstance(loss, torch.nn.Module) else loss
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in inspect.signature(function).parameters.values()
              if p.kind in kinds and p.default is inspect.Parameter.empty]
    return max(len(needed) - 1, 0)


def _needs_closure(optimizer):
    """Whether the optimizer evaluates the loss itself, as LBFGS does."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


class TrainStep:
    """A training step; see train_step()."""

    def __init__(self, model, loss, optimizer, before_update, accumulate, scaler):
        if accumulate < 1:
            raise ValueError(f"[torch] accumulate={accumulate} must be at least 1, the number of calls for each update")
        if any(group.get("differentiable") for group in optimizer.param_groups):
            raise ValueError("[torch] an optimizer with differentiable=True cannot train parameters: pass "
                             "differentiable=False")
        self._needs_closure = _needs_closure(optimizer)
        if self._needs_closure and (accumulate > 1 or scaler is not None):
            raise ValueError(f"[torch] {type(optimizer).__name__} evaluates the loss itself: accumulate= and scaler= "
                             "do not apply to it, so leave them out")
        self._model, self._loss, self._optimizer, self._before = model, loss, optimizer, before_update
        self._accumulate, self._scaler = accumulate, scaler
        self._pending = 0  # calls since the last update
        self._made = ()  # states of the optimizer that were made before its first step
        self._targets = targets_of(loss)
        self._state = _State(model, optimizer, scaler)
        self._programs = {}

    def __call__(self, *args, **kwargs):
        if self._needs_closure:
            return self._optimizer.step(lambda: self._evaluate(args, kwargs))
        updates = self._pending + 1 == self._accumulate
        loss = self._run(args, kwargs, adds=self._pending > 0, updates=updates)
        self._pending = 0 if updates else self._pending + 1
        return loss

    def _evaluate(self, args, kwargs):
        """Computes the loss as the closure of an optimizer does: the gradients become the parameters' `grad`."""
        loss = self._run(args, kwargs, adds=False, updates=False)
        if self._before is not None:
            self._before([each for each in self._state.parameters if each.requires_grad])
        return loss

    def _run(self, args, kwargs, adds, updates):
        inputs, structure = pytree.tree_flatten((args, kwargs))
        state = self._state
        added = state.refresh(adds)
        number = state.number
        key = (structure, number, added, updates, ambient(), *map(signature, inputs))
        for program in self._programs.get(key, ()):
            if program.outside.is_current():
                break
        else:
            program = self._captured(inputs, structure, added, updates)
            state.module.add_alias(state.module_number)
            self._programs.setdefault((structure, state.number, *key[2:]), []).append(program)
        return program.run(state, inputs)

    def _captured(self, inputs, structure, added, updates):
        """A program for these inputs. States that the optimizer lacks are created first, if that changes no step."""
        state = self._state
        with_gradient = frozenset(i for i, each in enumerate(state.parameters) if each.requires_grad)
        if not self._made and not self._needs_closure:
            self._made = state.add_first(self._before, with_gradient)
        try:
            program = _StepProgram(self, state, inputs, structure, added, updates)
            if updates and self._made and program.with_gradient != with_gradient:
                # A parameter without a gradient has no state.
                state.remove(self._made)
                self._made = state.add_first(self._before, program.with_gradient)
                program = _StepProgram(self, state, inputs, structure, added, updates)
        except Exception:
            state.remove(self._made)
            self._made = ()
            raise
        if updates:
            self._made = ()
        return program

    def program_of(self, args, kwargs, with_values):
        """(program, names of its inputs, inputs, names of its results, shardings of the state) for these arguments.

        It is the program of the next step. Without values, it is the program of all steps after the first, in which an
        optimizer creates its state, and of one call per step if gradients accumulate.
        """
        inputs, structure = pytree.tree_flatten((args, kwargs))
        state = _State(self._model, self._optimizer, self._scaler)
        program = _StepProgram(self, state, inputs, structure, (), True)
        with contextlib.nullcontext() if with_values else program.with_made_state(state):
            if program.made and not with_values:
                state = _State(self._model, self._optimizer, self._scaler)
                program = _StepProgram(self, state, inputs, structure, (), True)
            return self._described(program, state, inputs, args, kwargs)

    def _described(self, program, state, inputs, args, kwargs):
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        rates = [torch.tensor(rate, dtype=torch.float64) for rate in state.rates()]
        outer = program.graph.outer
        names = [*state.names(), *input_names(args, kwargs), *(f"lr[{i}]" for i in range(len(rates))),
                 *outer_names(outer, self._loss)]
        results = [*(names[i] for i in program.graph.written), "loss",
                   *(f"{name} of {state.name_of(i)}" for i, name in program.made)]
        return program, names, [*state.tensors(), *tensors, *rates, *outer], results, state.shardings()


class _State:
    """The tensors that a step reads and writes: parameters, buffers, and the state of the optimizer.

    `number` represents everything else in the model and the optimizer that a program depends on.
    """

    def __init__(self, model, optimizer, scaler):
        self.optimizer, self.scaler, self.module = optimizer, scaler, ModuleState(model)
        self._numbers = {}
        self._ids = self._options = None
        self._rates = {}
        self._read()

    def refresh(self, adds):
        """Reads what has changed. Returns the indices of the parameters that have a gradient, if one `adds` to them."""
        number = self.module.number()
        if number != self.module_number or marks_made() != self._marks or self._option_values() != self._options \
                or list(map(id, self._objects())) != self._ids:
            self._read()
        return tuple(i for i, each in enumerate(self.parameters) if each.grad is not None) if adds else ()

    def _objects(self):
        """The parameters of the optimizer and its state for each of them."""
        state = self.optimizer.state
        return chain(*(group["params"] for group in self.optimizer.param_groups), (state,), state.values(),
                     chain.from_iterable(map(dict.values, state.values())))

    def _option_values(self):
        """The options of each group; a program also depends on options that are tensors."""
        return [[(name, number_of(option)) for name, option in group.items() if name not in RATES]
                for group in self.optimizer.param_groups]

    def _read(self):
        optimizer = self.optimizer
        self.module_number = self.module.number()
        self._marks, self._options = marks_made(), self._option_values()
        self._kept = list(self._objects())  # so that no other object has their ids
        self._ids = list(map(id, self._kept))
        self.parameters = list(self.module.parameters.values())
        self.in_groups = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._names = {id(parameter): name for name, parameter in self.module.parameters.items()}
        if any(id(parameter) not in self._names for parameter in self.in_groups):
            raise ValueError("[torch] the optimizer has a parameter that the model does not have")
        # (index of the parameter, name) of each tensor of the optimizer's state.
        self.slots = [(i, name) for i, parameter in enumerate(self.in_groups)
                      for name, value in optimizer.state.get(parameter, {}).items() if isinstance(value, torch.Tensor)]
        others = tuple((i, name, value) for i, parameter in enumerate(self.in_groups)
                       for name, value in optimizer.state.get(parameter, {}).items()
                       if not isinstance(value, torch.Tensor))
        places = {id(each): i for i, each in enumerate(self.parameters)}
        self._tensors = [*self.module.tensors,
                         *(optimizer.state[self.in_groups[i]][name] for i, name in self.slots)]
        key = (self.module_number, repr((self._options, others, self.shardings())), tuple(self.slots),
               tuple(places[id(each)] for each in self.in_groups),
               tuple(map(tensor_type, self._tensors[len(self.module.tensors):])))
        self.number = self._numbers.setdefault(key, len(self._numbers))

    def add_first(self, before_update, with_gradient):
        """Creates the states that make an optimizer's first step the same program as all others, if such states exist.

        Returns (parameter, name, state) of each. `with_gradient` has the indices of the parameters with a gradient.
        """
        state, trained = self.optimizer.state, {id(self.parameters[i]) for i in with_gradient}
        if not any(id(each) in trained and each not in state for each in self.in_groups):
            return ()
        made = first_states(self.optimizer, before_update, self, with_gradient) or ()
        added = [(parameter, name, value) for parameter, own in zip(self.in_groups, made)
                 for name, value in own.items()]
        for parameter, name, value in added:
            state[parameter][name] = value
        self._read()
        return added

    def remove(self, added):
        """Undoes add_first()."""
        state = self.optimizer.state
        for parameter, name, value in added:
            if state.get(parameter, {}).get(name) is value:
                del state[parameter][name]
                if not state[parameter]:
                    del state[parameter]
        self._read()

    def name_of(self, i):
        """The name of a parameter of the optimizer."""
        return self._names[id(self.in_groups[i])]

    def names(self):
        return [*self.module.names, *(f"{name} of {self.name_of(i)}" for i, name in self.slots),
                *(["scale", "growth tracker"] if self.scaler is not None else [])]

    def tensors(self):
        if self.scaler is None:
            return self._tensors
        if self.scaler._scale is None:
            self.scaler._lazy_init_scale_growth_tracker(torch.device("cpu"))
        return [*self._tensors, self.scaler._scale, self.scaler._growth_tracker]

    def slot_sharding(self, i, value):
        """The sharding of a state with its parameter's shape: by set_state_sharding(), or else the parameter's."""
        parameter = self.in_groups[i]
        if value.shape != parameter.shape:
            return None
        return state_sharding_of(parameter) or sharding_of(parameter)

    def shardings(self):
        """The marks of the tensors; states of their parameters' shapes have the parameters' marks."""
        states = self._tensors[len(self.module.tensors):]
        return [*map(sharding_of, self.module.tensors),
                *(sharding_of(each) or self.slot_sharding(i, each) for each, (i, _) in zip(states, self.slots)),
                *([None, None] if self.scaler is not None else [])]

    def rates(self):
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def placed_rates(self):
        """The learning rates as tensors of meshard; the same ones as long as they do not change."""
        rates = self.rates()
        self._rates = {rate: self._rates.get(rate) or ms.asarray(rate, dtype=ms.float64) for rate in rates}
        return [self._rates[rate] for rate in rates]


_TENSOR = object()
"""In place of a tensor among the arguments."""

class _StepProgram:
    """The program of one signature.

    It adds to the gradients of the parameters with the indices `added`, and returns gradients unless it `updates`.
    `made` has (index of the parameter, name) for each state that the optimizer creates in its first step.
    """

    def __init__(self, step, state, inputs, structure, added, updates):
        self._optimizer, self._scaler, self._updates = step._optimizer, step._scaler, updates
        tensors, self._added = state.tensors(), added
        self._shardings = [*state.shardings(), *(sharding_of(state.parameters[i]) for i in added)]
        self._sharding_of_made = [state.slot_sharding(i, each) for i, each in enumerate(state.in_groups)]
        self._shapes = [tuple(each.shape) for each in state.in_groups]
        self._parameter_shardings = [sharding_of(each) for each in state.parameters]
        self._by_name = state.module.by_name()
        self._hooks = list(map(gradient_hooks, state.parameters))
        self._differentiable = [each.requires_grad for each in state.parameters]
        self.state_size = len(tensors) + len(added)
        given = [*tensors, *(torch.empty_like(state.parameters[i], requires_grad=False) for i in added),
                 *(each for each in inputs if isinstance(each, torch.Tensor)),
                 *(torch.tensor(rate, dtype=torch.float64) for rate in state.rates())]
        flat = [_TENSOR if isinstance(each, torch.Tensor) else each for each in inputs]

        def whole(*given):
            given = list(given)
            return self._trace(step, state, flat, structure, given[:len(tensors)], given[len(tensors):])

        with CalledModules() as called:
            self.graph = capture(whole, given)
        self.outside = called.outside(step._model, self.graph.outer)
        self.needs_key = needs_key(self.graph.module)
        # What is not written, such as frozen parameters, has to stay. Gradients that are added to are always replaced.
        count = len(tensors)
        replaced = {index for index in self.graph.written if index < count} | set(range(count, self.state_size))
        self._replaced, self._kept = sorted(replaced), [i for i in range(count) if i not in replaced]
        self._run = ms.jit(self._merged, donate_argnums=0)

    def _merged(self, replaced, kept, rest, key):
        by_index = {**dict(zip(self._replaced, replaced)), **dict(zip(self._kept, kept))}
        return self.record([by_index[i] for i in range(self.state_size)], rest, key)

    @contextlib.contextmanager
    def with_made_state(self, state):
        """While active, the optimizer has the state that the step creates, without elements."""
        kept = state.optimizer.state
        results = next(iter(reversed(self.graph.module.graph.nodes))).args[0]
        made = type(kept)(kept.default_factory, {parameter: dict(own) for parameter, own in kept.items()})
        for (i, name), node in zip(self.made, results[len(self.graph.written) + 1:]):
            value = node.meta["val"]
            made[state.in_groups[i]][name] = torch.empty(value.shape, dtype=value.dtype, device="meta")
        state.optimizer.state = made
        try:
            yield
        finally:
            state.optimizer.state = kept

    def _trace(self, step, state, flat, structure, tensors, rest):
        optimizer, scaler = step._optimizer, step._scaler
        leaves = [tensor.detach().requires_grad_(flag) for tensor, flag in zip(tensors, self._differentiable)]
        for leaf, hooks in zip(leaves, self._hooks):
            for register, functions in zip((leaf.register_hook, leaf.register_post_accumulate_grad_hook), hooks):
                for function in functions:
                    register(function)
        own = [*leaves, *tensors[len(leaves):len(self._by_name)]]
        states = tensors[len(own):len(own) + len(state.slots)]
        for i, gradient in zip(self._added, rest):
            leaves[i].grad = gradient.clone()
        rest = rest[len(self._added):]
        count = len(rest) - len(optimizer.param_groups)
        rates = [rate.item() for rate in rest[count:]]
        scale = tensors[-2] if scaler is not None and scaler.is_enabled() else None

        def loss_and_gradients(*args, **kwargs):
            """The backward pass also runs with replaced tensors: checkpoints rerun parts of the model."""
            own_args = len(args) - step._targets
            loss = step._loss(step._model(*args[:own_args], **kwargs), *args[own_args:])
            whole = loss if step._accumulate == 1 else loss / step._accumulate
            whole = whole if scale is None else whole * scale.to(whole.dtype)
            prepare_backward(whole)
            whole.backward()
            return loss

        with torch.enable_grad():
            given = iter(rest[:count])
            args, kwargs = pytree.tree_unflatten([next(given) if each is _TENSOR else each for each in flat], structure)
            loss = call_with(loss_and_gradients, step._model, self._by_name, own, args, kwargs)
        self.with_gradient = frozenset(i for i, leaf in enumerate(leaves) if leaf.grad is not None)
        self.made = []
        if not self._updates:
            gradients = [(i, leaf.grad) for i, leaf in enumerate(leaves) if leaf.grad is not None]
            self._with_gradient = [i for i, _ in gradients]
            return [loss.detach(), *(each.detach() for _, each in gradients)]
        of = {id(parameter): leaf for parameter, leaf in zip(state.parameters, leaves)}
        made = []
        slots = [(state.in_groups[i], name, value) for (i, name), value in zip(state.slots, states)]
        with swapped(optimizer, of, traced_states(optimizer, of, slots), rates):
            found = None if scale is None else _unscale([each.grad for each in leaves if each.grad is not None], scale)
            before = [each.clone() for each in (*leaves, *states)] if found is not None else []
            if step._before is not None:
                step._before([leaf for leaf in leaves if leaf.requires_grad])
            with Powers():
                optimizer.step()
            for i, parameter in enumerate(state.in_groups):
                for name, value in optimizer.state.get(of[id(parameter)], {}).items():
                    if isinstance(value, torch.Tensor) and (i, name) not in state.slots:
                        self.made.append((i, name))
                        made.append(value)
        if found is None:
            return [loss.detach(), *made]
        _update_scale(scaler, found, before, [*leaves, *states], *tensors[-2:])
        return [loss.detach(), *made, found]

    def record(self, state, rest, key):
        """The results for tensors of meshard: the new state, the loss, and gradients or the state that is made."""
        with keys_from(key):
            loss_at, results = len(self.graph.written), list(run_graph(self.graph.module, [*state, *rest]))
        # What is marked stays so; gradients are sharded as their parameters, and so is the state that is made.
        for at, index in enumerate(self.graph.written):
            results[at] = _constrained(results[at], self._shardings[index] if index < self.state_size else None)
        for at, (i, _) in enumerate(self.made, loss_at + 1):
            if tuple(results[at].shape) == self._shapes[i]:
                results[at] = _constrained(results[at], self._sharding_of_made[i])
        if not self._updates:
            for at, i in enumerate(self._with_gradient, loss_at + 1):
                results[at] = _constrained(results[at], self._parameter_shardings[i])
        return results

    def run(self, state, inputs):
        tensors = state.tensors()
        self._place_states(state, tensors)
        owned = [*tensors, *(state.parameters[i].grad for i in self._added)]
        given = [each for each in inputs if isinstance(each, torch.Tensor)]
        values = list(map(placed, owned))
        rest = [*map(placed, given), *state.placed_rates(), *map(placed, self.graph.outer)]
        results = self._run([values[i] for i in self._replaced], [values[i] for i in self._kept], rest,
                            to_meshard(new_key()) if self.needs_key else None)
        written = self.graph.written
        for index, value in zip(written, results):
            if index < len(tensors):
                hold(tensors[index], value)
            elif index >= self.state_size:
                _write([*given, *state.rates(), *self.graph.outer][index - self.state_size], value)
        loss, *made = results[len(written):]
        if not self._updates:
            for i, value in zip(self._with_gradient, made):
                state.parameters[i].grad = Held(value)
            return Held(loss)
        # A step that a GradScaler skips makes no state.
        if self.made and (len(made) == len(self.made) or not float(made[-1])):
            for (i, name), value in zip(self.made, made):
                self._optimizer.state[state.in_groups[i]][name] = Held(value)
        for i in self._added:
            state.parameters[i].grad = None
        return Held(loss)

    def _place_states(self, state, tensors):
        """Places states that are in host memory (created before the first step, or loaded) as after a step."""
        first = len(state.module.tensors)
        on_host = [i for i in range(first, first + len(state.slots)) if type(tensors[i]) is torch.Tensor]
        mesh = next((each.mesh for each in self._shardings if each is not None), None) if on_host else None
        for i in on_host:
            tensor, sharding = tensors[i], self._shardings[i]
            if sharding is None and mesh is not None and not tensor.ndim:
                sharding = ms.Sharding(mesh, P(), 0)
            value = to_meshard(tensor)
            hold(tensor, value if sharding is None else ms.device_put(value, sharding))


def _constrained(value, sharding):
    return value if sharding is None else ms.sharding_constraint(value, sharding)


def _write(tensor, value):
    """Writes to an argument of a step what the model wrote to it."""
    if isinstance(tensor, Held):
        tensor.value = value
    else:
        with torch.no_grad():
            tensor.copy_(to_host(value))


def _unscale(gradients, scale):
    """Divides gradients by the scale of a GradScaler. Returns 1 if one of them is not finite, else 0."""
    found = torch.zeros((), dtype=torch.float32)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, scale.double().reciprocal().float())
    return found


def _update_scale(scaler, found, before, after, scale, growth_tracker):
    """GradScaler's work after a step: it skips the update if gradients are not finite, and adjusts the scale."""
    with torch.no_grad():
        for old, new in zip(before, after):
            new.copy_(torch.where(found != 0, old, new))
        torch._amp_update_scale_(scale, growth_tracker, found, scaler.get_growth_factor(),
                                 scaler.get_backoff_factor(), scaler.get_growth_interval())


def shard_state(optimizer, mesh, axis=None):
    """Splits the states of an optimizer over an axis, besides the axes that split their parameters (ZeRO).

    Returns the optimizer. A state of its parameter's shape is split along the first dimension that the axis divides and
    that no other axis splits, as fully_shard() splits parameters; a state without such a dimension is sharded as its
    parameter. The compiler scatters gradients for the update, and gathers its results. `axis` may be left out for a
    mesh with one axis.
    """
    mesh, axis = with_axis(mesh, axis)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            spec = spec_split_further(parameter, mesh, axis)
            if spec is None:
                continue
            sharding = ms.Sharding(mesh, spec, parameter.ndim)
            set_state_sharding(parameter, sharding)
            for value in optimizer.state.get(parameter, {}).values():
                if isinstance(value, Held) and value.shape == parameter.shape:
                    value.value = ms.device_put(value.value, sharding)
    return optimizer


def train_step(model, loss, optimizer, *, before_update=None, accumulate=1, scaler=None):
    """Makes a function that trains `model` for one step, in one compiled program, and returns the loss.

        step = train_step(model, torch.nn.functional.cross_entropy, torch.optim.AdamW(model.parameters()))
        for images, labels in data:
            value = step(images, labels)

    The step takes the arguments of the model, then the arguments of `loss` except the output: for a loss of (output,
    target), the last argument is the target. With a loss of the output alone, such as `lambda output: output.loss`, all
    arguments are the model's. `before_update` is called between the backward pass and the update with the parameters,
    whose gradients it may change: `lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 1.0)`.

    With `accumulate=k`, each call takes one micro-batch and adds the gradients of `loss / k`; every k-th call updates.
    Until then the gradients are the parameters' `grad`, on the devices. Each call returns the loss of its micro-batch.
    `scaler`, a torch.amp.GradScaler, scales the loss and skips updates whose gradients are not finite; its scale is
    updated by the program.

    Parameters, buffers and the optimizer's state stay on the devices, sharded as the parameters are marked; PyTorch
    reads them from there when it needs them (state_dict, printing, another forward pass). The learning rate is an input
    of the program, so that schedulers need no other program; a new value of any other option compiles one. An optimizer
    that evaluates the loss itself (LBFGS) runs in Python, with a program for the loss and its gradients.

    Raises ValueError for an optimizer whose parameters are not the model's, and NotImplementedError at the first call
    for an optimizer that counts steps in Python numbers.

    >>> model = torch.nn.Linear(4, 2)
    >>> step = mt.train_step(model, torch.nn.functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1))
    >>> first, second = (float(step(torch.ones(3, 4), torch.zeros(3, 2))) for _ in range(2))
    >>> second < first
    True
    """
    model = model._what if isinstance(model, Compiled) else model
    return TrainStep(model, loss, optimizer, before_update, accumulate, scaler)
