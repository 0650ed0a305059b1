// Tested in meshard/explain/predict/predict_test.cc.
#include "meshard/explain/predict/op_moves.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {
namespace {

bool overlaps_any(const AxisRef& axis, const std::vector<AxisList>& lists) {
  for (const AxisList& axes : lists)
    for (const AxisRef& other : axes)
      if (axis.overlaps(other)) return true;
  return false;
}

AxisList all_axes(const Sharding& sharding) {
  AxisList all;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    for (const AxisRef& axis : sharding.axes(d)) all.push_back(axis);
  return all;
}

std::vector<AxisList> dimensions_of(const Sharding& sharding) {
  std::vector<AxisList> axes;
  for (std::size_t d = 0; d < sharding.rank(); ++d) axes.push_back(sharding.axes(d));
  return axes;
}

std::int64_t bytes_of_shard(const TensorType& type, const Sharding& sharding) {
  std::int64_t elements = 1;
  for (std::int64_t size : sharding.shard_shape(type.shape)) elements *= size;
  return elements * static_cast<std::int64_t>(size_in_bytes(type.dtype));
}

// The work of a product on a device if its factors are split over these axes. Each element of the
// result takes a multiplication and an addition for each element of the weights that it depends on:
// the product of the sizes of all factors of the result and the weights, twice.
ProductWork work_of(const Mesh& mesh, const RuledProgram& program, std::size_t op,
                    const std::vector<AxisList>& chosen) {
  const RuledOp& product = program.ops[op];
  const std::vector<Factor>& factors = product.rule.factors();
  std::vector<double> parts(factors.size(), 1);
  for (std::size_t f = 0; f < chosen.size(); ++f)
    if (!chosen[f].empty()) parts[f] = static_cast<double>(AxesIndex(mesh, chosen[f]).size());
  ProductWork work{.op = op, .flops = 2, .memory_bytes = 0};
  std::vector<bool> counted(factors.size());
  auto add = [&](const TensorFactors& tensor, const TensorType& type, bool counts) {
    double bytes = static_cast<double>(type.bytes());
    for (const DimensionFactors& dimension : tensor)
      for (int each : dimension) {
        auto f = static_cast<std::size_t>(each);
        bytes /= parts[f];
        if (counts && !counted[f]) work.flops *= static_cast<double>(factors[f].size) / parts[f];
        if (counts) counted[f] = true;
      }
    work.memory_bytes += bytes;
  };
  for (std::size_t t = 0; t < product.operands.size(); ++t)
    add(product.rule.operands()[t], program.types[product.operands[t]], t == 1);
  add(product.rule.results()[0], program.types[product.results[0]], true);
  return work;
}

// The plan for one op: the axes that shard its factors, and the moves before and after it.
class OpPlan {
 public:
  OpPlan(const Mesh& mesh, const RuledProgram& program, std::size_t op,
         std::vector<Sharding> operands, std::vector<Sharding> results)
      : mesh_(mesh),
        program_(program),
        op_(program.ops[op]),
        facts_(program.facts[op]),
        rule_(op_.rule),
        operands_(std::move(operands)),
        results_(std::move(results)),
        chosen_(rule_.factors().size()) {
    for (std::size_t t = 0; t < operands_.size(); ++t)
      by_operand_.push_back(
          factor_axes(mesh_, rule_, rule_.operands()[t], dimensions_of(operands_[t])));
  }

  /// @param is_new called with an operand and the sharding that the op needs; false if the value
  /// was already brought to that sharding for another op
  template <class IsNew>
  void run(std::vector<PredictedMove>& moves, const IsNew& is_new) {
    choose();
    drop_strided();
    for (std::size_t t = 0; t < operands_.size(); ++t) {
      std::vector<AxisList> axes = dimension_axes(mesh_, rule_, rule_.operands()[t], chosen_);
      if (axes == dimensions_of(operands_[t])) continue;  // it is there: usual, and quick to see
      Sharding needed = sharding_with_axes(mesh_, axes);
      if (is_new(op_.operands[t], needed)) before(t, needed, moves);
    }
    borders(moves);
    for (std::size_t r = 0; r < results_.size(); ++r) after(r, moves);
  }

  /// The axes of each factor. @pre run() has been called
  const std::vector<AxisList>& chosen() const { return chosen_; }

