"""torch.utils.checkpoint in captured functions: values are recomputed in the backward pass."""

import contextlib

import torch
from torch.utils import _pytree as pytree
from torch.utils import checkpoint as of_pytorch
from torch.utils._python_dispatch import TorchDispatchMode

import meshard as ms

from ._table import lowers


@torch.library.custom_op("meshard::computed_again", mutates_args=())
def computed_again(x: torch.Tensor) -> torch.Tensor:
    """An input of a recomputation, which the compiler must not merge with the first computation."""
    return x.clone()


@computed_again.register_fake
def _(x):
    return torch.empty_like(x)


computed_again.register_autograd(lambda ctx, cotangent: cotangent)


lowers("meshard.computed_again")(ms.optimization_barrier)


def _is_random(func):
    return torch.Tag.nondeterministic_seeded in func.tags


class _Kept(TorchDispatchMode):
    """Stores the random values that a function draws."""

    def __init__(self):
        super().__init__()
        self.values = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if _is_random(func):
            # Not the result of an operation in place, to which the function may write again.
            self.values.append(pytree.tree_map_only(torch.Tensor, torch.clone, result)
                               if func._schema.is_mutable else result)
        return result


class _Again(TorchDispatchMode):
    """Passes the stored random values to a function."""

    def __init__(self, values):
        super().__init__()
        self._values = iter(values)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not _is_random(func):
            return func(*args, **(kwargs or {}))
        value = next(self._values)
        return args[0].copy_(value) if func._schema.is_mutable else value


@contextlib.contextmanager
def _with_hooks():
    """While active, hooks on saved tensors are called although a graph is captured."""
    before = torch._C._autograd._saved_tensors_hooks_set_tracing(False)
    try:
        yield
    finally:
        torch._C._autograd._saved_tensors_hooks_set_tracing(before)


_original = of_pytorch._checkpoint_without_reentrant_generator_impl


def _generator(function, args, kwargs, **options):
    """PyTorch's generator. It takes the function for the backward pass only: the caller runs the forward pass."""
    kept = _Kept()

    def again(*args, **kwargs):
        args, kwargs = pytree.tree_map_only(torch.Tensor, computed_again, (args, kwargs))
        with _with_hooks(), _Again(kept.values):
            return function(*args, **kwargs)

    with _with_hooks(), kept:
        yield from _original(again, args, kwargs, **{**options, "preserve_rng_state": False})


class _Function:
    """Replaces the autograd function of checkpoint(use_reentrant=True), which differentiates by itself."""

    @staticmethod
    def apply(function, preserve, *args):
        return of_pytorch.checkpoint(function, *args, use_reentrant=False)


changes = [(of_pytorch, "CheckpointFunction", _Function),
           (of_pytorch, "_checkpoint_without_reentrant_generator_impl", _generator)]
"""What is other than in PyTorch while a function is captured, as changed_attributes() takes it."""
