"""Replacements for functions of PyTorch that read elements of tensors: programs compute what these would read.

Checks of elements are left out, because a program cannot raise an error that depends on elements.
"""

import math

import torch
from torch.nn import functional
from torch.nn.modules import batchnorm, transformer

FUNCTIONS = {}
"""From functions of PyTorch to those that are called in their place while a function is captured."""


def _in_place_of(*functions):
    def register(own):
        FUNCTIONS.update((each, own) for each in functions)
        return own

    return register


@_in_place_of(functional.gaussian_nll_loss)
def _gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if not isinstance(var, torch.Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = torch.full_like(x, var)
    if var.shape != x.shape and x.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    elif var.shape != x.shape and (x.ndim != var.ndim or sum(m for n, m in zip(x.shape, var.shape) if n != m) != 1):
        raise ValueError("var is of incorrect size")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (x - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


@_in_place_of(torch.cov, torch.Tensor.cov)
def _cov(x, *, correction=1, fweights=None, aweights=None):
    if x.ndim > 2 or x.dtype == torch.bool:
        raise RuntimeError(f"cov(): expected at most two dimensions and no bool, not {x.ndim} and {x.dtype}")
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    count = rows.shape[1]
    for weights, is_kind, kind in ((fweights, lambda of: not of.is_floating_point, "integers"),
                                   (aweights, lambda of: of.is_floating_point, "floating-point numbers")):
        if weights is not None and (weights.ndim > 1 or weights.numel() != count or not is_kind(weights.dtype)):
            raise RuntimeError(f"cov(): expected {count} {kind} as weights, not {weights.dtype} {[*weights.shape]}")
    given = [each for each in (fweights, aweights) if each is not None]
    w = math.prod(given[1:], start=given[0]) if given else None
    total = torch.tensor(count) if w is None else w.sum()
    mean = (rows if w is None else rows * w).sum(1) / total
    if aweights is not None and correction:
        factor = total - correction * (w * aweights).sum() / total
    else:
        factor = total - correction
    centered = rows - mean.unsqueeze(1)
    product = centered @ (centered if w is None else centered * w).mH
    return (product / factor.clamp(min=0)).squeeze()


@_in_place_of(torch.corrcoef, torch.Tensor.corrcoef)
def _corrcoef(x):
    c = _cov(x)
    if not c.ndim:
        return c / c
    deviations = torch.sqrt(c.diagonal().real if c.is_complex() else c.diagonal())
    c = c / deviations[:, None] / deviations
    return torch.complex(c.real.clip(-1, 1), c.imag.clip(-1, 1)) if c.is_complex() else c.clip(-1, 1)


@_in_place_of(functional.ctc_loss)
def _ctc_loss(log_probs, targets, input_lengths, target_lengths, **options):
    """Passes lengths as tensors: PyTorch copies lists to a tensor and reads its elements."""
    lengths = [each if isinstance(each, torch.Tensor) else torch.tensor(each)
               for each in (input_lengths, target_lengths)]
    return functional.ctc_loss(log_probs, targets, *lengths, **options)


@_in_place_of(functional.multilabel_margin_loss)
def _multilabel_margin_loss(x, *args, **kwargs):
    """PyTorch's graph of it has one dimension for the loss of one vector, and its kernel none."""
    loss = functional.multilabel_margin_loss(x, *args, **kwargs)
    return loss.reshape(()) if x.ndim < 2 else loss


_batch_norm = batchnorm._BatchNorm.forward


def _cumulative(self, x):
    """Batch normalization. With `momentum=None`, PyTorch reads the number of averaged batches."""
    if self.momentum is not None or not self.training or self.running_mean is None or self.num_batches_tracked is None:
        return _batch_norm(self, x)
    self._check_input_dim(x)
    self.num_batches_tracked.add_(1)
    batch = torch.zeros_like(self.running_mean), torch.zeros_like(self.running_var)
    result = functional.batch_norm(x, *batch, self.weight, self.bias, True, 1.0, self.eps)  # 1.0: those of this batch
    with torch.no_grad():
        for running, value in zip((self.running_mean, self.running_var), batch):
            running.lerp_(value, (1 / self.num_batches_tracked).to(value.dtype))
    return result


def _is_causal(mask, is_causal=None, size=None):
    """The caller's `is_causal`. PyTorch also reads the mask, to choose between kernels with the same result."""
    return is_causal is True


changes = [(batchnorm._BatchNorm, "forward", _cumulative), (transformer, "_detect_is_causal_mask", _is_causal)]
"""What is other than in PyTorch while a function is captured, as changed_attributes() takes it."""
