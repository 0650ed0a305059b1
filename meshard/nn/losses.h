// Losses other than the cross-entropies (ops/composite/softmax.h).
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/ops/composite/softmax.h"

namespace meshard::nn {

// All are computed in f32 (f64 for f64), and reduced over the samples: by default to their mean, a
// scalar.

/// Huber loss: e^2 / 2 where the error e = |predictions - targets| is at most delta, and delta * (e
/// - delta / 2) elsewhere (Huber: Robust Estimation of a Location Parameter, 1964). Each element is
/// a sample.
/// @error shapes that differ; delta is not positive
Tensor huber_loss(In predictions, In targets, double delta = 1,
                  LossReduction reduction = LossReduction::kMean);

/// Options of kl_divergence().
struct KlOptions {
  std::int64_t dimension = -1;  ///< the dimension of the classes
  bool log_targets = false;     ///< the targets are logarithms of probabilities
  LossReduction reduction = LossReduction::kMean;
};
/// The Kullback-Leibler divergence of predictions from targets: the sum over the classes of target
/// * (log(target) - log_prediction). Predictions are logarithms of probabilities, as log_softmax()
/// gives; a target of 0 adds nothing.
/// @error shapes that differ
Tensor kl_divergence(In log_predictions, In targets, const KlOptions& options = {});

/// Options of focal_loss().
struct FocalOptions {
  double gamma = 2;  ///< the power of the weight
  /// Weights positive targets by alpha, negative ones by 1 - alpha. Default: no weights.
  std::optional<double> alpha = std::nullopt;
  LossReduction reduction = LossReduction::kMean;
};
/// Focal loss (Lin et al.: Focal Loss for Dense Object Detection, 2017): the binary cross-entropy
/// of each element, weighted by (1 - p)^gamma where p is the probability of the right decision.
/// Targets are from 0 to 1 (or bools) and have the shape of logits.
/// @error shapes that differ; a negative gamma; an alpha outside 0 to 1
Tensor focal_loss(In logits, In targets, const FocalOptions& options = {});

/// z-loss: weight * logsumexp(logits)^2, which keeps the normalizer of a softmax near 1 (de
/// Brébisson and Vincent, 2016; Chowdhery et al.: PaLM, 2022). To be added to the cross-entropy.
Tensor z_loss(In logits, double weight = 1e-4, std::int64_t dimension = -1,
              LossReduction reduction = LossReduction::kMean);

/// Options of ctc_loss().
struct CtcOptions {
  /// The numbers of positions and of labels of each sequence, integers [batch]; the others are
  /// padding. Default (undefined): none is padding.
  Tensor logit_lengths = {}, label_lengths = {};
  std::int64_t blank = 0;  ///< the class of the blank
  LossReduction reduction = LossReduction::kMean;
};
/// Connectionist temporal classification (Graves et al., 2006): -log of the probability that logits
/// [batch, time, classes] spell labels [batch, length] (integers), with any number of repetitions
/// and blanks. The mean is over the sequences.
///
/// Probabilities of 0 count as exp(-1e5): the loss of labels that do not fit into the positions is
/// about 1e5, not infinite. It is NaN for a label that is not in 0..classes - 1.
/// @error shapes that do not match; labels or lengths that are not integers; a blank that is not a
/// class
Tensor ctc_loss(In logits, In labels, const CtcOptions& options = {});

}  // namespace meshard::nn
