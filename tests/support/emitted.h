// The StableHLO that an op emits for one recorded node, for tests of ops.
#pragma once
#include <string>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {

/// A module with one function that performs the node of `tensor`. The node's operands are the
/// function's arguments.
inline std::string emitted_module(const Tensor& tensor, QuirkSet quirks = quirks_of_table("")) {
  const Node& node = *tensor.value().node();
  OpCall call{
      .op = node.op(), .attributes = node.attributes(), .operands = {}, .results = {}, .where = {}};
  std::vector<stablehlo::ArgumentText> arguments;
  std::vector<stablehlo::ResultText> returned;
  std::vector<stablehlo::Typed> operands, results;
  for (const Value& operand : node.operands()) {
    const TensorType& type = operand.type();
    call.operands.push_back(&type);
    operands.emplace_back(stablehlo::Value::argument(static_cast<std::int32_t>(arguments.size())),
                          type);
    arguments.push_back({.type = &type, .sharding = {}, .name = {}, .attributes = {}});
  }
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
    call.results.push_back(&node.type(i));
    results.emplace_back(stablehlo::Value::result(static_cast<std::int32_t>(i)), node.type(i));
    returned.push_back({.type = &node.type(i), .sharding = {}, .attributes = {}});
  }
  stablehlo::ModuleWriter writer;
  writer.begin_function("main", arguments, returned);
  OpEmission emission{
      .writer = writer, .operands = operands, .results = results, .location = {}, .quirks = quirks};
  if (node.annotations() && node.annotations()->manual) {
    emission.mesh = emission.numbering = &node.annotations()->manual->mesh;
    emission.channel = 1;
  }
  node.op().emit(call, emission);
  writer.end_function(results);
  return std::move(writer).finish();
}

/// Only the op's lines, without indentation. Operands are %arg0, %arg1; the result is %0.
inline std::string emitted(const Tensor& tensor, QuirkSet quirks = quirks_of_table("")) {
  std::string module = emitted_module(tensor, quirks), lines;
  std::size_t at = module.find('\n', module.find("func.func")) + 1;
  while (at < module.size()) {
    std::size_t end = module.find('\n', at), text = module.find_first_not_of(' ', at);
    std::string line = module.substr(text, end - text);
    if (line.starts_with("return") || line.starts_with("func.return")) break;
    if (!lines.empty()) lines.push_back('\n');
    lines += line;
    at = end + 1;
  }
  return lines;
}

}  // namespace meshard
