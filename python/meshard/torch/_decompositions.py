"""Decompositions that PyTorch lacks: operations on lists of tensors, fused optimizers, and scales of gradients."""

import torch

NUMBERS_TO_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""The operations whose second operand may be a number only in lists."""


def _norm(x, ord=2, dtype=None):
    return torch.linalg.vector_norm(x, ord, dtype=dtype)


def _power_sum(x, ord=2, dtype=None):
    return torch.sum(torch.abs(x if dtype is None else x.to(dtype)) ** ord)


def with_value(operation):
    return lambda x, a, b, value=1: operation(x, a, b, value=value)


WITH_VALUE = ("addcmul", "addcdiv")
OF_ONE = {"norm": _norm, "powsum": _power_sum, "zero": torch.zeros_like, "copy": torch.ops.aten.copy.default,
           "addcmul": with_value(torch.addcmul), "addcdiv": with_value(torch.addcdiv)}
"""The operations on one tensor, where `torch` has none of that name with the same arguments."""


def of_lists(schema, operation):
    """The operation of this schema on lists, as a function that calls `operation` for each of their elements."""
    lists = [isinstance(each.type, torch.ListType) for each in schema.arguments]

    def decomposed(*args, is_list=lists, **kwargs):
        size = next(len(each) for each, flag in zip(args, is_list) if flag)
        return [operation(*(each[i] if flag else each for each, flag in zip(args, is_list)), **kwargs)
                for i in range(size)]

    return decomposed


def _decomposed_lists(name, schema):
    """The decomposition of the operation `aten._foreach_<name>`: an operation for each element of the lists."""
    lists = [isinstance(each.type, torch.ListType) for each in schema.arguments]
    if name in NUMBERS_TO_BOUNDS and not lists[1:] == [True] or schema.overload_name == "ScalarList":
        name = NUMBERS_TO_BOUNDS.get(name, name)
    operation = OF_ONE.get(name) or getattr(torch, name)
    of_each = of_lists(schema, operation)
    if name not in WITH_VALUE or schema.overload_name != "Tensor":
        return of_each
    return lambda *args: of_each(*args[:3], args[3].unbind(), is_list=[True] * 4)


def _unscaled(grads, grad_scale):
    return grads if grad_scale is None else [each / grad_scale for each in grads]


def _kept_if(found_inf, before, after):
    """Lists of lists of tensors: the values before the update where gradients are not finite."""
    if found_inf is None:
        return after
    skip = found_inf == 1
    return tuple([torch.where(skip, x, y) for x, y in zip(old, new)] for old, new in zip(before, after))


def _fused_adam(decoupled):
    def update(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay,
               eps, amsgrad, maximize, grad_scale=None, found_inf=None):
        before = params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs
        grads = _unscaled(grads, grad_scale)
        made = [], [], [], []
        for i, (param, grad, step) in enumerate(zip(params, grads, state_steps)):
            grad = -grad if maximize else grad
            if weight_decay != 0 and decoupled:
                param = param * (1 - lr * weight_decay)
            elif weight_decay != 0:
                grad = grad + param * weight_decay
            exp_avg = torch.lerp(exp_avgs[i], grad, 1 - beta1)
            exp_avg_sq = exp_avg_sqs[i] * beta2 + grad * grad * (1 - beta2)
            largest = torch.maximum(max_exp_avg_sqs[i], exp_avg_sq) if amsgrad else exp_avg_sq
            denominator = largest.sqrt() / (1 - beta2 ** step).sqrt() + eps
            param = param - lr / (1 - beta1 ** step) * exp_avg / denominator
            for results, each in zip(made, (param, exp_avg, exp_avg_sq, *([largest] if amsgrad else []))):
                results.append(each)
        params, *states = _kept_if(found_inf, before, made)
        return params, grads, *states

    return update


def _fused_sgd(params, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize,
               is_first_step, grad_scale=None, found_inf=None):
    before = params, momentum_buffer_list
    grads = _unscaled(grads, grad_scale)
    updated, buffers = [], []
    for i, (param, grad) in enumerate(zip(params, grads)):
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad + param * weight_decay
        if momentum != 0:
            buffer = grad.clone() if is_first_step else momentum_buffer_list[i] * momentum + grad * (1 - dampening)
            buffers.append(buffer)
            grad = grad + buffer * momentum if nesterov else buffer
        updated.append(param - lr * grad)
    params, buffers = _kept_if(found_inf, before, (updated, buffers))
    return params, grads, buffers


def _fused_adagrad(returns_steps):
    def update(params, grads, state_sums, state_steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None,
               found_inf=None):
        before = params, state_sums
        grads = _unscaled(grads, grad_scale)
        updated, sums = [], []
        for param, grad, total, step in zip(params, grads, state_sums, state_steps):
            grad = -grad if maximize else grad
            if weight_decay != 0:
                grad = grad + param * weight_decay
            total = total + grad * grad
            updated.append(param - lr / (1 + (step - 1) * lr_decay) * grad / (total.sqrt() + eps))
            sums.append(total)
        params, sums = _kept_if(found_inf, before, (updated, sums))
        return (params, grads, sums, list(state_steps)) if returns_steps else (params, grads, sums)

    return update


def _check_and_unscale(grads, found_inf, inv_scale):
    for grad in grads:
        found_inf = torch.maximum(found_inf, (~torch.isfinite(grad)).any().to(found_inf.dtype))
    return [(grad * inv_scale).to(grad.dtype) for grad in grads], found_inf


def _update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    grown = growth_tracker + 1
    grows = grown == growth_interval
    larger = scale * growth_factor
    after = torch.where(grows & torch.isfinite(larger), larger, scale)
    tracker = torch.where(grows, torch.zeros_like(grown), grown)
    skipped = found_inf != 0
    return torch.where(skipped, scale * backoff_factor, after), torch.where(skipped, torch.zeros_like(tracker), tracker)


def _random_from(x, low, high, *, generator=None):
    """The operation's name is a keyword of Python, so that graphs cannot contain it."""
    if generator is not None:
        raise NotImplementedError("[torch] random numbers from a generator are not supported: seed with "
                                  "torch.manual_seed")
    return torch.ops.aten.randint.low(low, 2**63 - 1 if high is None else high, x.shape, dtype=x.dtype)


_OTHERS = {
    "random.from": _random_from,
    "_fused_adam.default": _fused_adam(False), "_fused_adam.tensor_lr": _fused_adam(False),
    "_fused_adamw.default": _fused_adam(True), "_fused_adamw.tensor_lr": _fused_adam(True),
    "_fused_sgd.default": _fused_sgd, "_fused_sgd.tensor_lr": _fused_sgd,
    "_fused_adagrad.default": _fused_adagrad(True), "_fused_adagrad.tensor_lr": _fused_adagrad(False),
    "_amp_foreach_non_finite_check_and_unscale.default": _check_and_unscale,
    "_amp_update_scale.default": _update_scale,
}


def own_decompositions():
    """From overloads to their decompositions, except overloads that this version of PyTorch lacks."""
    table = {}
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::_foreach_"):
            continue
        name, _, overload = full.removeprefix("aten::").partition(".")
        if name.endswith("_") or overload == "out" or overload.endswith("_out"):
            continue
        found = getattr(getattr(torch.ops.aten, name), overload or "default")
        one = name.removeprefix("_foreach_")
        if one in OF_ONE or hasattr(torch, one):
            table[found] = _decomposed_lists(one, found._schema)
    for full, function in _OTHERS.items():
        name, overload = full.split(".")
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None and overload in packet.overloads():
            table[getattr(packet, overload)] = function
    return table
