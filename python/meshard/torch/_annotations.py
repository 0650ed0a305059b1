"""Meshes, placements and plans of PyTorch as marks."""

import difflib
import fnmatch

import torch

import meshard as ms

from ._marks import is_captured, mark_sharding, sharding_of


def mesh_of(device_mesh):
    """Converts a torch.distributed.DeviceMesh to a mesh of meshard; no process group is needed.

    A mesh of meshard is returned unchanged. A slice of a DeviceMesh becomes a slice of its root's mesh, so that both
    name the same axes.
    """
    if isinstance(device_mesh, ms.Mesh):
        return device_mesh
    names = device_mesh.mesh_dim_names or tuple(f"dim_{i}" for i in range(device_mesh.ndim))
    root = device_mesh._get_root_mesh()
    if root is not device_mesh and root is not None:
        whole = mesh_of(root)
        unknown = [name for name in names if name not in whole.axis_names]
        if unknown:
            raise ValueError(f"[torch] the dimension {unknown[0]!r} is not one of the root mesh {whole}: name the "
                             "dimensions that were flattened")
        return whole[names]
    ranks = device_mesh.mesh
    return ms.Mesh(dict(zip(names, ranks.shape, strict=True)), ranks.flatten().tolist())


def device_mesh_of(mesh, device_type="cpu"):
    """The torch.distributed.DeviceMesh of a mesh, without process groups."""
    from torch.distributed.device_mesh import DeviceMesh

    ranks = torch.tensor(list(mesh.device_ids), dtype=torch.int).reshape(tuple(mesh.shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=tuple(mesh.axis_names), _init_backend=False, _rank=0)


def _kind(placement):
    """The name of the class of a placement, of PyTorch or of meshard."""
    return type(placement).__name__


def _axes_of(placements, mesh, rank):
    """The names of the axes that split each dimension, by placements: one for each axis of the mesh."""
    names = list(mesh.axis_names)
    if len(placements) != len(names):
        raise ValueError(f"[torch] {len(placements)} placements for a mesh with {len(names)} axes: give one for each "
                         f"axis of {mesh}")
    split = [[] for _ in range(rank)]
    for name, placement in zip(names, placements):
        if _kind(placement) == "Shard":
            if not -rank <= placement.dim < rank:
                raise ValueError(f"[torch] {placement} of a tensor with {rank} dimensions")
            split[placement.dim].append(name)
        elif _kind(placement) != "Replicate":
            raise ValueError(f"[torch] a whole tensor cannot be marked {placement}: use Shard(dim) or "
                             "Replicate()")
    return split


def _spec(split):
    """The spec of the names of the axes that split each dimension."""
    return ms.P(*(tuple(names) if names else None for names in split))


def _split_of(tensor, mesh):
    """The names of the axes by which a tensor's mark on this mesh splits each dimension."""
    sharding = sharding_of(tensor)
    if sharding is None or sharding.mesh != mesh:
        return [[] for _ in range(tensor.ndim)]
    return [list(sharding.axes(d)) for d in range(tensor.ndim)]


def spec_of(placements, mesh, rank):
    """The partition spec for placements as distribute_tensor() takes them."""
    return _spec(_axes_of(placements, mesh, rank))


def distribute_tensor(tensor, device_mesh, placements):
    """Marks a tensor with the sharding that DTensor's function of this name gives it. Returns the tensor, still whole.

    `device_mesh` is a mesh of meshard or a torch.distributed.DeviceMesh, and `placements` has a Shard or Replicate of
    PyTorch for each of its axes.

        >>> from torch.distributed.tensor import Replicate, Shard
        >>> mesh = ms.Mesh({"data": 2, "model": 2})
        >>> weight = mt.distribute_tensor(torch.ones(4, 8), mesh, [Replicate(), Shard(1)])
        >>> mt.sharding_of(weight).spec
        P(None, 'model')

    Raises ValueError unless each axis has one placement.
    """
    mesh = mesh_of(device_mesh)
    return mark_sharding(tensor, mesh, spec_of(placements, mesh, tensor.ndim))


def _unmatched(what, pattern, names):
    nearest = difflib.get_close_matches(pattern, names, 3, 0.4)
    hint = f"; the nearest names are {', '.join(nearest)}" if nearest else ""
    return ValueError(f"[torch] {what} {pattern!r} matches nothing{hint}")


def shard(module, mesh, specs):
    """Marks the parameters and buffers of a module by patterns over their names. Returns the module.

        shard(model, mesh, {"*.q_proj.weight": P("model", None), "*.o_proj.weight": P(None, "model")})

    `*`, `?` and `[abc]` are as in fnmatch; of several patterns that match a name, the last one decides.

    Raises ValueError for a pattern that matches nothing, and InvalidArgumentError for a spec that does not fit.

    >>> model = torch.nn.Linear(4, 8)
    >>> _ = mt.shard(model, ms.Mesh({"model": 4}), {"weight": ms.P("model", None)})
    >>> mt.sharding_of(model.weight).spec
    P('model', None)
    """
    mesh = mesh_of(mesh)
    tensors = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers())}
    chosen = {}
    for pattern, spec in specs.items():
        names = [name for name in tensors if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            raise _unmatched("the pattern", pattern, list(tensors))
        chosen |= dict.fromkeys(names, spec)
    for name, spec in chosen.items():
        try:
            mark_sharding(tensors[name], mesh, spec)
        except ms.Error as error:
            error.add_note(f"it is the spec of {name}, {tuple(tensors[name].shape)}")
            raise
    return module


def fully_shard(module, mesh, axis=None):
    """Splits every parameter of a module over an axis, as PyTorch's FSDP does. Returns the module.

    It splits the first dimension that the axis divides and that no other axis splits. A parameter without such a
    dimension, or that the axis already splits, is unchanged. The compiler gathers a parameter where it is used and
    scatters its gradient. `axis` may be left out for a mesh with one axis. The caller marks the batch.

        >>> model = mt.fully_shard(torch.nn.Linear(4, 8), ms.Mesh({"data": 4}))
        >>> mt.sharding_of(model.weight).spec, mt.sharding_of(model.bias).spec
        (P('data', None), P('data'))

    Raises ValueError if `axis` is missing for a mesh with several axes, or is not one of the mesh's.
    """
    mesh, axis = with_axis(mesh, axis)
    for parameter in module.parameters():
        spec = spec_split_further(parameter, mesh, axis)
        if spec is not None:
            mark_sharding(parameter, mesh, spec)
    return module


def spec_split_further(tensor, mesh, axis):
    """A tensor's spec with the axis added to the first dimension that it can split; None if it can split none."""
    split, size = _split_of(tensor, mesh), mesh.axis_size(axis)
    free = [d for d in range(tensor.ndim) if not split[d] and tensor.shape[d] % size == 0]
    if not free or any(axis in names for names in split):
        return None
    split[free[0]] = [axis]
    return _spec(split)


def with_axis(mesh, axis):
    mesh = mesh_of(mesh)
    if axis is None:
        if len(mesh.axis_names) != 1:
            raise ValueError(f"[torch] which axis of {mesh}? Pass axis=, one of {', '.join(mesh.axis_names)}")
        axis = mesh.axis_names[0]
    elif axis not in mesh.axis_names:
        raise _unmatched("the axis", axis, list(mesh.axis_names))
    # A slice may be marked on the whole mesh, so that the slices of several plans can be used together.
    return (mesh.base if axis in mesh.base.axis_names else mesh), axis


class _Plan:
    """The marks of styles of tensor parallelism over one axis of a mesh."""

    def __init__(self, mesh, axis):
        self.mesh, self.axis = mesh, axis

    def mark_parameter(self, parameter, dim):
        """Splits a dimension of a parameter, or no dimension, by the axis; splits by other axes are kept."""
        split = [[name for name in names if name != self.axis] for names in _split_of(parameter, self.mesh)]
        if dim is not None:
            split[dim].append(self.axis)
        mark_sharding(parameter, self.mesh, _spec(split))

    def mark_value(self, value, placement):
        """Constrains a value inside a program along the axis; the compiler chooses for other axes."""
        if placement is None or not isinstance(value, torch.Tensor) or not is_captured(value):
            return value
        entries = [ms.UNCONSTRAINED] * value.ndim
        if _kind(placement) == "Shard":
            entries[placement.dim] = self.axis
            return mark_sharding(value, self.mesh, ms.P(*entries))
        if _kind(placement) == "Replicate":
            return mark_sharding(value, self.mesh, ms.Sharding(self.mesh, ms.P(*entries), value.ndim,
                                                               replicated=self.axis))
        raise ValueError(f"[torch] a value inside a program cannot be marked as {placement}")

    def mark_values(self, values, placements):
        if placements is None:
            return values
        if isinstance(values, torch.Tensor):
            return self.mark_value(values, _first(placements))
        placements = placements if isinstance(placements, tuple | list) else (placements,)
        return tuple(self.mark_value(value, placements[i] if i < len(placements) else None)
                     for i, value in enumerate(values))

    def add_hooks(self, module, inputs, outputs, keywords=None):
        def before(module, args, kwargs):
            args = self.mark_values(args, inputs)
            return args, {name: self.mark_value(value, (keywords or {}).get(name)) for name, value in kwargs.items()}

        def after(module, args, output):
            return self.mark_values(output, outputs)

        if inputs is not None or keywords:
            module.register_forward_pre_hook(before, with_kwargs=True)
        if outputs is not None:
            module.register_forward_hook(after)

    def apply(self, name, module, style):
        kind = _kind(style)
        if kind in ("ColwiseParallel", "RowwiseParallel"):
            self._linear(name, module, style, kind == "ColwiseParallel")
        elif kind == "EmbeddingParallel":
            self.mark_parameter(module.weight, style.shard_dim)
            self.add_hooks(module, None, _replicate())
        elif kind == "SequenceParallel":
            sequence = getattr(style, "sequence_sharding", None) or (_shard(style.sequence_dim),)
            self.add_hooks(module, sequence, sequence)
        elif kind == "PrepareModuleInput":
            self.add_hooks(module, style.desired_input_layouts, None, style.desired_input_kwarg_layouts)
        elif kind == "PrepareModuleOutput":
            self.add_hooks(module, None, style.desired_output_layouts)
        elif kind == "PrepareModuleInputOutput":
            self.apply(name, module, style.prepare_module_input)
            self.apply(name, module, style.prepare_module_output)
        elif kind in ("PackedColwiseParallel", "PackedRowwiseParallel"):
            for own, parameter in module.named_parameters(recurse=False):
                self.apply_to_parameter(f"{name}.{own}", parameter, style)
        elif kind in ("AllReduceParallel", "MoeExpertsParallel", "EpDispatchExpertsParallel"):
            self.add_hooks(module, None, _replicate())
        elif kind not in ("ReplicatedWithGradAllReduce", "TensorParallelLayer", "NoParallel", "MlaKvAProjParallel",
                          "MoeIdentityParallel", "LocalParamsParallel"):
            # What is replicated needs no mark: the compiler sums its gradient.
            raise NotImplementedError(f"[torch] the style {kind} of {name} has no mark: give its parameters specs by "
                                      "shard()")

    def apply_to_parameter(self, name, parameter, style):
        """Marks a parameter that a plan names, such as the weights of all experts [experts, out, in]."""
        kind = _kind(style)
        if kind in ("ColwiseParallel", "PackedColwiseParallel"):
            # Of packed weights, such as those of a gate and of what it scales, transformers gives each rank the same
            # part of both. Tensors are whole here, so it is the compiler's to move the parts together.
            self.mark_parameter(parameter, max(parameter.ndim - 2, 0))
        elif kind in ("RowwiseParallel", "PackedRowwiseParallel"):
            replicated = name.endswith(".bias") or kind == "PackedRowwiseParallel" and parameter.ndim == 1
            self.mark_parameter(parameter, None if replicated else parameter.ndim - 1)
        elif kind == "MoEParamShard":
            self.mark_parameter(parameter, style.placement.dim)
        elif kind not in ("ReplicatedWithGradAllReduce", "TensorParallelLayer"):
            raise NotImplementedError(f"[torch] the style {kind} of the parameter {name} has no mark: give it a spec "
                                      "by shard()")

    def _linear(self, name, module, style, by_columns):
        if isinstance(module, torch.nn.Linear):
            self.mark_parameter(module.weight, 0 if by_columns else 1)
            if module.bias is not None:
                self.mark_parameter(module.bias, 0 if by_columns else None)
            desired = _replicate() if by_columns else _shard(-1)
        elif isinstance(module, torch.nn.Embedding):
            self.mark_parameter(module.weight, 1 if by_columns else 0)
            desired = _replicate()
        else:
            raise NotImplementedError(f"[torch] {_kind(style)} of {name}, a {_kind(module)}: it is for Linear and "
                                      "Embedding")
        self.add_hooks(module, desired, style.output_layouts)


def _first(placements):
    return placements[0] if isinstance(placements, tuple | list) else placements


def _replicate():
    return ms.Replicate()


def _shard(dim):
    from torch.distributed.tensor.placement_types import Shard

    return Shard(dim)


def _modules_of(module, path):
    """The modules that a path of a plan names, each part a pattern as in PyTorch's parallelize_module."""
    if path == "":
        return {"": module}
    return {name: each for name, each in module.named_modules() if name and _matches(name, path)}


def _parameters_of(module, path):
    """The parameters that a path names. Plans of transformers contain such paths."""
    return {name: each for name, each in module.named_parameters() if _matches(name, path)}


def _matches(name, path):
    own, parts = name.split("."), path.split(".")
    return len(own) == len(parts) and all(map(fnmatch.fnmatchcase, own, parts))


def _plan_of_transformers(module):
    plan = getattr(module, "tp_plan", None) or getattr(module, "_tp_plan", None)
    if not plan:
        raise ValueError(f"[torch] {_kind(module)} has no plan of its own (tp_plan): pass plan=")
    from transformers.integrations.tensor_parallel import ALL_PARALLEL_STYLES

    return {path: ALL_PARALLEL_STYLES[style] if isinstance(style, str) else style for path, style in plan.items()}


def parallelize_module(module, device_mesh, parallelize_plan=None, *, axis=None):
    """Marks a module by a plan of PyTorch's tensor parallelism. Returns the module.

        plan = {"layers.*.up": ColwiseParallel(), "layers.*.down": RowwiseParallel()}
        parallelize_module(model, mesh, plan, axis="model")

    Without `plan`, a model of `transformers` is marked by its own plan (`tp_plan`). Styles define how weights are
    split, and their layouts how inputs and outputs of modules are sharded, along `axis` only, which may be left out for
    a mesh with one axis. Tensors stay whole: a module sees all heads, whatever the value of `use_local_output`. A path
    may also name a parameter, which is split as the style splits weights.

    Raises ValueError for a path that matches nothing, unless it is in the model's own plan, and NotImplementedError for
    a style that marks cannot express.
    """
    mesh, axis = with_axis(device_mesh, axis)
    plan = _plan_of_transformers(module) if parallelize_plan is None else parallelize_plan
    if not isinstance(plan, dict):
        plan = {"": plan}
    marks = _Plan(mesh, axis)
    for path, style in plan.items():
        modules = _modules_of(module, path)
        parameters = {} if modules else _parameters_of(module, path)
        # The plans of transformers are those of all models with a configuration: one may lack experts, for example.
        if not modules and not parameters and parallelize_plan is not None:
            raise _unmatched("the path", path, [name for name, _ in module.named_modules() if name])
        for name, each in modules.items():
            marks.apply(name or _kind(module), each, style)
        for name, each in parameters.items():
            marks.apply_to_parameter(name, each, style)
    return module
