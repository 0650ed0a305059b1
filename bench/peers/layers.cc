// 12 equal layers beside JAX: the model of bench/gpt_model.h on 2x4 devices.
#include <utility>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/peers/saved.h"
#include "bench/peers/training.h"
#include "meshard/ops/definition/bodies.h"

namespace meshard::bench {
namespace {

constexpr int kLayersLosses = 3;

// The parameters of a loop over a vector of layers.
Gpt plain_gpt(const Mesh& mesh) {
  std::int64_t seed = 1;
  Gpt plain = make_gpt(GptSizes{}, [&](const TensorType& type, const PartitionSpec& spec) {
    Tensor values = type.rank() > 1 ? random::normal(random::key(seed++), type.shape) * 0.02
                                    : full(type.shape, seed++ % 2 == 0 ? 0.9 : 1.1);
    return mark_sharding(values, mesh, spec);
  });
  sync(structure::tensors(plain));
  return plain;
}

// Our parameters in the form's structure, from those of a plain loop.
Gpt in_form(const Gpt& plain, const Mesh& mesh, LayerForm form) {
  if (form == LayerForm::kPlain) return plain;
  Gpt gpt = plain;
  GptBlock stacked = stack_structures(plain.blocks);
  std::vector<Tensor> one = structure::tensors(plain.blocks[0]), all = structure::tensors(stacked);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = mark_sharding(all[i], mesh, stacked_sharding(*one[i].sharding()).spec());
  gpt.blocks = {structure::with_tensors(stacked, all)};
  return gpt;
}

struct LayersContestCase {
  LayerForm form;
  const char* name;
  const char* theirs;
};

void layers_in(Contest& contest, const LayersContestCase& given, const std::string& weights) {
  GptSizes sizes;
  sizes.form = given.form;
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  const Gpt plain = plain_gpt(mesh);
  io::save(weights, plain).value();
  auto zeros_like_all = [](const Gpt& like) {
    std::vector<Tensor> tensors = structure::tensors(like);
    for (Tensor& each : tensors) each = each * 0.0f;
    return structure::with_tensors(like, tensors);
  };
  Gpt model = in_form(plain, mesh, given.form);
  GptState state{model, zeros_like_all(model), zeros_like_all(model),
                 mark_sharding(constant(HostArray::scalar(0)), mesh, P())};
  sync(structure::tensors(state));
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < sizes.batch * sizes.length; ++i)
    numbers.push_back(i * 7 % static_cast<std::int32_t>(sizes.words));
  Tensor tokens = mark_sharding(from_host(std::move(numbers), {sizes.batch, sizes.length}), mesh,
                                P("dp", none));
  auto make = [sizes, mesh](const std::string& called) {
    return jit([sizes, mesh](const GptState& at,
                             const Tensor& x) { return gpt_step(sizes, mesh, at, x, x); },
               {.name = called, .donate = {0}});
  };
  std::string name = cat("layers.", given.name);
  OurTraining ours = our_training(make, std::move(state), tokens, kLayersLosses,
                                  program_file(contest.programs, name + ".ours.pb"));
  add_training_rows(contest, std::move(ours), 4,
                    {{.name = name,
                      .work = cat("12 layers, 2x4 devices; JAX with ", given.theirs),
                      .peer_work = "layers",
                      .with = {{"weights", weights},
                               {"form", given.name},
                               {"batch", sizes.batch},
                               {"length", sizes.length},
                               {"steps", kLayersLosses},
                               {"program", program_file(contest.programs, name + ".jax.txt")}}}});
}

}  // namespace

void layers_contest(Contest& contest) {
  if (!contest.has("jax")) return;
  TemporaryFolder folder;
  std::string weights = folder.file("layers.safetensors");
  for (const LayersContestCase& given :
       {LayersContestCase{LayerForm::kLayers, "scan", "lax.scan"},
        LayersContestCase{LayerForm::kLayersCheckpoint, "remat", "lax.scan and jax.checkpoint"},
        LayersContestCase{LayerForm::kPlain, "loop", "a plain loop"}})
    contest.attempt(cat("layers.", given.name), [&] { layers_in(contest, given, weights); });
}

}  // namespace meshard::bench
