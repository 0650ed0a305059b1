#include "meshard/autodiff/differentiate_body.h"

#include <algorithm>
#include <unordered_map>

#include "meshard/autodiff/backward.h"
#include "meshard/autodiff/cheapest_residuals.h"
#include "meshard/base/error.h"
#include "meshard/graph/node_table.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/all.h"

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

namespace {

using Keep = ResidualPolicy::Keep;

// The value with which a local value leaves its innermost region.
Tensor carried_out(const Tensor& local) {
  Sharding sharding = carried_sharding(*manual_axes(local.value()), local.type());
  bool gets_a_dimension = sharding.rank() > static_cast<std::size_t>(local.rank());
  Tensor value = gets_a_dimension ? reshape(local, {1}) : local;
  Dimensions full;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    full.push_back(value.shape()[static_cast<std::int64_t>(d)] * sharding.num_tiles(d));
  return shard_to_full(value, sharding, Shape(std::move(full)));
}

// The chain of values that takes a local value out to `depth` regions, starting with the value
// itself. The last one can be passed between bodies whose values are in `depth` regions.
std::vector<Tensor> carriers(const Value& local, std::size_t depth) {
  std::vector<Tensor> all{Tensor(local)};
  while (manual_depth(all.back().value()) > depth) all.push_back(carried_out(all.back()));
  return all;
}

// Enters the regions again: computes the local value at `carriers[0]` from that of the last
// carrier.
Tensor brought_back(std::span<const Tensor> carriers, Tensor given) {
  for (std::size_t i = carriers.size() - 1; i-- > 0;) {
    const TensorType& type = carriers[i].type();
    const ManualAxes& place = *manual_axes(carriers[i].value());
    given = full_to_shard(given, carried_sharding(place, type), place.own());
    if (given.rank() > type.rank()) given = reshape(given, {});
  }
  return given;
}

// A body and its derivative in one trace, and where to split them.
class Joint {
 public:
  Joint(const Body& body, const std::vector<bool>& has_cotangent, const std::vector<bool>& wanted,
        std::span<const InBackward> back, const ResidualPolicy& policy,
        const std::optional<ManualAxes>& place, SourceLocation where)
      : scope_(place), policy_(policy) {
    for (const Value& parameter : body.graph().parameters()) {
      Tensor like(parameter);
      parameters_.push_back(scope_.parameter(body_input(like)));
      in_backward_[parameters_.back().value().node()] = back[parameters_.size() - 1];
    }
    results_ = inlined(body, parameters_);
    record_way_back(has_cotangent, wanted, where);
    border_ = needed_forward_values();
    choose();
    // Inside manual axes, the parameters and results of bodies are local values that all vary over
    // the same axes. An unvarying one would have one cotangent on each device, to be summed.
    for (const Value& residual : residuals_) {
      crossing_.push_back(carriers(residual, place ? place->depth() : 0));
      const Tensor& last = crossing_.back().back();
      handed_over_.push_back(place ? widened(last, *place) : last);
    }
  }

  BodyVjp cut(const std::optional<ManualAxes>& place, SourceLocation where) {
    BodyVjp vjp;
    vjp.forward = forward_body(vjp);
    std::vector<BodyInput> inputs;
    for (const Tensor& cotangent : cotangents_) inputs.push_back(body_input(cotangent));
    for (const Tensor& residual : handed_over_) inputs.push_back(body_input(residual));
    std::uint64_t trace = scope_.trace();
    TracedBody back = trace_body(
        inputs,
        [&](std::span<const Tensor> given) {
          Replay replay(trace);
          std::size_t next = 0;
          for (const Tensor& cotangent : cotangents_) replay.set(cotangent.value(), given[next++]);
          for (const auto& carriers : crossing_)
            replay.set(carriers[0].value(), brought_back(carriers, given[next++]));
          for (std::size_t i = 0; i < scope_.captured().size(); ++i)
            replay.set(scope_.captured_parameters()[i].value(), scope_.captured()[i]);
          std::vector<Value> wanted;
          for (const Tensor& gradient : gradients_) wanted.push_back(gradient.value());
          return replay.run(wanted);
        },
        place, where);
    vjp.backward = std::move(back.body);
    vjp.captured = std::move(back.captured);
    return vjp;
  }

