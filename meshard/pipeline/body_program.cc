// Tested in meshard/pipeline/pipeline_test.cc.
#include "meshard/pipeline/body_program.h"

#include <set>

#include "meshard/ops/all.h"

namespace meshard::internal {
namespace {

std::vector<std::size_t> used_parameters(const Graph& graph) {
  std::set<const Node*> needed;
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands()) needed.insert(operand.node());
  for (const Value& result : graph.results()) needed.insert(result.node());
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    if (needed.contains(graph.parameters()[i].node())) used.push_back(i);
  return used;
}

}  // namespace

BodyProgram::BodyProgram(Body body, const BodyProgramOptions& options, SourceLocation where)
    : body_(std::move(body)), used_(used_parameters(body_.graph())) {
  if (options.first_parameter && !used_.empty() && used_.front() == 0) used_.erase(used_.begin());
  JitOptions jit_options{.name = options.name};
  jit_options.donate = {0};
  jit_.emplace(Run{body_, used_, options}, std::move(jit_options), where);
}

std::vector<Tensor> BodyProgram::operator()(const std::vector<Tensor>& accumulators,
                                            const std::vector<Tensor>& values) const {
  internal_check(values.size() == body_.num_parameters(), "a program got too few values");
  std::vector<Tensor> given;
  for (std::size_t i : used_) given.push_back(values[i]);
  return (*jit_)(accumulators, given);
}

std::vector<Tensor> BodyProgram::Run::operator()(const std::vector<Tensor>& accumulators,
                                                 const std::vector<Tensor>& values) const {
  std::vector<Tensor> all(body.num_parameters());
  if (options.first_parameter)
    all[0] = full(body.parameter(0).shape, *options.first_parameter, body.parameter(0).dtype);
  for (std::size_t i = 0; i < used.size(); ++i) all[used[i]] = values[i];
  std::vector<Tensor> results = inlined(body, all);
  for (std::size_t i = 0; i < options.accumulated; ++i) {
    results[i] = accumulators[i] + results[i];
    // In the sharding of the accumulator, so that the sum can take its memory.
    if (std::optional<Sharding> sharding = accumulators[i].sharding())
      results[i] = mark_sharding(results[i], *sharding);
  }
  return results;
}

}  // namespace meshard::internal