 private:
  const Factor& factor(std::size_t f) const { return rule_.factors()[f]; }

  // Assigns axes to a factor, as far as no other factor uses them.
  void take(std::size_t f, const AxisList& axes) {
    if (factor(f).kind == FactorKind::kNeedReplication) return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i < chosen_[f].size()) {
        if (chosen_[f][i] != axes[i]) return;
        continue;
      }
      if (overlaps_any(axes[i], chosen_)) return;
      chosen_[f].push_back(axes[i]);
    }
  }

  // 1. Reduction factors that all operands shard alike stay sharded: each device sums its part. 2.
  // Then the results' shardings apply, 3. then the operands', largest first. 4. Reduction factors
  // that only some operands shard stay sharded if that gives every device separate work; else the
  // operand is gathered.
  void choose() {
    for (std::size_t f = 0; f < chosen_.size(); ++f)
      if (factor(f).kind == FactorKind::kReduction) take(f, agreed(f));
    for (std::size_t r = 0; r < results_.size(); ++r) {
      std::vector<AxisList> wanted =
          factor_axes(mesh_, rule_, rule_.results()[r], dimensions_of(results_[r]));
      for (std::size_t f = 0; f < chosen_.size(); ++f) take(f, wanted[f]);
    }
    // Marks and element-wise ops use the sharding of their result.
    if (only_passes_on()) return;
    std::vector<std::size_t> order(operands_.size());
    for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return type_of(a).bytes() > type_of(b).bytes();
    });
    for (std::size_t t : order)
      for (std::size_t f = 0; f < chosen_.size(); ++f)
        if (factor(f).kind != FactorKind::kReduction) take(f, by_operand_[t][f]);
    for (std::size_t t : order)
      for (std::size_t f = 0; f < chosen_.size(); ++f)
        if (factor(f).kind == FactorKind::kReduction && busies_all(t, f))
          take(f, by_operand_[t][f]);
  }

  bool only_passes_on() const {
    for (std::size_t f = 0; f < chosen_.size(); ++f)
      if (factor(f).kind != FactorKind::kPassThrough || !has(rule_.results()[0], f)) return false;
    return true;
  }

  // Whether sharding the factor as operand t does splits the work into as many parts as there are
  // devices.
  bool busies_all(std::size_t t, std::size_t f) const {
    const AxisList& own = by_operand_[t][f];
    if (own.empty() || !chosen_[f].empty()) return false;
    std::int64_t parts = AxesIndex(mesh_, own).size();
    for (const AxisRef& axis : own)
      if (overlaps_any(axis, chosen_)) return false;
    for (std::size_t other = 0; other < operands_.size(); ++other)
      if (!by_operand_[other][f].empty() && AxesIndex(mesh_, by_operand_[other][f]).size() != parts)
        return false;
    for (const AxisList& axes : chosen_) parts *= AxesIndex(mesh_, axes).size();
    return parts == mesh_.size();
  }

  AxisList agreed(std::size_t f) const {
    std::optional<AxisList> axes;
    for (std::size_t t = 0; t < operands_.size(); ++t) {
      if (!has(rule_.operands()[t], f)) continue;
      if (axes && *axes != by_operand_[t][f]) return {};
      axes = by_operand_[t][f];
    }
    return axes.value_or(AxisList());
  }

  static bool has(const TensorFactors& tensor, std::size_t f) {
    for (const DimensionFactors& dimension : tensor)
      for (int each : dimension)
        if (static_cast<std::size_t>(each) == f) return true;
    return false;
  }

  // Drops factor axes that cannot be expressed on a tensor of the op.
  void drop_strided() {
    std::vector<int> strided;
    for (const TensorFactors& tensor : rule_.results())
      (void)dimension_axes(mesh_, rule_, tensor, chosen_, &strided);
    for (const TensorFactors& tensor : rule_.operands())
      (void)dimension_axes(mesh_, rule_, tensor, chosen_, &strided);
    for (int f : strided) {
      chosen_[static_cast<std::size_t>(f)].clear();
      strided_ = true;
    }
  }

  const TensorType& type_of(std::size_t operand) const {
    return program_.types[op_.operands[operand]];
  }

  const TensorType& result_type(std::size_t r) const { return program_.types[op_.results[r]]; }

  PredictedMove move(const ReshardStep& step, const ReshardPlan& plan, const TensorType& type,
                     const Sharding& from, const Sharding& to) const {
    PredictedMove made{.kind = step.kind,
                       .axes = step.axes,
                       .bytes = step.bytes,
                       .full_rematerialization = plan.full_rematerialization,
                       .type = type,
                       .from = from,
                       .to = to,
                       .origin = facts_.origin};
    if (!facts_.asked_by.empty()) made.who = CollectiveCause::kAsked;
    return made;
  }

  void before(std::size_t t, const Sharding& needed, std::vector<PredictedMove>& moves) const {
    ReshardPlan plan = plan_reshard(type_of(t), operands_[t], needed);
    for (const ReshardStep& step : plan.steps) {
      PredictedMove made = move(step, plan, type_of(t), operands_[t], needed);
      explain_operand(t, needed, made);
      moves.push_back(std::move(made));
    }
  }

  void explain_operand(std::size_t t, const Sharding& needed, PredictedMove& made) const {
    std::string what = cat("operand ", t);
    if (const std::string& made_at = program_.made_at[op_.operands[t]]; !made_at.empty())
      append(what, " (made at ", made_at, ")");
    if (made.who == CollectiveCause::kAsked) {
      made.cause = cat(facts_.asked_by, " requests ", needed.spec());
      if (made.full_rematerialization)
        made.suggestion = "mark it in two steps that each only gather, slice or exchange shards";
      return;
    }
    if (std::optional<std::size_t> d = needs_whole(t)) {
      made.cause = cat(facts_.origin.op, " needs all of dimension ", *d, " of ", what,
                       ", which is split by ", meshard::to_string(operands_[t].axes(*d)));
      made.suggestion =
          "split another dimension of it, or mark it unsplit at a point where it is smaller";
      return;
    }
    if (strided_ || !fits(t)) {
      made.cause = cat(facts_.origin.op, " cannot keep the sharding of ", what,
                       ": its shards would not be contiguous in the result");
      made.suggestion = "split the outermost of the dimensions that are merged or separated";
      return;
    }
    for (std::size_t other = 0; other < operands_.size(); ++other)
      if (other != t && !all_axes(operands_[other]).empty()) {
        made.cause =
            cat(what, " is ", operands_[t].spec(), ", operand ", other, " is ",
                operands_[other].spec(), ": ", facts_.origin.op, " needs it as ", needed.spec());
        made.suggestion =
            cat("mark it ", needed.spec(), " where it is made, if it can keep that sharding");
        return;
      }
    made.cause = cat("the sharding of the result requires it: ", facts_.origin.op, " needs ", what,
                     " as ", needed.spec());
  }

  // A sharded dimension that the op needs whole.
  std::optional<std::size_t> needs_whole(std::size_t t) const {
    for (std::size_t f = 0; f < chosen_.size(); ++f) {
      if (factor(f).kind != FactorKind::kNeedReplication || by_operand_[t][f].empty()) continue;
      for (std::size_t d = 0; d < rule_.operands()[t].size(); ++d)
        if (has({rule_.operands()[t][d]}, f)) return d;
    }
    return std::nullopt;
  }

  // Whether the results could be sharded like operand t.
  bool fits(std::size_t t) const {
    std::vector<std::size_t> unfit;
    std::vector<int> strided;
    for (const TensorFactors& result : rule_.results())
      (void)dimension_axes(mesh_, rule_, result, by_operand_[t], &strided);
    if (!strided.empty()) return false;
    (void)factor_axes(mesh_, rule_, rule_.operands()[t], dimensions_of(operands_[t]), &unfit);
    return unfit.empty();
  }

  // Adds the exchange of shard borders between neighbors.
  void borders(std::vector<PredictedMove>& moves) const {
    for (std::size_t f = 0; f < chosen_.size(); ++f) {
      if (factor(f).kind != FactorKind::kPermutation || chosen_[f].empty()) continue;
      if (facts_.keeps_indices && shards_are_equal(f)) continue;
      Sharding result =
          sharding_with_axes(mesh_, dimension_axes(mesh_, rule_, rule_.results()[0], chosen_));
      ReshardStep step{CollectiveKind::kCollectivePermute, chosen_[f], shard_bytes(0, result)};
      PredictedMove made = move(step, {}, result_type(0), result, result);
      made.cause = cat(facts_.origin.op, " moves elements along a dimension that is split by ",
                       meshard::to_string(chosen_[f]));
      moves.push_back(std::move(made));
    }
  }

  // Whether the shards of the first operand and result have equal sizes along a factor.
  bool shards_are_equal(std::size_t f) const {
    std::int64_t tiles = AxesIndex(mesh_, chosen_[f]).size();
    auto shard = [&](std::int64_t size) { return (size + tiles - 1) / tiles; };
    const Shape &from = type_of(0).shape, &to = result_type(0).shape;
    for (std::size_t d = 0; d < rule_.results()[0].size(); ++d)
      if (has({rule_.results()[0][d]}, f) &&
          shard(from[static_cast<std::int64_t>(d)]) != shard(to[static_cast<std::int64_t>(d)]))
        return false;
    return true;
  }

  std::int64_t shard_bytes(std::size_t r, const Sharding& sharding) const {
    return bytes_of_shard(result_type(r), sharding);
  }

  void after(std::size_t r, std::vector<PredictedMove>& moves) const {
    std::vector<AxisList> axes = dimension_axes(mesh_, rule_, rule_.results()[r], chosen_);
    AxisList summed;
    for (std::size_t f = 0; f < chosen_.size(); ++f)
      if (factor(f).kind == FactorKind::kReduction)
        for (const AxisRef& axis : chosen_[f]) summed.push_back(axis);
    if (summed.empty() && axes == dimensions_of(results_[r])) return;
    Sharding made = sharding_with_axes(mesh_, axes);
    if (!summed.empty()) {
      // If the result is sharded over the summed axes, a reduce-scatter suffices.
      bool scatter = false;
      for (const AxisRef& axis : all_axes(results_[r])) scatter |= overlaps_any(axis, {summed});
      PredictedMove sum{
          .kind = scatter ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
          .axes = summed,
          .bytes = shard_bytes(r, made),
          .type = result_type(r),
          .from = made,
          .to = scatter ? results_[r] : made,
          .origin = facts_.origin};
      sum.cause = cat(facts_.origin.op, " sums over a dimension that is split by ",
                      meshard::to_string(summed));
      moves.push_back(std::move(sum));
    }
    ReshardPlan plan = plan_reshard(result_type(r), made, results_[r]);
    for (const ReshardStep& step : plan.steps) {
      PredictedMove moved = move(step, plan, result_type(r), made, results_[r]);
      moved.cause = cat(facts_.origin.op, " produces its result as ", made.spec(),
                        ", but it is needed as ", results_[r].spec());
      moves.push_back(std::move(moved));
    }
  }

  const Mesh& mesh_;
  const RuledProgram& program_;
  const RuledOp& op_;
  const RuledOpFacts& facts_;
  const ShardingRule& rule_;
  std::vector<Sharding> operands_, results_;
  std::vector<std::vector<AxisList>> by_operand_;
  std::vector<AxisList> chosen_;  // axes by factor
  bool strided_ = false;
};

