#include <CLI/CLI.hpp>

#include "examples/llm/commands.h"
#include "examples/llm/model/load.h"
#include "examples/llm/train/adapter.h"

namespace llm {

using namespace meshard;

namespace {

struct ConvertOptions {
  ModelOptions model;
  std::string adapter, out;
};

void convert(const ConvertOptions& options) {
  options.model.start();
  Config config = read_config(options.model.folder).value();
  nn::AxisRules rules = rules_for(config, options.model.devices()).value();
  Model model =
      load_model(options.model.folder, config, rules, options.model.dtype_of(config)).value();
  if (!options.adapter.empty()) {
    AdapterConfig adapter = read_adapter_config(options.adapter).value();
    Adapters changes = load_adapters(options.adapter, config, adapter, rules).value();
    model = merged(model, config, changes, adapter.scale()).value();
  }
  save_model(options.out, model, config, options.model.folder).value();
}

}  // namespace

void add_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App& command = *app.add_subcommand(
      "convert", "Writes a model again: in another dtype, or with an adapter merged");
  options->model.add_to(command, false);
  command.add_option("--adapter", options->adapter, "folder with an adapter to merge");
  command.add_option("--out", options->out, "folder to write")->required();
  command.callback([options] { convert(*options); });
}

}  // namespace llm
