"""Programs that every rank runs, as manual regions over a mesh; see per_rank()."""

import functools
import math
import os
import sys

import torch
import torch.distributed as dist
from torch.utils import _pytree as pytree

import meshard as ms

from . import _rank_symbols
from ._annotations import mesh_of, spec_of
from ._arguments import CONSTANTS
from ._batches import keep_batches
from ._capture import Captured, OuterTensors, compile_graphs, is_outside, with_outer
from ._compile import ambient, call_with, input_names, outer_names
from ._convert import to_host, to_meshard
from ._dtypes import to_meshard as to_meshard_dtype
from ._lines import place_in
from ._marks import sharding_of
from ._rank_graphs import for_every_rank
from ._rank_symbols import symbolic_ranks
from ._run import run_graph, where
from ._table import lowering_of
from .lowerings._helpers import manual_mesh
from .lowerings.random import keys_from, needs_key, new_key


def simulated_device_mesh(mesh, device_type="cpu"):
    """The DeviceMesh of a mesh, with process groups in which this process is one rank and no other rank exists.

    Starts PyTorch's fake process group, whose collectives move nothing, unless a process group exists.
    """
    from torch.distributed.device_mesh import DeviceMesh

    ids = list(mesh.device_ids)
    if not dist.is_initialized():
        from torch.distributed.tensor.debug import _clear_sharding_prop_cache
        from torch.testing._internal.distributed.fake_pg import FakeStore

        # An equal mesh of a process group that was destroyed may be in it.
        _clear_sharding_prop_cache()
        dist.init_process_group("fake", store=FakeStore(), rank=min(ids), world_size=max(ids) + 1)
    ranks = torch.tensor(ids, dtype=torch.int).reshape(tuple(mesh.shape))
    order = {} if ids == sorted(ids) else {"preserve_rank_order": True}
    return DeviceMesh(device_type, ranks, mesh_dim_names=tuple(mesh.axis_names), **order)


