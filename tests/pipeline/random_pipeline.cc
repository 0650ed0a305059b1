#include "tests/pipeline/random_pipeline.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace meshard::property {

namespace {

using Kind = PipelineStep::Kind;
// Values, by their numbers.
using Values = std::map<int, Tensor>;

constexpr int kGiven = 2;  // values that are part of the microbatch

Tensor placed(const Tensor& value, const std::optional<Sharding>& sharding) {
  return sharding ? mark_sharding(value, *sharding) : value;
}

Tensor computed(const PipelineStep& step, const Values& values, const Tensor& parameter,
                const Tensor& labels, const Tensor& constant) {
  const auto a = [&] { return values.at(step.a); };
  switch (step.kind) {
    case Kind::kMatmul: return matmul(a(), parameter);
    case Kind::kTransposed: return matmul(a(), matrix_transpose(parameter));
    case Kind::kBias: return a() + parameter;
    case Kind::kScale: return a() * parameter;
    case Kind::kLookup: return take(parameter, labels, 0);
    case Kind::kConstant: return a() * constant;
    case Kind::kTanh: return tanh(a());
    case Kind::kSoftmax: return softmax(a(), -1);
    case Kind::kAdd: return a() + values.at(step.b);
    case Kind::kMultiply: return a() * values.at(step.b);
  }
  return {};
}

bool has_parameter(Kind kind) {
  return kind == Kind::kMatmul || kind == Kind::kTransposed || kind == Kind::kBias ||
         kind == Kind::kScale || kind == Kind::kLookup;
}

// The mean over the rows, so that the mean over equal microbatches is that of the batch.
Tensor loss_of(const std::vector<Tensor>& values, const Tensor& labels) {
  Tensor loss;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Tensor one = i % 2 == 1 && values[i].dim(1) >= kClasses
                     ? cross_entropy(values[i], labels)
                     : mean(square(values[i] - 0.25 * static_cast<double>(i + 1)));
    loss = loss.defined() ? loss + one : one;
  }
  return loss;
}

// Performs a part's steps. `parameter_of(number)` is the tensor of a parameter.
template <class ParameterOf>
void perform(const PipelinePart& part, int first_value, Values& values, const Tensor& labels,
             const std::vector<Tensor>& constants, bool marks, const ParameterOf& parameter_of) {
  for (const PipelineStep& step : part.steps) {
    Tensor parameter, constant;
    if (has_parameter(step.kind)) parameter = parameter_of(step.parameter);
    if (step.kind == Kind::kConstant)
      constant = constants.at(static_cast<std::size_t>(step.parameter));
    Tensor result = computed(step, values, parameter, labels, constant);
    if (marks && step.mark) result = mark_sharding(result, part.mesh, *step.mark);
    values[first_value++] = result;
  }
}

std::vector<Tensor> tensors_at(const Values& values, const std::vector<int>& numbers) {
  std::vector<Tensor> all;
  for (int number : numbers) all.push_back(values.at(number));
  return all;
}

// What a stage does, with the tensors that its function captures.
struct StageBody {
  PipelinePart part;
  std::vector<int> received;  // values of the carry
  bool receives_labels = false, is_last = false;
  int first_value = 0;
  std::vector<Tensor> constants;

  std::vector<Tensor> operator()(const std::vector<Tensor>& parameters,
                                 const std::vector<Tensor>& carry,
                                 const std::vector<Tensor>& batch) const {
    Values values{{0, batch.at(0)}, {1, batch.at(1)}};
    for (std::size_t i = 0; i < received.size(); ++i) values[received[i]] = carry.at(i);
    Tensor labels = receives_labels ? carry.back() : batch.at(2);
    perform(part, first_value, values, labels, constants, /*marks=*/true, [&](int number) {
      auto at = std::find(part.parameters.begin(), part.parameters.end(), number);
      return parameters.at(static_cast<std::size_t>(at - part.parameters.begin()));
    });
    std::vector<Tensor> results = tensors_at(values, part.returned);
    if (is_last) return {loss_of(results, labels)};
    if (part.returns_labels) results.push_back(labels);
    return results;
  }
};

}  // namespace

