"""Products of tensors that keep the dimensions which PyTorch flattens for its matrix kernels.

PyTorch computes a product of tensors with more dimensions as view, mm or bmm, view. A flattened dimension cannot keep
the sharding of both of its parts (a batch split by "data" and heads split by "model"), so the partitioner would gather
them.
"""

import torch

import meshard as ms

_VIEWS = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")
_TRANSPOSES = ("aten.t.default",)


def _batched(a, b):
    return ms.matmul(a, b)


def _product(a, b):
    return ms.tensordot(a, b, axes=1)


def _biased_product(bias, a, b):
    return ms.tensordot(a, b, axes=1) + bias


def _contracted(a, b):
    """The matrix [m, n] of the sums of a[..., m] * b[..., n] over all dimensions except the last."""
    axes = list(range(a.ndim - 1))
    return ms.tensordot(a, b, axes=(axes, axes))


def _is(node, names):
    return isinstance(node, torch.fx.Node) and node.op == "call_function" and str(node.target) in names


def _shape(node):
    value = node.meta.get("val")
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def _unflattened(node, kept):
    """What a view that flattens all but the last `kept` dimensions into one was made from; None for anything else."""
    if not _is(node, _VIEWS):
        return None
    source = node.args[0]
    before, after = _shape(source), _shape(node)
    if before is None or after is None or len(before) <= len(after) or len(after) != kept + 1:
        return None
    return source if before[len(before) - kept:] == after[1:] else None


def _all_unflatten(node, leading, kept):
    """Whether all users of a node are views that restore these leading dimensions."""
    own = _shape(node)
    wanted = leading + own[len(own) - kept:]
    return bool(node.users) and all(_is(user, _VIEWS) and _shape(user) == wanted for user in node.users)


def keep_batches(module):
    """Rewrites such products in a graph of ATen operations; returns the graph module."""
    graph = module.graph
    for node in list(graph.nodes):
        if _is(node, ("aten.bmm.default",)):
            _rewrite_bmm(graph, node)
        elif _is(node, ("aten.mm.default",)):
            _rewrite_contraction(graph, node) or _rewrite_rows(graph, node, _product, node.args[0], node.args)
        elif _is(node, ("aten.addmm.default",)) and not node.kwargs and len(node.args) == 3:
            if len(_shape(node.args[0]) or ()) == 1:
                _rewrite_rows(graph, node, _biased_product, node.args[1], node.args)
    graph.eliminate_dead_code()
    return module


def _insert(graph, node, function, args, shape):
    with graph.inserting_before(node):
        made = graph.call_function(function, args)
    made.meta = dict(node.meta)
    made.meta["val"] = node.meta["val"].new_empty(shape)
    return made


def _replace_views(node, made):
    for user in list(node.users):
        user.replace_all_uses_with(made)


def _rewrite_bmm(graph, node):
    a, b = (_unflattened(each, 2) for each in node.args)
    if a is None or b is None or _shape(a)[:-2] != _shape(b)[:-2]:
        return
    leading = _shape(a)[:-2]
    if _all_unflatten(node, leading, 2):
        _replace_views(node, _insert(graph, node, _batched, (a, b), leading + _shape(node)[1:]))


def _rewrite_rows(graph, node, function, rows, args):
    whole = _unflattened(rows, 1)
    if whole is None or not _all_unflatten(node, _shape(whole)[:-1], 1):
        return
    own = tuple(whole if each is rows else each for each in args)
    _replace_views(node, _insert(graph, node, function, own, _shape(whole)[:-1] + _shape(node)[1:]))


def _rewrite_contraction(graph, node):
    """A product over flattened rows, as in the gradient of a weight: t(view(a)) @ view(b)."""
    left, right = node.args
    if not _is(left, _TRANSPOSES):
        return False
    a, b = _unflattened(left.args[0], 1), _unflattened(right, 1)
    if a is None or b is None or _shape(a)[:-1] != _shape(b)[:-1]:
        return False
    node.replace_all_uses_with(_insert(graph, node, _contracted, (a, b), _shape(node)))
    return True
