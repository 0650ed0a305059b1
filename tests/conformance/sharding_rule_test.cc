// Compares every op on shards, laid out as its sharding rule allows, with the op on one device.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "meshard/graph/record.h"
#include "meshard/ops/identity.h"
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
// are split, where loops go on until all matrices of a batch have converged, and where the compiler
// approximates the last elements of a vector differently: in log1p and in what it generates for
// logarithms and exponentials. All other ops are exact.
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
      {"eig", 40},
      {"eigh", 40},
      {"dot_general", 4},
      {"erf_inv", 1},
      {"erfc", 1},
      {"cumulative_logsumexp", 4},
      {"triangular_solve", 4},
      {"lgamma", 1},
      {"log1p", 1},
      {"logm", 40},
      {"polygamma", 1},
      {"prod", 4},
      {"qr", 4},
      {"reduce_window_sum", 4},
      {"rsqrt", 1},
      {"scatter_add", 4},
      {"schur", 200},
      {"sinh", 1},
      {"sqrtm", 40},
      {"sum", 4},
      {"svd", 40},
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

// Ops for which the CPU plugin's partitioner moves data unnecessarily: windows that are scattered.
bool gathers_more(const Call& call) { return call.op->name == "select_and_scatter_add"; }

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

// Extracts the last node of `op` that the sample records. Empty if the sample records none.
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
  return call;
}

// The calls of the samples, with their results on one device. Empty: the sample records none.
std::vector<std::optional<Call>> calls_of(const OpDef& op, const std::vector<OpSample>& samples) {
  std::vector<std::optional<Call>> calls;
  for (const OpSample& sample : samples) calls.push_back(cut_out(op, sample));
  std::vector<Part> parts;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (!calls[s]) continue;
    parts.push_back({"sample " + samples[s].name, calls[s]->operands,
                     [&call = *calls[s]](std::span<const Tensor> tensors) {
                       return std::vector<Tensor>{call.record_with(tensors)};
                     }});
  }
  std::vector<Together::Results> results = Together(std::move(parts)).run();
  std::size_t next = 0;
  for (std::optional<Call>& call : calls)
    if (call) call->result = results[next++][0];
  return calls;
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
bool is_alone_in_dimensions(const ShardingRule& rule, int factor) {
  auto alone = [&](const TensorFactors& tensor) {
    std::optional<std::size_t> d = dimension_of(tensor, factor);
    return !d || tensor[*d].size() == 1;
  };
  return std::all_of(rule.operands().begin(), rule.operands().end(), alone) &&
         std::all_of(rule.results().begin(), rule.results().end(), alone);
}

// Whether updates of an uneven size are not split, because the partitioner would add its padding
// (lowering/internal/partitioner_needs.h).
bool kept_whole(const Call& call, int factor, const Mesh& mesh) {
  const Factor& split = call.rule.factors()[static_cast<std::size_t>(factor)];
  return call.op->name == "scatter_add" && split.kind == FactorKind::kReduction &&
         split.size % mesh.size() != 0;
}

// A call with a factor split over a mesh.
struct Placed {
  const Call* call = nullptr;
  int factor = 0;
  Mesh mesh;
  std::vector<Sharding> operands;
  Sharding result;
  bool strided = false;  // only the value is checked, not the cost
  std::string name;

  FactorKind kind() const { return call->rule.factors()[static_cast<std::size_t>(factor)].kind; }
  // Whether the program needs no collective at all.
  bool is_local() const {
    return kind() == FactorKind::kPassThrough && !strided && !gathers_more(*call);
  }
  Part part() const {
    auto body = [this](std::span<const Tensor> tensors) {
      return std::vector<Tensor>{sharding_constraint(call->record_with(tensors), result)};
    };
    return {name, call->operands, body, operands};
  }
  testing::AssertionResult has_value(const HostArray& got) const {
    return close(got, call->result, allowed_ulps(call->op->name));
  }
};

void check_prediction(const Call& call, const std::vector<Sharding>& operands,
                      const std::optional<Sharding>& result, FactorKind kind) {
  Propagation predicted = propagate(call.rule, operands);
  EXPECT_EQ(predicted.ok(), result.has_value());
  if (!predicted.ok() || !result) return;
  EXPECT_TRUE(predicted.results[0].is_equivalent_to(*result, result->rank()))
      << predicted.results[0].to_string() << " instead of " << result->to_string();
  EXPECT_EQ(!predicted.reduced.empty(), kind == FactorKind::kReduction);
  EXPECT_EQ(!predicted.gathered.empty(), kind == FactorKind::kNeedReplication);
}

// Empty if the factor is inside a dimension of an operand.
std::optional<Placed> place(const Call& call, int factor, const Mesh& mesh, std::string name) {
  const ShardingRule& rule = call.rule;
  FactorKind kind = rule.factors()[static_cast<std::size_t>(factor)].kind;
  std::vector<Sharding> operands;
  bool in_operand = false;
  for (const TensorFactors& tensor : rule.operands()) {
    std::optional<Sharding> sharding = split(rule, tensor, factor, mesh);
    if (!sharding) {
      tally("placements left out: the factor is inside a dimension");
      return std::nullopt;
    }
    operands.push_back(*sharding);
    in_operand |= dimension_of(tensor, factor).has_value();
  }
  std::optional<Sharding> result = split(rule, rule.results()[0], factor, mesh);
  Sharding replicated = Sharding::replicated(mesh, rule.results()[0].size());
  if (kind == FactorKind::kNeedReplication) result = replicated;
  if (in_operand) check_prediction(call, operands, result, kind);
  return Placed{&call,   factor,         mesh, std::move(operands), result.value_or(replicated),
                !result, std::move(name)};
}

