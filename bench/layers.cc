// A training step of 12 equal layers on 2x4 devices: as a loop over a vector, over an nn::Layers,
// and with repeat().
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/on_devices.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/meshard.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/runtime/internal/load_program.h"

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

// One form of the step: compiles it, and runs it step by step.
class Measured {
 public:
  explicit Measured(LayerForm form) {
    sizes_.form = form;
    state_ = {parameters_of(sizes_, mesh_, 0.02), parameters_of(sizes_, mesh_, 0),
              parameters_of(sizes_, mesh_, 0), constant(HostArray::scalar(0))};
    tokens_ =
        astype(random::randint(random::key(99), {sizes_.batch, sizes_.length}, 0, sizes_.words),
               DType::i32);
    tokens_ = mark_sharding(tokens_, mesh_, P("dp", none));
    std::vector<Tensor> given = structure::tensors(state_);
    given.push_back(tokens_);
    for (const Tensor& each : given) each.to_host();
    time_of_step();
  }

  // Microseconds of compiling it, without the first step's pages and buffers.
  double time_of_compile() const {
    pjrt::Client client = runtime_client();
    std::vector<int> devices(static_cast<std::size_t>(mesh_.size()));
    std::iota(devices.begin(), devices.end(), 0);
    double begin = now();
    client.compile(module_of(step_), compile_options_for(client, LoweredModule(), devices)).value();
    return now() - begin;
  }

  // Microseconds until all results are there.
  double time_of_step() {
    double begin = now();
    auto [next, loss] = step_(state_, tokens_, tokens_);
    wait_for(loss);
    for (const Tensor& each : structure::tensors(next)) wait_for(each);
    double taken = now() - begin;
    state_ = std::move(next);
    return taken;
  }

  double time_of_record() const { return record_; }

 private:
  using Step = std::pair<GptState, Tensor>(const GptState&, const Tensor&, const Tensor&);

  GptSizes sizes_;
  Mesh mesh_{{{"dp", 2}, {"tp", 4}}};
  GptState state_;
  Tensor tokens_;
  double record_ = 0;  // microseconds
  Jit<std::function<Step>> step_ =
      jit(std::function<Step>([this](const GptState& state, const Tensor& x, const Tensor& y) {
        double begin = now();
        auto result = gpt_step(sizes_, mesh_, state, x, y);
        record_ = now() - begin;
        return result;
      }));
};

// Measures compiles and steps in turns, of which compiles have fewer. Each turn begins with another
// form: a step after one of the large program finds other caches than a step after a small one.
std::array<Times, 4> times_of(const std::array<LayerForm, 4>& forms, int compiles, int steps) {
  std::vector<std::unique_ptr<Measured>> measured;
  for (LayerForm form : forms) measured.push_back(std::make_unique<Measured>(form));
  std::array<Least, 4> compile, step;
  auto take_turns = [&](int turns, std::array<Least, 4>& least, auto&& time_of) {
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(turns); ++turn)
      for (std::size_t i = 0; i < forms.size(); ++i) {
        std::size_t form = (turn + i) % forms.size();
        least[form].take(time_of(*measured[form]));
      }
  };
  take_turns(compiles, compile, [](const Measured& each) { return each.time_of_compile(); });
  take_turns(steps, step, [](Measured& each) { return each.time_of_step(); });
  std::array<Times, 4> times;
  for (std::size_t i = 0; i < forms.size(); ++i)
    times[i] = {measured[i]->time_of_record(), compile[i].value, step[i].value};
  return times;
}

}  // namespace

void layers_rows(Report& report) {
  const auto [plain, layers, again, repeated] = times_of(
      {LayerForm::kPlain, LayerForm::kLayers, LayerForm::kLayersCheckpoint, LayerForm::kRepeat}, 2,
      14);
  auto note = [](const Times& t) {
    char text[120];
    std::snprintf(text, sizeof text, "record %.1f ms, compile %.2f s, step %.2f s", t.record / 1e3,
                  t.compile / 1e6, t.step / 1e6);
    return std::string(text);
  };
  auto add = [&](const char* name, const char* work, double ours, double floor,
                 const char* floor_name, double goal, const char* text, const Times& noted) {
    report.add({.name = name,
                .work = work,
                .unit = "s",
                .ours = ours / 1e6,
                .floor = floor / 1e6,
                .floor_name = floor_name,
                .goal = text,
                .bound = goal * floor / 1e6,
                .note = note(noted)});
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