 private:
  void record_way_back(const std::vector<bool>& has_cotangent, const std::vector<bool>& wanted,
                       SourceLocation where) {
    std::vector<Tensor> outputs, inputs;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!has_cotangent[i]) continue;
      outputs.push_back(results_[i]);
      cotangents_.push_back(scope_.parameter(body_input(results_[i])));
    }
    // Everything recorded from here on belongs to the backward pass.
    border_id_ = scope_.parameter({TensorType{DType::bool_, {}}}).value()->id();
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (wanted[i]) inputs.push_back(parameters_[i]);
    // Cotangents are leaves that were recorded before the border.
    for (const Tensor& cotangent : cotangents_) leaves_.insert(cotangent.value());
    if (!inputs.empty()) gradients_ = backward(outputs, cotangents_, inputs, where);
  }

  // A loop that was recorded again with its residuals belongs to the forward pass. This does not
  // hold inside what checkpoint() recomputes, which depends on values of the backward pass.
  bool is_backward(const Value& value) const {
    if (value->id() <= border_id_) return false;
    bool is_loop_again = value->attributes() && !value->attributes()->extends().empty();
    if (!is_loop_again) return true;
    return std::any_of(
        value->operands().begin(), value->operands().end(), [&](const Value& operand) {
          return leaves_.contains(operand) || (!is_outside(operand) && is_backward(operand));
        });
  }
  bool is_outside(const Value& value) const {
    if (value.storage() || value->trace() != scope_.trace() || leaves_.contains(value)) return true;
    for (const Tensor& captured : scope_.captured_parameters())
      if (captured.value() == value) return true;
    return false;
  }
  const InBackward* in_backward(const Value& value) const {
    auto found = in_backward_.find(value.node());
    return found == in_backward_.end() ? nullptr : &found->second;
  }

  // Values of the forward pass that the backward pass uses.
  ValueSet needed_forward_values() const {
    ValueSet border;
    std::vector<Value> gradients;
    for (const Tensor& gradient : gradients_) gradients.push_back(gradient.value());
    nodes_behind(gradients, [&](const Value& value) {
      if (is_outside(value)) return false;
      if (!is_backward(value)) border.insert(value);
      return is_backward(value);
    });
    return border;
  }

  // True if the value depends only on invariant parameters.
  bool is_invariant(const Value& value) {
    if (is_outside(value)) return true;
    if (const InBackward* role = in_backward(value)) return *role == InBackward::kInvariant;
    auto [entry, is_new] = invariant_.try_emplace(value.node(), true);
    if (!is_new) return entry->second;
    bool all = true;
    for (const Value& operand : value->operands()) all = all && is_invariant(operand);
    return invariant_[value.node()] = all;
  }

  // Decides for each value on the border whether to keep it, from the last to the first: a value
  // that is recomputed needs its operands.
  void choose() {
    if (policy_.keep == Keep::kNeeded)
      cheapest_ = cheapest_residuals(border_, [this](const Value& value) {
        const InBackward* role = in_backward(value);
        return (role && *role != InBackward::kUnavailable) || is_invariant(value);
      });
    ValueSet open = border_;
    while (!open.empty()) {
      Value value = *std::prev(open.end());
      open.erase(std::prev(open.end()));
      if (is_outside(value)) continue;
      if (in_backward(value) || keeps(value)) {
        residuals_.insert(value);
        continue;
      }
      open.insert(value->operands().begin(), value->operands().end());
    }
  }

  bool keeps(const Value& value) {
    if (is_invariant(value)) return false;
    switch (policy_.keep) {
      case Keep::kEverything: return true;
      case Keep::kNothing: return false;
      case Keep::kDots: return value->op().traits.is_product;
      case Keep::kNamed: {
        const std::string* name = checkpoint_name_of(*value.node());
        return name &&
               std::find(policy_.names.begin(), policy_.names.end(), *name) != policy_.names.end();
      }
      case Keep::kNeeded: break;
    }
    return cheapest_.contains(value);
  }

  // The body with the kept values as additional results; fills in `vjp.residuals`.
  Body forward_body(BodyVjp& vjp) const {
    std::vector<Value> parameters, results;
    for (const Tensor& parameter : parameters_) parameters.push_back(parameter.value());
    for (const Tensor& result : results_) results.push_back(result.value());
    auto crossing = handed_over_.begin();
    for (const Value& residual : residuals_) {
      const InBackward* role = in_backward(residual);
      const Tensor& out = *crossing++;
      if (role && *role != InBackward::kUnavailable) {
        auto at = std::find(parameters.begin(), parameters.end(), residual);
        vjp.residuals.push_back({false, static_cast<std::size_t>(at - parameters.begin())});
      } else {
        vjp.residuals.push_back({true, results.size()});
        results.push_back(out.value());
      }
    }
    return Body(Graph::build(parameters, results, scope_.trace()));
  }

  BodyScope scope_;
  const ResidualPolicy& policy_;
  std::vector<Tensor> parameters_, results_, cotangents_, gradients_;
  std::unordered_map<const Node*, InBackward> in_backward_;
  ValueSet leaves_, border_, cheapest_, residuals_;
  std::vector<std::vector<Tensor>> crossing_;  // the carriers of each residual
  std::vector<Tensor> handed_over_;
  std::unordered_map<const Node*, bool> invariant_;
  std::uint64_t border_id_ = 0;
};

class Differentiator final : public BodyDifferentiator {
 public:
  BodyVjp differentiate(const Body& body, const std::vector<bool>& has_cotangent,
                        const std::vector<bool>& wanted, std::span<const InBackward> back,
                        const ResidualPolicy& policy, SourceLocation where) const override {
    internal::InheritSource forward_pass(where);  // which is recorded again
    std::optional<ManualAxes> place;
    for (const Value& parameter : body.graph().parameters())
      if (const ManualAxes* manual = manual_axes(parameter)) place = *manual;
    Joint joint(body, has_cotangent, wanted, back, policy, place, where);
    return joint.cut(place, where);
  }
};

}  // namespace

const BodyDifferentiator& body_differentiator() {
  static const Differentiator differentiator;
  return differentiator;
}

}  // namespace meshard
