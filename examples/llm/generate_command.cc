#include <CLI/CLI.hpp>
#include <iostream>

#include "examples/llm/commands.h"
#include "examples/llm/model/generate.h"

namespace llm {

using namespace meshard;

namespace {

struct GenerateOptions {
  ModelOptions model;
  std::vector<std::int32_t> tokens;
  std::int64_t count = 50;
};

void generate(const GenerateOptions& options) {
  options.model.start();
  PagedRunner runner = options.model.runner();
  const std::vector<std::int64_t>& ends = runner.config().end_tokens;
  auto answers = generate_greedily(runner, {options.tokens}, options.count, ends);
  for (std::size_t i = 0; i < answers[0].size(); ++i) std::cout << (i ? "," : "") << answers[0][i];
  std::cout << "\n";
}

}  // namespace

void add_generate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App& command =
      *app.add_subcommand("generate", "Continues a text with the most likely tokens");
  options->model.add_to(command, true);
  command.add_option("--tokens", options->tokens, "the numbers of the prompt's tokens")
      ->delimiter(',')
      ->required();
  command.add_option("--count", options->count, "the most new tokens")->capture_default_str();
  command.callback([options] { generate(*options); });
}

}  // namespace llm
