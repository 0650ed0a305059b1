"""Turns graphs of one rank into graphs of every rank: process groups become axes, and numbers by rank become values.

PyTorch's compile_on_one_rank leaves coordinates in the graph as symbols, and what is computed from them as expressions.
They are evaluated for every rank of the mesh: a result that all ranks share becomes a number, any other one a value of
the rank.
"""

import itertools
import math

import torch

from ._run import where
from .lowerings import collectives

_COORDINATE = "device_mesh._runtime_compute_coordinate_on_dim.default"
_GROUP = "_dtensor.mesh_get_process_group.default"
_SUBMESHES = ("device_mesh._get_flattened_submesh.default", "device_mesh._get_submesh.default")
_CHECKS = ("aten._assert_scalar.default", "aten.sym_constrain_range.default",
           "aten.sym_constrain_range_for_size.default")

# Of each collective: its function, and which of its arguments it takes, the group being the last one of the overload.
_COLLECTIVES = {
    "all_reduce": (collectives.all_reduce, (0, 1)),
    "all_gather_into_tensor": (collectives.all_gather, (0,)),
    "reduce_scatter_tensor": (collectives.reduce_scatter, (0, 1)),
    "all_to_all_single": (collectives.all_to_all, (0, 1, 2)),
    "broadcast": (collectives.broadcast, (0, 1)),
    "all_reduce_coalesced": (collectives.coalesced(collectives.all_reduce), (0, 1)),
    "all_gather_into_tensor_coalesced": (collectives.coalesced(collectives.all_gather), (0,)),
    "reduce_scatter_tensor_coalesced": (collectives.coalesced(collectives.reduce_scatter), (0, 1)),
    "permute_tensor": (collectives.permute, (0, 1)),
    "shard_dim_alltoall": (collectives.all_to_all_dimensions, (0, 1, 2)),
}
_IDENTITIES = ("wait_tensor", "wait_tensors", "_wrap_tensor_autograd")
_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "meshard")


def ranks_of(group):
    """The global ranks of a process group, or of a group's name."""
    from torch._library.fake_class_registry import maybe_unwrap_fake_script_object
    from torch.distributed.distributed_c10d import _resolve_process_group, get_process_group_ranks

    group = maybe_unwrap_fake_script_object(group)
    return list(get_process_group_ranks(_resolve_process_group(group) if isinstance(group, str) else group))


