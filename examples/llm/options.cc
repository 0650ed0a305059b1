#include <CLI/CLI.hpp>
#include <charconv>

#include "examples/llm/commands.h"
#include "examples/llm/model/load.h"

namespace llm {

using namespace meshard;

void ModelOptions::add_to(CLI::App& app, bool with_cache) {
  app.add_option("folder", folder, "folder with config.json and *.safetensors")->required();
  app.add_option("--mesh", mesh, "devices along \"data\" and along \"model\", such as 2x4")
      ->capture_default_str();
  app.add_option("--dtype", dtype, "of the weights; default: that of config.json")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  if (!with_cache) return;
  app.add_option("--page-tokens", page_tokens, "tokens of a page of the cache")
      ->capture_default_str();
  app.add_option("--pages", pages,
                 "pages of the cache; default: the whole context for each sequence");
  app.add_option("--sequences", sequences, "the most sequences of a step")->capture_default_str();
  app.add_option("--chunk", chunk_tokens, "the most tokens of a sequence in a step")
      ->capture_default_str();
  app.add_option("--context", context, "the longest sequence; default: that of config.json");
}

Mesh ModelOptions::devices() const {
  std::int64_t data = 0, model = 0;
  const char* end = mesh.data() + mesh.size();
  auto [cross, error] = std::from_chars(mesh.data(), end, data);
  bool valid = error == std::errc() && cross != end && *cross == 'x';
  if (valid) {
    auto [last, wrong] = std::from_chars(cross + 1, end, model);
    valid = wrong == std::errc() && last == end && data > 0 && model > 0;
  }
  if (!valid)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[llm] --mesh is \"", mesh, "\"; it must be like 2x4"));
  return Mesh({{"data", data}, {"model", model}});
}

void ModelOptions::start() const {
  configure_runtime({.cpu_devices = static_cast<int>(devices().size())}).value();
}

DType ModelOptions::dtype_of(const Config& config) const {
  for (DType each : {DType::f32, DType::bf16, DType::f16})
    if (dtype_name(each) == dtype) return each;
  return config.dtype;
}

PagedRunner ModelOptions::runner() const {
  Config config = read_config(folder).value();
  nn::AxisRules rules = rules_for(config, devices()).value();
  Model model = load_model(folder, config, rules, dtype_of(config)).value();
  RunnerLimits limits{.context = context > 0 ? context : config.context,
                      .page_tokens = page_tokens,
                      .pages = pages,
                      .sequences = sequences,
                      .chunk_tokens = chunk_tokens};
  if (pages == 0 && page_tokens > 0)
    limits.pages = sequences * ((limits.context + page_tokens - 1) / page_tokens);
  return PagedRunner(std::move(model), std::move(config), std::move(rules), limits);
}

}  // namespace llm
