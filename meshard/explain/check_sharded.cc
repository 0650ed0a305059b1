#include "meshard/explain/check_sharded.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "meshard/explain/value_check.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

void check_no_manual_region(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->annotations() && node->annotations()->manual)
      throw Error(
          ErrorCode::kUnimplemented,
          "[check_sharded] manual regions cannot be run without shardings: their local values "
          "exist only on a mesh",
          node->where());
}

// Runs the graph: with the shardings of its leaves and marks, or without any sharding.
std::vector<Tensor> run(const Graph& graph, std::span<const Tensor> arguments, bool unsharded,
                        SourceLocation where) {
  Program program;
  program.name = "check_sharded";
  program.graph = graph;
  program.unsharded = unsharded;
  std::size_t count = graph.results().size();
  auto compiled = evaluator(where).compile(std::move(program), where);
  std::vector<const Tensor*> given;
  for (const Tensor& argument : arguments) given.push_back(&argument);
  std::vector<Tensor> results(count);
  compiled->run(given, results, where);
  return results;
}

/// The sharded and the unsharded run of one graph.
struct TwoRuns {
  Graph graph;
  std::vector<Tensor> sharded, unsharded;

  TwoRuns(Graph program, std::span<const Tensor> arguments, SourceLocation where)
      : graph(std::move(program)),
        sharded(run(graph, arguments, false, where)),
        unsharded(run(graph, arguments, true, where)) {}

  ValueDistance distance(std::size_t i, SourceLocation where) const {
    return farthest(sharded[i].to_host(where), unsharded[i].to_host(where));
  }

  ShardedDifference describe(std::size_t i, const ValueDistance& distance) const {
    const Value& value = graph.results()[i];
    ShardedDifference difference;
    std::uint32_t number = graph.number(value.node());
    difference.tensor =
        number < graph.num_leaves() ? cat("argument ", number) : std::string(value->op().name);
    difference.where = value->where();
    difference.type = value.type();
    difference.sharding = sharded[i].sharding();
    difference.index = distance.index;
    difference.sharded = distance.got;
    difference.unsharded = distance.expected;
    difference.ulps = distance.ulps;
    return difference;
  }
};

// All outputs of all nodes, in program order.
std::vector<Value> all_values(const Graph& graph) {
  std::vector<Value> values;
  for (const Node* node : graph.nodes())
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
      values.emplace_back(const_cast<Node*>(node), i);
  return values;
}

// Runs ops again without shardings, each on the operands of the sharded run.
class SingleOps {
 public:
  /// @param run of a graph with the results all_values()
  SingleOps(const TwoRuns& run, const std::vector<Value>& parameters,
            std::span<const Tensor> arguments, std::uint64_t trace, SourceLocation where)
      : run_(run), arguments_(arguments), trace_(trace), where_(where) {
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters_[parameters[i].node()] = i;
    for (std::size_t i = 0; i < run.graph.results().size(); ++i)
      results_[key(run.graph.results()[i])] = i;
    if (run.sharded.empty()) return;
    for (const Tensor& tensor : run.sharded)
      if (std::optional<Sharding> sharding = tensor.sharding())
        devices_ = std::max(devices_, sharding->mesh().size());
  }

  /// The first of these results whose op gives something else; none if rounding explains all.
  std::optional<std::size_t> first_wrong(std::vector<std::size_t> suspects) {
    std::optional<std::size_t> first;
    while (!suspects.empty()) {
      std::vector<std::size_t> later, now = independent(suspects, later);
      for (std::size_t wrong : wrong_of(now))
        if (!first || wrong < *first) first = wrong;
      suspects = std::move(later);
    }
    return first;
  }

 private:
  using Key = std::pair<const Node*, std::uint32_t>;
  static Key key(const Value& value) { return {value.node(), value.index()}; }

  // The values that an op is run on: its operands; those of an operand that has several results are
  // in place of it, because a program's parameters are single results.
  void add_inputs(const Node& node, std::set<Key>& inputs) const {
    for (const Value& operand : node.operands()) {
      bool computed = results_.contains(key(operand));
      if (computed && operand->num_outputs() > 1)
        add_inputs(*operand.node(), inputs);
      else if (computed || parameters_.contains(operand.node()))
        inputs.insert(key(operand));
    }
  }

