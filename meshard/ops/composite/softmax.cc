#include "meshard/ops/composite/softmax.h"

#include <limits>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

// The largest element; for complex numbers the largest real part, which determines the magnitude of
// the exponential. A NaN reaches the results by its exponential.
Tensor largest_of(const Tensor& x, const DimensionList& dimensions) {
  return stop_gradient(max_of_numbers(is_complex(x.dtype()) ? real(x) : x, dimensions, true));
}

// x minus its largest element. Neither the results nor their derivatives depend on the shift.
Tensor shifted(const Tensor& x, std::int64_t dimension) {
  if (x.shape().size() == 0) return x;
  return subtract(x, largest_of(x, dimension));
}

}  // namespace

Tensor softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("softmax", x);
  Tensor powers = exp(shifted(for_computation(operand), dimension));
  return astype(divide(powers, sum(powers, dimension, true)), operand.dtype());
}

Tensor log_softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("log_softmax", x);
  Tensor centered = shifted(for_computation(operand), dimension);
  return astype(subtract(centered, log(sum(exp(centered), dimension, true))), operand.dtype());
}

Tensor logsumexp(In x, DimensionList dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("logsumexp", x);
  Dimensions along =
      dimensions.resolve(operand.shape().rank(), "logsumexp", effective_source(x.where));
  Tensor result;
  if (operand.shape().size() == 0) {
    result = log(sum(exp(operand), along, true));
  } else {
    Tensor largest = largest_of(operand, along);
    // If all elements are infinite there is no shift, because inf - inf would be NaN.
    largest = where(isfinite(largest), largest, 0);
    result = add(log(sum(exp(subtract(operand, largest)), along, true)), largest);
  }
  if (keepdims) return result;
  Dimensions sizes;
  for (int d = 0, next = 0; d < operand.shape().rank(); ++d) {
    bool gone = next < static_cast<int>(along.size()) && along[static_cast<std::size_t>(next)] == d;
    if (gone)
      ++next;
    else
      sizes.push_back(operand.shape()[d]);
  }
  return reshape(result, std::move(sizes));
}

namespace {

// The class number of each sample, checked, in an integer dtype that can represent all classes.
Tensor class_numbers(const Tensor& x, Tensor wanted, int along, SourceLocation place) {
  Dimensions samples = x.shape().sizes();
  samples.erase(samples.begin() + along);
  if (!is_integer(wanted.dtype()) || wanted.shape() != Shape(samples))
    throw_invalid(place, "[cross_entropy] targets ", wanted.type(),
                  " must be class numbers of shape ", Shape(samples), ", the shape of logits ",
                  x.type(), " without dimension ", along);
  // Narrow integers might not represent all classes.
  if (size_in_bytes(wanted.dtype()) < 4) wanted = astype(wanted, DType::i32);
  return wanted;
}

// True where the sample's target is a valid class number.
Tensor in_range(const Tensor& wanted, std::int64_t classes) {
  Tensor below = less(wanted, classes);
  return is_unsigned_integer(wanted.dtype()) ? below : logical_and(below, greater_equal(wanted, 0));
}

// The log probability of each class, weighted. A class with weight 0 adds nothing, even if its
// probability is 0.
Tensor weighted_losses(const Tensor& share, const Tensor& log_probability) {
  Tensor nothing = logical_and(equal(share, 0), isinf(log_probability));
  return multiply(share, where(nothing, 0, log_probability));
}

// The loss of each sample.
Tensor losses(const Tensor& x, const Tensor& wanted, int along, double smoothing,
              SourceLocation place) {
  auto number = [&](double value) { return element_wise::literal(value, x); };
  if (is_floating(wanted.dtype())) {
    if (wanted.shape() != x.shape())
      throw_invalid(place, "[cross_entropy] probabilities ", wanted.type(),
                    " do not have the shape of logits ", x.type());
    Tensor share = astype(wanted, x.dtype());
    if (smoothing != 0)
      share = add(multiply(share, number(1 - smoothing)),
                  number(smoothing / static_cast<double>(x.shape()[along])));
    return negative(sum(weighted_losses(share, log_softmax(x, along)), along));
  }
  Tensor numbers = class_numbers(x, wanted, along, place);
  Tensor chosen = equal(iota(numbers.dtype(), x.shape(), along), expand_dims(numbers, along));
  Tensor centered = subtract(x, stop_gradient(max_of_numbers(x, along, true)));
  // A comparison and a sum instead of a gather: they run on shards of the classes without
  // communication of the logits.
  Tensor target = sum(where(chosen, centered, 0), along);
  target = where(in_range(numbers, x.dim(along)), target, std::numeric_limits<double>::quiet_NaN());
  if (smoothing != 0)
    target = add(multiply(target, number(1 - smoothing)),
                 multiply(mean(centered, along), number(smoothing)));
  return subtract(log(sum(exp(centered), along)), target);
}

Tensor reduced(const Tensor& each, LossReduction reduction) {
  switch (reduction) {
    case LossReduction::kMean: return mean(each);
    case LossReduction::kSum: return sum(each);
    case LossReduction::kNone: break;
  }
  return each;
}

}  // namespace

Tensor cross_entropy(In logits, In targets, const CrossEntropyOptions& options) {
  SourceScope line(logits.where);
  SourceLocation place = effective_source(logits.where);
  Tensor x = for_computation(real_operand("cross_entropy", logits));
  Tensor wanted = operand_tensor("cross_entropy", targets);
  int along = normalize_dimension(options.dimension, x.shape().rank(), "cross_entropy", place);
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw_invalid(place, "[cross_entropy] label_smoothing = ", options.label_smoothing,
                  " is outside 0 to 1");
  if (options.ignored && is_floating(wanted.dtype()))
    throw_invalid(place, "[cross_entropy] cannot ignore class ", *options.ignored,
                  ", because the targets are probabilities: ", wanted.type());
  Tensor each = losses(x, wanted, along, options.label_smoothing, place);
  if (!options.ignored) return reduced(each, options.reduction);
  Tensor counts = not_equal(wanted, *options.ignored);
  each = where(counts, each, 0);
  if (options.reduction != LossReduction::kMean) return reduced(each, options.reduction);
  return divide(sum(each), maximum(sum(astype(counts, x.dtype())), 1));
}

Tensor binary_cross_entropy(In logits, In targets, LossReduction reduction) {
  SourceScope line(logits.where);
  SourceLocation place = effective_source(logits.where);
  Tensor x = for_computation(real_operand("binary_cross_entropy", logits));
  Tensor wanted = real_operand("binary_cross_entropy", targets);
  if (wanted.shape() != x.shape())
    throw_invalid(place, "[binary_cross_entropy] targets ", wanted.type(),
                  " do not have the shape of logits ", x.type());
  Tensor share = astype(wanted, x.dtype());
  // An infinite logit: no loss if it is right. The formula would compute inf - inf or 0 * inf.
  Tensor sure = isinf(x), right = equal(share, astype(greater(x, 0), x.dtype()));
  x = where(sure, 0, x);
  // log(1 + exp(x)) - t x
  Tensor each = subtract(softplus(x), multiply(share, x));
  double infinity = std::numeric_limits<double>::infinity();
  return reduced(where(sure, where(right, element_wise::literal(0, x), infinity), each), reduction);
}

}  // namespace meshard
