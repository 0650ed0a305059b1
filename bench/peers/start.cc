// Processes from their start to their first result, each in a child process.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "bench/peers/saved.h"
#include "bench/timing.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/runtime/internal/process_runtime.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kInputs = 784, kClasses = 10, kImages = 256;

struct Regression {
  nn::Linear layer;
  optim::AdamState<nn::Linear> adam;
  MESHARD_FIELDS(layer, adam)
};

// Seconds since `began`, in the clock of all processes.
double since(double began) { return now() / 1e6 - began; }

nlohmann::json softmax_child(double began) {
  (void)runtime_client();
  double ready = now() / 1e6;
  const optim::Adam adam{.rate = 1e-3};
  Regression state;
  state.layer = nn::create({}, 1, [](nn::Maker& make) {
    return nn::make_linear(make, kInputs, kClasses, {.weight = nn::init::normal(0.01)});
  });
  state.adam = optim::init(adam, state.layer);
  std::vector<std::int32_t> classes;
  for (std::int32_t i = 0; i < kImages; ++i) classes.push_back(i % kClasses);
  Tensor x = from_host(HostArray::full<float>({kImages, kInputs}, 0.5f));
  Tensor y = from_host(std::move(classes), {kImages});
  auto step = jit(
      [adam](const Regression& at, const Tensor& images, const Tensor& numbers) {
        auto loss_of = [&](const nn::Linear& layer) {
          return cross_entropy(nn::linear(layer, images), numbers);
        };
        auto [loss, gradients] = value_and_grad(loss_of)(at.layer);
        auto [layer, next] = optim::update(adam, at.layer, gradients, at.adam);
        return std::pair(Regression{layer, next}, loss);
      },
      {.name = "softmax_regression", .donate = {0}});
  auto [next, loss] = step(state, x, y);
  double value = loss.item<float>();
  return {{"first_step", since(ready)}, {"since_start", since(began)}, {"loss", value}};
}

// The parameters of the 12 layers, 0.01 each; stacked ones unless the form is kPlain.
Gpt filled_gpt(GptSizes sizes, const Mesh& mesh, float value) {
  const std::int64_t layers = sizes.layers;
  bool stacked = sizes.form != LayerForm::kPlain;
  if (stacked) sizes.layers = 1;
  int count = 0;
  return make_gpt(sizes, [&](const TensorType& type, const PartitionSpec& spec) {
    if (!stacked || count++ < 5)  // the first five parameters belong to no layer
      return mark_sharding(from_host(HostArray::full<float>(type.shape, value)), mesh, spec);
    std::vector<std::int64_t> all{layers};
    for (std::int64_t extent : type.shape) all.push_back(extent);
    Sharding one(mesh, spec, static_cast<std::size_t>(type.rank()));
    return mark_sharding(from_host(HostArray::full<float>(Shape(all), value)), mesh,
                         stacked_sharding(one).spec());
  });
}

nlohmann::json layers_child(const std::string& form, double began) {
  GptSizes sizes;
  if (form == "scan") sizes.form = LayerForm::kLayers;
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  GptState state{filled_gpt(sizes, mesh, 0.01f), filled_gpt(sizes, mesh, 0),
                 filled_gpt(sizes, mesh, 0),
                 mark_sharding(constant(HostArray::scalar(0)), mesh, P())};
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < sizes.batch * sizes.length; ++i)
    numbers.push_back(i * 7 % static_cast<std::int32_t>(sizes.words));
  Tensor tokens = mark_sharding(from_host(std::move(numbers), {sizes.batch, sizes.length}), mesh,
                                P("dp", none));
  auto step =
      jit([&](const GptState& at, const Tensor& x) { return gpt_step(sizes, mesh, at, x, x); },
          {.name = "layers", .donate = {0}});
  auto [next, loss] = step(state, tokens);
  double value = loss.item<float>();
  return {{"since_start", since(began)}, {"loss", value}};
}

// The least of each fact that is a time, over several processes.
struct LeastFacts {
  Least first_step, since_start;
  double loss = 0;

  void take(const nlohmann::json& facts) {
    if (facts.contains("first_step")) first_step.take(facts["first_step"].get<double>());
    since_start.take(facts.at("since_start").get<double>());
    loss = facts.at("loss").get<double>();
  }
};

// The facts of a child process of ours.
nlohmann::json our_child(const std::vector<std::string>& words) {
  std::vector<std::string> command{"/proc/self/exe", "--child"};
  command.insert(command.end(), words.begin(), words.end());
  command.push_back(cat(now() / 1e6));
  return Peer(command).ask({});
}

nlohmann::json jax_child(Contest& contest, const char* work, nlohmann::json with) {
  with["began"] = now() / 1e6;
  std::unique_ptr<Peer> jax = contest.start("jax");
  return PeerWork(*jax, work, with).facts();
}

