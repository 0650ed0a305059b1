"""Pipelines of PyTorch modules: each module is a stage on its own mesh, differentiated by PyTorch."""

import dataclasses

import torch
from torch.func import functional_call

import meshard as ms
from meshard import pipeline as _pipeline

from ._batches import keep_batches
from ._capture import compile_graphs
from ._convert import to_meshard
from ._dtypes import to_meshard as to_meshard_dtype
from ._dtypes import to_torch
from ._held import Held
from ._marks import hold, placed, sharding_of
from ._run import run_graph
from ._train import targets_of
from .lowerings.random import keys_from, needs_key, new_key


@dataclasses.dataclass
class _Graphs:
    """The forward and backward graphs of a stage."""

    forward: torch.fx.GraphModule = None
    backward: torch.fx.GraphModule = None
    results: int = 0
    """The first results of the forward graph are the stage's, the others are what the backward graph takes first."""
    differentiable: tuple = ()
    """The indices of the results whose cotangents the backward graph takes next."""


def _graphs_of(function, tensors, names):
    from torch._functorch import config

    found = _Graphs()

    def keep_forward(module, example_inputs):
        metadata = torch._guards.TracingContext.get().fw_metadata
        if metadata.mutated_inp_runtime_indices:
            name = names[metadata.mutated_inp_runtime_indices[0]]
            raise NotImplementedError(f"[torch] the stage writes to {name}: in a pipeline, only the optimizer writes")
        found.forward, found.results = keep_batches(module), metadata.num_outputs
        found.differentiable = tuple(i for i, each in enumerate(metadata.output_info) if each.requires_grad)
        return module

    def keep_backward(module, example_inputs):
        found.backward = keep_batches(module)
        return module

    with torch.enable_grad(), config.patch(force_non_lazy_backward_lowering=True):
        compile_graphs(function, tensors, keep_forward, keep_backward)
    return found


def _like(tensor, requires_grad):
    """A tensor of PyTorch of the type of one of meshard, without elements."""
    dtype = to_torch(tensor.dtype)
    return torch.empty(tuple(tensor.shape), dtype=dtype, device="meta",
                       requires_grad=requires_grad and (dtype.is_floating_point or dtype.is_complex))


class _Module:
    """One module as the function of a stage."""

    def __init__(self, number, module, loss):
        self.number, self._module, self._loss = number, module, loss
        self.parameters, self._buffers = dict(module.named_parameters()), dict(module.named_buffers())
        frozen = [name for name, each in self.parameters.items() if not each.requires_grad]
        if frozen:
            raise NotImplementedError(f"[torch] {frozen[0]} of stage {number} needs no gradient: a pipeline trains all "
                                      "parameters")

    def __call__(self, parameters, inputs, differentiable_inputs, targets, key):
        """The module's results, or its loss, for tensors of meshard."""
        others = [*map(placed, self._buffers.values()), *targets]
        given = [*parameters.values(), *inputs, *others]
        names = [*parameters, *(f"input {i}" for i in range(len(inputs))), *self._buffers,
                 *(f"target {i}" for i in range(len(targets)))]
        first, count = len(parameters), len(parameters) + len(inputs)

        def whole(*tensors):
            state = {**dict(zip(parameters, tensors)), **dict(zip(self._buffers, tensors[count:]))}
            result = functional_call(self._module, state, tensors[first:count], tie_weights=True)
            if self._loss is not None:
                result = self._loss(result, *tensors[count + len(self._buffers):])
            results = list(result) if isinstance(result, tuple | list) else [result]
            for each in results:
                if not isinstance(each, torch.Tensor):
                    raise TypeError(f"[torch] stage {self.number} returns a {type(each).__qualname__}: it must return a "
                                    "tensor or several")
            return [each.clone() for each in results]

        needs = [i < first or differentiable_inputs and i < count for i in range(len(given))]
        types = [_like(each, need) for each, need in zip(given, needs)]
        graphs = _graphs_of(whole, types, names)
        wanted = [i for i, each in enumerate(types) if each.requires_grad]

        def forward(*values):
            inputs = list(given)
            for i, value in zip(wanted, values):
                inputs[i] = value
            with keys_from(ms.random.fold_in(key, self.number) if needs_key(graphs.forward) else None):
                results = run_graph(graphs.forward, inputs)
            return list(results[:graphs.results]), list(results[graphs.results:])

        def backward(saved, cotangents):
            found = run_graph(graphs.backward, [*saved, *(cotangents[i] for i in graphs.differentiable)])
            return tuple(ms.zeros_like(given[i]) if found[i] is None else found[i] for i in wanted)

        if graphs.backward is None:
            return forward(*(given[i] for i in wanted))[0]
        run = ms.custom_vjp(lambda *values: forward(*values)[0])
        run.defvjp(forward, backward)
        return run(*(given[i] for i in wanted))


