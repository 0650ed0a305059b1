#include "meshard/explain/check_sharded.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/graph/annotation.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The largest distance between elements of two arrays of one type.
struct Distance {
  double ulps = 0;
  std::int64_t element = 0;
};

// The spacing of the dtype's numbers at the largest finite magnitude of `values`.
double spacing_at_largest(std::span<const double> values, DType dtype) {
  FloatLimits limits = float_limits(dtype);
  double largest = limits.smallest_normal;
  for (double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return std::ldexp(limits.epsilon, std::ilogb(largest));
}

Distance farthest_float(const HostArray& sharded, const HostArray& unsharded) {
  Distance worst;
  std::vector<double> a = sharded.astype(DType::f64).to_vector<double>();
  std::vector<double> b = unsharded.astype(DType::f64).to_vector<double>();
  double spacing = spacing_at_largest(b, unsharded.dtype());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    bool measurable = std::isfinite(a[i]) && std::isfinite(b[i]);
    double ulps = measurable ? std::abs(a[i] - b[i]) / spacing : kInfinite;
    if (ulps > worst.ulps) worst = {ulps, static_cast<std::int64_t>(i)};
  }
  return worst;
}

Distance farthest(const HostArray& sharded, const HostArray& unsharded) {
  if (is_floating(sharded.dtype())) return farthest_float(sharded, unsharded);
  auto a = sharded.astype(DType::i64).to_vector<std::int64_t>();
  auto b = unsharded.astype(DType::i64).to_vector<std::int64_t>();
  auto [here, there] = std::mismatch(a.begin(), a.end(), b.begin());
  return here == a.end() ? Distance{} : Distance{kInfinite, here - a.begin()};
}

Dimensions index_of(std::int64_t element, const Shape& shape) {
  Dimensions index(static_cast<std::size_t>(shape.rank()), 0);
  for (int d = shape.rank(); d-- > 0; element /= shape[d])
    index[static_cast<std::size_t>(d)] = element % shape[d];
  return index;
}

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
  const Graph& graph;
  std::vector<Tensor> sharded, unsharded;

  TwoRuns(const Graph& program, std::span<const Tensor> arguments, SourceLocation where)
      : graph(program),
        sharded(run(program, arguments, false, where)),
        unsharded(run(program, arguments, true, where)) {}

  Distance distance(std::size_t i, SourceLocation where) const {
    return farthest(sharded[i].to_host(where), unsharded[i].to_host(where));
  }

  ShardedDifference describe(std::size_t i, const Distance& distance, SourceLocation where) const {
    const Value& value = graph.results()[i];
    ShardedDifference difference;
    std::uint32_t number = graph.number(value.node());
    difference.tensor =
        number < graph.num_leaves() ? cat("argument ", number) : std::string(value->op().name);
    difference.where = value->where();
    difference.type = value.type();
    difference.sharding = sharded[i].sharding();
    difference.index = index_of(distance.element, value.type().shape);
    auto element = [&](const Tensor& tensor) {
      HostArray array = tensor.to_host(where).astype(DType::f64);
      return array.to_vector<double>()[static_cast<std::size_t>(distance.element)];
    };
    difference.sharded = element(sharded[i]);
    difference.unsharded = element(unsharded[i]);
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

  ShardedCheck check;
  auto first_difference = [&](const Graph& program) {
    TwoRuns runs(program, arguments, where);
    check.compared = program.results().size();
    for (std::size_t i = 0; i < program.results().size(); ++i) {
      Distance distance = runs.distance(i, where);
      if (&program == &graph) check.ulps = std::max(check.ulps, distance.ulps);
      if (distance.ulps <= options.max_ulps) continue;
      check.difference = runs.describe(i, distance, where);
      return;
    }
  };
  first_difference(graph);
  if (check.ok() || graph.nodes().empty()) return check;
  // Runs again with every intermediate tensor as a result. The different results may change fusion:
  // if no tensor differs in this run, the difference found in the first runs is kept.
  first_difference(Graph::build(parameters, all_values(graph), trace));
  return check;
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
