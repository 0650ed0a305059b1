#include "tools/reference/op_example.h"

#include <algorithm>

#include "meshard/base/error.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::tool {
namespace {

struct Example {
  std::string_view op;
  Tensor (*call)(const Tensor& x, const Tensor& y);
};

constexpr Example kExamples[] = {
#include "op_examples.inc"
};

}  // namespace

Graph record_example(const OpDef& op) {
  auto* example = std::find_if(std::begin(kExamples), std::end(kExamples),
                               [&](const Example& candidate) { return candidate.op == op.name; });
  if (example == std::end(kExamples)) throw InternalError(cat("no example of ", op.name));
  internal::TraceScope trace;
  TensorType type{DType::f32, Shape({2, 3})};
  Tensor x = make_parameter(type, std::nullopt, {}), y = make_parameter(type, std::nullopt, {});
  Tensor result = example->call(x, y);
  const Value parameters[] = {x.value(), y.value()}, results[] = {result.value()};
  Graph whole = Graph::build(parameters, results, trace.trace());
  std::vector<Value> used;
  for (const Value& parameter : parameters)
    for (const Node* node : whole.nodes())
      if (std::count(node->operands().begin(), node->operands().end(), parameter) &&
          !std::count(used.begin(), used.end(), parameter))
        used.push_back(parameter);
  return Graph::build(used, results, trace.trace());
}

const Node& example_node(const OpDef& op, const Graph& graph) {
  const Node* found = nullptr;
  for (const Node* node : graph.nodes())
    if (&node->op() == &op) found = node;
  if (!found) throw InternalError(cat("the example of ", op.name, " does not use it"));
  return *found;
}

}  // namespace meshard::tool
