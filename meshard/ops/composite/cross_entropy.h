#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The mean over all samples of -log softmax(logits) at the target: a scalar, computed in f32 (f64
/// for f64 logits). `dimension` is the classes'. Targets are class numbers, of the shape of logits
/// without the classes, or probabilities, of the shape of logits.
///
/// The loss of a sample is NaN if its class number is not in 0 to the number of classes - 1. A
/// class of probability 0 adds nothing, also where its logit is -inf.
///
/// Works on logits whose classes are sharded: nothing is gathered.
/// @error shapes that do not go together; complex numbers.
Tensor cross_entropy(In logits, In targets, std::int64_t dimension = -1);

/// What becomes of the losses of single samples.
enum class LossReduction {
  kMean,  ///< their mean, over those that count
  kSum,
  kNone,  ///< they stay: the result has the shape of logits without the classes
};

/// What cross_entropy may be told.
struct CrossEntropyOptions {
  std::int64_t dimension = -1;  ///< the classes'
  /// The target gets 1 - label_smoothing, and all classes share the rest (Szegedy et al., 2016).
  double label_smoothing = 0;
  /// Samples with this class number do not count: their loss is 0.
  std::optional<std::int64_t> ignored = std::nullopt;
  LossReduction reduction = LossReduction::kMean;
};
/// The same with options. A mean over no sample is 0.
/// @error as above; a label_smoothing that is not in 0 to 1; `ignored` beside probabilities.
Tensor cross_entropy(In logits, In targets, const CrossEntropyOptions& options);

/// The mean of -(t log p + (1 - t) log(1 - p)) with p = logistic(logits), for targets t from 0 to 1
/// (or bools) of the shape of logits: each element is a decision of its own.
/// @error shapes that differ.
Tensor binary_cross_entropy(In logits, In targets, LossReduction reduction = LossReduction::kMean);

}  // namespace meshard