  // As many as possible of which none is an input of another one.
  std::vector<std::size_t> independent(const std::vector<std::size_t>& suspects,
                                       std::vector<std::size_t>& later) const {
    std::vector<std::size_t> chosen;
    std::set<const Node*> targets, used;
    for (std::size_t result : suspects) {
      const Node* node = run_.graph.results()[result].node();
      std::set<Key> inputs;
      add_inputs(*node, inputs);
      bool free = !used.contains(node) && std::ranges::none_of(inputs, [&](const Key& input) {
        return targets.contains(input.first);
      });
      (free ? chosen : later).push_back(result);
      if (!free) continue;
      targets.insert(node);
      for (const Key& input : inputs) used.insert(input.first);
    }
    return chosen;
  }

  std::vector<std::size_t> wrong_of(const std::vector<std::size_t>& results) const {
    std::set<Key> inputs;
    std::vector<Value> parameters, wanted;
    std::vector<Tensor> given;
    for (std::size_t result : results) {
      wanted.push_back(run_.graph.results()[result]);
      add_inputs(*wanted.back().node(), inputs);
    }
    for (const Key& input : inputs) {
      parameters.emplace_back(const_cast<Node*>(input.first), input.second);
      given.push_back(value_of(input));
    }
    Graph graph = Graph::build(parameters, wanted, trace_);
    std::vector<Tensor> again = run(graph, given, true, where_);
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!agrees(results[i], again[i])) wrong.push_back(results[i]);
    return wrong;
  }

  const Tensor& value_of(const Key& input) const {
    auto computed = results_.find(input);
    return computed != results_.end() ? run_.sharded[computed->second]
                                      : arguments_[parameters_.at(input.first)];
  }

  bool agrees(std::size_t result, const Tensor& again) const {
    HostArray sharded = run_.sharded[result].to_host(where_), expected = again.to_host(where_);
    ValueDistance distance = farthest(sharded, expected);
    if (distance.ulps <= kExactUlps) return true;
    if (!std::isfinite(distance.ulps)) return false;
    const Node& node = *run_.graph.results()[result].node();
    std::vector<HostArray> operands;
    for (const Value& operand : node.operands())
      if (results_.contains(key(operand)) || parameters_.contains(operand.node()))
        operands.push_back(value_of(key(operand)).to_host(where_));
    return std::abs(distance.got - distance.expected) <=
           explained_by_rounding(node, operands, expected, devices_);
  }

  const TwoRuns& run_;
  std::span<const Tensor> arguments_;
  std::uint64_t trace_;
  SourceLocation where_;
  std::map<const Node*, std::size_t> parameters_;
  std::map<Key, std::size_t> results_;
  std::int64_t devices_ = 1;
};

/// One call of check_sharded.
class Check {
 public:
  Check(const Graph& graph, std::span<const Tensor> arguments, const std::vector<Value>& parameters,
        std::uint64_t trace, const CheckShardedOptions& options, SourceLocation where)
      : graph_(graph),
        arguments_(arguments),
        parameters_(parameters),
        trace_(trace),
        options_(options),
        where_(where) {}

  ShardedCheck run() {
    TwoRuns results(graph_, arguments_, where_);
    check_.compared = graph_.results().size();
    std::vector<ValueDistance> distances = distances_of(results);
    for (const ValueDistance& distance : distances)
      check_.ulps = std::max(check_.ulps, distance.ulps);
    std::optional<std::size_t> first = first_beyond(distances, limit());
    if (!first) return check_;
    ShardedDifference of_result = results.describe(*first, distances[*first]);
    if (graph_.nodes().empty()) {
      check_.difference = std::move(of_result);
      return check_;
    }
    // Runs again with every intermediate tensor as a result.
    TwoRuns all(Graph::build(parameters_, all_values(graph_), trace_), arguments_, where_);
    std::vector<ValueDistance> of_all = distances_of(all);
    std::optional<std::size_t> wrong =
        options_.max_ulps ? first_beyond(of_all, limit()) : first_wrong(all, of_all);
    if (wrong) {
      check_.difference = all.describe(*wrong, of_all[*wrong]);
    } else if (options_.max_ulps || !is_explained(distances, all, of_all)) {
      // The different results have changed the fusion.
      check_.difference = std::move(of_result);
      return check_;
    } else {
      return check_;
    }
    check_.compared = all.graph.results().size();
    return check_;
  }

