#include "meshard/explain/predict/predict_shardings.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {
namespace {

class Starts {
 public:
  Starts(const Graph& graph, const Mesh& mesh, const GraphProgram& program)
      : graph_(graph), mesh_(mesh), program_(program) {
    for (const TensorType& type : program.rules.types)
      values_.push_back(PartialSharding::open_value(static_cast<std::size_t>(type.rank())));
  }

  std::vector<PartialSharding> run() {
    for (const Value& leaf : graph_.parameters()) start_leaf(leaf);
    for (const Value& leaf : graph_.captured()) start_leaf(leaf);
    for (const Node* node : graph_.nodes()) start_node(*node);
    return std::move(values_);
  }

 private:
  void set(const Value& value, const Sharding& sharding) {
    std::size_t number = program_.number(graph_, value);
    values_[number] =
        sharding.mesh() == mesh_
            ? PartialSharding::of(sharding, static_cast<std::size_t>(value.type().rank()))
            : PartialSharding();
  }

  void start_leaf(const Value& leaf) {
    const Sharding* sharding = leaf_sharding(leaf);
    std::optional<Sharding> marked = marked_sharding(leaf);
    if (sharding)
      set(leaf, *sharding);
    else if (marked)
      set(leaf, *marked);
  }

  void start_node(const Node& node) {
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
      Value value(const_cast<Node*>(&node), i);
      std::optional<Sharding> marked = marked_sharding(value);
      const Sharding* part = explicit_sharding(node, i);
      if (node.annotations() && node.annotations()->manual)
        values_[program_.number(graph_, value)] = {};
      else if (marked)
        set(value, *marked);
      else if (part)
        set(value, *part);
    }
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const GraphProgram& program_;
  std::vector<PartialSharding> values_;
};

}  // namespace

GraphProgram program_of_graph(const Graph& graph) {
  GraphProgram program;
  auto add_outputs = [&](const Node& node) {
    program.first.push_back(program.rules.types.size());
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) program.rules.add_value(node.type(i));
  };
  for (const Value& leaf : graph.parameters()) add_outputs(*leaf.node());
  for (const Value& leaf : graph.captured()) add_outputs(*leaf.node());
  for (const Node* node : graph.nodes()) {
    add_outputs(*node);
    if (!node->op().sharding_rule) continue;
    RuledOp op{node->op().sharding_rule(call_of(*node)), {}, {}};
    RuledOpFacts facts{
        .origin = {graph.number(node), std::string(node->op().name), node->where().to_string()},
        .asked = marked_sharding(Value(const_cast<Node*>(node))).has_value()};
    for (const Value& operand : node->operands()) {
      op.operands.push_back(program.number(graph, operand));
      facts.made_at.push_back(operand.node()->where());
    }
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
      op.results.push_back(program.first.back() + i);
    program.rules.ops.push_back(std::move(op));
    program.rules.facts.push_back(std::move(facts));
  }
  return program;
}

std::vector<PartialSharding> starting_shardings(const Graph& graph, const Mesh& mesh,
                                                const GraphProgram& program) {
  return Starts(graph, mesh, program).run();
}

ShardingsOfValues predict_shardings(const Graph& graph, const Mesh& mesh) {
  GraphProgram program = program_of_graph(graph);
  std::vector<PartialSharding> values = starting_shardings(graph, mesh, program);
  propagate_program(mesh, program.rules.ops, values);
  ShardingsOfValues shardings;
  for (std::size_t n = 0; n < program.first.size(); ++n) {
    std::size_t end = n + 1 < program.first.size() ? program.first[n + 1] : values.size();
    auto& out = shardings.emplace_back();
    for (std::size_t v = program.first[n]; v < end; ++v) out.push_back(values[v].sharding(mesh));
  }
  return shardings;
}

}  // namespace meshard
