// Random models in stages: losses, gradients and updates are those of the undivided model.
//
// MESHARD_PIPELINES=n runs n models; MESHARD_NIGHTLY=1 runs 500. Model k of a run is drawn from
// the run's seed + k, so that MESHARD_TEST_SEED=<its seed> MESHARD_PIPELINES=1 runs it alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "meshard/runtime/plugin_testutil.h"
#include "tests/pipeline/random_pipeline.h"
#include "tests/support/random.h"

namespace meshard::property {
namespace {

constexpr double kRate = 0.125;  // a number of f32, as optimizers compute rates
constexpr int kMostFailures = 3;

int models_to_run() {
  if (const char* count = std::getenv("MESHARD_PIPELINES")) return std::atoi(count);
  return std::getenv("MESHARD_NIGHTLY") != nullptr ? 500 : 60;
}

using Numbers = std::vector<double>;

Numbers numbers_of(const Tensor& tensor) {
  return astype(from_host(tensor.to_host()), DType::f64).to_vector<double>();
}

// Says how far apart they are; empty: near enough.
std::string difference(const std::string& what, const Numbers& got, const Numbers& expected,
                       double allowed) {
  if (got.size() != expected.size()) return cat(what, " has ", got.size(), " numbers\n");
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= allowed))
      return cat(what, "[", i, "] is ", got[i], ", not ", expected[i], "\n");
  return "";
}

// The batch, and its microbatches.
struct Batch {
  std::vector<Tensor> whole;
  std::vector<std::vector<Tensor>> parts;
};

Batch batch_of(const RandomPipeline& model) {
  Batch batch;
  const std::int64_t microbatches = model.schedule.microbatches(), rows = model.rows;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < rows * microbatches; ++i)
    labels.push_back(static_cast<std::int32_t>((i * 5 + i / 3) % kClasses));
  for (int k : {0, 1})
    batch.whole.push_back(some_numbers(
        {rows * microbatches, model.widths[static_cast<std::size_t>(k)]}, 40 + k, model.dtype));
  batch.whole.push_back(from_host(std::move(labels), {rows * microbatches}));
  for (std::int64_t m = 0; m < microbatches; ++m) {
    std::vector<Tensor> part;
    for (const Tensor& each : batch.whole) {
      Box box{{m * rows, (m + 1) * rows}};
      if (each.rank() == 2) box.push_back({0, each.dim(1)});
      Tensor cut = from_host(each.to_host().slice(box));
      if (model.batch) {
        PartitionSpec spec(std::vector<DimensionSpec>{DimensionSpec(model.batch->axes(0))});
        if (each.rank() == 2) spec = model.batch->spec();
        cut = mark_sharding(cut, model.batch->mesh(), spec);
      }
      part.push_back(cut);
    }
    batch.parts.push_back(std::move(part));
  }
  return batch;
}

// Runs the model in stages and undivided. @return what differs; empty: nothing
std::string run(const RandomPipeline& model) {
  const Batch batch = batch_of(model);
  std::vector<Tensor> plain, placed;
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    plain.push_back(some_numbers(model.parameters[i].shape, static_cast<int>(i), model.dtype));
    const std::optional<Sharding>& sharding = model.parameters[i].sharding;
    placed.push_back(sharding ? mark_sharding(plain.back(), *sharding) : plain.back());
  }
  auto [loss, gradients] = value_and_grad(
      [&](const std::vector<Tensor>& params) { return model.loss(params, batch.whole); })(plain);
  double norm = 0, largest = 0;
  std::vector<Numbers> expected;
  for (const Tensor& each : gradients) {
    expected.push_back(numbers_of(each));
    for (double number : expected.back()) {
      norm += number * number;
      largest = std::max(largest, std::abs(number));
    }
  }
  norm = std::sqrt(norm);
  const double whole_loss = numbers_of(loss)[0];
  // Rounding errors of sums of about a hundred terms.
  const double allowed =
      (model.dtype == DType::f64 ? 1e-12 : 1e-5) * std::max({1.0, largest, std::abs(whole_loss)});

  Pipeline pipeline(model.stages(placed), model.schedule,
                    {.optimizer = optim::Sgd{.rate = kRate}, .clip_norm = model.clip});
  std::string differences;
  const auto compare = [&](const char* when, const auto& tensors_of, auto expected_of,
                           double error) {
    for (int s = 0; s < model.schedule.stages(); ++s) {
      const std::vector<int>& numbers = model.parts[static_cast<std::size_t>(s)].parameters;
      std::vector<Tensor> tensors = tensors_of(s);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        differences += difference(cat(when, " of parameter ", numbers[i], " in stage ", s),
                                  numbers_of(tensors[i]), expected_of(numbers[i]), error);
    }
  };
  using Tensors = std::vector<Tensor>;
  for (const char* when : {"gradient", "second gradient"}) {
    Tensor got = pipeline.backward(batch.parts);
    differences += difference("loss", numbers_of(got), {whole_loss}, allowed);
    compare(
        when, [&](int s) { return pipeline.gradients<Tensors>(s); },
        [&](int number) { return expected[static_cast<std::size_t>(number)]; }, allowed);
  }
  if (pipeline.stats().peak_activations != model.schedule.peak_activations())
    differences += cat("kept ", join(pipeline.stats().peak_activations, " "), " microbatches\n");
  pipeline.step(batch.parts);
  const double factor = model.clip > 0 && norm > model.clip ? model.clip / norm : 1;
  compare(
      "new value", [&](int s) { return pipeline.parameters<Tensors>(s); },
      [&](int number) {
        auto at = static_cast<std::size_t>(number);
        Numbers next = numbers_of(plain[at]);
        for (std::size_t i = 0; i < next.size(); ++i) next[i] -= kRate * factor * expected[at][i];
        return next;
      },
      model.clip > 0 ? std::max(allowed, 1e-6 * largest) : allowed);  // the norm is f32
  return differences;
}

using RandomPipelines = OnPlugin;

TEST_F(RandomPipelines, EqualTheUndividedModel) {
  int failures = 0;
  std::map<std::string, int> schedules;
  for (int k = 0; k < models_to_run(); ++k) {
    const std::uint64_t seed = test_seed() + static_cast<std::uint64_t>(k);
    std::mt19937_64 random(seed);
    const RandomPipeline model = draw_pipeline(random);
    ++schedules[model.schedule.name()];
    std::string differences;
    try {
      differences = run(model);
    } catch (const std::exception& error) {
      differences = error.what();
    }
    if (differences.empty()) continue;
    ++failures;
    if (failures <= kMostFailures)
      ADD_FAILURE() << "MESHARD_TEST_SEED=" << seed << " MESHARD_PIPELINES=1\n"
                    << model.to_string() << differences;
  }
  EXPECT_EQ(failures, 0) << "of " << models_to_run();
  if (models_to_run() >= 60) {
    EXPECT_GE(schedules.size(), 5u) << "every schedule is drawn";
  }
}

}  // namespace
}  // namespace meshard::property