 private:
  double limit() const { return options_.max_ulps.value_or(kExactUlps); }

  std::vector<ValueDistance> distances_of(const TwoRuns& runs) const {
    std::vector<ValueDistance> distances;
    for (std::size_t i = 0; i < runs.graph.results().size(); ++i)
      distances.push_back(runs.distance(i, where_));
    return distances;
  }

  static std::optional<std::size_t> first_beyond(const std::vector<ValueDistance>& distances,
                                                 double limit) {
    for (std::size_t i = 0; i < distances.size(); ++i)
      if (!(distances[i].ulps <= limit)) return i;
    return std::nullopt;
  }

  std::optional<std::size_t> first_wrong(const TwoRuns& all,
                                         const std::vector<ValueDistance>& distances) {
    std::vector<std::size_t> suspects;
    for (std::size_t i = 0; i < distances.size(); ++i)
      if (!(distances[i].ulps <= kExactUlps)) suspects.push_back(i);
    return SingleOps(all, parameters_, arguments_, trace_, where_).first_wrong(std::move(suspects));
  }

  // True if the results are as far apart in the program with all tensors as results, in which no op
  // is wrong.
  bool is_explained(const std::vector<ValueDistance>& distances, const TwoRuns& all,
                    const std::vector<ValueDistance>& of_all) const {
    constexpr double kAlike = 8;
    for (std::size_t i = 0; i < distances.size(); ++i) {
      if (distances[i].ulps <= kExactUlps) continue;
      double other = 0;
      for (std::size_t j = 0; j < of_all.size(); ++j)
        if (all.graph.results()[j] == graph_.results()[i]) other = of_all[j].ulps;
      if (distances[i].ulps > kAlike * std::max(other, kExactUlps)) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::span<const Tensor> arguments_;
  const std::vector<Value>& parameters_;
  std::uint64_t trace_;
  const CheckShardedOptions& options_;
  SourceLocation where_;
  ShardedCheck check_;
};

}  // namespace

ShardedCheck internal::check_sharded(std::span<const Tensor> arguments, const TensorFunction& f,
                                     const CheckShardedOptions& options, SourceLocation where) {
  compute(arguments, where);
  std::vector<Value> parameters, results;
  std::uint64_t trace = 0;
  {
    internal::TraceScope scope;
    trace = scope.trace();
    std::vector<Tensor> given;
    for (const Tensor& argument : arguments) {
      const Sharding* known = leaf_sharding(argument.value());
      given.push_back(make_parameter(argument.type(), known ? std::optional(*known) : std::nullopt,
                                     argument.where()));
      parameters.push_back(given.back().value());
    }
    for (const Tensor& result : f(given)) results.push_back(result.value());
  }
  Graph graph = Graph::build(parameters, results, trace);
  check_no_manual_region(graph);

  return Check(graph, arguments, parameters, trace, options, where).run();
}

std::string ShardedCheck::to_string() const {
  if (ok())
    return cat(compared, compared == 1 ? " result agrees" : " results agree", ", at most ", ulps,
               " ULPs apart");
  const ShardedDifference& d = *difference;
  return cat("the first tensor that differs: ", d.tensor, " ", d.type, " at ", d.where,
             "\n  element ", Shape(d.index).to_string(), " is ", d.sharded, " sharded and ",
             d.unsharded, " unsharded: ", d.ulps, " ULPs of the largest value\n  ",
             d.sharding ? d.sharding->to_string() : std::string("not sharded"));
}

}  // namespace meshard
