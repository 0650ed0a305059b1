#include "meshard/nn/losses.h"

#include <limits>
#include <utility>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::nn {
namespace {

Tensor loss_operand(std::string_view name, In x) {
  Tensor operand = operand_tensor(name, x);
  if (is_complex(operand.dtype()))
    throw_invalid(effective_source(x.where), "[nn.", name, "] takes real numbers, not ",
                  operand.type());
  return astype(operand, operand.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

// Predictions and targets of the same shape, in one dtype.
std::pair<Tensor, Tensor> alike(std::string_view name, const In& predictions, const In& targets) {
  Tensor x = loss_operand(name, predictions), wanted = loss_operand(name, targets);
  if (x.shape() != wanted.shape())
    throw_invalid(effective_source(predictions.where), "[nn.", name, "] targets ", wanted.type(),
                  " do not have the shape of predictions ", x.type());
  DType wide = x.dtype() == DType::f64 || wanted.dtype() == DType::f64 ? DType::f64 : DType::f32;
  return {astype(x, wide), astype(wanted, wide)};
}

Tensor reduced_loss(const Tensor& each, LossReduction reduction) {
  switch (reduction) {
    case LossReduction::kMean: return mean(each);
    case LossReduction::kSum: return sum(each);
    case LossReduction::kNone: break;
  }
  return each;
}

}  // namespace

Tensor huber_loss(In predictions, In targets, double delta, LossReduction reduction) {
  CallScope line(predictions.where, "in nn::huber_loss");
  if (!(delta > 0))
    throw_invalid(effective_source(predictions.where), "[nn.huber_loss] delta = ", delta,
                  " must be positive");
  auto [x, wanted] = alike("huber_loss", predictions, targets);
  Tensor error = abs(x - wanted), near = minimum(error, delta);
  return reduced_loss(square(near) * 0.5 + (error - near) * delta, reduction);
}

Tensor kl_divergence(In log_predictions, In targets, const KlOptions& options) {
  CallScope line(log_predictions.where, "in nn::kl_divergence");
  auto [x, wanted] = alike("kl_divergence", log_predictions, targets);
  int along = normalize_dimension(options.dimension, x.rank(), "nn.kl_divergence",
                                  effective_source(log_predictions.where));
  if (options.log_targets)
    return reduced_loss(sum(exp(wanted) * (wanted - x), along), options.reduction);
  // 0 * log(0) has the limit 0; the logarithm of 1 also has a finite derivative there.
  Tensor none = equal(wanted, 0);
  Tensor each = wanted * (log(where(none, 1, wanted)) - x);
  return reduced_loss(sum(where(none, 0, each), along), options.reduction);
}

Tensor focal_loss(In logits, In targets, const FocalOptions& options) {
  CallScope line(logits.where, "in nn::focal_loss");
  SourceLocation place = effective_source(logits.where);
  if (!(options.gamma >= 0))
    throw_invalid(place, "[nn.focal_loss] gamma = ", options.gamma, " is negative");
  if (options.alpha && !(*options.alpha >= 0 && *options.alpha <= 1))
    throw_invalid(place, "[nn.focal_loss] alpha = ", *options.alpha, " is outside 0 to 1");
  auto [x, wanted] = alike("focal_loss", logits, targets);
  Tensor each = binary_cross_entropy(x, wanted, LossReduction::kNone);
  if (options.gamma != 0) {
    // The probability of the wrong decision, without a difference of nearly equal numbers.
    Tensor wrong = logistic(x) * (1 - wanted) + logistic(negative(x)) * wanted;
    each = each * pow(wrong, options.gamma);
  }
  if (options.alpha) each = each * (*options.alpha * wanted + (1 - *options.alpha) * (1 - wanted));
  return reduced_loss(each, options.reduction);
}

Tensor z_loss(In logits, double weight, std::int64_t dimension, LossReduction reduction) {
  CallScope line(logits.where, "in nn::z_loss");
  Tensor x = loss_operand("z_loss", logits);
  return reduced_loss(square(logsumexp(x, dimension)) * weight, reduction);
}

namespace {

// The logarithm of a probability of 0.
constexpr double kLogZero = -1e5;

// The lengths of sequences, [batch, 1]; `all` without lengths.
Tensor lengths_of(std::string_view what, const Tensor& lengths, std::int64_t batch,
                  std::int64_t all, SourceLocation place) {
  if (!lengths.defined()) return full({batch, 1}, all, DType::i32);
  if (lengths.shape() != Shape{batch} || !is_integer(lengths.dtype()))
    throw_invalid(place, "[nn.ctc_loss] ", what, " are ", lengths.type(),
                  ", not one integer for each of ", batch, " sequences");
  return reshape(astype(lengths, DType::i32), {batch, 1});
}

// The log probabilities of two ways to each state but the first: `also` leads to states 1, 2, ...
Tensor joined_ways(const Tensor& states, const Tensor& also) {
  std::int64_t count = states.dim(1);
  Tensor first = slice(states, {0, 0}, {states.dim(0), 1});
  if (count == 1) return first;
  return concat({first, logaddexp(slice(states, {0, 1}, {states.dim(0), count}), also)}, 1);
}

// One call's numbers: [time, batch, length] and [time, batch, 1].
struct CtcScores {
  Tensor labels, blanks, counted;
  MESHARD_FIELDS(labels, blanks, counted)
};
// The log probabilities of having spelled the first n labels and then a blank, [batch, length + 1],
// and of being at label n, [batch, length].
struct CtcState {
  Tensor after, at;
  MESHARD_FIELDS(after, at)
};

CtcState ctc_step(const CtcState& before, const CtcScores& now, const Tensor& repeats) {
  std::int64_t batch = before.at.dim(0), length = before.at.dim(1);
  // A label directly after another one must differ from it; otherwise a blank is between them.
  Tensor direct = joined_ways(before.after, before.at + repeats);
  CtcState next;
  next.after = joined_ways(before.after, before.at) + now.blanks;
  next.at = logaddexp(slice(direct, {0, 0}, {batch, length}), before.at) + now.labels;
  return {where(now.counted, next.after, before.after), where(now.counted, next.at, before.at)};
}

}  // namespace

Tensor ctc_loss(In logits, In labels, const CtcOptions& options) {
  CallScope line(logits.where, "in nn::ctc_loss");
  SourceLocation place = effective_source(logits.where);
  Tensor x = loss_operand("ctc_loss", logits), wanted = operand_tensor("ctc_loss", labels);
  if (x.rank() != 3 || wanted.rank() != 2 || x.dim(0) != wanted.dim(0) ||
      !is_integer(wanted.dtype()))
    throw_invalid(place, "[nn.ctc_loss] takes logits [batch, time, classes] and integers [batch, ",
                  "length] as labels, not ", x.type(), " and ", wanted.type());
  std::int64_t batch = x.dim(0), time = x.dim(1), classes = x.dim(2), length = wanted.dim(1);
  if (options.blank < 0 || options.blank >= classes)
    throw_invalid(place, "[nn.ctc_loss] the blank ", options.blank, " is not one of ", classes,
                  " classes");
  Tensor label_lengths = lengths_of("label_lengths", options.label_lengths, batch, length, place);
  Tensor logit_lengths = lengths_of("logit_lengths", options.logit_lengths, batch, time, place);

  // Padding may hold any number.
  wanted = astype(wanted, DType::i32);
  Tensor padding = greater_equal(iota(DType::i32, {batch, length}, 1), label_lengths);
  wanted = where(padding, static_cast<std::int32_t>(options.blank), wanted);
  Tensor valid = logical_and(greater_equal(wanted, 0), less(wanted, classes));

  Tensor scores = log_softmax(x);
  Tensor index = broadcast_to(expand_dims(clip(wanted, 0, classes - 1), 1), {batch, time, length});
  CtcScores all;
  all.labels = where(expand_dims(valid, 1), take_along_axis(scores, index, 2),
                     std::numeric_limits<double>::quiet_NaN());
  all.blanks = slice(scores, {0, 0, options.blank}, {batch, time, options.blank + 1});
  all.counted = expand_dims(less(iota(DType::i32, {batch, time}, 1), logit_lengths), 2);
  for (Tensor* each : {&all.labels, &all.blanks, &all.counted}) *each = moveaxis(*each, 1, 0);

  // The penalty of going from label n to label n + 1 without a blank.
  Tensor repeats = zeros({batch, length}, x.dtype());
  if (length > 1) {
    Tensor same =
        equal(slice(wanted, {0, 0}, {batch, length - 1}), slice(wanted, {0, 1}, {batch, length}));
    repeats = pad(astype(same, x.dtype()) * kLogZero, 0, {0, 0}, {0, 1});
  }
  Tensor first_only = where(equal(iota(DType::i32, {batch, length + 1}, 1), 0), 0, kLogZero);
  CtcState start{astype(first_only, x.dtype()), full({batch, length}, kLogZero, x.dtype())};
  auto body = [&](const CtcState& state, const CtcScores& now) {
    return std::pair(ctc_step(state, now, repeats), std::tuple<>());
  };
  CtcState end = scan(body, start, all).first;
  Tensor total = joined_ways(end.after, end.at);
  Tensor chosen = equal(iota(DType::i32, {batch, length + 1}, 1), label_lengths);
  return reduced_loss(negative(sum(where(chosen, total, 0), 1)), options.reduction);
}

}  // namespace meshard::nn
