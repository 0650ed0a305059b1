"""Sharding annotations, manual regions, and tensors made of shards."""

import functools

from . import _meshard, tree
from ._array_api.creation import as_tensor
from ._errors import Error
from ._meshard import LocalShard, StrictSpecs

__all__ = ["mark_sharding", "device_put", "clear_sharding", "sharding_constraint", "StrictSpecs",
           "forbid_collectives", "manual", "enable_manual_sharding",
           "disable_manual_sharding", "mark_manual_sharding", "valid_size", "abstract_tensor", "is_abstract", "LocalShard",
           "local_shards", "from_shards", "from_local", "from_callback", "load_local_shards", "held_parts", "transfer"]


_Tensor = _meshard.Tensor
_Spec = _meshard.PartitionSpec
_Placements = _meshard.Placements
_PLACEMENT = (_meshard.Shard, _meshard.Replicate, _meshard.Partial)


def _local_shards(self):
    """The shards on the devices of this process, in mesh order; see meshard.local_shards()."""
    return _meshard.local_shards(self)


_Tensor.local_shards = _local_shards
_Tensor.addressable_shards = property(_local_shards, doc="local_shards(), as JAX calls it.")


def _is_placements(value):
    return (isinstance(value, _Placements) or
            isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, _PLACEMENT) for each in value))


def _is_spec(value):
    """Whether a value is a P, or JAX's PartitionSpec, which is not a tuple."""
    return isinstance(value, _Spec) or type(value).__name__ == "PartitionSpec" and hasattr(value, "partitions")


def _is_sharding_of_jax(value):
    return type(value).__name__ == "NamedSharding" and hasattr(value, "mesh") and hasattr(value, "spec")


def _is_where(value):
    """Whether a value says how one tensor is sharded; None: it stays as it is."""
    return (value is None or isinstance(value, (_meshard.Sharding, _meshard.ShardingSpec)) or _is_spec(value) or
            _is_sharding_of_jax(value) or _is_placements(value))


def _where(value):
    if _is_sharding_of_jax(value):
        return _meshard.Sharding(value)
    return _Placements(value) if isinstance(value, (list, tuple)) and _is_placements(value) else value


def _each(function, x, specs, what):
    """Calls `function(leaf, spec)` with each leaf of x and what a prefix says about it; None leaves it as it is."""
    leaves, around = tree.flatten(x)
    found = tree.broadcast_prefix(specs, x, _is_where)
    results = []
    for i, (leaf, spec) in enumerate(zip(leaves, found, strict=True)):
        try:
            results.append(leaf if spec is None else function(leaf, _where(spec)))
        except Error as error:
            if path := around.paths[i]:
                error.add_note(f"while {what} {path}")
            raise
    return around.unflatten(results)


def _mesh_and_specs(name, where):
    """The mesh, as a tuple of one or none, and the specs."""
    if not 1 <= len(where) <= 2:
        raise TypeError(f"{name}(): after the value, it takes a mesh and specs, or shardings alone, not {len(where)} arguments")
    return where[:-1], where[-1]