def axes_of(ranks, mesh, ordered=True):
    """The axes of a mesh along which a group runs, most significant first.

    Raises ValueError if no axes have the members of the group, or if the group is `ordered` and its order is not the
    mesh's: PyTorch sorts the ranks of a group, unless a mesh preserves their order.
    """
    ids, sizes = list(mesh.device_ids), [mesh.axis_size(each) for each in mesh.axis_names]
    strides = [math.prod(sizes[i + 1:]) for i in range(len(sizes))]
    if len(ranks) == 1:
        return ()
    same = None  # axes with the same members in another order
    if ranks[0] in ids:
        position = ids.index(ranks[0])
        long = [i for i, size in enumerate(sizes) if size > 1]
        for count in range(1, len(long) + 1):
            for chosen in itertools.permutations(long, count):
                if math.prod(sizes[i] for i in chosen) != len(ranks):
                    continue
                base = position - sum(position // strides[i] % sizes[i] * strides[i] for i in chosen)
                members = [ids[base + sum(c * strides[i] for c, i in zip(at, chosen))]
                           for at in itertools.product(*(range(sizes[i]) for i in chosen))]
                axes = tuple(mesh.axis_names[i] for i in chosen)
                if members == ranks and (ranks != sorted(ranks) or
                                         all(each == sorted(each) for each in groups_along(axes, mesh))):
                    return axes
                if same is None and set(members) == set(ranks):
                    same = axes
    if same is None:
        raise ValueError(f"[torch] the process group of the ranks {ranks} is not a set of axes of the {mesh}")
    if ordered:
        raise ValueError(f"[torch] the ranks {ranks} of a process group are those of the axes {', '.join(same)} of the "
                         f"{mesh} in another order: make the DeviceMesh with preserve_rank_order=True")
    return same


def groups_along(axes, mesh):
    """All groups of ranks along these axes."""
    import numpy as np  # no torch: this is called while a program is captured

    at = {name: i for i, name in enumerate(mesh.axis_names)}
    ids = np.reshape(list(mesh.device_ids), [mesh.axis_size(each) for each in mesh.axis_names])
    chosen = [at[each] for each in axes]
    others = [i for i in range(ids.ndim) if i not in chosen]
    return ids.transpose(*others, *chosen).reshape(-1, math.prod(ids.shape[i] for i in chosen)).tolist()


def stride_of(ranks, mesh):
    """The difference between neighboring ranks in all groups along the axes of these ranks; None if it varies."""
    found = {b - a for group in groups_along(axes_of(ranks, mesh), mesh) for a, b in zip(group, group[1:])}
    return found.pop() if len(found) == 1 else None


class _Resolver:
    def __init__(self, module, mesh):
        self.module, self.graph, self.mesh = module, module.graph, mesh
        self.ranks = list(mesh.device_ids)
        self.of_symbol = {}  # from a symbol to its value on each rank
        self.numbers = {}    # from a node that is a number to its value on each rank
        self.objects = {}    # from a node that is a group or a mesh to it
        self._known = {}

    def evaluate(self, value, node):
        """A number of PyTorch, which may be symbolic, on each rank."""
        if not isinstance(value, torch.SymInt | torch.SymBool | torch.SymFloat):
            return [value] * len(self.ranks)
        kind = int if isinstance(value, torch.SymInt) else bool if isinstance(value, torch.SymBool) else float
        expression = value.node.expr
        if expression in self._known:
            return self._known[expression]
        symbols = sorted(expression.free_symbols, key=str)
        unknown = [each for each in symbols if each not in self.of_symbol]
        if unknown:
            raise ValueError(f"{where(node)}[torch] {node.target}: a size depends on the elements of a tensor, so the "
                             "ranks are not one program")
        made = {}
        columns = list(zip(*(self.of_symbol[each] for each in symbols))) if symbols else [()] * len(self.ranks)
        for own in columns:
            if own not in made:
                made[own] = kind(expression.subs(dict(zip(symbols, own))))
        self._known[expression] = [made[own] for own in columns]
        return self._known[expression]

    def shared(self, values, node, what):
        if len(set(values)) != 1:
            raise ValueError(f"{where(node)}[torch] {node.target}: {what} differs by rank, {sorted(set(values))}: one "
                             "program for all ranks needs sizes that the mesh divides evenly")
        return values[0]

    def constant(self, node):
        """The value of a node that depends on constants only."""
        if node.op == "get_attr":
            return getattr(self.module, node.target)
        if node.target is collectives.constant:
            return self.constant(node.args[0])
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.constant)
        return node.target(*args, **kwargs)

    def object_of(self, node):
        """The group or mesh that a node represents; None if it is neither."""
        if node.op == "get_attr":
            from torch._library.fake_class_registry import maybe_unwrap_fake_script_object

            found = maybe_unwrap_fake_script_object(getattr(self.module, node.target))
            return None if isinstance(found, torch.Tensor | torch.nn.Module) else found
        if str(node.target) == _GROUP:
            return self.objects[node.args[0]].get_group(node.args[1])
        if str(node.target) in _SUBMESHES:
            from torch.distributed._ops import device_mesh

            make = device_mesh._get_submesh_impl if "_get_submesh" in str(node.target) \
                else device_mesh._get_flattened_submesh_impl
            return make(self.objects[node.args[0]], list(node.args[1]))
        return None

    def coordinate(self, node):
        full, index = self.constant(node.args[0]), node.args[1]
        places = {rank: at[index + 1] for at in itertools.product(*map(range, full.shape))
                  for rank in [int(full[at])]}
        missing = [rank for rank in self.ranks if rank not in places]
        if missing:
            raise ValueError(f"{where(node)}[torch] rank {missing[0]} of the {self.mesh} has no coordinate in a "
                             "device mesh of the program")
        return [places[rank] for rank in self.ranks]

    def replace(self, node, function, args):
        with self.graph.inserting_before(node):
            made = self.graph.call_function(function, args)
        made.meta = dict(node.meta)
        self.concrete(made)
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)
        made.args = self.without_numbers(made, made.args)

    def collective(self, node):
        """Rewrites collectives of groups as collectives along axes."""
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        namespace, name, *_ = str(node.target).split(".")
        if namespace not in _NAMESPACES:
            return False
        if name == "exchange":
            self.exchange(node)
            return True
        if name in _IDENTITIES:
            self.replace(node, collectives.identity, (node.args[0],))
            return True
        if name not in _COLLECTIVES:
            return False
        function, taken = _COLLECTIVES[name]
        schema = [each.name for each in node.target._schema.arguments]
        args = [node.args[i] if i < len(node.args) else node.kwargs[each] for i, each in enumerate(schema)]
        axes = self.axes(args[-1], node, ordered=not name.startswith("all_reduce"))
        self.replace(node, function, (*(args[i] for i in taken), self.mesh, axes))
        return True

    def axes(self, group, node, ordered=True):
        group = self.objects[group] if isinstance(group, torch.fx.Node) else group
        try:
            return axes_of(ranks_of(group), self.mesh, ordered)
        except ValueError as error:
            raise ValueError(f"{where(node)}{error}") from None

    def exchange(self, node):
        """Rewrites sends and receives, which every rank calls, as permutations along axes."""
        sent, targets, received, sources, group = node.args
        axes = self.axes(group, node)
        groups = groups_along(axes, self.mesh) if axes else [[each] for each in self.ranks]
        at = {rank: i for i, rank in enumerate(self.ranks)}
        targets, sources = ([[[values[at[rank]] for rank in each] for each in groups]
                             for values in map(self.on_ranks, peers)] for peers in (targets, sources))
        left, chosen, types = list(range(len(sent))), [], [self.type_of(each) for each in sent]
        for tensor, own in zip(received, sources):
            count = len(groups[0])
            matching = [i for i in left if types[i] == self.type_of(tensor) and all(
                0 <= source < count and to[source] == place
                for to, of in zip(targets[i], own) for place, source in enumerate(of))]
            if not matching:
                sends = "; ".join(f"{types[i]} to {targets[i][0]}" for i in left)
                raise ValueError(f"{where(node)}[torch] the ranks {groups[0]} receive {self.type_of(tensor)} from "
                                 f"{own[0]} of their group, but send {sends}: for each receive, all ranks need a send "
                                 "of the same shape and type to the rank that receives from them")
            if any(to != targets[matching[0]][0] for to in targets[matching[0]]):
                raise NotImplementedError(f"{where(node)}[torch] the groups along {', '.join(axes)} exchange values in "
                                          "different ways")
            left.remove(matching[0])
            chosen.append(matching[0])
        self.replace(node, collectives.exchange, ([sent[i] for i in chosen], [targets[i][0] for i in chosen],
                                                  self.mesh, axes))

    def type_of(self, node):
        return f"{node.meta['val'].dtype}{list(self.shape_of(node))}"

    def without_numbers(self, node, args, keep=()):
        """Arguments with the numbers that all ranks share, and nodes for those that differ."""

        def one(each):
            if each not in self.numbers:
                return each
            values = self.numbers[each]
            if len(set(values)) == 1:
                return values[0]
            with self.graph.inserting_before(node):
                made = self.graph.call_function(collectives.rank_value, (self.mesh, tuple(values)))
            made.meta = {key: value for key, value in node.meta.items() if key == "stack_trace"}
            return made

        def inside(value):
            if isinstance(value, torch.fx.Node):
                return one(value)
            if isinstance(value, list | tuple):
                made = [inside(each) for each in value]
                for each in value:
                    if isinstance(each, torch.fx.Node) and each in self.numbers:
                        self.shared(self.numbers[each], node, "a size")
                return type(value)(made) if type(value) in (list, tuple) else made
            return value

        return tuple(inside(each) for each in args)

    def arguments(self, node):
        schema = node.target._schema.arguments
        given = {each.name: each.default_value for each in schema if each.has_default_value()}
        return {**given, **dict(zip((each.name for each in schema), node.args)), **node.kwargs}

    def on_ranks(self, value):
        """A number among arguments on each rank; None for an omitted argument."""
        if isinstance(value, torch.fx.Node):
            return self.numbers[value]
        return [value] * len(self.ranks)

    def slice(self, node):
        """Rewrites slices whose offset differs by rank."""
        name = str(node.target)
        if not name.startswith(("aten.slice", "aten.select")):
            return False
        own = self.arguments(node)
        if name in ("aten.slice.Tensor", "aten.slice_copy.Tensor", "aten.slice_backward.default",
                    "aten.slice_scatter.default"):
            if own["step"] != 1:
                return False
            begin, end = self.on_ranks(own["start"]), self.on_ranks(own["end"])
        elif name in ("aten.select.int", "aten.select_copy.int", "aten.select_backward.default",
                      "aten.select_scatter.default"):
            begin, end = self.on_ranks(own["index"]), None
        else:
            return False
        if "backward" in name:
            shape = self.without_numbers(node, (list(own["input_sizes"]),))[0]
        else:
            shape = self.shape_of(own.get("self", own.get("input")))
        dim = own["dim"] % len(shape)
        ends = [None] * len(begin) if end is None else end
        bounds = [slice(first, last).indices(shape[dim])[:2] for first, last in zip(begin, ends)]
        starts = tuple(first for first, _ in bounds)
        if end is not None:
            size = self.shared([max(last - first, 0) for first, last in bounds], node, "the size of a slice")
            value = node.meta.get("val")
            if "backward" not in name and "scatter" not in name and isinstance(value, torch.Tensor) and \
                    isinstance(value.shape[dim], torch.SymInt):
                for symbol in value.shape[dim].node.expr.free_symbols:
                    # The size of such a slice is a symbol of its own.
                    if symbol == value.shape[dim].node.expr and symbol not in self.of_symbol:
                        self.of_symbol[symbol] = [size] * len(self.ranks)
        if len(set(starts)) == 1 and not any(isinstance(own[each], torch.fx.Node) for each in ("start", "end", "index")
                                             if each in own):
            return False
        if name in ("aten.slice.Tensor", "aten.slice_copy.Tensor"):
            self.replace(node, collectives.slice_at, (own["self"], dim, self.mesh, starts, size))
        elif name == "aten.slice_scatter.default":
            self.replace(node, collectives.update_at, (own["self"], own["src"], dim, self.mesh, starts))
        elif name == "aten.select_scatter.default":
            self.replace(node, collectives.update_row_at, (own["self"], own["src"], dim, self.mesh, starts))
        elif name == "aten.slice_backward.default":
            self.replace(node, collectives.padded_at, (own["grad_output"], shape, dim, self.mesh, starts))
        elif name == "aten.select_backward.default":
            self.replace(node, collectives.padded_row_at, (own["grad_output"], shape, dim, self.mesh, starts))
        else:
            self.replace(node, collectives.select_at, (own["self"], dim, self.mesh, starts))
        return True

    def shape_of(self, node):
        return tuple(self.shared(self.evaluate(size, node), node, "a size") for size in node.meta["val"].shape)

    def concrete(self, node):
        """Gives a node's tensors in `meta` the sizes that all ranks share."""

        def one(value):
            if not isinstance(value, torch.Tensor) or not any(isinstance(n, torch.SymInt) for n in value.shape):
                return value
            shape, strides = ([self.shared(self.evaluate(each, node), node, "a size") for each in sizes]
                              for sizes in (value.shape, value.stride()))
            return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")

        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            node.meta["val"] = one(value)
        elif isinstance(value, list | tuple):
            node.meta["val"] = [one(each) for each in value]

    def visit(self, node):
        if node.op not in ("get_attr", "call_function"):
            if node.op == "output":
                node.args = self.without_numbers(node, node.args)
            return
        found = self.object_of(node)
        if found is not None:
            self.objects[node] = found
            return
        if node.op == "get_attr":
            value = getattr(self.module, node.target)
            if isinstance(value, torch.Tensor):
                self.share(node)
            return
        name = str(node.target)
        value = node.meta.get("val")
        if name == _COORDINATE:
            self.numbers[node] = self.coordinate(node)
            if isinstance(value, torch.SymInt):
                self.of_symbol[value.node.expr] = self.numbers[node]
        elif isinstance(value, torch.SymInt | torch.SymBool | torch.SymFloat):
            self.numbers[node] = self.evaluate(value, node)
        elif name in _CHECKS:
            condition = node.args[0]
            if name == _CHECKS[0] and condition in self.numbers and not all(self.numbers[condition]):
                raise ValueError(f"{where(node)}[torch] {node.args[1]}")
            self.graph.erase_node(node)
        elif node.op == "call_function" and not (self.collective(node) or self.slice(node)):
            self.concrete(node)
            node.args = self.without_numbers(node, node.args)
            node.kwargs = dict(zip(node.kwargs, self.without_numbers(node, tuple(node.kwargs.values()))))
            if not node.all_input_nodes and isinstance(node.meta.get("val"), torch.Tensor):
                self.share(node)

    def share(self, node):
        """Marks a value that depends on no input as the same on every rank."""
        with self.graph.inserting_after(node):
            made = self.graph.call_function(collectives.constant, (node, self.mesh))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)

    def run(self):
        for node in list(self.graph.nodes):
            self.visit(node)
        self.graph.eliminate_dead_code()
        for node in reversed(list(self.graph.nodes)):
            if not node.users and node.op in ("get_attr", "call_function") and (
                    node in self.objects or node in self.numbers or str(node.target) in (_COORDINATE, _GROUP)):
                self.graph.erase_node(node)
        return self.module


def for_every_rank(module, mesh):
    """Rewrites a graph that was captured on one rank of a mesh; returns the graph module."""
    return _Resolver(module, mesh).run()
