// A training step of 12 equal layers on 2x4 devices: as a loop over a vector, over an nn::Layers,
// and with repeat().
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/on_devices.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/meshard.h"
#include "meshard/ops/definition/bodies.h"

namespace meshard::bench {
namespace {

struct Times {
  double record = 0, compile = 0, step = 0;  // microseconds
};

Gpt parameters_of(const GptSizes& sizes, const Mesh& mesh, double scale) {
  std::uint64_t seed = 1;
  Gpt gpt = make_gpt(sizes, [&](const TensorType& type, const PartitionSpec& spec) {
    Tensor values = random::normal(random::key(seed++), type.shape) * scale;
    return mark_sharding(values, mesh, spec);
  });
  if (sizes.form == LayerForm::kPlain) return gpt;
  GptBlock stacked = stack_structures(gpt.blocks);
  std::vector<Tensor> one = structure::tensors(gpt.blocks[0]), all = structure::tensors(stacked);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = mark_sharding(all[i], mesh, stacked_sharding(*one[i].sharding()).spec());
  gpt.blocks = {structure::with_tensors(stacked, all)};
  return gpt;
}

// The minimum of `steps` steps after the first one, which compiles.
Times measure(LayerForm form, int steps) {
  GptSizes sizes;
  sizes.form = form;
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  GptState state{parameters_of(sizes, mesh, 0.02), parameters_of(sizes, mesh, 0),
                 parameters_of(sizes, mesh, 0), constant(HostArray::scalar(0))};
  Tensor tokens = astype(
      random::randint(random::key(99), {sizes.batch, sizes.length}, 0, sizes.words), DType::i32);
  tokens = mark_sharding(tokens, mesh, P("dp", none));
  Times times;
  auto step = jit([&](const GptState& now, const Tensor& x, const Tensor& y) {
    double begin = bench::now();
    auto result = gpt_step(sizes, mesh, now, x, y);
    times.record = bench::now() - begin;
    return result;
  });
  std::vector<Tensor> given = structure::tensors(state);
  given.push_back(tokens);
  for (const Tensor& each : given) each.to_host();
  Least least;
  for (int i = 0; i <= steps; ++i) {
    double begin = now();
    auto [next, loss] = step(state, tokens, tokens);
    wait_for(loss);
    for (const Tensor& each : structure::tensors(next)) wait_for(each);
    double taken = now() - begin;
    state = std::move(next);
    i == 0 ? times.compile = taken : (least.take(taken), 0.0);
  }
  times.step = least.value;
  times.compile -= times.step + times.record;
  return times;
}

}  // namespace

void layers_rows(Report& report) {
  Times plain = measure(LayerForm::kPlain, 4), layers = measure(LayerForm::kLayers, 4),
        again = measure(LayerForm::kLayersCheckpoint, 4), repeated = measure(LayerForm::kRepeat, 4);
  auto note = [](const Times& t) {
    char text[120];
    std::snprintf(text, sizeof text, "record %.1f ms, compile %.2f s, step %.2f s", t.record / 1e3,
                  t.compile / 1e6, t.step / 1e6);
    return std::string(text);
  };
  auto add = [&](const char* name, const char* work, double ours, double floor,
                 const char* floor_name, double goal, const char* text, const Times& of) {
    report.add({.name = name,
                .work = work,
                .unit = "s",
                .ours = ours / 1e6,
                .floor = floor / 1e6,
                .floor_name = floor_name,
                .goal = text,
                .bound = goal * floor / 1e6,
                .note = note(of)});
  };
  add("layers.compile", "compile a loop over nn::Layers of 12", layers.compile, plain.compile,
      "a vector", 0.2, "0.2 of a loop over a vector", layers);
  add("layers.step", "a step of them", layers.step, plain.step, "a vector", 1.0,
      "no slower than the loop over a vector", plain);
  add("layers.repeat", "a step of them", layers.step, repeated.step, "repeat()", 1.05,
      "as fast as repeat()", repeated);
  // Each layer is computed once more: at most 3 + 1 passes instead of 3.
  add("layers.checkpoint", "a step with checkpoint()", again.step, layers.step, "without it",
      4.0 / 3 * 1.05, "at most one more forward pass", again);
}

}  // namespace meshard::bench