class Pipeline:
    """A model that is divided into modules, each on its own mesh, which work at the same time.

        mesh = ms.Mesh({"stage": 2, "x": 4})
        pipeline = Pipeline([first, last], [mesh.submesh("x", 0), mesh.submesh("x", 4)],
                            one_forward_one_backward(2, 4), torch.nn.functional.mse_loss, optimizer=optim.AdamW())
        for x, y in data:
            loss = pipeline.step(x, y)

    Each module takes the result of the one before: a tensor, or several as several arguments. The first module takes
    the leading tensors of the batch; `loss` takes the last module's result and the remaining ones. The batch is split
    along dimension 0 into one equal part for each microbatch of the schedule; losses and gradients are the mean over
    them. `schedule`, `optimizer` and `clip_norm` are the same as in meshard.pipeline.Pipeline; with `checkpoint`, the
    modules are recomputed in the backward pass. Parameters are marked on their stage's mesh, as in other programs; a
    parameter that several modules share is one parameter. They stay on the devices, and PyTorch reads them from there.

    Raises NotImplementedError for modules with frozen parameters, and for modules that write to buffers.
    """

    def __init__(self, modules, meshes, schedule, loss, *, optimizer=None, clip_norm=0.0, checkpoint=False):
        modules, self._meshes, self._schedule = list(modules), list(meshes), schedule
        if not len(modules) == len(self._meshes) == schedule.stages:
            raise ValueError(f"[torch] {len(modules)} modules, {len(self._meshes)} meshes and a schedule of "
                             f"{schedule.stages} stages: pass one module and one mesh for each stage")
        self._optimizer, self._clip_norm, self._checkpoint = optimizer, clip_norm, checkpoint
        last = len(modules) - 1
        self._modules = [_Module(i, each, loss if i == last else None) for i, each in enumerate(modules)]
        self._targets = targets_of(loss)
        self._pipeline, self._values = None, {}

    def _stages(self, parameter):
        made = {}  # one value for a parameter that several modules have

        def value(tensor):
            if id(tensor) not in made:
                made[id(tensor)] = parameter(tensor)
            return made[id(tensor)]

        def function(module):
            if module.number == 0:
                return lambda own, batch: self._passed_on(module, own, batch["inputs"], False, batch)
            return lambda own, carry, batch: self._passed_on(module, own, carry, True, batch)

        return [_pipeline.Stage(mesh, {name: value(each) for name, each in module.parameters.items()}, function(module),
                                checkpoint=self._checkpoint)
                for mesh, module in zip(self._meshes, self._modules)]

    def _passed_on(self, module, own, inputs, differentiable, batch):
        is_last = module.number == len(self._modules) - 1
        results = module(own, inputs, differentiable, batch["targets"] if is_last else [], batch["key"])
        return results[0] if is_last else results

    def _microbatches(self, batch, convert):
        for each in batch:
            if not isinstance(each, torch.Tensor) or not each.ndim:
                raise TypeError(f"[torch] {each!r} of a batch cannot be cut: arguments are tensors with a dimension")
        count = self._schedule.microbatches
        sizes = {each.shape[0] for each in batch}
        if len(sizes) != 1 or min(sizes) % count:
            raise ValueError(f"[torch] a batch with sizes {sorted(sizes)} in dimension 0 cannot be cut into {count} "
                             "equal microbatches")
        parts = [[convert(part, sharding_of(each)) for part in each.detach().chunk(count)] for each in batch]
        end = len(batch) - self._targets
        return [{"inputs": [part[m] for part in parts[:end]], "targets": [part[m] for part in parts[end:]],
                 "key": to_meshard(new_key())} for m in range(count)]

    def _run(self, name, batch):
        if self._pipeline is None:
            self._pipeline = _pipeline.Pipeline(self._stages(placed), self._schedule, optimizer=self._optimizer,
                                                clip_norm=self._clip_norm)
            self._read()
        for module in self._modules:
            for own, parameter in module.parameters.items():
                if parameter.value is not self._values[id(parameter)]:
                    raise ValueError(f"[torch] {own} of stage {module.number} was changed: make another Pipeline, "
                                     "which reads the new values")
        return getattr(self._pipeline, name)(self._microbatches(batch, _placed_part))

    def _read(self):
        for module in self._modules:
            for name, value in self._pipeline.parameters(module.number).items():
                parameter = module.parameters[name]
                hold(parameter, value)
                self._values[id(parameter)] = value

    def step(self, *batch):
        """Runs a training step on a batch, and returns the loss."""
        loss = self._run("step", batch)
        self._read()
        return Held(loss)

    def backward(self, *batch):
        """Computes the gradients for a batch, which replace the parameters' `grad`, and returns the loss."""
        loss = self._run("backward", batch)
        for module in self._modules:
            for name, value in self._pipeline.gradients(module.number).items():
                module.parameters[name].grad = Held(value)
        return Held(loss)

    def explain(self, *batch, topology, **options):
        """How the pipeline would run on hardware that may be absent; see meshard.pipeline.explain()."""
        microbatch = self._microbatches(batch, _abstract)[0]
        return _pipeline.explain(self._stages(lambda each: _abstract(each, sharding_of(each))), self._schedule,
                                 microbatch, topology=topology, optimizer=self._optimizer, clip_norm=self._clip_norm,
                                 **options)


def _placed_part(tensor, sharding):
    value = to_meshard(tensor)
    return value if sharding is None else ms.device_put(value, sharding)


def _abstract(tensor, sharding):
    return ms.abstract_tensor(tuple(tensor.shape), to_meshard_dtype(tensor.dtype),
                              *([] if sharding is None else [sharding]))