// The shardings of values, each made once.
class Shardings {
 public:
  Shardings(const Mesh& mesh, const std::vector<PartialSharding>& values)
      : mesh_(mesh), values_(values), made_(values.size()) {}

  std::vector<Sharding> of(const std::vector<std::size_t>& numbers) {
    std::vector<Sharding> out;
    for (std::size_t number : numbers) {
      if (!made_[number]) made_[number] = values_[number].sharding(mesh_);
      out.push_back(*made_[number]);
    }
    return out;
  }

 private:
  const Mesh& mesh_;
  const std::vector<PartialSharding>& values_;
  std::vector<std::optional<Sharding>> made_;
};

// How many devices are along an axis; 1 for an axis that the mesh does not have.
std::int64_t size_on(const Mesh& mesh, const AxisRef& axis) {
  if (!axis.is_whole()) return axis.size;
  for (const MeshAxis& own : mesh.axes())
    if (own.name == axis.name) return own.size;
  return 1;
}

// The moves of a collective of the program: one for each operand.
void add_stated(const Mesh& mesh, const RuledProgram& program, std::size_t op,
                const std::vector<Sharding>& operands, const std::vector<Sharding>& results,
                std::vector<PredictedMove>& moves) {
  const RuledOpFacts& facts = program.facts[op];
  const StatedCollective& stated = *facts.stated;
  bool pairs = stated.kind == CollectiveKind::kCollectivePermute;
  // Devices that are alone in their groups, and devices that send to themselves, move nothing.
  AxisList named;
  for (const AxisRef& axis : stated.axes.value_or(AxisList()))
    if (size_on(mesh, axis) > 1) named.push_back(axis);
  bool moves_data = stated.axes ? !named.empty()
                    : stated.groups.empty()
                        ? !pairs
                        : std::ranges::any_of(stated.groups, [&](const auto& group) {
                            return group.size() > 1 && group[0] != group[1];
                          });
  if (!moves_data) return;
  AxisList axes = named;
  if (!stated.axes && !pairs) axes = axes_of_groups(mesh, stated.groups).value_or(AxisList());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorType& from = program.types[program.ops[op].operands[i]];
    const TensorType& to = program.types[program.ops[op].results[i]];
    moves.push_back(
        {.kind = stated.kind,
         .axes = axes,
         .bytes = std::max(bytes_of_shard(from, operands[i]), bytes_of_shard(to, results[i])),
         .type = from,
         .origin = facts.origin,
         .who = CollectiveCause::kAsked,
         .cause = "the program contains this collective"});
  }
}

