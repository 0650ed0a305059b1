// Compares every op on shards, laid out as its sharding rule allows, with the op on one device.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "meshard/graph/record.h"
#include "meshard/ops/sharding_constraint.h"
#include "meshard/sharding/propagate.h"
#include "tests/conformance/conformance.h"

namespace meshard::conformance {
namespace {

using Shards = EachOp;
using testing::Contains;
using testing::IsEmpty;

// Ops that are not tested, and the reason for each.
const std::map<std::string_view, std::string_view>& not_tried() {
  static const std::map<std::string_view, std::string_view> reasons{
      {"all_gather", "it takes local values"},
      {"all_reduce", "it takes local values"},
      {"all_to_all", "it takes local values"},
      {"checkpoint", "its body says what it needs"},
      {"collective_permute", "it takes local values"},
      {"full_to_shard", "it gives a local value"},
      {"reduce_scatter", "it takes local values"},
      {"shard_to_full", "it takes local values"},
      {"scan", "its body says what it needs"},
      {"sharding_constraint", "it specifies the sharding of its result"},
      {"switch_case", "its body says what it needs"},
      {"vary", "it takes local values"},
      {"while_loop", "its body says what it needs"},
  };
  return reasons;
}

// Allowed difference of shards, in rounding errors of the largest value. It is not zero where sums
// are split, and where the compiler approximates the last elements of a vector differently: in
// log1p and in what it generates for logarithms and exponentials. All other ops are exact.
double allowed_ulps(std::string_view op) {
  static const std::map<std::string_view, double> ulps{
      {"acos", 1},
      {"acosh", 1},
      {"asin", 1},
      {"asinh", 1},
      {"atanh", 1},
      {"convolution", 4},
      {"cosh", 1},
      {"digamma", 1},
      {"dot_general", 4},
      {"erf_inv", 1},
      {"erfc", 1},
      {"cumulative_logsumexp", 4},
      {"triangular_solve", 4},
      {"lgamma", 1},
      {"log1p", 1},
      {"polygamma", 1},
      {"prod", 4},
      {"reduce_window_sum", 4},
      {"rsqrt", 1},
      {"scatter_add", 4},
      {"sinh", 1},
      {"sum", 4},
      {"tanh", 2},
      {"zeta", 1},
  };
  auto found = ulps.find(op);
  return found == ulps.end() ? 0 : found->second;
}

// One call of the op by itself, extracted from the program that a sample records.
struct Call {
  const OpDef* op = nullptr;
  bool has_attributes = false;
  std::string attributes;
  std::vector<HostArray> operands;
  std::vector<IntVector> result_dims;  // of all results
  HostArray result;                    // the first
  ShardingRule rule;

  Tensor record_with(std::span<const Tensor> tensors) const {
    std::unique_ptr<const Attributes> parsed;
    if (has_attributes) parsed = op->parse_attributes(attributes).value();
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    return record(*op, std::move(parsed), pointers, SourceLocation::current());
  }
};

// Ops for which the CPU plugin's partitioner moves data unnecessarily: windows that are scattered,
// and triangular solves, which it expands.
bool gathers_more(const Call& call) {
  return call.op->name == "select_and_scatter_add" || call.op->name == "triangular_solve";
}

// The values of a node's operands. If they are the sample's inputs, no program has to run.
std::vector<HostArray> operand_values(const Graph& graph, const Node& node,
                                      std::span<const HostArray> inputs) {
  std::vector<HostArray> values;
  for (const Value& operand : node.operands()) {
    std::uint32_t number = graph.number(operand.node());
    if (number < inputs.size()) values.push_back(inputs[number]);
  }
  if (values.size() == node.operands().size()) return values;
  return run(*compile(Graph::build(graph.parameters(), node.operands(), node.trace())), inputs);
}

// Extracts the last node of `op` that the sample records, and computes its value on one device.
// Empty if the sample records none.
std::optional<Call> cut_out(const OpDef& op, const OpSample& sample) {
  Call call;
  call.op = &op;
  Graph graph = trace(sample.inputs, body_of(sample));
  const Node* node = nullptr;
  for (const Node* each : graph.nodes())
    if (&each->op() == &op) node = each;
  if (!node) return std::nullopt;
  if (node->attributes()) {
    call.has_attributes = true;
    node->attributes()->print(call.attributes);
  }
  OpCall inferred{.op = op, .attributes = node->attributes(), .operands = {}, .results = {}};
  for (const Value& operand : node->operands()) inferred.operands.push_back(&operand.type());
  for (std::uint32_t i = 0; i < node->num_outputs(); ++i) {
    const TensorType& type = node->type(i);
    inferred.results.push_back(&type);
    call.result_dims.emplace_back(type.shape.begin(), type.shape.end());
  }
  call.rule = op.sharding_rule(inferred);
  call.operands = operand_values(graph, *node, sample.inputs);
  Graph alone = trace(call.operands, [&](std::span<const Tensor> tensors) {
    return std::vector<Tensor>{call.record_with(tensors)};
  });
  call.result = run(*compile(alone), call.operands)[0];
  return call;
}

std::optional<std::size_t> dimension_of(const TensorFactors& tensor, int factor) {
  for (std::size_t d = 0; d < tensor.size(); ++d)
    for (int each : tensor[d])
      if (each == factor) return d;
  return std::nullopt;
}

// The layout of a tensor when axis "x" splits `factor`. Empty if the factor is not the most
// significant one of its dimension; only that one can be split by itself.
std::optional<Sharding> split(const ShardingRule& rule, const TensorFactors& tensor, int factor,
                              const Mesh& mesh) {
  std::vector<DimensionSpec> dimensions(tensor.size(), DimensionSpec(none));
  if (std::optional<std::size_t> d = dimension_of(tensor, factor)) {
    for (int each : tensor[*d]) {
      if (each == factor) break;
      if (rule.factors()[static_cast<std::size_t>(each)].size != 1) return std::nullopt;
    }
    dimensions[*d] = DimensionSpec("x");
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)), tensor.size());
}

