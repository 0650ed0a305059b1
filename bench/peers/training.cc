#include "bench/peers/training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "bench/peers/saved.h"
#include "examples/gpt/model.h"

namespace meshard::bench {
namespace {

constexpr int kLosses = 4;

// The largest relative difference of the first losses.
double loss_difference(const std::vector<double>& ours, const nlohmann::json& theirs) {
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    most = std::max(most, std::abs(ours[i] / theirs.at(i).get<double>() - 1));
  return most;
}

struct GptTraining {
  gpt::Gpt model;
  optim::AdamState<gpt::Gpt> adam;
  MESHARD_FIELDS(model, adam)
};

// On `data` x `model` devices, beside JAX with a loop over the layers, and with lax.scan.
void training_on(Contest& contest, const TemporaryFolder& folder, int data, int model) {
  constexpr std::int64_t kBatch = 8, kContext = 128;
  const gpt::Sizes sizes{.layers = 6, .width = 256, .heads = 8, .hidden = 704};
  Mesh mesh({{"data", data}, {"model", model}});
  nn::AxisRules rules = gpt::rules_for(mesh, false);
  const optim::AdamW adam{.rate = 2e-3, .beta2 = 0.98, .weight_decay = 0.1, .decay_rank = 2};
  GptTraining state;
  state.model = nn::create(rules, 1, [&](nn::Maker& make) { return gpt::make_gpt(make, sizes); });
  state.adam = optim::init(adam, state.model);
  std::string weights = folder.file(cat("gpt", data, "x", model, ".safetensors"));
  io::save(weights, state.model).value();
  std::vector<std::int32_t> bytes;
  for (std::int32_t i = 0; i < kBatch * (kContext + 1); ++i) bytes.push_back(i * 7 % 251);
  Tensor windows =
      rules.mark(from_host(std::move(bytes), {kBatch, kContext + 1}), P("batch", none));
  auto make = [adam, rules](const std::string& called) {
    return jit(
        [adam, rules](const GptTraining& now, const Tensor& batch) {
          auto loss_at = [&](const gpt::Gpt& at) { return gpt::loss_of(at, batch, rules); };
          auto [loss, raw] = value_and_grad(loss_at)(now.model);
          auto [gradients, norm] = optim::clip_by_global_norm(raw, 1.0);
          auto [next, next_adam] = optim::update(adam, now.model, gradients, now.adam);
          return std::pair(GptTraining{next, next_adam}, loss);
        },
        {.name = called, .donate = {0}});
  };
  std::string name = cat("training.", data, "x", model);
  OurTraining ours = our_training(make, std::move(state), windows, kLosses,
                                  program_file(contest.programs, name + ".ours.pb"));
  std::vector<TheirTraining> theirs;
  for (const char* form : {"loop", "scan"})
    theirs.push_back(
        {.name = cat(name, ".", form),
         .work = cat("6 layers, ", data, "x", model, " devices; JAX with ",
                     std::string(form) == "loop" ? "a plain loop" : "lax.scan"),
         .peer_work = "training",
         .with = {{"weights", weights},
                  {"data", data},
                  {"model", model},
                  {"batch", kBatch},
                  {"context", kContext},
                  {"form", form},
                  {"steps", kLosses},
                  {"program", program_file(contest.programs, name + "." + form + ".jax.txt")}}});
  add_training_rows(contest, std::move(ours), 6, theirs);
}

}  // namespace

void add_training_rows(Contest& contest, OurTraining ours, int turns,
                       const std::vector<TheirTraining>& theirs) {
  std::vector<std::unique_ptr<Peer>> processes;
  std::vector<std::unique_ptr<PeerWork>> works;
  std::vector<Side> sides{ours.step};
  for (const TheirTraining& each : theirs) {
    processes.push_back(contest.start("jax"));
    works.push_back(std::make_unique<PeerWork>(*processes.back(), each.peer_work, each.with));
    sides.push_back([work = works.back().get()] { return work->run(); });
  }
  std::vector<double> seconds = fastest_in_turns(turns, sides);
  Least our_compile;
  std::vector<Least> their_compile(theirs.size());
  our_compile.take(ours.compile);
  auto compile_of = [](const nlohmann::json& facts) {
    return facts.at("trace").get<double>() + facts.at("compile").get<double>();
  };
  for (std::size_t i = 0; i < theirs.size(); ++i)
    their_compile[i].take(compile_of(works[i]->facts()));
  for (int turn = 0; turn < 2; ++turn) {
    our_compile.take(ours.compile_again());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      nlohmann::json with = theirs[i].with;
      with["steps"] = 1;
      their_compile[i].take(compile_of(PeerWork(*processes[i], theirs[i].peer_work, with).facts()));
    }
  }
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const nlohmann::json& facts = works[i]->facts();
    auto number = [&](const char* key) { return facts.at(key).get<double>(); };
    char note[120];
    std::snprintf(note, sizeof note, "losses differ by at most %.1e; theirs: trace %.2f s",
                  loss_difference(ours.losses, facts.at("losses")), number("trace"));
    const TheirTraining& each = theirs[i];
    add_figures(contest, "jax",
                {.name = each.name + ".compile",
                 .work = "trace and compile: " + each.work,
                 .unit = "s",
                 .ours = our_compile.value,
                 .theirs = their_compile[i].value,
                 .note = note});
    add_figures(contest, "jax",
                {.name = each.name + ".steps",
                 .work = "steps a second: " + each.work,
                 .unit = "1/s",
                 .ours = 1 / seconds[0],
                 .theirs = 1 / seconds[i + 1],
                 .higher_is_better = true});
    add_figures(contest, "jax",
                {.name = each.name + ".memory",
                 .work = "arguments, results and temporaries on a device: " + each.work,
                 .unit = "MB",
                 .ours = static_cast<double>(ours.bytes) / 1e6,
                 .theirs = (number("arguments") + number("outputs") - number("aliased") +
                            number("temporaries")) /
                           1e6});
  }
}

void training_contest(Contest& contest) {
  if (!contest.has("jax")) return;
  TemporaryFolder folder;
  contest.attempt("training.1x1", [&] { training_on(contest, folder, 1, 1); });
  contest.attempt("training.2x4", [&] { training_on(contest, folder, 2, 4); });
}

}  // namespace meshard::bench
