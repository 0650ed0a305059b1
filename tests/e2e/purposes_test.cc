// What the collectives of training steps are for. The expected answers follow from the shardings: a
// batch over "data" has a sum for each gradient, split weights are gathered, and so on.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "meshard/explain/explain.h"
#include "meshard/meshard.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

using Parameters = std::map<std::string, Tensor>;

Tensor placed(Shape shape, const Mesh& mesh, const PartitionSpec& spec) {
  return mark_sharding(from_host(HostArray::zeros({DType::f32, std::move(shape)})), mesh, spec);
}

// One step of gradient descent of an MLP.
std::pair<Parameters, Tensor> step(Parameters p, Tensor x) {
  auto loss = [&](const Parameters& q) {
    Tensor hidden = tanh(matmul(x, q.at("up")));
    return mean(square(matmul(hidden, q.at("down"))));
  };
  auto [value, gradient] = value_and_grad(loss)(p);
  for (auto& [name, tensor] : p) tensor = tensor - gradient.at(name) * 0.1f;
  return {p, value};
}

void expect_same_purposes(const ProgramReport& process, const ProgramReport& file) {
  ASSERT_EQ(process.collectives().size(), file.collectives().size())
      << process.to_string() << file.to_string();
  EXPECT_FALSE(process.collectives().empty());
  for (std::size_t i = 0; i < process.collectives().size(); ++i) {
    const Collective &one = process.collectives()[i], &other = file.collectives()[i];
    EXPECT_EQ(one.purpose, other.purpose)
        << one.instruction << process.to_string() << file.to_string();
    EXPECT_NE(other.purpose.phase, ProgramPhase::kUnknown);
  }
}

struct Purposes : OnDevices {
  // The names, without `[0]["..."]`, of the purposes of this kind and phase.
  static std::set<std::string> names(const ProgramReport& report, PurposeKind kind,
                                     ProgramPhase phase) {
    std::set<std::string> found;
    for (const Collective& one : report.collectives()) {
      if (one.purpose.kind != kind || one.purpose.phase != phase) continue;
      for (const std::string& name : one.purpose.names)
        for (std::string_view key : {"up", "down"})
          if (name.find(key) != std::string::npos) found.emplace(key);
    }
    return found;
  }
  static ProgramReport train(const Parameters& parameters, const Tensor& x) {
    auto training = jit(step, {.donate = {0}});
    training(parameters, x);
    return explain(training);
  }

  const std::set<std::string> both{"down", "up"};
};

TEST_F(Purposes, OfDataParallelTraining) {
  Mesh mesh({{"data", 8}});
  ProgramReport report =
      train({{"up", placed({32, 64}, mesh, P())}, {"down", placed({64, 16}, mesh, P())}},
            placed({256, 32}, mesh, P("data")));
  EXPECT_EQ(names(report, PurposeKind::kGradient, ProgramPhase::kBackward), both)
      << report.to_string();
  for (const Collective& one : report.collectives()) {
    bool of_loss = one.purpose.kind == PurposeKind::kResult;
    EXPECT_TRUE(of_loss || one.purpose.kind == PurposeKind::kGradient) << report.to_string();
  }
}

TEST_F(Purposes, OfFullyShardedTraining) {
  Mesh mesh({{"data", 8}});
  ProgramReport report = train(
      {{"up", placed({32, 64}, mesh, P("data"))}, {"down", placed({64, 16}, mesh, P("data"))}},
      placed({256, 32}, mesh, P("data")));
  std::set<std::string> gathered = names(report, PurposeKind::kWeight, ProgramPhase::kForward);
  gathered.merge(names(report, PurposeKind::kWeight, ProgramPhase::kBackward));
  EXPECT_EQ(gathered, both) << report.to_string();
  EXPECT_EQ(names(report, PurposeKind::kGradient, ProgramPhase::kBackward), both)
      << report.to_string();
}