def mark_sharding(x, *where):
    """Shards tensors: `mark_sharding(x, mesh, P("data", None))`.

    `where` is a mesh and specs, or specs that have their own mesh: a Sharding, or a ShardingSpec; without a mesh, a P
    is over the global mesh. `x` is a tensor or a structure of tensors; the specs are one for all tensors, or a
    structure of them that follows `x` from the top, in which one spec stands for all tensors below its place, and None
    leaves them as they are. DTensor's form, a placement for each axis of the mesh, is a spec too:
    `mark_sharding(x, mesh, [Shard(0), Replicate()])`. Dimensions beyond a spec are not split.

    An existing value is placed now: each shard goes directly from host memory, or from the devices that have it, to its
    device. A value that is only recorded, and every value inside jit or a function that is being differentiated, gets a
    sharding_constraint. `x` itself is unchanged; a value that already has the sharding is returned.

    Raises InvalidArgumentError if a spec has more dimensions than the tensor (or, inside StrictSpecs, fewer),
    NotFoundError for an axis that the mesh lacks, and ValueError if the specs do not follow `x`.

    >>> mesh = ms.Mesh({"data": 2, "model": 4})
    >>> x = ms.mark_sharding(ms.ones((4, 8)), mesh, ms.P("data", "model"))
    >>> x.sharding
    Sharding(Mesh({'data': 2, 'model': 4}), P('data', 'model'))
    >>> x.local_shards()[0].data.shape
    (2, 2)
    >>> params = {"w": ms.ones((4, 8)), "b": ms.ones(8)}
    >>> params = ms.mark_sharding(params, mesh, {"w": ms.P(None, "model"), "b": ms.P()})
    """
    mesh, specs = _mesh_and_specs("mark_sharding", where)
    if isinstance(x, _Tensor):
        return _meshard.mark_sharding(x, *mesh, _where(specs))
    return _each(lambda leaf, spec: _meshard.mark_sharding(leaf, *mesh, spec), x, specs, "marking")


def transfer(x, *where):
    """A copy of tensors on the devices of a sharding: `transfer(x, sharding)` or `transfer(x, mesh, spec)`.

    `x` is a tensor or a structure, and `where` is as in mark_sharding, but without a global mesh. `x` is computed first
    if it is only recorded, and stays on its devices. Use this to move values between sets of devices, because one
    program runs on one set. Shards are copied directly between devices if the plugin supports it.

    Raises FailedPreconditionError inside jit and inside a function that is being differentiated.

    >>> x = ms.transfer(ms.ones((4, 8)), ms.Mesh({"x": 2}, [2, 3]), ms.P("x"))
    >>> x.placement
    'devices 2,3'
    """
    mesh, specs = _mesh_and_specs("transfer", where)

    def moved(leaf, spec):
        if isinstance(spec, _Placements):
            return _meshard.transfer(leaf, spec.sharding(*mesh, leaf.ndim))
        return _meshard.transfer(leaf, *mesh, spec)

    return moved(x, _where(specs)) if isinstance(x, _Tensor) else _each(moved, x, specs, "moving")


def device_put(x, *where):
    """Moves tensors now, as JAX's function of this name: transfer(). mark_sharding() inside jit is a constraint.

    >>> x = ms.device_put(ms.ones((4, 8)), ms.Mesh({"x": 4}), ms.P("x"))
    >>> x.sharding
    Sharding(Mesh({'x': 4}), P('x', None))
    """
    return transfer(x, *where)


def clear_sharding(x):
    """The same values without annotations: the compiler chooses their shardings again. No data moves.

    `x` is a tensor or a structure of tensors.

    >>> x = ms.mark_sharding(ms.ones(8), ms.Mesh({"x": 4}), ms.P("x"))
    >>> ms.clear_sharding(x).sharding is None
    True
    """
    if isinstance(x, _Tensor):
        return _meshard.ops.clear_sharding(x)
    return tree.map(_meshard.ops.clear_sharding, x)


def sharding_constraint(x, *where):
    """The same values with shardings that the compiler must use, as mark_sharding, but only recorded for any `x`.

    `where` is a mesh and specs, or Shardings.

    >>> mesh = ms.Mesh({"x": 4})
    >>> double = ms.jit(lambda x: ms.sharding_constraint(2 * x, mesh, ms.P("x")))
    >>> double(ms.ones(8)).sharding
    Sharding(Mesh({'x': 4}), P('x'))
    """
    *mesh, specs = where

    def constrain(leaf, spec):
        if mesh:
            if isinstance(spec, _Placements):
                spec = spec.sharding(*mesh, leaf.ndim)
            else:
                spec = _meshard.Sharding(*mesh, spec)
        return _meshard.ops.sharding_constraint(leaf, spec)

    return _each(constrain, x, specs, "constraining")


