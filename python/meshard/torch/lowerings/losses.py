"""Losses that are operations of their own."""

import torch

import meshard as ms

from .._dtypes import to_torch
from .._table import lowers, results_of
from ._helpers import array, cast


_UNLIKELY = -1e30
"""In place of the logarithm of 0: infinite ones have no derivative."""


def _targets_by_sample(targets, lengths, longest):
    """Targets [batch, longest], also from targets concatenated in one dimension; unspecified beyond the lengths."""
    if targets.ndim == 2:
        return targets[:, :longest]
    places = ms.expand_dims(ms.subtract(ms.cumulative_sum(lengths, axis=0), lengths), axis=1)
    places = ms.add(places, ms.arange(0, longest, 1, dtype=ms.int64))
    return ms.take(targets, ms.clip(places, 0, max(targets.shape[0] - 1, 0)), axis=0)


def _ctc(log_probs, targets, input_lengths, target_lengths, blank):
    """The negative log likelihoods [batch], which may be infinite, and the forward variables [batch, time, states].

    The states of a sample are its targets, with a blank before, between and after them.
    """
    steps, batch, classes = log_probs.shape
    longest = max(target_lengths, default=0) if isinstance(target_lengths, (list, tuple)) else targets.shape[-1]
    input_lengths, target_lengths = (ms.astype(array(each), ms.int64) for each in (input_lengths, target_lengths))
    states = 2 * longest + 1
    labels = ms.full((batch, states), blank, dtype=ms.int64)
    if longest:
        inner = cast(_targets_by_sample(targets, target_lengths, longest), torch.int64)
        pairs = ms.stack([inner, ms.full((batch, longest), blank, dtype=ms.int64)], axis=2)
        labels = ms.concat([labels[:, :1], ms.reshape(pairs, (batch, 2 * longest))], axis=1)
    numbers = ms.iota(ms.int64, (batch, states), 1)
    used = ms.less_equal(numbers, 2 * target_lengths[:, None])
    low = ms.full((), _UNLIKELY, dtype=log_probs.dtype)
    # A target may follow another one without a blank between them.
    two_before = ms.concat([ms.full((batch, min(2, states)), -1, dtype=ms.int64), labels[:, :-2]], axis=1)
    skips = ms.logical_and(ms.logical_and(ms.equal(numbers % 2, 1), ms.greater(numbers, 1)),
                           ms.not_equal(labels, two_before))

    def emitted(step_log_probs):
        found = ms.take_along_axis(step_log_probs, ms.clip(labels, 0, classes - 1), axis=1)
        return ms.maximum(found, low)

    def shifted(alpha, by):
        by = min(by, states)
        return ms.concat([ms.full((batch, by), _UNLIKELY, dtype=alpha.dtype), alpha[:, :states - by]], axis=1)

    def log_sum(*terms):
        return ms.logsumexp(ms.stack(terms, axis=0), axis=0)

    def step(carry, given):
        alpha, number = carry
        found = emitted(given)
        start = ms.where(ms.logical_and(ms.less(numbers, 2), used), found, low)
        next_alpha = log_sum(alpha, shifted(alpha, 1), ms.where(skips, shifted(alpha, 2), low)) + found
        next_alpha = ms.where(ms.equal(number, 0), start, ms.where(used, next_alpha, low))
        alpha = ms.where(ms.less(number, input_lengths)[:, None], next_alpha, alpha)
        return (alpha, number + 1), alpha

    start = ms.full((batch, states), _UNLIKELY, dtype=log_probs.dtype), ms.zeros((), dtype=ms.int64)
    (alpha, _), every = ms.scan(step, start, log_probs)

    def at(place):
        found = ms.take_along_axis(alpha, ms.maximum(place, ms.zeros_like(place))[:, None], axis=1)[:, 0]
        return ms.where(ms.less(place, 0), low, found)

    likelihood = log_sum(at(2 * target_lengths), at(2 * target_lengths - 1))
    nothing = ms.logical_and(ms.equal(input_lengths, 0), ms.equal(target_lengths, 0))
    likelihood = ms.where(nothing, ms.zeros_like(likelihood), likelihood)
    likelihood = ms.where(ms.less(likelihood, _UNLIKELY / 2), ms.full_like(likelihood, float("-inf")), likelihood)
    return -likelihood, ms.swapaxes(every, 0, 1)


@results_of("aten._ctc_loss.default", "aten._ctc_loss.Tensor")
def _ctc_loss_results(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    time, batch, _ = log_probs.shape
    longest = max(target_lengths, default=0) if isinstance(target_lengths, (list, tuple)) else targets.shape[-1]
    return log_probs.new_empty((batch,)), log_probs.new_empty((batch, time, 2 * longest + 1))


@lowers("aten._ctc_loss.default", "aten._ctc_loss.Tensor")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    losses, alpha = _ctc(log_probs, targets, input_lengths, target_lengths, blank)
    return losses, ms.where(ms.less(alpha, _UNLIKELY / 2), ms.full_like(alpha, float("-inf")), alpha)


@lowers("aten._ctc_loss_backward.default", "aten._ctc_loss_backward.Tensor")
def ctc_loss_backward(gradient, log_probs, targets, input_lengths, target_lengths, losses, alpha, blank,
                      zero_infinity=False):
    """The gradient with respect to the values before log_softmax, which gave `log_probs`, as PyTorch defines it."""
    _, pullback = ms.vjp(lambda x: _ctc(x, targets, input_lengths, target_lengths, blank)[0], log_probs)
    infinite = ms.isinf(losses)
    made = pullback(ms.where(infinite, ms.zeros_like(gradient), gradient))[0] + ms.exp(log_probs) * gradient[:, None]
    value = ms.full((), 0 if zero_infinity else float("nan"), dtype=made.dtype)
    made = ms.where(infinite[:, None], value, made)
    steps = ms.iota(ms.int64, made.shape, 0)
    lengths = ms.astype(array(input_lengths), ms.int64)[:, None]
    return ms.where(ms.less(steps, lengths), made, ms.zeros_like(made))


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
    """The loss and its gradients. PyTorch's chunk sizes are ignored."""
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