TEST_F(Purposes, OfColumnThenRowParallelTraining) {
  Mesh mesh({{"model", 8}});
  ProgramReport report = train({{"up", placed({32, 64}, mesh, P(none, "model"))},
                                {"down", placed({64, 16}, mesh, P("model"))}},
                               placed({256, 32}, mesh, P()));
  ASSERT_EQ(report.collectives().size(), 1u) << report.to_string();
  const CollectivePurpose& purpose = report.collectives()[0].purpose;
  EXPECT_EQ(purpose.kind, PurposeKind::kActivations);
  EXPECT_EQ(purpose.phase, ProgramPhase::kForward);
}

// The weights of a loop's layers are slices of stacked arguments.
TEST_F(Purposes, OfFullyShardedLayersInALoop) {
  Mesh mesh({{"data", 8}});
  auto train_layers = jit(
      [](Parameters p, Tensor x) {
        auto loss = [&](const Parameters& q) {
          Tensor last = repeat(q, x, [](const Parameters& layer, const Tensor& h) {
            return h + matmul(tanh(matmul(h, layer.at("up"))), layer.at("down"));
          });
          return mean(square(last));
        };
        auto [value, gradient] = value_and_grad(loss)(p);
        for (auto& [name, tensor] : p) tensor = tensor - gradient.at(name) * 0.1f;
        return std::pair(p, value);
      },
      {.donate = {0}});
  train_layers(Parameters{{"up", placed({6, 32, 64}, mesh, P(none, "data"))},
                          {"down", placed({6, 64, 32}, mesh, P(none, "data"))}},
               placed({256, 32}, mesh, P("data")));
  ProgramReport report = explain(train_layers);
  std::set<std::string> gathered = names(report, PurposeKind::kWeight, ProgramPhase::kForward);
  EXPECT_EQ(gathered, both) << report.to_string();
  EXPECT_EQ(names(report, PurposeKind::kGradient, ProgramPhase::kBackward), both)
      << report.to_string();
  for (const Collective& one : report.collectives()) {
    bool of_layers =
        one.purpose.kind == PurposeKind::kWeight || one.purpose.kind == PurposeKind::kGradient;
    EXPECT_EQ(one.executions, of_layers ? 6 : 1) << one.instruction << report.to_string();
  }
}

// A module in a file tells the same as the program that it was made of.
TEST_F(Purposes, OfAModuleInAFile) {
  const Target target = Target::parse("cpu:8").value();
  const Mesh mesh({{"data", 8}});
  auto layers = [](Parameters p, const Tensor& x) {
    auto loss = [&](const Parameters& q) {
      return mean(square(repeat(q, x, [](const Parameters& layer, const Tensor& h) {
        return h + matmul(tanh(matmul(h, layer.at("up"))), layer.at("down"));
      })));
    };
    auto [value, gradient] = value_and_grad(loss)(p);
    Tensor norm = sqrt(sum(square(gradient.at("up"))) + sum(square(gradient.at("down"))));
    for (auto& [name, tensor] : p) tensor = tensor - gradient.at(name) * (0.1f / norm);
    return std::pair(p, value);
  };
  const Tensor x = abstract_tensor({256, 32}, DType::f32, mesh, P("data"));
  for (const PartitionSpec& spec : {P(), P("data")}) {
    const Parameters flat{{"up", abstract_tensor({32, 64}, DType::f32, mesh, spec)},
                          {"down", abstract_tensor({64, 16}, DType::f32, mesh, spec)}};
    const PartitionSpec inner = spec == P() ? P() : P(none, "data");
    const Parameters stacked{{"up", abstract_tensor({6, 32, 64}, DType::f32, mesh, inner)},
                             {"down", abstract_tensor({6, 64, 32}, DType::f32, mesh, inner)}};
    auto flat_step = jit(step, {.donate = {0}});
    auto layers_step = jit(layers, {.donate = {0}});
    expect_same_purposes(explain(target, flat_step, flat, x),
                         explain_module(module_text(flat_step, flat, x), target));
    expect_same_purposes(explain(target, layers_step, stacked, x),
                         explain_module(module_text(layers_step, stacked, x), target));
  }
}

}  // namespace
}  // namespace meshard
