// Tested in meshard/explain/collectives/origin_test.cc.
#include "meshard/graph/program_phases.h"

#include <algorithm>
#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/graph/body.h"

namespace meshard {

GraphPhases::GraphPhases(const Graph& graph)
    : graph_(graph), phases_(graph.nodes().size(), ProgramPhase::kUnknown) {
  std::span<const Node* const> nodes = graph.nodes();
  auto phase = [&](const Value& operand) -> ProgramPhase* {
    std::uint32_t number = graph.number(operand.node());
    return number < graph.num_leaves() ? nullptr : &phases_[number - graph.num_leaves()];
  };
  auto depends_on = [&](const Node& node, auto... wanted) {
    return std::any_of(node.operands().begin(), node.operands().end(), [&](const Value& operand) {
      const ProgramPhase* found = phase(operand);
      return found && ((*found == wanted) || ...);
    });
  };
  // Nodes are in topological order.
  std::vector<bool> has_derivatives(nodes.size(), false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    if (node.where().is_derivative) {
      phases_[i] = ProgramPhase::kBackward;
      takes_derivatives_ = true;
      continue;
    }
    std::span<const Body> bodies = bodies_of(node);
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      GraphPhases body(bodies[b].graph());
      if (!body.takes_derivatives_) continue;
      has_derivatives[i] = takes_derivatives_ = true;
      bodies_.emplace(cat(i + graph.num_leaves(), ".", b), std::move(body));
    }
    // Also what follows a loop that takes derivatives inside.
    bool follows =
        std::any_of(node.operands().begin(), node.operands().end(), [&](const Value& operand) {
          const ProgramPhase* found = phase(operand);
          return found && has_derivatives[static_cast<std::size_t>(found - phases_.data())];
        });
    if (follows || depends_on(node, ProgramPhase::kBackward, ProgramPhase::kOptimizer))
      phases_[i] = ProgramPhase::kOptimizer;
  }
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (phases_[i] == ProgramPhase::kBackward || phases_[i] == ProgramPhase::kForward)
      for (const Value& operand : nodes[i]->operands())
        if (ProgramPhase* found = phase(operand); found && *found == ProgramPhase::kUnknown)
          *found = ProgramPhase::kForward;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (phases_[i] == ProgramPhase::kUnknown && depends_on(*nodes[i], ProgramPhase::kForward))
      phases_[i] = ProgramPhase::kForward;
}

ProgramPhase GraphPhases::of(std::string_view path) const {
  std::uint32_t number = 0;
  const char* end = path.data() + path.size();
  auto [after, error] = std::from_chars(path.data(), end, number);
  if (error != std::errc() || number < graph_.num_leaves() ||
      number - graph_.num_leaves() >= phases_.size())
    return ProgramPhase::kUnknown;
  ProgramPhase own = phases_[number - graph_.num_leaves()];
  if (after == end || own == ProgramPhase::kBackward) return own;
  std::size_t body = path.find('.', static_cast<std::size_t>(after - path.data()) + 1);
  if (body == std::string_view::npos) return own;
  auto found = bodies_.find(path.substr(0, body));
  return found == bodies_.end() ? own : found->second.of(path.substr(body + 1));
}

}  // namespace meshard