def forbid_collectives(axes):
    """While a `with` block of it runs, an op that would communicate over these mesh axes is an error at its line.

        mesh = Mesh({"data": 2, "model": 4}).with_axis_kind(["data", "model"], "explicit")
        x = mark_sharding(ones((8, 16)), mesh, P("data", "model"))
        with forbid_collectives("model"):
            y = tanh(x)                 # nothing moves
            sum(x, 1)                   # InvalidArgumentError: [sum] communicates over axis "model"

    `axes` is a name or several. An op communicates if it sums over a dimension that the axis splits, needs one whole,
    shifts elements along it, or reshards a value, and if it is a collective in a manual function. Nothing is compiled;
    functions that are jitted are recorded again when they are called in the block. The axes must be explicit or manual:
    along others the compiler decides, and an op on a value over them is an error, too. Reading a value on the host is
    not checked.
    """
    return _meshard.ForbidCollectives([axes] if isinstance(axes, str) else list(axes))


def _is_shape(value):
    return isinstance(value, (list, tuple)) and all(isinstance(size, int) for size in value)


def manual(mesh, in_specs, out_specs, f=None, *, axes=(), out_shapes=None, pad=None):
    """A function that runs `f` on the shards of every device of `mesh`. JAX calls this shard_map.

        @manual(mesh, in_specs=P("x"), out_specs=P())
        def total(part):                              # f32[2] on each of four devices
            return all_reduce(sum(part), "x")

        total(ones(8))                                # 8

    `f` receives each device's part of the arguments, as `in_specs` split them, and returns each device's part of the
    results, which `out_specs` combine. `in_specs` is a P for all arguments, or a tuple with an entry for each: a P, or
    a structure that follows the argument from the top; `out_specs` is the same for the result. Inside, f may use the
    collectives and axis_index over the manual axes: those named by `axes`, by default all axes of the mesh. Functions
    of this kind nest, over other axes of the same mesh.

    A local value varies over the axes that split it. In an out_spec, an axis may be left out only if the result does
    not vary over it. A dimension of an argument that does not divide evenly is an error unless `pad` says with what the
    last parts are padded: a number, or "sum", "prod", "max" or "min" for the element that does not change this
    reduction. `valid_size(part, axis)` is the number of other elements; gradients of the padding are dropped.
    `out_shapes`, the full shapes of the results as a structure like out_specs, says where the padding is removed.

    >>> mesh = ms.Mesh({"x": 4})
    >>> total = ms.manual(mesh, ms.P("x"), ms.P(), lambda part: ms.all_reduce(part.sum(), "x"))
    >>> total(ms.ones(8)).item()
    8.0
    """
    if f is None:
        return lambda function: manual(mesh, in_specs, out_specs, function, axes=axes, out_shapes=out_shapes, pad=pad)
    names = [axes] if isinstance(axes, str) else list(axes)

    def specs_of(result):
        return tree.broadcast_prefix(out_specs, result, _is_spec)

    def shapes_of(result):
        return tree.broadcast_prefix(out_shapes, result, _is_shape)

    @functools.wraps(f)
    def on_each_device(*args):
        specs = tree.broadcast_prefix(in_specs if _is_spec(in_specs) else tuple(in_specs), args, _is_spec)
        shapes = None if out_shapes is None else shapes_of
        return _meshard.call_manual(f, args, mesh, specs, specs_of, shapes, names, pad)

    return on_each_device


def enable_manual_sharding(x, *where, pad=None):
    """Each device's part of `x`, as a spec splits it: `enable_manual_sharding(x, mesh, spec)`, or over the global mesh.

    From here on, all axes of the mesh are manual, until disable_manual_sharding. `manual` does both for a function; its
    documentation explains `pad`.
    """
    return _meshard.ops.enable_manual_sharding(x, *where, pad=pad)


def disable_manual_sharding(x, *where):
    """The full value whose parts are the local value `x`: `disable_manual_sharding(x, mesh, spec, full_shape)`."""
    return _meshard.ops.disable_manual_sharding(x, *where)


def mark_manual_sharding(x, *mesh):
    """`x` as a local value on each device of the mesh, with the shape of x, which does not vary."""
    return _meshard.ops.mark_manual_sharding(x, *mesh)