Tensor some_numbers(const Shape& shape, int seed, DType dtype) {
  std::vector<double> all(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = 0.07 * ((static_cast<int>(i) * 7 + seed * 13) % 23 - 11);
  if (dtype == DType::f64) return from_host(std::move(all), shape);
  return from_host(std::vector<float>(all.begin(), all.end()), shape);
}

Tensor RandomPipeline::loss(const std::vector<Tensor>& given,
                            const std::vector<Tensor>& whole) const {
  std::vector<Tensor> captured;
  for (std::size_t i = 0; i < constants.size(); ++i)
    captured.push_back(some_numbers(constants[i].shape, static_cast<int>(i) + 70, dtype));
  Values values{{0, whole.at(0)}, {1, whole.at(1)}};
  int next = kGiven;
  for (const PipelinePart& part : parts) {
    perform(part, next, values, whole.at(2), captured, /*marks=*/false,
            [&](int number) { return given.at(static_cast<std::size_t>(number)); });
    next += static_cast<int>(part.steps.size());
  }
  return loss_of(tensors_at(values, parts.back().returned), whole.at(2));
}

std::vector<PipelineStage> RandomPipeline::stages(const std::vector<Tensor>& given) const {
  std::vector<Tensor> captured;
  for (std::size_t i = 0; i < constants.size(); ++i)
    captured.push_back(placed(some_numbers(constants[i].shape, static_cast<int>(i) + 70, dtype),
                              constants[i].sharding));
  std::vector<PipelineStage> stages;
  StageBody body{.part = parts.front(), .received = {}, .constants = captured};
  body.first_value = kGiven;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    body.part = parts[s];
    body.is_last = s + 1 == parts.size();
    std::vector<Tensor> own;
    for (int number : parts[s].parameters)
      own.push_back(given.at(static_cast<std::size_t>(number)));
    PipelineStageOptions options{.checkpoint = parts[s].checkpoint};
    using Tensors = std::vector<Tensor>;
    if (s == 0 && body.is_last)
      stages.emplace_back(
          parts[s].mesh, own,
          [body](const Tensors& params, const Tensors& microbatch) {
            return body(params, {}, microbatch).front();
          },
          options);
    else if (s == 0)
      stages.emplace_back(
          parts[s].mesh, own,
          [body](const Tensors& params, const Tensors& microbatch) {
            return body(params, {}, microbatch);
          },
          options);
    else if (!body.is_last)
      stages.emplace_back(parts[s].mesh, own, body, options);
    else
      stages.emplace_back(
          parts[s].mesh, own,
          [body](const Tensors& params, const Tensors& carry, const Tensors& microbatch) {
            return body(params, carry, microbatch).front();
          },
          options);
    body.received = parts[s].returned;
    body.receives_labels = parts[s].returns_labels;
    body.first_value += static_cast<int>(parts[s].steps.size());
  }
  return stages;
}

std::string RandomPipeline::to_string() const {
  static constexpr const char* kNames[] = {"matmul", "transposed", "bias", "scale",
                                           "lookup", "constant",   "tanh", "softmax",
                                           "add",    "multiply"};
  const auto numbers = [](const PipelineNumbers& one) {
    return cat(one.shape, one.sharding ? cat(" on ", one.sharding->to_string()) : "");
  };
  std::string text =
      cat(dtype, ", microbatches of ", rows, " rows", batch ? cat(" on ", batch->to_string()) : "",
          ", widths ", join(widths, " "), clip > 0 ? cat(", clip ", clip) : "", "\n");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    append(text, cat("parameter ", i, ": ", numbers(parameters[i]), "\n"));
  for (std::size_t i = 0; i < constants.size(); ++i)
    append(text, cat("constant ", i, ": ", numbers(constants[i]), "\n"));
  int value = kGiven;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const PipelinePart& part = parts[s];
    append(text, cat("stage ", s, " on ", part.mesh, part.checkpoint ? ", checkpoint" : "",
                     ", parameters ", join(part.parameters, " "), "\n"));
    for (const PipelineStep& step : part.steps)
      append(text, cat("  ", value++, " = ", kNames[static_cast<int>(step.kind)], " of ", step.a,
                       " ", step.b, " with ", step.parameter,
                       step.mark ? cat(" marked ", step.mark->to_string()) : "", "\n"));
    append(text,
           cat("  returns ", join(part.returned, " "), part.returns_labels ? " labels" : "", "\n"));
  }
  return text + schedule.name() + "\n" + schedule.to_string();
}

}  // namespace meshard::property
