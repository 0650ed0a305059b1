#include "meshard/autodiff/split_body.h"

#include "meshard/autodiff/cheapest_residuals.h"
#include "meshard/base/error.h"
#include "meshard/graph/node_table.h"

namespace meshard {
namespace {

class BodySplitter {
 public:
  BodySplitter(const Body& body, std::size_t count) : graph_(body.graph()), count_(count) {
    for (const Value& parameter : graph_.parameters()) leaves_.insert(*parameter.node());
    auto is_leaf = [this](const Value& value) { return leaves_.contains(*value.node()); };
    NodeSet first_nodes;
    nodes_behind(
        graph_.results().first(count_), [&](const Value& value) { return !is_leaf(value); },
        first_nodes);
    ValueSet border;
    nodes_behind(graph_.results().subspan(count_), [&](const Value& value) {
      bool is_first = first_nodes.contains(*value.node());
      if (is_first) border.insert(value);
      return !is_first && !is_leaf(value);
    });
    handed_over_ = cheapest_residuals(border, is_leaf);
  }

  SplitBody split(SourceLocation where) const {
    std::vector<Value> parameters(graph_.parameters().begin(), graph_.parameters().end());
    std::vector<Value> results(graph_.results().begin(),
                               graph_.results().begin() + static_cast<std::ptrdiff_t>(count_));
    results.insert(results.end(), handed_over_.begin(), handed_over_.end());
    SplitBody parts;
    parts.first = Body(Graph::build(parameters, results, trace()));
    std::vector<BodyInput> inputs;
    for (const Value& value : parameters) inputs.push_back(body_input(Tensor(value)));
    for (const Value& value : handed_over_) inputs.push_back(body_input(Tensor(value)));
    TracedBody second = trace_body(
        inputs,
        [&](std::span<const Tensor> given) {
          Replay replay(trace());
          std::size_t next = 0;
          for (const Value& value : parameters) replay.set(value, given[next++]);
          for (const Value& value : handed_over_) replay.set(value, given[next++]);
          return replay.run(graph_.results().subspan(count_));
        },
        std::nullopt, where);
    internal_check(second.captured.empty(), "a part of a body captures a value");
    parts.second = std::move(second.body);
    return parts;
  }

 private:
  std::uint64_t trace() const {
    return graph_.parameters().empty() ? graph_.results().front()->trace()
                                       : graph_.parameters().front()->trace();
  }

  Graph graph_;
  std::size_t count_;
  NodeSet leaves_;
  ValueSet handed_over_;
};

}  // namespace

SplitBody split_body(const Body& body, std::size_t count, SourceLocation where) {
  if (body.num_results() == 0) return {body, body};
  return BodySplitter(body, count).split(where);
}

}  // namespace meshard