def _without_tokens(module, count):
    """Removes the inputs and results by which PyTorch orders effects, which collectives do not have here."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    output = next(node for node in module.graph.nodes if node.op == "output")
    output.args = (type(output.args[0])(output.args[0][count:]),)
    for node in placeholders[:count]:
        node.replace_all_uses_with(None)
        module.graph.erase_node(node)
    for node in module.graph.nodes:
        if node.target is torch.ops.higher_order.with_effects and lowering_of(node.args[1]) is None:
            raise NotImplementedError(f"{where(node)}[torch] {node.args[1]} is not supported: use a functional "
                                      "collective")
    return module


_OF_MESHES = (_rank_symbols.__file__, *(os.path.join(os.path.dirname(dist.__file__), name) for name in (
    "_mesh_layout.py", "_ops", "device_mesh.py", "tensor")))


class _OuterTensors(OuterTensors):
    """Includes DTensors and values of each rank, and excludes the tensors of ranks inside device meshes."""

    current = None

    def __init__(self, mesh, others, is_first):
        super().__init__(others, is_first)
        self._mesh = mesh

    def stand_in(self, tensor):
        one = _Input(tensor, None, self._mesh, "a tensor from outside")
        return one.argument(torch.empty(one.local_shape, dtype=one.dtype))

    def __enter__(self):
        _OuterTensors.current = self
        return super().__enter__()

    @staticmethod
    def is_outside(tensor):
        tensor = tensor._local_tensor if _is_dtensor(tensor) else tensor
        return _is_local(tensor) or is_outside(tensor)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        frame = sys._getframe(1)
        while frame.f_code.co_name == "__torch_function__":  # of other modes
            frame = frame.f_back
        if frame.f_code.co_filename.startswith(_OF_MESHES):
            return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


def _capture(function, inputs, mesh):
    """(graph module, indices of the inputs that are written, inputs and tensors from outside) of a function of one
    rank's tensors, for _Inputs. The tensors from outside that it uses are further inputs."""
    from torch._subclasses.fake_tensor import UnsupportedOperatorException

    from ._rank_collectives import refuse, refused_in

    found = []

    def keep(module, example_inputs):
        metadata = torch._guards.TracingContext.get().fw_metadata
        found[:] = [(_without_tokens(module, len(metadata.tokens)), tuple(metadata.mutated_inp_runtime_indices))]
        raise Captured

    grad = torch.is_grad_enabled()

    def in_modes(*given):
        with torch.set_grad_enabled(grad), in_place:
            results = function(*given)
            in_place.end()
            return results

    def run(whole, given):
        outer[:] = [_Input(each, None, mesh, f"outer[{i}]") for i, each in enumerate(given[len(inputs):])]
        all_inputs = [*inputs, *outer]

        def of_locals(*locals):
            return whole(*(one.argument(each) for one, each in zip(all_inputs, locals)))

        try:
            compile_graphs(of_locals, [torch.empty(each.local_shape, dtype=each.dtype, device="meta")
                                       for each in all_inputs], keep, keep)
        except Captured:
            return found[0]

    outer = []
    try:
        with torch.no_grad(), torch.compiler.config.patch(compile_on_one_rank=True), \
                symbolic_ranks(mesh, lambda tensor: _OuterTensors.current.other(tensor)) as in_place:
            (module, written), tensors = with_outer(
                run, in_modes, inputs, functools.partial(_OuterTensors, mesh),
                "the rank, or on elements: one program is recorded for all ranks. Compute with the rank instead, as in "
                "torch.where(torch.full((), rank) == 0, a, b)")
    except UnsupportedOperatorException as error:
        raise NotImplementedError(f"{place_in(error)}[torch] {error.func} is not supported: use a functional "
                                  "collective") from error
    except NotImplementedError:
        raise
    except RuntimeError as error:
        name = refused_in(error)
        if name is None:
            raise
        refuse(name, place_in(error), error)
    except TypeError as error:
        if "LocalTensor" not in str(error):
            raise
        raise TypeError(f"{place_in(error)}[torch] a value of each rank comes from outside by a name that cannot be "
                        "replaced: pass it as an argument, or its module as module=") from error
    return keep_batches(for_every_rank(module, mesh)), written, outer, tensors


# Values of ranks.

