// gpt12_losses.json: twelve steps of a transformer with twelve layers on 2x4 devices, with
// generated weights and tokens; once as a plain loop over the layers, and once with repeat().
#include <cmath>

#include "tools/conformance/jax/transformer.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {
namespace gpt12_losses_cases {

constexpr double kTolerance = 1e-4;

// Number i of the sequence for `seed`; the algorithm is in the golden files' README.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03;
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  z *= 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

HostArray generated(std::uint64_t seed, const Shape& shape) {
  HostArray array = HostArray::uninitialized({DType::f32, shape});
  std::uint64_t i = 0;
  for (float& value : array.mutable_data<float>()) {
    float u = static_cast<float>(word_at(seed, i++) >> 40) * 0x1p-24f;
    value = (u - 0.5f) * static_cast<float>(2 * std::sqrt(3.0)) * 0.02f;
  }
  return array;
}

// The order in which weights are numbered.
std::vector<std::string> names_in_order(std::int64_t layers) {
  std::vector<std::string> names{"tok", "pos", "lnf_g", "lnf_b", "head"};
  for (std::int64_t i = 0; i < layers; ++i)
    for (const char* name :
         {"ln1_g", "ln1_b", "wq", "wk", "wv", "wo", "ln2_g", "ln2_b", "w1", "b1", "w2", "b2"})
      names.push_back(cat("blocks.", i, ".", name));
  return names;
}

struct Parameter {
  Shape shape;
  PartitionSpec spec;
};

// Shapes and specs by the last component of the name.
std::map<std::string, Parameter> parameters(const Json& config) {
  std::int64_t d = config.at("d_model"), h = config.at("heads"), ff = config.at("ff");
  std::int64_t words = config.at("vocab"), size = d / h;
  Parameter norm{{d}, P()}, in{{d, h, size}, P(none, "tp", none)};
  return {{"tok", {{words, d}, P()}},
          {"pos", {{config.at("seq").get<std::int64_t>(), d}, P()}},
          {"lnf_g", norm},
          {"lnf_b", norm},
          {"head", {{d, words}, P(none, "tp")}},
          {"ln1_g", norm},
          {"ln1_b", norm},
          {"wq", in},
          {"wk", in},
          {"wv", in},
          {"wo", {{h, size, d}, P("tp", none, none)}},
          {"ln2_g", norm},
          {"ln2_b", norm},
          {"w1", {{d, ff}, P(none, "tp")}},
          {"b1", {{ff}, P("tp")}},
          {"w2", {{ff, d}, P("tp", none)}},
          {"b2", norm}};
}

HostArray weight_of(const std::string& name, const Shape& shape, std::uint64_t number) {
  std::string last = name.substr(name.rfind('.') + 1);
  if (last.ends_with("_g")) return HostArray::full<float>(shape, 1);
  if (last.ends_with("_b") || last == "b1" || last == "b2")
    return HostArray::zeros({DType::f32, shape});
  return generated(1000 + number, shape);
}

Transformer generated_model(const Json& config, const Mesh& mesh) {
  std::int64_t layers = config.at("layers");
  std::map<std::string, Parameter> known = parameters(config);
  Transformer model = empty_transformer(static_cast<std::size_t>(layers));
  std::map<std::string, Tensor*> tensors = tensors_by_name(model);
  std::uint64_t number = 0;
  for (const std::string& name : names_in_order(layers)) {
    const Parameter& parameter = known.at(name.substr(name.rfind('.') + 1));
    *tensors.at(name) =
        mark_sharding(from_host(weight_of(name, parameter.shape, number++)), mesh, parameter.spec);
  }
  return model;
}

// Columns first .. first + seq of the tokens [batch, seq + 1].
Tensor generated_tokens(const Json& config, std::int64_t first, const Mesh& mesh) {
  std::int64_t batch = config.at("batch"), seq = config.at("seq"), words = config.at("vocab");
  std::vector<std::int32_t> numbers;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = first; t < first + seq; ++t)
      numbers.push_back(static_cast<std::int32_t>(
          (word_at(500, static_cast<std::uint64_t>(b * (seq + 1) + t)) >> 33) %
          static_cast<std::uint64_t>(words)));
  return mark_sharding(from_host(numbers, {batch, seq}), mesh, P("dp", none));
}

Json answer_to(const Json& test, const GoldenFile&) {
  const Json &config = test.at("config"), &how = test.at("optimizer");
  if (how.at("kind") != "adam") return {};
  optim::Adam adam{.rate = how.at("lr").get<double>(),
                   .beta1 = how.at("b1"),
                   .beta2 = how.at("b2"),
                   .epsilon = how.at("eps"),
                   .form = optim::AdamForm::kEfficient};
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  nn::AxisRules rules(mesh, {});
  Tensor tokens = generated_tokens(config, 0, mesh), targets = generated_tokens(config, 1, mesh);
  Transformer model = generated_model(config, mesh);
  RolledTransformer stacked = rolled(model);
  Json losses;
  losses["dp2_tp4_unrolled"] =
      train_transformer(model, tokens, targets, rules, adam, 12, /*with_last=*/false);
  losses["dp2_tp4_scan"] =
      train_transformer(stacked, tokens, targets, rules, adam, 12, /*with_last=*/false);
  return {{"losses", losses}};
}

Verdict judge_case(const Json& test, const Json& answer) {
  for (const auto& [form, ours] : answer.at("losses").items()) {
    const Json& recorded = test.at("losses").at(form);
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      double a = ours.at(i).is_number() ? ours.at(i).get<double>() : NAN, b = recorded[i];
      if (!(std::abs(a - b) <= kTolerance))
        return Verdict::failed(cat(form, "[", i, "]: ", a, ", recorded ", b));
    }
  }
  return {};
}

int devices_for(const Json&) { return 8; }

}  // namespace gpt12_losses_cases

Suite gpt12_losses_suite() {
  using namespace gpt12_losses_cases;
  // Compiling the unrolled model takes 2.0 GB in XLA.
  return {"gpt12_losses.json", answer_to,       judge_case,
          devices_for,         /*seconds=*/600, /*memory=*/2'200'000'000};
}

}  // namespace meshard::conformance
