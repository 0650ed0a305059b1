"""Losses other than the cross-entropies.

All are computed in f32 (f64 for f64) and reduced over the samples: "mean", "sum" or "none".
"""

from .._meshard import Tensor
from .._meshard import nn as _nn

__all__ = ["ctc_loss", "focal_loss", "huber_loss", "kl_divergence", "z_loss"]


def huber_loss(predictions, targets, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """e^2 / 2 where the error e = |predictions - targets| is at most delta, and delta (e - delta / 2) elsewhere.

    Each element is a sample (Huber: Robust Estimation of a Location Parameter, 1964).

    Raises InvalidArgumentError for shapes that differ, and unless delta is positive.

    >>> ms.nn.huber_loss(ms.asarray([0.0, 3.0]), ms.zeros(2), reduction="none").tolist()
    [0.0, 2.5]
    """
    return _nn.huber_loss(predictions, targets, delta, reduction)


def kl_divergence(log_predictions, targets, *, axis: int = -1, log_targets: bool = False,
                  reduction: str = "mean") -> Tensor:
    """The Kullback-Leibler divergence: the sum over the classes of target * (log(target) - log_prediction).

    Predictions are logarithms of probabilities, as log_softmax() gives, and with `log_targets` so are the targets. A
    target of 0 adds nothing. `axis` is the dimension of the classes.

    Raises InvalidArgumentError for shapes that differ.
    """
    return _nn.kl_divergence(log_predictions, targets, axis, log_targets, reduction)


def focal_loss(logits, targets, *, gamma: float = 2.0, alpha: float | None = None, reduction: str = "mean") -> Tensor:
    """The binary cross-entropy of each element, weighted by (1 - p)^gamma for the probability p of the right decision.

    Targets are from 0 to 1 (or bools) and have the shape of logits. `alpha` weights positive targets by alpha and
    negative ones by 1 - alpha (Lin et al.: Focal Loss for Dense Object Detection, 2017).

    Raises InvalidArgumentError for shapes that differ, a negative gamma, and an alpha outside 0 to 1.
    """
    return _nn.focal_loss(logits, targets, gamma, alpha, reduction)


def z_loss(logits, weight: float = 1e-4, *, axis: int = -1, reduction: str = "mean") -> Tensor:
    """weight * logsumexp(logits)^2, which keeps the normalizer of a softmax near 1. Add it to the cross-entropy.

    From de Brebisson and Vincent, 2016, and Chowdhery et al.: PaLM, 2022.
    """
    return _nn.z_loss(logits, weight, axis, reduction)


def ctc_loss(logits, labels, *, logit_lengths=None, label_lengths=None, blank: int = 0,
             reduction: str = "mean") -> Tensor:
    """-log of the probability that logits spell labels, with any repetitions and blanks (Graves et al., 2006).

    `logits` are [batch, time, classes], `labels` integers [batch, length]; the lengths are integers [batch], and what
    is beyond them is padding. `blank` is the class of the blank. The mean is over the sequences.

    Probabilities of 0 count as exp(-1e5): the loss of labels that do not fit into the positions is about 1e5, not
    infinite. It is NaN for a label that is not in 0..classes - 1.

    Raises InvalidArgumentError for shapes that do not match, labels or lengths that are not integers, and a blank that
    is not a class.
    """
    return _nn.ctc_loss(logits, labels, logit_lengths, label_lengths, blank, reduction)