def _parts(spec, mesh, shape):
    """For each rank in mesh order, the slices of a whole value that a spec gives it."""
    names, sizes = list(mesh.axis_names), [mesh.axis_size(each) for each in mesh.axis_names]
    split = _split_axes(spec, mesh, len(shape))
    parts = []
    for position in range(math.prod(sizes)):
        at, rest = {}, position
        for name, size in zip(reversed(names), reversed(sizes)):
            at[name], rest = rest % size, rest // size
        slices = []
        for size, axes in zip(shape, split):
            tile = 0
            for axis in axes:
                tile = tile * mesh.axis_size(axis) + at[axis]
            count = math.prod(mesh.axis_size(each) for each in axes)
            slices.append(slice(tile * (size // count), (tile + 1) * (size // count)))
        parts.append(tuple(slices))
    return parts


def _split_axes(spec, mesh, rank):
    return [list(ms.Sharding(mesh, spec, rank).axes(d)) for d in range(rank)]


def _local_shape(shape, spec, mesh, name):
    local = []
    for d, axes in enumerate(_split_axes(spec, mesh, len(shape))):
        count = math.prod(mesh.axis_size(each) for each in axes)
        if shape[d] % count:
            raise ValueError(f"[torch] {name}: {count} ranks do not divide dimension {d} of {tuple(shape)} evenly, and "
                             "one program needs equal parts: pad the dimension")
        local.append(shape[d] // count)
    return tuple(local)


def _whole(ranks, spec, mesh, name):
    """The whole value of the ranks' parts, a tensor [rank, ...] in mesh order. Ranks of the same part must agree."""
    split = _split_axes(spec, mesh, ranks.ndim - 1)
    shape = [n * math.prod(mesh.axis_size(each) for each in axes) for n, axes in zip(ranks.shape[1:], split)]
    made, first = ranks.new_empty(shape), {}
    for i, part in enumerate(_parts(spec, mesh, shape)):
        key = tuple((each.start, each.stop) for each in part)
        if key not in first:
            first[key] = i
            made[part] = ranks[i]
        elif not torch.allclose(ranks[first[key]], ranks[i], equal_nan=True):
            ids = list(mesh.device_ids)
            raise ValueError(f"[torch] {name}: the ranks {ids[first[key]]} and {ids[i]} have different values of one "
                             "part")
    return made


def _is_local(tensor):
    return type(tensor).__name__ == "LocalTensor"


def _is_dtensor(tensor):
    return type(tensor).__name__ == "DTensor" or hasattr(tensor, "_spec") and hasattr(tensor, "_local_tensor")


class _Input:
    """An input of a program: the part of each rank, and how the parts form one value of a mesh."""

    def __init__(self, tensor, spec, mesh, name):
        self.name, self.mesh, self.dtype, self.requires_grad = name, mesh, tensor.dtype, tensor.requires_grad
        self.dtensor = tensor._spec if _is_dtensor(tensor) else None
        local = tensor._local_tensor if self.dtensor is not None else tensor
        self.spec, self.is_local = spec, _is_local(local)
        if self.dtensor is not None:
            if spec is not None:
                raise ValueError(f"[torch] {name} is a DTensor, sharded by its placements: leave it out of in_specs")
            own = mesh_of(tensor.device_mesh)
            if list(own.device_ids) != list(mesh.device_ids) or list(own.axis_names) != list(mesh.axis_names):
                if not all(type(each).__name__ in ("Shard", "Replicate") for each in tensor.placements):
                    raise ValueError(f"[torch] {name} is on {own}, not on {mesh}")
                unknown = [each for each in own.axis_names if each not in mesh.axis_names]
                if unknown:
                    raise ValueError(f"[torch] {name} is on {own}, whose axis {unknown[0]!r} is not one of {mesh}")
            if all(type(each).__name__ in ("Shard", "Replicate") for each in tensor.placements):
                self.spec = spec_of(tensor.placements, own, tensor.ndim)
        elif self.is_local:
            if spec is not None:
                raise ValueError(f"[torch] {name} has a value of each rank already, so in_specs does not apply to it")
        elif self.spec is None:
            mark = sharding_of(tensor)
            self.spec = mark.spec if mark is not None else ms.P()
        if self.is_local and len({tuple(each.shape) for each in local._local_tensors.values()}) != 1:
            raise ValueError(f"[torch] {name}: the ranks have parts of different sizes: pad them to one size")
        self.local_shape = tuple(next(iter(local._local_tensors.values())).shape) if self.is_local else \
            tuple(local.shape) if self.dtensor is not None else _local_shape(tensor.shape, self.spec, mesh, name)
        if self.spec is not None and self.dtensor is not None and \
                _local_shape(tensor.shape, self.spec, mesh, name) != self.local_shape:
            raise ValueError(f"[torch] {name}: rank {dist.get_rank()} has {self.local_shape} of {tuple(tensor.shape)}")
        self.stacked = self.spec is None
        axes = tuple(mesh.axis_names)
        self.shape = (math.prod(mesh.shape), *self.local_shape) if self.stacked else tuple(tensor.shape)
        self.sharding = ms.Sharding(mesh, ms.P(axes) if self.stacked else self.spec, len(self.shape))

    def key(self):
        spec = self.dtensor
        return (self.dtype, self.shape, self.local_shape, str(self.sharding), self.requires_grad,
                spec and (spec.placements, tuple(spec.shape), spec.mesh))

    def abstract(self):
        return ms.abstract_tensor(self.shape, to_meshard_dtype(self.dtype), self.sharding)

    def value(self, tensor):
        local = tensor._local_tensor if self.dtensor is not None else tensor
        if self.is_local:
            ids = list(self.mesh.device_ids)
            missing = [each for each in ids if each not in local._local_tensors]
            if missing:
                raise ValueError(f"[torch] {self.name} has no value for rank {missing[0]}")
            ranks = torch.stack([local._local_tensors[each] for each in ids])
            whole = ranks if self.stacked else _whole(ranks, self.spec, self.mesh, self.name)
        elif self.stacked or self.dtensor is not None and tuple(tensor.shape) != self.local_shape:
            raise ValueError(f"[torch] {self.name}: only the part of rank {dist.get_rank()} exists. Make it inside "
                             "LocalTensorMode, which keeps the part of every rank; explain() needs none")
        else:
            whole = local
        return ms.device_put(to_meshard(whole), self.sharding)

    def argument(self, local):
        """The argument of the program for one rank's tensor."""
        if self.dtensor is None:
            return local.detach().requires_grad_(True) if self.requires_grad else local
        from torch.distributed.tensor import DTensor

        return DTensor(local, self.dtensor, requires_grad=self.requires_grad)

    def write(self, tensor, ranks):
        """Updates the input with the value that the program wrote, a tensor [rank, ...] in mesh order."""
        with torch.no_grad():
            local = tensor._local_tensor if self.dtensor is not None else tensor
            if self.is_local:
                for own, value in zip(self.mesh.device_ids, ranks):
                    local._local_tensors[own].copy_(value)
            else:
                local.copy_(_whole(ranks, self.spec, self.mesh, self.name))


def _flatten_results(result):
    """The leaves of a result, and its structure.

    Raises TypeError for an object that may contain tensors that cannot be found.
    """
    leaves, structure = pytree.tree_flatten(result)
    for path, leaf in pytree.tree_flatten_with_path(result)[0]:
        if not isinstance(leaf, (torch.Tensor, *CONSTANTS)):
            raise TypeError(f"[torch] the result{pytree.keystr(path)} is a {type(leaf).__module__}."
                            f"{type(leaf).__qualname__}, whose tensors are not known: return tensors, or register "
                            "its class with torch.utils._pytree.register_pytree_node")
    return leaves, structure


def _modes(module):
    """Whether each module trains."""
    return tuple(each.training for each in module.modules())


class _Program:
    def __init__(self, owner, inputs, flat, structure, state):
        self._mesh = owner.mesh

        def whole(*given):
            own = iter(given[len(state):])
            args, kwargs = pytree.tree_unflatten(
                [next(own) if isinstance(each, torch.Tensor) else each for each in flat], structure)
            result = call_with(owner.function, owner.module, state, given, args, kwargs)
            leaves, self._structure = _flatten_results(result)
            specs = pytree._broadcast_to_and_flatten(owner.out_specs, self._structure, _is_spec) \
                if owner.out_specs is not None else [None] * len(leaves)
            if specs is None:
                raise ValueError(f"[torch] out_specs {owner.out_specs} do not have the structure of the result")
            self._results, locals = [], []
            for leaf, spec in zip(leaves, specs):
                if _is_dtensor(leaf):
                    partial = [each for each in leaf.placements if type(each).__name__ not in ("Shard", "Replicate")]
                    if spec is None and partial:
                        raise ValueError(f"[torch] a result is {partial[0]}: return its to_local() or full_tensor()")
                    spec = spec if spec is not None else (leaf.placements, leaf.device_mesh, leaf.ndim)
                    leaf = leaf._local_tensor
                if isinstance(leaf, torch.Tensor):
                    locals.append(leaf.detach().clone())  # a result of its own, even if it is an input
                    self._results.append((True, spec))
                else:
                    self._results.append((False, leaf))
            return locals

        self._graph, self._written, outer, self.outer = _capture(whole, inputs, owner.mesh)
        for one, name in zip(outer, outer_names(self.outer, owner.function)):
            one.name = name
        self.inputs = [*inputs, *outer]
        self._outer_keys = [one.key() for one in outer]
        # Meshes have no ranks to read while a program is captured.
        self._results = [(is_tensor, spec_of(other[0], mesh_of(other[1]), other[2]) if is_tensor and
                          isinstance(other, tuple) else other) for is_tensor, other in self._results]
        self._needs_key = needs_key(self._graph)
        self._run = ms.jit(self.record)

    def is_current(self):
        """Whether the tensors from outside have the types for which the program was recorded."""
        return self._outer_keys == [_Input(each, None, self._mesh, "").key() for each in self.outer]

    def record(self, *values, key=None):
        """The stacked results of all ranks, for the inputs as values of the mesh."""
        axes = tuple(self._mesh.axis_names)

        def local(key, *parts):
            given = [ms.vary(ms.squeeze(part, axis=0) if one.stacked else part, axes)
                     for one, part in zip(self.inputs, parts)]
            token = manual_mesh.set(self._mesh)
            try:
                with keys_from(key):
                    results = run_graph(self._graph, given)
            finally:
                manual_mesh.reset(token)
            return [ms.expand_dims(ms.vary(each, axes), axis=0) for each in results if isinstance(each, ms.Tensor)]

        specs = [ms.P(axes) if each.stacked else each.spec for each in self.inputs]
        return ms.manual(self._mesh, (ms.P(), *specs), ms.P(axes), local)(key, *values)

    def key(self):
        return new_key() if self._needs_key else None

    def __call__(self, tensors):
        key = self.key()
        values = [one.value(each) for one, each in zip(self.inputs, tensors)]
        made = self._run(*values, key=None if key is None else to_meshard(key))
        made = [to_host(each) for each in made]
        for index, ranks in zip(self._written, made):
            self.inputs[index].write(tensors[index], ranks)
        results, given = [], iter(made[len(self._written):])
        for i, (is_tensor, other) in enumerate(self._results):
            if not is_tensor:
                results.append(other)
                continue
            ranks = next(given)
            results.append(ranks if other is None else _whole(ranks, other, self._mesh, f"result {i}"))
        return pytree.tree_unflatten(results, self._structure)


def _is_spec(value):
    return value is None or isinstance(value, ms.P)


class PerRank:
    """A program that every rank runs; see per_rank()."""

    def __init__(self, function, mesh, in_specs, out_specs, module):
        owner = getattr(function, "__self__", function)
        self.function, self.mesh, self.in_specs, self.out_specs = function, mesh_of(mesh), in_specs, out_specs
        self.module = module if module is not None else owner if isinstance(owner, torch.nn.Module) else None
        self._programs = {}

    def _program(self, args, kwargs):
        state = {} if self.module is None else {**dict(self.module.named_parameters()),
                                                **dict(self.module.named_buffers())}
        flat, structure = pytree.tree_flatten((args, kwargs))
        specs = self.in_specs if _is_spec(self.in_specs) else tuple(self.in_specs)
        split = pytree._broadcast_to_and_flatten(specs, pytree.tree_structure(args), _is_spec)
        if split is None:
            raise ValueError(f"[torch] in_specs {specs} do not have the structure of the {len(args)} arguments")
        split += [None] * (len(flat) - len(split))
        split = [spec for each, spec in zip(flat, split) if isinstance(each, torch.Tensor)]
        names = [*state, *input_names(args, kwargs)]
        tensors = [*state.values(), *(each for each in flat if isinstance(each, torch.Tensor))]
        inputs = [_Input(each, spec, self.mesh, name)
                  for name, each, spec in zip(names, tensors, [None] * len(state) + split, strict=True)]
        others = tuple((type(each), each) for each in flat if not isinstance(each, torch.Tensor))
        key = (structure, others, *(each.key() for each in inputs),
               _modes(self.module) if self.module is not None else (), ambient())
        program = self._programs.get(key)
        if program is None or not program.is_current():
            program = self._programs[key] = _Program(self, inputs, flat, structure, state)
        return program, program.inputs, [*tensors, *program.outer]

    def __call__(self, *args, **kwargs):
        program, _, tensors = self._program(args, kwargs)
        return program(tensors)

    def inputs(self, args):
        """The inputs of a call: their names, shapes and shardings."""
        return self._program(args, {})[1]

    def as_function(self, args, kwargs, with_values):
        """(function, args, kwargs) of meshard, as _programs.as_function() returns them."""
        program, inputs, tensors = self._program(args, kwargs)
        values = {one.name: one.value(each) if with_values else one.abstract() for one, each in zip(inputs, tensors)}
        key = program.key()
        if key is not None:
            values["random key"] = to_meshard(key)

        def function(**given):
            key = given.pop("random key", None)
            return program.record(*(given[one.name] for one in inputs), key=key)

        function.__name__ = getattr(self.function, "__name__", type(self.function).__name__)
        return function, (), values


def per_rank(function, mesh, in_specs=None, out_specs=None, *, module=None):
    """Turns a program that is written for one rank into one program over a mesh: a manual region over all its axes.

        device_mesh = mt.simulated_device_mesh(mesh)                 # mesh = ms.Mesh({"data": 2, "model": 4})

        def step(x, up, down):                                       # what one rank computes, with its own part of each
            partial = torch.relu(x @ up) @ down
            return all_reduce(partial, "sum", (device_mesh, 1))      # torch.distributed._functional_collectives

        f = mt.per_rank(step, mesh, in_specs=(P("data"), P(None, "model"), P("model")), out_specs=P("data"))
        f(x, up, down)                                               # whole tensors in, a whole tensor out
        ms.explain(f, x, up, down, topology="v5e:2x4")

    `function` is a function, a module or a method of one. It may use DTensor, functional collectives, and those of
    torch.distributed over process groups whose ranks are those along some axes of the mesh. It is captured on one rank
    of PyTorch's fake process group; no process is started. Rank r is the device r of the mesh. The parameters and
    buffers of the module, or of `module`, are inputs, and so are tensors from closures. Each rank receives:
    - of a plain tensor, the part that its spec selects. `in_specs` is a P for all arguments, or a tuple that mirrors
      the arguments; None: the tensor's mark, or without a mark the whole tensor on every rank;
    - of a DTensor, its own part. To run, a DTensor that is sharded must be made inside LocalTensorMode, which keeps the
      parts of all ranks; to explain, the part of one rank is enough;
    - of a LocalTensor, the rank's value.

    A plain result is a tensor with the values of all ranks, [rank, ...] in mesh order, or with `out_specs` the whole
    tensor of which the ranks have parts. A DTensor also becomes a whole tensor. Inputs that the function writes to are
    updated: LocalTensors for each rank, others as whole tensors. Gradients are computed inside the function: `.grad` of
    a parameter, which backward() sets, is not visible outside.

    All ranks draw the same random numbers, as after the same torch.manual_seed().

    Collectives of torch.distributed that write to their arguments become functional collectives; the handle of an
    asynchronous one has only wait(). isend() and irecv(), alone or in batch_isend_irecv(), become permutations: every
    rank of a group must call both before it waits. A broadcast is the sum of one rank's value and zeros. A reduce()
    leaves the other ranks' values as they were.

    Coordinates and ranks (get_rank(), get_local_rank()) are values that differ by rank. Python code that branches on
    them or on elements of tensors, parts of different sizes, what only one rank has (gather, scatter, send, recv), and
    collectives of Python objects are not supported: they raise an error that names the line. Of a branch on an
    environment variable such as RANK, the side that this process takes is recorded.
    """
    return PerRank(function, mesh, in_specs, out_specs, module)
