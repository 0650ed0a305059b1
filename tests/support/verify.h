// Checks that a program matches what inference computes for it.
#pragma once
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/base/result.h"
#include "meshard/graph/annotate.h"
#include "meshard/graph/body.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/op_def.h"

namespace meshard {

inline Error contradiction(const Graph& graph, const Node& node, std::string_view what) {
  return InternalError(cat("[graph] %", graph.number(&node), " = ", node.op().name, ": ", what),
                       node.where());
}

/// Infers the types and annotations of every node again and compares them with the recorded ones.
/// Also checks that operands come before their users.
/// @error internal: a recorded node contradicts its own op.
inline Result<void> verify(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    OpCall call{.op = node->op(),
                .attributes = node->attributes(),
                .operands = {},
                .results = {},
                .where = node->where()};
    for (const Value& operand : node->operands()) {
      if (graph.number(operand.node()) >= graph.number(node))
        return contradiction(graph, *node, "an operand appears after its user");
      call.operands.push_back(&operand.type());
    }
    ResultTypes inferred;
    AnnotationsPtr annotations;
    try {
      node->op().infer(call, inferred);
      annotations = annotate_results(*node);
    } catch (const Error& error) {
      return contradiction(graph, *node, error.message());
    }
    if (inferred.size() != node->num_outputs())
      return contradiction(graph, *node, "wrong number of results");
    for (std::uint32_t i = 0; i < inferred.size(); ++i)
      if (inferred[i] != node->type(i))
        return contradiction(graph, *node,
                             cat("recorded ", node->type(i), ", inferred ", inferred[i]));
    const Annotations nothing, &recorded = node->annotations() ? *node->annotations() : nothing;
    if (!(recorded == (annotations ? *annotations : nothing)))
      return contradiction(graph, *node, "its annotations do not follow from its operands");
    for (const Body& body : bodies_of(*node))
      if (Result<void> inside = verify(body.graph()); !inside.ok())
        return inside.error().with_note(cat("in a body of %", graph.number(node)));
  }
  return {};
}

}  // namespace meshard