// The shardings that values have been brought to, and the regions where.
class Brought {
 public:
  explicit Brought(const RuledProgram& program) : program_(program) {}

  /// False if the value is there already: what was moved in a region is there in all regions
  /// inside.
  bool is_new(std::size_t value, const Sharding& needed, std::size_t region) {
    std::vector<std::size_t>& regions = known_[{value, needed.spec().to_string()}];
    for (std::size_t other : regions)
      if (program_.is_inside(region, other)) return false;
    regions.push_back(region);
    return true;
  }

 private:
  const RuledProgram& program_;
  std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> known_;
};

// Says which moves are in branches that other branches of the same op exceed.
void find_smaller_branches(const RuledProgram& program, const std::vector<std::size_t>& regions,
                           std::vector<PredictedMove>& moves) {
  std::vector<double> bytes(program.regions.size());
  for (std::size_t i = 0; i < moves.size(); ++i)
    bytes[regions[i]] += static_cast<double>(moves[i].total_bytes());
  std::vector<bool> counted = regions_with_most(program, bytes);
  for (std::size_t i = 0; i < moves.size(); ++i) moves[i].in_smaller_branch = !counted[regions[i]];
}

}  // namespace

ProgramMoves predict_moves(const Mesh& mesh, const RuledProgram& program,
                           const std::vector<PartialSharding>& values) {
  Brought brought(program);
  Shardings shardings(mesh, values);
  ProgramMoves made;
  std::vector<std::size_t> regions;  // by move
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const RuledOp& op = program.ops[i];
    bool all_known = true, split = program.facts[i].stated.has_value();
    for (const std::vector<std::size_t>* side : {&op.operands, &op.results})
      for (std::size_t value : *side) {
        all_known = all_known && values[value].known;
        split = split || !values[value].is_whole();
      }
    if (!all_known) ++made.left_out;
    if (!all_known || !split || op.operands.empty()) {
      if (program.facts[i].is_product) made.products.push_back(work_of(mesh, program, i, {}));
      continue;
    }
    std::vector<Sharding> operands = shardings.of(op.operands), results = shardings.of(op.results);
    std::size_t region = program.facts[i].region, before = made.moves.size();
    if (program.facts[i].stated) {
      add_stated(mesh, program, i, operands, results, made.moves);
    } else {
      OpPlan plan(mesh, program, i, std::move(operands), std::move(results));
      plan.run(made.moves, [&](std::size_t value, const Sharding& needed) {
        return brought.is_new(value, needed, region);
      });
      if (program.facts[i].is_product)
        made.products.push_back(work_of(mesh, program, i, plan.chosen()));
    }
    regions.resize(made.moves.size(), region);
    for (std::size_t m = before; m < made.moves.size(); ++m) {
      made.moves[m].executions = program.regions[region].executions;
      made.moves[m].executions_known = program.regions[region].executions_known;
      made.moves[m].conditional = program.regions[region].conditional;
    }
  }
  find_smaller_branches(program, regions, made.moves);
  return made;
}

}  // namespace meshard