std::string loss_note(const LeastFacts& ours, const LeastFacts& theirs) {
  char text[80];
  std::snprintf(text, sizeof text, "losses %.4f, %.4f", ours.loss, theirs.loss);
  return text;
}

void softmax_contest(Contest& contest) {
  nlohmann::json with{{"inputs", kInputs}, {"classes", kClasses}, {"batch", kImages}};
  LeastFacts ours, theirs, jitted;
  for (int i = 0; i < 6; ++i) {
    ours.take(our_child({"softmax"}));
    with["jitted"] = false;
    theirs.take(jax_child(contest, "softmax_regression", with));
    with["jitted"] = true;
    jitted.take(jax_child(contest, "softmax_regression", with));
  }
  auto add = [&](const char* name, const char* work, const Least& our, const Least& their,
                 const LeastFacts& facts) {
    add_figures(contest, "jax",
                {.name = name,
                 .work = work,
                 .unit = "ms",
                 .ours = our.value * 1e3,
                 .theirs = their.value * 1e3,
                 .allowed = 1.2,
                 .note = loss_note(ours, facts)});
  };
  add("start.softmax", "softmax regression with Adam: initialization to the first loss, no cache",
      ours.first_step, theirs.first_step, theirs);
  add("start.softmax.jitted", "the same; JAX initializes in one jitted function", ours.first_step,
      jitted.first_step, jitted);
  add("start.softmax.process", "the same, from the start of the process", ours.since_start,
      jitted.since_start, jitted);
}

// Processes that find their programs on disk.
void cached_contest(Contest& contest, const std::string& form) {
  nlohmann::json model = nlohmann::json::object(), block = nlohmann::json::object();
  const Gpt abstract =
      make_gpt(GptSizes{.layers = 1}, [](const TensorType& type, const PartitionSpec&) {
        return abstract_tensor(type, std::nullopt);
      });
  structure::for_each(abstract, [&](const Tensor& tensor, const std::string& at) {
    nlohmann::json shape = nlohmann::json::array();
    for (std::int64_t extent : tensor.shape()) shape.push_back(extent);
    bool in_block = at.find(']') != at.npos;  // `.words`, `.blocks[0].query`
    (in_block ? block : model)[at.substr(at.rfind('.') + 1)] = shape;
  });
  TemporaryFolder folder;
  GptSizes sizes;
  nlohmann::json with{{"cache", folder.file("jax")},
                      {"form", form},
                      {"batch", sizes.batch},
                      {"length", sizes.length},
                      {"sizes", {{"model", model}, {"block", block}, {"layers", sizes.layers}}}};
  setenv("MESHARD_PLUGIN", contest.plugin().c_str(), 1);
  setenv("MESHARD_CACHE", folder.path().c_str(), 1);
  setenv("MESHARD_PROGRAM_CACHE_MB", "1024", 1);
  LeastFacts ours, theirs, our_first, their_first;
  our_first.take(our_child({"layers", form}));
  their_first.take(jax_child(contest, "layers_start", with));
  for (int i = 0; i < 5; ++i) {
    ours.take(our_child({"layers", form}));
    theirs.take(jax_child(contest, "layers_start", with));
  }
  setenv("MESHARD_PROGRAM_CACHE_MB", "0", 1);
  unsetenv("MESHARD_CACHE");
  auto add = [&](std::string name, const std::string& work, const LeastFacts& our,
                 const LeastFacts& their) {
    add_figures(contest, "jax",
                {.name = std::move(name),
                 .work = work,
                 .unit = "ms",
                 .ours = our.since_start.value * 1e3,
                 .theirs = their.since_start.value * 1e3,
                 .note = loss_note(our, their)});
  };
  const std::string work = cat("process start to the first loss of 12 layers (",
                               form == "loop" ? "plain loop" : "nn::Layers, scan", ")");
  add("start.layers." + form + ".empty", work + ", empty cache on disk", our_first, their_first);
  add("start.layers." + form, work + ", programs on disk", ours, theirs);
}

}  // namespace

int start_contest_child(const std::vector<std::string>& arguments) {
  double began = std::atof(arguments.back().c_str());
  nlohmann::json facts =
      arguments[0] == "softmax" ? softmax_child(began) : layers_child(arguments.at(1), began);
  std::printf("%s\n", nlohmann::json{{"ok", facts}}.dump().c_str());
  std::fflush(stdout);
  while (std::getchar() != '\n' && std::feof(stdin) == 0) {  // the request, which says nothing
  }
  _exit(0);  // the cost of a normal exit is not measured
}

void start_contest(Contest& contest) {
  if (!contest.has("jax")) return;
  contest.attempt("start.softmax", [&] { softmax_contest(contest); });
  contest.attempt("start.layers.scan", [&] { cached_contest(contest, "scan"); });
  contest.attempt("start.layers.loop", [&] { cached_contest(contest, "loop"); });
}

}  // namespace meshard::bench
