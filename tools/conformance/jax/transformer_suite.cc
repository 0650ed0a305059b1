// transformer_*.json: a small transformer, trained for five steps on one device and on eight.
#include <algorithm>
#include <cmath>

#include "tools/conformance/jax/inputs.h"
#include "tools/conformance/jax/transformer.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/inputs.h"

namespace meshard::conformance {
namespace transformer_cases {

constexpr int kSteps = 5;
constexpr double kLossTolerance = 1e-5;
// Relative to the largest element.
constexpr double kTensorTolerance = 1e-4;

Tensor tensor_of(const Json& array) {
  return from_host(array.at("data").get<std::vector<float>>(), shape_of(array.at("shape")));
}

Tensor tokens_of(const Json& rows) {
  std::vector<std::int32_t> numbers;
  for (const Json& row : rows)
    for (const Json& number : row) numbers.push_back(number);
  auto count = static_cast<std::int64_t>(rows.size());
  return from_host(numbers, {count, static_cast<std::int64_t>(numbers.size()) / count});
}

// The weights of the case, with its specs if there is a mesh.
Transformer model_of(const Json& test, const nn::AxisRules& rules) {
  Transformer model = empty_transformer(test.at("config").at("layers"));
  for (auto& [name, tensor] : tensors_by_name(model)) {
    *tensor = tensor_of(test.at("weights").at(name));
    if (rules.mesh())
      *tensor =
          mark_sharding(*tensor, *rules.mesh(), jax_spec(test.at("partition_specs").at(name)));
  }
  return model;
}

Json arrays_of(Transformer model) {
  Json out;
  for (auto& [name, tensor] : tensors_by_name(model))
    out[name] = {{"shape", list_of(tensor->shape())}, {"data", tensor->to_vector<float>()}};
  return out;
}

struct Trained {
  Json losses, gradients, weights;
};

Trained train(const Json& test, const nn::AxisRules& rules) {
  Transformer model = model_of(test, rules);
  Tensor tokens = tokens_of(test.at("tokens")), targets = tokens_of(test.at("targets"));
  if (rules.mesh()) {
    tokens = rules.mark(tokens, P("dp", none));
    targets = rules.mark(targets, P("dp", none));
  }
  auto loss_of = [&](const Transformer& m) { return transformer_loss(m, tokens, targets, rules); };
  Trained out{{}, arrays_of(jit(grad(loss_of))(model)), {}};
  const Json& how = test.at("optimizer");
  double rate = how.at("lr");
  if (how.at("kind") == "sgd") {
    out.losses = train_transformer(model, tokens, targets, rules, optim::Sgd{.rate = rate}, kSteps,
                                   /*with_last=*/true);
  } else {
    optim::Adam adam{.rate = rate,
                     .beta1 = how.at("b1"),
                     .beta2 = how.at("b2"),
                     .epsilon = how.at("eps"),
                     .form = optim::AdamForm::kEfficient};
    out.losses = train_transformer(model, tokens, targets, rules, adam, kSteps, /*with_last=*/true);
  }
  out.weights = arrays_of(model);
  return out;
}

Json answer_to(const Json& test, const GoldenFile&) {
  const Json& kind = test.at("optimizer").at("kind");
  if (kind != "sgd" && kind != "adam") return {};
  Trained one = train(test, {});
  Trained eight = train(test, nn::AxisRules(Mesh({{"dp", 2}, {"tp", 4}}), {}));
  return {{"losses", one.losses},         {"losses_sharded_dp2_tp4", eight.losses},
          {"grads_step0", one.gradients}, {"grads_step0_sharded_dp2_tp4", eight.gradients},
          {"weights_after", one.weights}, {"weights_after_sharded_dp2_tp4", eight.weights}};
}

// The first number that differs from the recorded one by more than `tolerance`; empty if none does.
std::string first_apart(const std::string& name, const Json& ours, const Json& recorded,
                        double tolerance) {
  if (ours.size() != recorded.size())
    return cat(name, ": ", ours.size(), " numbers, recorded ", recorded.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    // A NaN is null in JSON.
    double a = ours[i].is_number() ? ours[i].get<double>() : NAN, b = recorded[i];
    if (!(std::abs(a - b) <= tolerance))
      return cat(name, "[", i, "]: ", a, ", recorded ", b, ", tolerance ", tolerance);
  }
  return {};
}

double largest(const Json& numbers) {
  double most = 0;
  for (const Json& number : numbers) most = std::max(most, std::abs(number.get<double>()));
  return most;
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string apart;
  for (const char* field : {"losses", "losses_sharded_dp2_tp4"})
    if (apart.empty()) apart = first_apart(field, answer.at(field), test.at(field), kLossTolerance);
  for (std::string field : {"grads_step0", "weights_after"})
    for (std::string where : {"", "_sharded_dp2_tp4"})
      for (const auto& [name, recorded] : test.at(field).items()) {
        if (!apart.empty()) break;
        const Json& data = recorded.at("data");
        apart =
            first_apart(cat(field, where, ".", name), answer.at(field + where).at(name).at("data"),
                        data, kTensorTolerance * largest(data));
      }
  return apart.empty() ? Verdict() : Verdict::failed(apart);
}

int devices_for(const Json&) { return 8; }

}  // namespace transformer_cases

Suite transformer_suite() {
  using namespace transformer_cases;
  return {"transformer_*.json", answer_to, judge_case, devices_for, /*seconds=*/600};
}

}  // namespace meshard::conformance
