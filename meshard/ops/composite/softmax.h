// Softmax, log-softmax and log-sum-exp, computed without overflow. Integers are computed in f32.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// exp(x) divided by its sum along a dimension.
Tensor softmax(In x, std::int64_t dimension = -1);

/// log(softmax(x)), accurate also where softmax is close to 0 or 1.
Tensor log_softmax(In x, std::int64_t dimension = -1);

/// log(sum(exp(x))) along dimensions; -inf if all elements are -inf, or there is no element.
Tensor logsumexp(In x, DimensionList dimensions = {}, bool keepdims = false);

/// How the losses of the samples are reduced.
enum class LossReduction {
  kMean,  ///< the mean over the samples that are not ignored
  kSum,
  kNone,  ///< not reduced: the result has the shape of logits without the classes
};

/// Options of cross_entropy().
struct CrossEntropyOptions {
  std::int64_t dimension = -1;  ///< the dimension of the classes
  /// The target's probability is 1 - label_smoothing; the rest is shared equally by all classes
  /// (Szegedy et al., 2016). Default: 0.
  double label_smoothing = 0;
  /// Samples with this class number are ignored: their loss is 0. Default: none.
  std::optional<std::int64_t> ignored = std::nullopt;
  LossReduction reduction = LossReduction::kMean;
};
/// The mean over all samples of -log softmax(logits) at the target: a scalar, unless `reduction`
/// asks for something else. Computed in f32 (f64 for f64 logits). Targets are class numbers, of the
/// shape of logits without the classes, or probabilities, of the shape of logits.
///
/// The loss of a sample is NaN if its class number is not in 0..classes - 1. A class with
/// probability 0 adds nothing, even if its logit is -inf. The mean over no samples is 0.
///
/// The logits may be sharded along the classes: nothing is gathered.
///
/// @code
/// Tensor logits = ones({3, 2}), numbers = from_host<std::int32_t>({0, 2}, {2});
/// cross_entropy(logits, numbers, {.dimension = 0});  // log 3 = 1.0986123
/// @endcode
/// @error shapes that do not match; complex numbers; a label_smoothing that is not in 0 to 1;
/// `ignored` together with probabilities.
Tensor cross_entropy(In logits, In targets, const CrossEntropyOptions& options = {});

/// The binary cross-entropy of logits, by default its mean. It is -(t log p + (1 - t) log(1 - p))
/// with p = logistic(logits). Targets t are from 0 to 1 (or bools) and have the shape of logits:
/// each element is an independent decision.
/// @error shapes that differ.
Tensor binary_cross_entropy(In logits, In targets, LossReduction reduction = LossReduction::kMean);

}  // namespace meshard
