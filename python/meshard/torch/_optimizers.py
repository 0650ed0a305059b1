"""Steps of PyTorch's optimizers on the tensors of a trace."""

import contextlib

import torch
from torch.utils import _pytree as pytree

RATES = ("params", "lr", "initial_lr")
"""What a group of parameters has besides the options that are part of a program."""


def number_of(option):
    """An option of an optimizer, with the numbers of its tensors."""
    if isinstance(option, torch.Tensor):
        return option.item() if option.numel() == 1 else option.tolist()
    return type(option)(map(number_of, option)) if type(option) in (tuple, list) else option


class Powers(torch.overrides.TorchFunctionMode):
    """Computes powers of numbers in float64, as Python does: 1 - 0.999 ** step has only four digits in float32."""

    _FUNCTIONS = (torch.pow, torch.Tensor.pow, torch.Tensor.__pow__, torch.Tensor.__rpow__, torch._foreach_pow)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in Powers._FUNCTIONS:
            args = pytree.tree_map_only(torch.Tensor, lambda x: x if x.ndim or x.dtype != torch.float32 else x.double(),
                                        args)
        return func(*args, **(kwargs or {}))


def traced_states(optimizer, of, slots):
    """The state of an optimizer in terms of the tensors `of` a trace, by the id of the parameter that each replaces.

    `slots` has (parameter, name, tensor) for each tensor of the state.
    """
    traced = type(optimizer.state)(optimizer.state.default_factory)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter in optimizer.state:
                traced[of[id(parameter)]] = {name: value for name, value in optimizer.state[parameter].items()
                                             if not isinstance(value, torch.Tensor)}
    for parameter, name, value in slots:
        traced[of[id(parameter)]][name] = value
    return traced


@contextlib.contextmanager
def swapped(optimizer, of, traced, rates):
    """While active, the optimizer has the parameters, states and learning rates of the trace.

    Raises NotImplementedError if the optimizer changes numbers of Python, which a program cannot.
    """
    groups, before = optimizer.param_groups, optimizer.state
    kept = [dict(group) for group in groups]
    numbers = _numbers_of(groups, traced)
    try:
        for group, rate in zip(groups, rates):
            # "capturable" computes with tensors what depends on the step, instead of numbers; a program needs no
            # fused kernels.
            own = {"capturable": True, "fused": False}
            group.update({name: own.get(name, number_of(option)) for name, option in group.items()
                          if name not in RATES})
            group.update(params=[of[id(parameter)] for parameter in group["params"]], lr=rate)
        optimizer.state = traced
        yield
        changed = sorted(name for name, value in _numbers_of(groups, traced).items() if numbers.get(name) != value)
        if changed:
            raise NotImplementedError(f"[torch] {type(optimizer).__name__} keeps {', '.join(map(repr, changed))} as a "
                                      "number that changes in each step: a program needs a tensor for it")
    finally:
        optimizer.state = before
        for group, own in zip(groups, kept):
            group.clear()
            group.update(own)


def _numbers_of(groups, states):
    """From names to the numbers of Python that an optimizer keeps in its groups and its state, in order."""
    numbers = {}
    for each in (*groups, *states.values()):
        for name, value in each.items():
            if isinstance(value, (int, float)) and name not in RATES and name not in ("capturable", "fused"):
                numbers.setdefault(name, []).append(value)
    return numbers
