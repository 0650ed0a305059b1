#include "meshard/ops/batching/batched_program.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/manual_values.h"

namespace meshard {
namespace {

// Batches the nodes between the members and the results, and keeps their replacements.
class BatchPass {
 public:
  BatchPass(std::span<const Tensor> members, std::span<const Tensor> batched,
            const Batching& batching)
      : batching_(batching) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      Node* node = members[i].value().node();
      states_[node].batched = {batched[i]};
      oldest_member_ = std::min(oldest_member_, node->id());
    }
  }

  Tensor result(const Tensor& member) {
    if (!member.defined()) return {};
    visit(member.value().node());
    Tensor now = replaced(member.value());
    return now.defined() ? now : member;
  }

 private:
  struct State {
    bool visited = false;
    // One tensor per output; empty if the node depends on no member. An output of a control-flow op
    // may be unbatched, shared by all members, while others are batched.
    InlineVector<Tensor, 1> batched;
  };

  // Undefined if the value depends on no member.
  Tensor replaced(const Value& value) {
    auto found = states_.find(value.node());
    if (found == states_.end() || found->second.batched.empty()) return {};
    return found->second.batched[value.index()];
  }

  // Depth-first without recursion: operands are batched before their users.
  void visit(Node* wanted) {
    std::vector<std::pair<Node*, std::size_t>> stack;
    auto enter = [&](Node* node) {
      // A node older than every member depends on none of them. Its operands must not be read:
      // another thread may be computing it and releasing them.
      if (node->id() < oldest_member_) return;
      State& entered = states_[node];
      if (entered.visited || !entered.batched.empty()) return;
      entered.visited = true;
      stack.emplace_back(node, 0);
    };
    enter(wanted);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->operands().size()) {
        enter(node->operands()[next++].node());
        continue;
      }
      Node* done = node;
      stack.pop_back();
      step(*done);
    }
  }

  void step(const Node& node) {
    std::vector<Tensor> operands;
    InlineVector<bool, 4> is_batched;
    bool any = false, any_replaced = false;
    for (const Value& operand : node.operands()) {
      Tensor now = replaced(operand);
      is_batched.push_back(now.defined() && now.rank() > operand.type().rank());
      any |= is_batched.back();
      if (is_batched.back()) now = inside_of(node, std::move(now));
      any_replaced |= now.defined();
      operands.push_back(now.defined() ? std::move(now) : Tensor(operand));
    }
    if (any)
      batch(node, operands, std::span<const bool>(is_batched.data(), is_batched.size()));
    else if (any_replaced)
      record_again(node, operands);
  }

  // A value of rank 0 may be used inside a region as it is; a batch of them goes in.
  static Tensor inside_of(const Node& node, Tensor operand) {
    bool enters = node.attributes() && node.attributes()->type() == typeid(FullToShardAttributes);
    if (enters || manual_depth(operand.value()) >= manual_depth(node)) return operand;
    return widened(operand, node.annotations()->manual->with_varying({}));
  }

  // Records a node whose operands were replaced by unbatched values: all members share its results.
  void record_again(const Node& node, std::span<const Tensor> operands) {
    internal::InheritSource line(node.where());
    std::vector<Tensor> results =
        record_all(node.op(), node.attributes() ? node.attributes()->clone() : nullptr, operands,
                   node.where());
    states_[&node].batched.assign(results.begin(), results.end());
  }

  void batch(const Node& node, std::span<const Tensor> operands, std::span<const bool> is_batched) {
    const OpDef& op = node.op();
    if (!op.batch)
      throw Error(ErrorCode::kUnimplemented,
                  cat("[vmap] ", op.name,
                      " has no batching rule, and its operands differ between the members"),
                  node.where());
    internal::InheritSource line(node.where());
    InlineVector<Tensor, 1> results(node.num_outputs());
    op.batch({.node = node,
              .operands = operands,
              .batched = is_batched,
              .size = batching_.size,
              .mesh_axis = batching_.mesh_axis},
             std::span<Tensor>(results.data(), results.size()));
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) check(node, i, results[i]);
    states_[&node].batched = std::move(results);
  }

  void check(const Node& node, std::uint32_t i, const Tensor& result) const {
    TensorType wanted{node.type(i).dtype, batched_shape(batching_.size, node.type(i).shape)};
    bool may_be_shared = !bodies_of(node).empty();
    if (may_be_shared && result.defined() && result.type() == node.type(i)) return;
    internal_check(
        result.defined() && result.type() == wanted,
        cat("[", node.op().name, "] result ", i, " of a batch is ",
            result.defined() ? cat(result.type()) : std::string("undefined"), ", not ", wanted));
  }

  Batching batching_;
  std::unordered_map<const Node*, State> states_;
  std::uint64_t oldest_member_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace

Tensor batch_member(const Tensor& batched, SourceLocation where) {
  const TensorType& type = batched.type(where);
  internal_check(type.rank() > 0, "[vmap] a member of a value of rank 0");
  Dimensions sizes;
  for (int d = 1; d < type.rank(); ++d) sizes.push_back(type.shape[d]);
  // The explicit sharding without the batch dimension.
  std::optional<Sharding> sharding;
  if (const Sharding* given = explicit_sharding(batched.value()))
    sharding = Sharding(given->mesh(), PartitionSpec({given->spec().dimensions().begin() + 1,
                                                      given->spec().dimensions().end()}))
                   .with_unreduced_of(*given);
  internal::InheritSource line(where);
  Tensor member = make_parameter({type.dtype, Shape(std::move(sizes))}, std::move(sharding), where);
  if (manual_axes(batched.value())) member.value().node()->annotate(batched.value()->annotations());
  return member;
}

std::vector<Tensor> batch_program(std::span<const Tensor> results, std::span<const Tensor> members,
                                  std::span<const Tensor> batched, const Batching& batching) {
  BatchPass pass(members, batched, batching);
  std::vector<Tensor> out;
  for (const Tensor& result : results) out.push_back(pass.result(result));
  return out;
}

BatchedResults batch_where_needed(
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
    std::span<const Tensor> operands, std::span<const bool> batched, const Batching& batching,
    SourceLocation where) {
  std::vector<Tensor> given, members, values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    given.push_back(batched[i] ? batch_member(operands[i], where) : operands[i]);
    if (!batched[i]) continue;
    members.push_back(given.back());
    values.push_back(operands[i]);
  }
  std::vector<Tensor> results = [&] {
    internal::KeepOperandsScope
        keep;  // nothing may be computed or placed while members have no value
    return f(given);
  }();
  BatchedResults out{batch_program(results, members, values, batching), {}};
  for (std::size_t i = 0; i < results.size(); ++i)
    out.batched.push_back(results[i].defined() && out.values[i].rank() > results[i].rank());
  return out;
}

std::vector<Tensor> batch_call(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                               std::span<const Tensor> operands, std::span<const bool> batched,
                               const Batching& batching, SourceLocation where) {
  BatchedResults out = batch_where_needed(f, operands, batched, batching, where);
  for (std::size_t i = 0; i < out.values.size(); ++i)
    if (out.values[i].defined() && !out.batched[i])
      out.values[i] = repeated_for_batch(out.values[i], batching.size);
  return std::move(out.values);
}

}  // namespace meshard
