#include "meshard/explain/predict.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "meshard/explain/byte_text.h"
#include "meshard/explain/predict_shardings.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/mesh/axes_index.h"

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

// The plan for one op: the axes that shard its factors, and the moves before and after it.
class OpPlan {
 public:
  OpPlan(const Node& node, const Mesh& mesh, std::vector<Sharding> operands,
         std::vector<Sharding> results, OriginPlace origin)
      : node_(node),
        mesh_(mesh),
        rule_(node.op().sharding_rule(call_of(node))),
        operands_(std::move(operands)),
        results_(std::move(results)),
        origin_(std::move(origin)),
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
      Sharding needed =
          sharding_of(mesh_, dimension_axes(mesh_, rule_, rule_.operands()[t], chosen_));
      if (is_new(node_.operands()[t], needed)) before(t, needed, moves);
    }
    borders(moves);
    for (std::size_t r = 0; r < results_.size(); ++r) after(r, moves);
  }

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
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
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

  const TensorType& type_of(std::size_t operand) const { return node_.operands()[operand].type(); }

  PredictedMove move(const ReshardStep& step, const ReshardPlan& plan, const TensorType& type,
                     const Sharding& from, const Sharding& to) const {
    PredictedMove made{.kind = step.kind,
                       .axes = step.axes,
                       .bytes = step.bytes,
                       .full_rematerialization = plan.full_rematerialization,
                       .type = type,
                       .from = from,
                       .to = to,
                       .origin = origin_};
    if (marked_sharding(Value(const_cast<Node*>(&node_)))) made.who = CollectiveCause::kAsked;
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
    const Node& maker = *node_.operands()[t].node();
    std::string what =
        cat("operand ", t, maker.where().known() ? cat(" (made at ", maker.where(), ")") : "");
    if (made.who == CollectiveCause::kAsked) {
      made.cause = cat("the mark requests ", needed.spec());
      if (made.full_rematerialization)
        made.suggestion = "mark it in two steps that each only gather, slice or exchange shards";
      return;
    }
    if (std::optional<std::size_t> d = needs_whole(t)) {
      made.cause = cat(origin_.op, " needs all of dimension ", *d, " of ", what,
                       ", which is split by ", meshard::to_string(operands_[t].axes(*d)));
      made.suggestion =
          "split another dimension of it, or mark it unsplit at a point where it is smaller";
      return;
    }
    if (strided_ || !fits(t)) {
      made.cause = cat(origin_.op, " cannot keep the sharding of ", what,
                       ": its shards would not be contiguous in the result");
      made.suggestion = "split the outermost of the dimensions that are merged or separated";
      return;
    }
    for (std::size_t other = 0; other < operands_.size(); ++other)
      if (other != t && !all_axes(operands_[other]).empty()) {
        made.cause = cat(what, " is ", operands_[t].spec(), ", operand ", other, " is ",
                         operands_[other].spec(), ": ", origin_.op, " needs it as ", needed.spec());
        made.suggestion =
            cat("mark it ", needed.spec(), " where it is made, if it can keep that sharding");
        return;
      }
    made.cause = cat("the sharding of the result requires it: ", origin_.op, " needs ", what,
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
      Sharding result =
          sharding_of(mesh_, dimension_axes(mesh_, rule_, rule_.results()[0], chosen_));
      ReshardStep step{CollectiveKind::kCollectivePermute, chosen_[f], shard_bytes(0, result)};
      PredictedMove made = move(step, {}, node_.type(0), result, result);
      made.cause = cat(origin_.op, " moves elements along a dimension that is split by ",
                       meshard::to_string(chosen_[f]));
      moves.push_back(std::move(made));
    }
  }

  std::int64_t shard_bytes(std::uint32_t r, const Sharding& sharding) const {
    const TensorType& type = node_.type(r);
    std::int64_t elements = 1;
    for (std::int64_t size : sharding.shard_shape(type.shape)) elements *= size;
    return elements * static_cast<std::int64_t>(size_in_bytes(type.dtype));
  }

  void after(std::size_t r, std::vector<PredictedMove>& moves) const {
    Sharding made = sharding_of(mesh_, dimension_axes(mesh_, rule_, rule_.results()[r], chosen_));
    AxisList summed;
    for (std::size_t f = 0; f < chosen_.size(); ++f)
      if (factor(f).kind == FactorKind::kReduction)
        for (const AxisRef& axis : chosen_[f]) summed.push_back(axis);
    auto index = static_cast<std::uint32_t>(r);
    if (!summed.empty()) {
      // If the result is sharded over the summed axes, a reduce-scatter suffices.
      bool scatter = false;
      for (const AxisRef& axis : all_axes(results_[r])) scatter |= overlaps_any(axis, {summed});
      PredictedMove sum{
          .kind = scatter ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
          .axes = summed,
          .bytes = shard_bytes(index, made),
          .type = node_.type(index),
          .from = made,
          .to = scatter ? results_[r] : made,
          .origin = origin_};
      sum.cause =
          cat(origin_.op, " sums over a dimension that is split by ", meshard::to_string(summed));
      moves.push_back(std::move(sum));
    }
    ReshardPlan plan = plan_reshard(node_.type(index), made, results_[r]);
    for (const ReshardStep& step : plan.steps) {
      PredictedMove moved = move(step, plan, node_.type(index), made, results_[r]);
      moved.cause = cat(origin_.op, " produces its result as ", made.spec(),
                        ", but it is needed as ", results_[r].spec());
      moves.push_back(std::move(moved));
    }
  }

  const Node& node_;
  const Mesh& mesh_;
  ShardingRule rule_;
  std::vector<Sharding> operands_, results_;
  OriginPlace origin_;
  std::vector<std::vector<AxisList>> by_operand_;
  std::vector<AxisList> chosen_;  // axes by factor
  bool strided_ = false;
};

