// What a model does on devices that are not here: whether it fits, its collectives, what bounds it.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "examples/llm/commands.h"
#include "examples/llm/model/load.h"

namespace llm {

using namespace meshard;

namespace {

// config.json of Llama 3 70B.
constexpr const char* kLlama70b =
    R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192,
  "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
  "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "dtype": "bfloat16"})";

struct ExportOptions {
  ModelOptions model;
  std::string target = "v5p:4x4x4", program = "decode", json, html, module;
  std::int64_t rows = 16, length = 1024;
  bool plan = false;
};

Config config_of(const ExportOptions& options) {
  if (options.model.folder == "llama3-70b") return parse_config(kLlama70b, "llama3-70b").value();
  return read_config(options.model.folder).value();
}

// Calls `use(step, arguments...)` with the program on a mesh.
template <class Use>
auto with_program(const ExportOptions& options, const Config& config, const Mesh& mesh,
                  const Use& use) {
  nn::AxisRules rules = rules_for(config, mesh).value();
  DType dtype = options.model.dtype_of(config);
  Model model = describe_model(config, dtype, rules);
  auto row = [&](Shape shape) {
    return abstract_tensor(TensorType{DType::i32, std::move(shape)}, rules.sharding(P("batch")));
  };
  // Every row has so many pages; those that the step reads hold the whole length.
  std::int64_t pages = (options.length + options.model.page_tokens - 1) / options.model.page_tokens;
  std::int64_t time = options.program == "decode" ? 1 : options.length;
  PagedTokens rows{row({options.rows, time}), row({options.rows}), row({options.rows}),
                   row({options.rows, pages})};
  PagedCache cache =
      make_paged_cache(config, rules, options.rows * pages, options.model.page_tokens, dtype, true);
  auto step = jit(
      [&](const Model& weights, const PagedTokens& tokens, const PagedCache& before) {
        return paged_step(weights, config, tokens, before, rules, false);
      },
      {.name = options.program, .donate = {2}});
  return use(step, model, rows, cache);
}

void write_text(const std::string& path, const std::string& text) {
  if (!path.empty()) write_whole_file(path, text).value();
}

void export_program(const ExportOptions& options) {
  Config config = config_of(options);
  Target target = Target::parse(options.target).value();
  if (options.plan) {
    PlanResult found = plan(target, {"data", "model"}, {},
                            [&](const Mesh& mesh, const std::vector<PartitionSpec>&) {
                              return with_program(options, config, mesh,
                                                  [](const auto& step, const auto&... arguments) {
                                                    return trace_program(step, arguments...);
                                                  });
                            });
    std::cout << found.to_string();
    return;
  }
  const Mesh asked = options.model.devices();
  const std::span<const MeshAxis> axes = asked.axes();
  Mesh mesh = mesh_on_target({axes.begin(), axes.end()}, target, DeviceOrder::kTorus).value();
  with_program(options, config, mesh, [&](const auto& step, const auto&... arguments) {
    write_text(options.module, module_text(step, arguments...));
    ProgramReport report = explain(target, step, arguments...);
    std::cout << report.to_string();
    write_text(options.json, to_json(report));
    write_text(options.html, to_html(report));
    return 0;
  });
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = *app.add_subcommand(
      "export", "Explains a step of a model on devices that are not here; nothing runs");
  command.add_option("model", options->model.folder, "folder with config.json, or llama3-70b")
      ->required();
  command.add_option("--target", options->target, "such as v5p:4x4x4, h100:8")
      ->capture_default_str();
  command.add_option("--mesh", options->model.mesh, "devices along \"data\" and along \"model\"")
      ->capture_default_str();
  command.add_option("--dtype", options->model.dtype, "default: that of config.json")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  command.add_option("--program", options->program, "one token of each row, or a prompt of each")
      ->check(CLI::IsMember({"decode", "prefill"}))
      ->capture_default_str();
  command.add_option("--rows", options->rows, "sequences")->capture_default_str();
  command.add_option("--length", options->length, "tokens of a sequence")->capture_default_str();
  command.add_option("--page-tokens", options->model.page_tokens, "tokens of a page of the cache")
      ->capture_default_str();
  command.add_flag("--plan", options->plan, "searches for the best mesh instead");
  command.add_option("--json", options->json, "file for the report");
  command.add_option("--html", options->html, "file for its page");
  command.add_option("--module", options->module, "file for the StableHLO module");
  command.callback([options] { export_program(*options); });
}

}  // namespace llm
