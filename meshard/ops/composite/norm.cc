#include "meshard/ops/composite/norm.h"

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

Tensor normalized(const Tensor& x, double epsilon) {
  Tensor centered = subtract(x, mean(x, -1, true));
  Tensor variance = mean(square(centered), -1, true);
  return multiply(centered, rsqrt(add(variance, filled(TensorType{x.dtype(), {}}, epsilon))));
}

}  // namespace

Tensor layer_norm(In x, In scale, In bias, double epsilon) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  check_real("layer_norm", scale);
  check_real("layer_norm", bias);
  Tensor result = add(multiply(normalized(for_computation(operand), epsilon), scale), bias);
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor layer_norm(In x) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  return astype(normalized(for_computation(operand), 1e-5), float_result_dtype(operand.dtype()));
}

namespace {

Tensor inverse_deviation(const Tensor& variance, double epsilon) {
  return rsqrt(add(variance, filled(TensorType{variance.dtype(), {}}, epsilon)));
}

// A vector with one number per channel, in a shape that broadcasts to x.
Tensor per_channel(std::string_view name, std::string_view what, const In& numbers, const Tensor& x,
                   int channel, SourceLocation where) {
  Tensor each = real_operand(name, numbers);
  if (each.shape() != Shape{x.shape()[channel]})
    throw_invalid(where, "[", name, "] ", what, " is ", each.type(),
                  ", not one number for each of ", x.shape()[channel], " channels (dimension ",
                  channel, " of ", x.type(), ")");
  Dimensions sizes(static_cast<std::size_t>(x.shape().rank()), 1);
  sizes[static_cast<std::size_t>(channel)] = x.shape()[channel];
  return reshape(astype(each, x.dtype()), std::move(sizes));
}

Dimensions all_but(int rank, int kept) {
  Dimensions others;
  for (int d = 0; d < rank; ++d)
    if (d != kept) others.push_back(d);
  return others;
}

}  // namespace

Tensor rms_norm(In x, double epsilon) {
  SourceScope line(x.where);
  Tensor operand = real_operand("rms_norm", x), wide = for_computation(operand);
  Tensor result = multiply(wide, inverse_deviation(mean(square(wide), -1, true), epsilon));
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor rms_norm(In x, In scale, double epsilon) {
  SourceScope line(x.where);
  Tensor operand = real_operand("rms_norm", x);
  check_real("rms_norm", scale);
  Tensor result = multiply(rms_norm(for_computation(operand), epsilon), scale);
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor group_norm(In argument, In scale, In bias, std::int64_t groups, double epsilon,
                  std::int64_t channel_dimension) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = real_operand("group_norm", argument), x = for_computation(operand);
  int rank = x.shape().rank();
  int channel = normalize_dimension(channel_dimension, rank, "group_norm", where);
  std::int64_t channels = x.shape()[channel];
  if (rank < 2 || channel == 0)
    throw_invalid(where, "[group_norm] takes samples in dimension 0 and channels in another, not ",
                  operand.type(), " with channels in dimension ", channel);
  if (groups < 1 || channels % groups != 0)
    throw_invalid(where, "[group_norm] ", channels, " channels (dimension ", channel, " of ",
                  operand.type(), ") are not a multiple of ", groups, " groups");
  Dimensions apart = x.shape().sizes(), along;
  apart[static_cast<std::size_t>(channel)] = groups;
  apart.insert(apart.begin() + channel + 1, channels / groups);
  for (int d = 1; d <= rank; ++d)
    if (d != channel) along.push_back(d);
  Tensor grouped = reshape(x, apart);
  Tensor centered = subtract(grouped, mean(grouped, along, true));
  Tensor normal =
      multiply(centered, inverse_deviation(mean(square(centered), along, true), epsilon));
  Tensor result = multiply(reshape(normal, x.shape()),
                           per_channel("group_norm", "scale", scale, x, channel, where));
  result = add(result, per_channel("group_norm", "bias", bias, x, channel, where));
  return astype(result, float_result_dtype(operand.dtype()));
}

BatchNorm batch_norm(In argument, In scale, In bias, double epsilon,
                     std::int64_t channel_dimension) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = real_operand("batch_norm", argument), x = for_computation(operand);
  int channel = normalize_dimension(channel_dimension, x.shape().rank(), "batch_norm", where);
  Dimensions along = all_but(x.shape().rank(), channel);
  Tensor center = mean(x, along);
  Tensor distance = subtract(x, per_channel("batch_norm", "mean", center, x, channel, where));
  Tensor variance = mean(square(distance), along);
  return {batch_norm(operand, scale, bias, center, variance, epsilon, channel), center, variance};
}

Tensor batch_norm(In argument, In scale, In bias, In mean, In variance, double epsilon,
                  std::int64_t channel_dimension) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = real_operand("batch_norm", argument), x = for_computation(operand);
  int channel = normalize_dimension(channel_dimension, x.shape().rank(), "batch_norm", where);
  auto each = [&](std::string_view what, const In& numbers) {
    return per_channel("batch_norm", what, numbers, x, channel, where);
  };
  Tensor factor =
      multiply(inverse_deviation(each("variance", variance), epsilon), each("scale", scale));
  Tensor result = add(multiply(subtract(x, each("mean", mean)), factor), each("bias", bias));
  return astype(result, float_result_dtype(operand.dtype()));
}

}  // namespace meshard