class Predictor {
 public:
  Predictor(const Graph& graph, const Mesh& mesh)
      : graph_(graph), mesh_(mesh), shardings_(predict_shardings(graph, mesh)) {}

  Prediction run() {
    std::size_t left_out = 0;
    for (const Node* node : graph_.nodes())
      if (!add(*node)) ++left_out;
    for (const Value& result : graph_.results()) prediction_.results.push_back(sharding(result));
    if (left_out > 0)
      prediction_.notes.push_back(cat(left_out, " of ", graph_.nodes().size(),
                                      " ops are left out: they are inside manual regions, or their "
                                      "values are on a mesh other than ",
                                      mesh_));
    return std::move(prediction_);
  }

 private:
  const std::optional<Sharding>& sharding(const Value& value) const {
    return shardings_[graph_.number(value.node())][value.index()];
  }

  bool add(const Node& node) {
    std::vector<Sharding> operands, results;
    for (const Value& operand : node.operands()) {
      if (!sharding(operand)) return false;
      operands.push_back(*sharding(operand));
    }
    for (std::uint32_t r = 0; r < node.num_outputs(); ++r) {
      const auto& result = shardings_[graph_.number(&node)][r];
      if (!result) return false;
      results.push_back(*result);
    }
    if (!node.op().sharding_rule) return false;
    if (operands.empty()) return true;  // each device creates its part
    OriginPlace origin{graph_.number(&node), std::string(node.op().name), node.where().to_string()};
    OpPlan(node, mesh_, std::move(operands), std::move(results), std::move(origin))
        .run(prediction_.moves, [&](const Value& value, const Sharding& needed) {
          return known_.emplace(value.node(), value.index(), needed.spec().to_string()).second;
        });
    return true;
  }

  Graph graph_;
  Mesh mesh_;
  ShardingsOfValues shardings_;
  // Values, with the shardings that they were already brought to.
  std::set<std::tuple<const Node*, std::uint32_t, std::string>> known_;
  Prediction prediction_;
};

}  // namespace

std::string PredictedMove::to_string() const {
  std::string text(meshard::to_string(kind));
  if (!axes.empty())
    append(text, cat(axes.size() == 1 ? " on axis " : " on axes ",
                     axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes)));
  append(text, cat(", ", byte_text(bytes)));
  if (full_rematerialization) append(text, " (the whole value on every device)");
  append(text, cat(", of ", type));
  if (from) append(text, cat(" ", from->spec()));
  if (to && from && *to != *from) append(text, cat(" to ", to->spec()));
  append(text, cat(", from ", origin.to_string()));
  if (!cause.empty()) append(text, cat(": ", cause));
  if (!suggestion.empty()) append(text, cat("; ", suggestion));
  return text;
}

std::vector<PredictedMove> Prediction::of(CollectiveKind kind) const {
  std::vector<PredictedMove> found;
  for (const PredictedMove& move : moves)
    if (move.kind == kind) found.push_back(move);
  return found;
}

std::int64_t Prediction::bytes() const {
  std::int64_t sum = 0;
  for (const PredictedMove& move : moves) sum += move.bytes;
  return sum;
}

std::string Prediction::to_string() const {
  std::string text = cat(moves.size(), moves.size() == 1 ? " collective" : " collectives",
                         " predicted, ", byte_text(bytes()), " per device\n");
  for (const PredictedMove& move : moves) append(text, cat("  ", move, "\n"));
  for (const std::string& note : notes) append(text, cat("note: ", note, "\n"));
  return text;
}

Graph internal::graph_for_prediction(
    std::span<const Tensor> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& f) {
  TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> values, results;
  for (const Tensor& argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument.value());
    std::optional<Sharding> said =
        sharding ? std::optional(*sharding) : marked_sharding(argument.value());
    parameters.push_back(make_parameter(argument.type(), std::move(said), argument.where()));
    values.push_back(parameters.back().value());
  }
  for (const Tensor& result : f(parameters)) results.push_back(result.value());
  return Graph::build(values, results, scope.trace());
}

Prediction predict(const Graph& graph) {
  std::optional<Mesh> mesh = ProgramMeshes(graph).numbering();
  if (!mesh) return {.moves = {}, .results = {}, .notes = {"no value is sharded"}};
  return Predictor(graph, *mesh).run();
}

}  // namespace meshard
