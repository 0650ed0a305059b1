// For comparisons with other programs: the logits of given tokens.
#include <CLI/CLI.hpp>

#include "examples/llm/commands.h"
#include "examples/llm/model/generate.h"
#include "examples/llm/model/load.h"

namespace llm {

using namespace meshard;

namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string tokens, out;
  std::int64_t decoded = 0;
};

void write_logits(const LogitsOptions& options) {
  options.model.start();
  HostArray array = io::load_npy(options.tokens).value();
  if (array.type().rank() != 2 || array.type().dtype != DType::i32)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[llm] ", options.tokens, " is ", array.type(), ", not i32[rows, time]"));
  std::int64_t rows = array.type().shape[0], time = array.type().shape[1];
  if (options.decoded < 0 || options.decoded >= time)
    throw Error(ErrorCode::kInvalidArgument, cat("[llm] --decode is ", options.decoded,
                                                 ", but the rows have ", time, " tokens"));
  Config config = read_config(options.model.folder).value();
  nn::AxisRules rules = rules_for(config, options.model.devices()).value();
  Model model =
      load_model(options.model.folder, config, rules, options.model.dtype_of(config)).value();
  auto forward = jit([&](const Model& weights, const Tensor& tokens) {
    return logits_of(weights, config, tokens, rules);
  });
  std::map<std::string, Tensor> found;
  found["whole"] = forward(model, rules.mark(from_host(array), P("batch")));
  PagedRunner runner = options.model.runner();
  auto values = array.data<std::int32_t>();
  std::vector<std::vector<std::int32_t>> prompts;
  auto at = [&](std::int64_t row, std::int64_t i) {
    return values[static_cast<std::size_t>(row * time + i)];
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    prompts.emplace_back();
    for (std::int64_t i = 0; i < time - options.decoded; ++i) prompts.back().push_back(at(row, i));
  }
  Sequences sequences(runner, static_cast<std::size_t>(rows), time);
  std::vector<float> cached;  // [1 + decoded, rows, vocabulary]
  auto keep = [&](const std::vector<std::vector<float>>& each) {
    for (const std::vector<float>& row : each) cached.insert(cached.end(), row.begin(), row.end());
  };
  keep(sequences.append(prompts));
  for (std::int64_t i = time - options.decoded; i < time; ++i) {
    std::vector<std::vector<std::int32_t>> next;
    for (std::int64_t row = 0; row < rows; ++row) next.push_back({at(row, i)});
    keep(sequences.append(next));
  }
  found["cached"] = from_host(std::move(cached), {1 + options.decoded, rows, config.vocabulary});
  io::save(options.out, found).value();
}

}  // namespace

void add_logits(CLI::App& app) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App& command = *app.add_subcommand("logits",
                                          "Writes the logits of given tokens, computed at once "
                                          "(whole) and by steps with a cache (cached)");
  options->model.add_to(command, true);
  command.add_option("--tokens", options->tokens, "npy file, i32[rows, time]")->required();
  command
      .add_option("--decode", options->decoded, "how many of the last tokens are run one by one")
      ->capture_default_str();
  command.add_option("--out", options->out, "safetensors file to write")->required();
  command.callback([options] { write_logits(*options); });
}

}  // namespace llm