// Whether `factor` is the only factor of each dimension that contains it.
bool stands_alone(const ShardingRule& rule, int factor) {
  auto alone = [&](const TensorFactors& tensor) {
    std::optional<std::size_t> d = dimension_of(tensor, factor);
    return !d || tensor[*d].size() == 1;
  };
  return std::all_of(rule.operands().begin(), rule.operands().end(), alone) &&
         std::all_of(rule.results().begin(), rule.results().end(), alone);
}

// Whether updates of an uneven size are not split, because the partitioner would add its padding
// (lowering/scattered_updates.h).
bool kept_whole(const Call& call, int factor, const Mesh& mesh) {
  const Factor& split = call.rule.factors()[static_cast<std::size_t>(factor)];
  return call.op->name == "scatter_add" && split.kind == FactorKind::kReduction &&
         split.size % mesh.size() != 0;
}

// Runs the call with `factor` split over `mesh` and compares the results.
void check_placement(const Call& call, int factor, const Mesh& mesh) {
  const ShardingRule& rule = call.rule;
  FactorKind kind = rule.factors()[static_cast<std::size_t>(factor)].kind;
  std::vector<Sharding> operands;
  bool in_operand = false;
  for (const TensorFactors& tensor : rule.operands()) {
    std::optional<Sharding> sharding = split(rule, tensor, factor, mesh);
    if (!sharding) return tally("placements left out: the factor is inside a dimension");
    operands.push_back(*sharding);
    in_operand |= dimension_of(tensor, factor).has_value();
  }
  std::optional<Sharding> result = split(rule, rule.results()[0], factor, mesh);
  Sharding replicated = Sharding::replicated(mesh, rule.results()[0].size());
  if (kind == FactorKind::kNeedReplication) result = replicated;
  if (in_operand) {
    Propagation predicted = propagate(rule, operands);
    EXPECT_EQ(predicted.ok(), result.has_value());
    if (predicted.ok() && result) {
      EXPECT_TRUE(predicted.results[0].is_equivalent_to(*result, result->rank()))
          << predicted.results[0].to_string() << " instead of " << result->to_string();
      EXPECT_EQ(!predicted.reduced.empty(), kind == FactorKind::kReduction);
      EXPECT_EQ(!predicted.gathered.empty(), kind == FactorKind::kNeedReplication);
    }
  }
  bool strided = !result;
  if (strided) result = replicated;  // only the value is checked, not the cost

  Graph graph = trace(
      call.operands,
      [&](std::span<const Tensor> tensors) {
        return std::vector<Tensor>{sharding_constraint(call.record_with(tensors), *result)};
      },
      operands);
  std::shared_ptr<CompiledProgram> program = compile(graph);
  HostArray got = run(*program, call.operands)[0];
  EXPECT_TRUE(close(got, call.result, allowed_ulps(call.op->name)));
  if (kind == FactorKind::kPassThrough && gathers_more(call)) {
    tally("placements of pass_through factors that this partitioner moves");
  } else if (kind == FactorKind::kPassThrough && !strided) {
    EXPECT_THAT(collectives(*program), IsEmpty())
        << "a pass_through factor needs no data of other shards";
    tally("placements of pass_through factors, run without collectives");
  } else if (kept_whole(call, factor, mesh)) {
    EXPECT_THAT(collectives(*program), testing::Not(Contains(CollectiveKind::kAllReduce)));
    tally("placements of uneven updates, kept whole");
  } else if (kind == FactorKind::kReduction && got.size() > 0) {
    EXPECT_THAT(collectives(*program), Contains(CollectiveKind::kAllReduce))
        << "the shards' results are to be combined";
    tally("placements of reduction factors, run with an all-reduce");
  } else {
    tally(kind == FactorKind::kPermutation ? "placements of permutation factors, run"
          : strided                        ? "placements with a strided result, run"
                                           : "placements of need_replication factors, run");
  }
}

TEST_P(Shards, GiveTheSameAsOneDevice) {
  if (not_tried().contains(op().name)) return tally("ops not tried on shards: listed");
  int tried = 0, number = 0;
  for (const OpSample& sample : samples()) {
    SCOPED_TRACE("sample " + sample.name);
    std::optional<Call> call = cut_out(op(), sample);
    if (!call) continue;
    std::vector<IntVector> operand_dims;
    for (const HostArray& operand : call->operands)
      operand_dims.emplace_back(operand.shape().begin(), operand.shape().end());
    Result<void> valid = call->rule.validate(operand_dims, call->result_dims);
    ASSERT_TRUE(valid.ok()) << valid.error().what();
    ++number;
    for (std::size_t f = 0; f < call->rule.factors().size(); ++f) {
      std::int64_t size = call->rule.factors()[f].size;
      for (std::int64_t devices : {2, 4}) {
        if (size < 2 || (devices == 4 && number > 2)) continue;
        bool even = size % devices == 0;
        if (!even && !stands_alone(call->rule, static_cast<int>(f))) continue;
        if (!even) tally("of these, placements of sizes that the devices do not divide");
        SCOPED_TRACE(cat("factor ", factor_name(static_cast<int>(f)), " of ", call->rule, " over ",
                         devices, " devices"));
        check_placement(*call, static_cast<int>(f), Mesh({{"x", devices}}));
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 0) << op().name << " has no sample with a factor that 2 devices could split";
}

INSTANTIATE_TEST_SUITE_P(Ops, Shards, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