def valid_size(part, axis):
    """The number of elements along `axis` of this device's part that are not padding: an integer of rank 0.

    `part` is an argument of a function given to `manual`, or a result of enable_manual_sharding. The last parts are
    shorter, and may be empty: of 7 elements, four devices have 2, 2, 2 and 1.
    """
    return _meshard.ops.valid_size(part, axis)


def abstract_tensor(shape, dtype, *where):
    """A tensor with a type and maybe a sharding, but no value: for explain, plans and shapes of results.

    `where` is nothing, a Sharding, or a mesh and a spec. Functions may be traced with it, and mark_sharding gives it
    another sharding. Reading it raises FailedPreconditionError.

    >>> mesh = ms.Mesh({"data": 8})
    >>> x = ms.abstract_tensor((1024, 64), "bfloat16", mesh, ms.P("data"))
    >>> x.shape, x.dtype
    ((1024, 64), dtype(bfloat16))
    """
    if len(where) == 2:
        where = (_meshard.Sharding(*where),)
    return _meshard.abstract_tensor(shape, dtype, *where)


def is_abstract(x):
    """Whether abstract_tensor() made the tensor.

    >>> ms.is_abstract(ms.abstract_tensor((2, 3), "float32")), ms.is_abstract(ms.ones((2, 3)))
    (True, False)
    """
    return _meshard.is_abstract(as_tensor(x))


def local_shards(x):
    """The shards of a tensor on the devices of this process, in mesh order, as a list of LocalShard.

    Computes the tensor if it is only recorded. A tensor on one device has one shard; one on the host has none.

    >>> x = ms.mark_sharding(ms.arange(8), ms.Mesh({"x": 4}), ms.P("x"))
    >>> [shard.data.tolist() for shard in ms.local_shards(x)]
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    return _meshard.local_shards(as_tensor(x))


def from_shards(shards, mesh, spec, shape=None):
    """A tensor made of one array for each position of the mesh, in mesh order, each sent to its own device.

    `shape` is that of the whole value; None: the spec's number of tiles, of full shards. A shard may be unpadded, or
    padded to the shard shape. In a run of several processes, each may pass only the shards of its own devices.

    >>> mesh = ms.Mesh({"x": 2})
    >>> x = ms.from_shards([np.zeros(2), np.ones(2)], mesh, ms.P("x"))
    >>> x.tolist(), x.sharding
    ([0.0, 0.0, 1.0, 1.0], Sharding(Mesh({'x': 2}), P('x')))
    """
    return _meshard.from_shards(shards, mesh, spec, shape)


def from_local(tensors, mesh, spec, shape=None):
    """A tensor made of one tensor for each position of the mesh. Those already on their devices stay there."""
    return _meshard.from_local([as_tensor(each) for each in tensors], mesh, spec, shape)


def from_callback(shape, sharding, callback, dtype):
    """A tensor made of the parts that `callback(index)` returns, each for a tuple of slices.

    It is called once for each distinct part that devices of this process hold; the whole value is never made. The parts
    are arrays of `dtype`, or what numpy.asarray makes arrays of.

    >>> mesh = ms.Mesh({"x": 4})
    >>> rows = np.arange(8, dtype=np.float32)
    >>> ms.from_callback((8,), ms.Sharding(mesh, ms.P("x")), lambda index: rows[index], "float32").sum().item()
    28.0
    """
    return _meshard.from_callback(shape, sharding, callback, dtype)


def load_local_shards(x, shards):
    """A tensor like `x` with these shards, in mesh order. Raises FailedPreconditionError for a replicated tensor."""
    return _meshard.load_local_shards(x, shards)


def held_parts(x):
    """The distinct parts of a value as (index, processes that hold it) pairs, in row-major order.

    >>> x = ms.mark_sharding(ms.ones(4), ms.Mesh({"x": 2}), ms.P("x"))
    >>> ms.held_parts(x)
    [((slice(0, 2, None),), [0]), ((slice(2, 4, None),), [0])]
    """
    return _meshard.held_parts(x)
