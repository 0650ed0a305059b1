"""Losses that are operations of their own."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers
from ._helpers import cast


def _linear_cross_entropy(x, linear_weight, linear_bias, target, weight, reduction, ignore_index, label_smoothing):
    """The cross entropy of x [samples, features] times the weight [classes, features], in float32 or wider."""
    dtype = torch.float64 if to_torch(x.dtype) == torch.float64 else torch.float32
    logits = ms.dot_general(cast(x, dtype), cast(linear_weight, dtype), lhs_contracting=(1,), rhs_contracting=(1,))
    if linear_bias is not None:
        logits = logits + cast(linear_bias, dtype)
    logs = ms.log_softmax(logits, axis=-1)
    classes = logs.shape[-1]
    if to_torch(target.dtype).is_floating_point:
        wanted = cast(target, dtype) * (1 - label_smoothing) + label_smoothing / classes
        terms = wanted * logs
        losses = -ms.sum(terms if weight is None else terms * cast(weight, dtype), axis=-1)
        total = x.shape[0]
    else:
        kept = ms.not_equal(target, ms.full_like(target, ignore_index))
        index = ms.where(kept, target, ms.zeros_like(target))
        each = cast(kept, dtype)
        if weight is not None:
            each = each * ms.take(cast(weight, dtype), index, axis=0)
        losses = -ms.take_along_axis(logs, index[:, None], axis=-1)[:, 0] * each
        if label_smoothing:
            smooth = -ms.sum(logs if weight is None else logs * cast(weight, dtype), axis=-1) * cast(kept, dtype)
            losses = losses * (1 - label_smoothing) + smooth * (label_smoothing / classes)
        total = ms.sum(each)
    if reduction == "none":
        return losses
    return ms.sum(losses) / total if reduction == "mean" else ms.sum(losses)


@lowers("torch_nn._linear_cross_entropy_batch_chunked")
def linear_cross_entropy(x, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,
                         batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph, compute_input_grad,
                         compute_linear_weight_grad, compute_linear_bias_grad):
    """The loss and its gradients; the sizes of chunks are those of PyTorch's own computation."""
    def loss(x, linear_weight, linear_bias):
        return _linear_cross_entropy(x, linear_weight, linear_bias, target, weight, reduction, ignore_index,
                                     label_smoothing)

    dtype = to_torch(x.dtype)
    bias = ms.zeros(linear_weight.shape[:1], dtype=linear_weight.dtype) if linear_bias is None else linear_bias
    made, pullback = ms.vjp(loss, x, linear_weight, bias)
    of_x, of_weight, of_bias = pullback(ms.ones_like(made))
    none = ms.zeros((0, 0), dtype=x.dtype)
    return (cast(made, dtype), of_x if compute_input_grad else none,
            cast(of_weight, dtype) if compute_linear_weight_grad else none,
            cast(of_bias, dtype) if compute_linear_bias_grad else ms.zeros((0,), dtype=x.dtype))


@lowers("torch_nn._linear_cross_entropy_batch_chunked_no_reduction")
def linear_cross_entropy_of_each(x, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size,
                                 acc_policy, acc_dtype):
    made = _linear_cross_entropy(x, linear_weight, linear_bias, target, weight, "none", ignore_index, 0.0)
    return cast(made, to_torch(x.dtype))
