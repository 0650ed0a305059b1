#include "meshard/ops/batched_program.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/ops/batch_rule.h"

namespace meshard {
namespace {

// The nodes between the results and the members, and what stands for them.
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
    return batched(member.value());
  }

 private:
  struct State {
    bool visited = false;
    InlineVector<Tensor, 1> batched;  // one for each output; empty: it depends on no member
  };

  // Undefined if the value depends on no member.
  Tensor batched(const Value& value) {
    auto found = states_.find(value.node());
    if (found == states_.end() || found->second.batched.empty()) return {};
    return found->second.batched[value.index()];
  }

  // Depth-first without recursion: operands are batched before their users.
  void visit(Node* wanted) {
    std::vector<std::pair<Node*, std::size_t>> stack;
    auto enter = [&](Node* node) {
      // What is older than every member depends on none. It may also be a value that another thread
      // computes just now, which takes its operands away.
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
    bool any = false;
    for (const Value& operand : node.operands()) {
      Tensor for_all = batched(operand);
      is_batched.push_back(for_all.defined());
      any |= for_all.defined();
      operands.push_back(for_all.defined() ? std::move(for_all) : Tensor(operand));
    }
    if (!any) return;
    const OpDef& op = node.op();
    if (!op.batch)
      throw Error(ErrorCode::kUnimplemented,
                  cat("[vmap] ", op.name,
                      " has no batch rule, and its operands differ between the members"),
                  node.where());
    InheritSource line(node.where());
    InlineVector<Tensor, 1> results(node.num_outputs());
    op.batch({.node = node,
              .operands = operands,
              .batched = std::span<const bool>(is_batched.data(), is_batched.size()),
              .size = batching_.size,
              .mesh_axis = batching_.mesh_axis},
             std::span<Tensor>(results.data(), results.size()));
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) check(node, i, results[i]);
    states_[&node].batched = std::move(results);
  }

  void check(const Node& node, std::uint32_t i, const Tensor& result) const {
    TensorType wanted{node.type(i).dtype, batched_shape(batching_.size, node.type(i).shape)};
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
  // The sharding that is part of the value, of the dimensions that are left.
  std::optional<Sharding> sharding;
  if (const Sharding* whole = explicit_sharding(batched.value()))
    sharding = Sharding(whole->mesh(), PartitionSpec({whole->spec().dimensions().begin() + 1,
                                                      whole->spec().dimensions().end()}))
                   .with_unreduced(whole->unreduced_axes());
  InheritSource line(where);
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

std::vector<Tensor> batch_call(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                               std::span<const Tensor> operands, std::span<const bool> batched,
                               const Batching& batching, SourceLocation where) {
  std::vector<Tensor> given, members, values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    given.push_back(batched[i] ? batch_member(operands[i], where) : operands[i]);
    if (!batched[i]) continue;
    members.push_back(given.back());
    values.push_back(operands[i]);
  }
  std::vector<Tensor> results = [&] {
    KeepOperandsScope keep;  // nothing is computed or placed while members have no value
    return f(given);
  }();
  std::vector<Tensor> out = batch_program(results, members, values, batching);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (results[i].defined() && !out[i].defined())
      out[i] = repeated_for_batch(results[i], batching.size);
  return out;
}

}  // namespace meshard