void check_alone(const Placed& placed) {
  SCOPED_TRACE(placed.name);
  const Call& call = *placed.call;
  Part part = placed.part();
  std::shared_ptr<CompiledProgram> program = compile(trace(part.inputs, part.body, part.shardings));
  HostArray got = run(*program, call.operands)[0];
  EXPECT_TRUE(placed.has_value(got));
  FactorKind kind = placed.kind();
  if (placed.is_local()) {
    EXPECT_THAT(collectives(*program), IsEmpty())
        << "a pass_through factor needs no data of other shards";
    tally("placements of pass_through factors, run without collectives");
  } else if (kind == FactorKind::kPassThrough && !placed.strided) {
    tally("placements of pass_through factors that this partitioner moves");
  } else if (kept_whole(call, placed.factor, placed.mesh)) {
    EXPECT_THAT(collectives(*program), testing::Not(Contains(CollectiveKind::kAllReduce)));
    tally("placements of uneven updates, kept whole");
  } else if (kind == FactorKind::kReduction && got.size() > 0) {
    EXPECT_THAT(collectives(*program), Contains(CollectiveKind::kAllReduce))
        << "the shards' results are to be combined";
    tally("placements of reduction factors, run with an all-reduce");
  } else {
    tally(kind == FactorKind::kPermutation ? "placements of permutation factors, run"
          : placed.strided                 ? "placements with a strided result, run"
                                           : "placements of need_replication factors, run");
  }
}

// Local placements in one program; it has no collective if none of them needs one.
bool pass_together(const std::vector<const Placed*>& local) {
  std::vector<Part> parts;
  for (const Placed* each : local) parts.push_back(each->part());
  Together together(std::move(parts));
  std::vector<Together::Results> results = together.run();
  bool pass = true;
  for (std::size_t i = 0; i < local.size(); ++i) pass = pass && local[i]->has_value(results[i][0]);
  for (const Together::Group& group : together.groups())
    pass = pass && collectives(*group.program).empty();
  return pass;
}

void check_local(const std::vector<const Placed*>& local) {
  if (pass_together(local))
    return tally("placements of pass_through factors, run without collectives",
                 static_cast<int>(local.size()));
  for (const Placed* each : local) check_alone(*each);
  EXPECT_TRUE(testing::Test::HasFailure())
      << "the placements fail in one program, but not in one program each";
}

std::vector<Placed> placements_of(const OpDef& op, const std::vector<OpSample>& samples,
                                  const std::vector<std::optional<Call>>& calls) {
  std::vector<Placed> placements;
  int number = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const std::optional<Call>& call = calls[s];
    if (!call) continue;
    ++number;
    for (std::size_t f = 0; f < call->rule.factors().size(); ++f) {
      std::int64_t size = call->rule.factors()[f].size;
      for (std::int64_t devices : {2, 4}) {
        if (size < 2 || (devices == 4 && number > 2)) continue;
        bool even = size % devices == 0;
        auto factor = static_cast<int>(f);
        if (!even && !is_alone_in_dimensions(call->rule, factor)) continue;
        if (!even) tally("of these, placements of sizes that the devices do not divide");
        std::string name = cat(op.name, ", sample ", samples[s].name, ", factor ",
                               factor_name(factor), " of ", call->rule, " over ", devices);
        SCOPED_TRACE(name);
        std::optional<Placed> placed = place(*call, factor, Mesh({{"x", devices}}), name);
        if (placed) placements.push_back(std::move(*placed));
      }
    }
  }
  return placements;
}

TEST_P(Shards, GiveTheSameAsOneDevice) {
  if (not_tried().contains(op().name)) return tally("ops not tried on shards: listed");
  std::vector<OpSample> all = samples();
  std::vector<std::optional<Call>> calls = calls_of(op(), all);
  for (const std::optional<Call>& call : calls) {
    if (!call) continue;
    std::vector<IntVector> operand_dims;
    for (const HostArray& operand : call->operands)
      operand_dims.emplace_back(operand.shape().begin(), operand.shape().end());
    Result<void> valid = call->rule.validate(operand_dims, call->result_dims);
    ASSERT_TRUE(valid.ok()) << valid.error().what();
  }
  std::vector<Placed> placements = placements_of(op(), all, calls);
  EXPECT_FALSE(placements.empty())
      << op().name << " has no sample with a factor that 2 devices could split";
  std::vector<const Placed*> local;
  for (const Placed& each : placements)
    if (each.is_local())
      local.push_back(&each);
    else
      check_alone(each);
  check_local(local);
}

INSTANTIATE_TEST_SUITE_P(Ops, Shards, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
