// Tested in meshard/lowering/lower_test.cc.
#include "meshard/lowering/internal/node_writer.h"

#include <algorithm>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/superseded.h"
#include "meshard/lowering/internal/partial_sums.h"
#include "meshard/lowering/internal/shared_values.h"
#include "meshard/ops/definition/host_call.h"

namespace meshard {

using stablehlo::Typed;

// Writes the bodies of one node.
class NodeWriter::Bodies final : public BodyWriter {
 public:
  Bodies(const NodeWriter& around, const Node& node, std::string location)
      : around_(around), node_(node), location_(std::move(location)) {}

  std::vector<SsaValue> write_taken(std::size_t which, std::span<const SsaValue> arguments,
                                    std::optional<SsaValue> taken) override {
    const Graph& graph = bodies_of(node_)[which].graph();
    std::size_t depth = std::max(around_.depth_, manual_depth(node_));
    NodeWriter inner(graph, around_, cat(location_, ".", which, "."), depth);
    if (taken) inner.taken_ = taken;
    for (std::uint32_t i = 0; i < arguments.size(); ++i) inner.name_leaf(i, arguments[i]);
    inner.write_nodes();
    std::vector<SsaValue> results;
    for (const Value& result : graph.results()) results.push_back(inner.value_of(result));
    return results;
  }

  std::vector<SsaValue> write_program(const Graph& program, std::span<const SsaValue> arguments,
                                      bool partitioned) override {
    NodeWriter inner(program, around_, "", around_.depth_);
    inner.location_ = location_;
    inner.nan_checks_ = nullptr;
    bool is_local = node_.annotations() && node_.annotations()->manual;
    inner.is_whole_ = inner.is_whole_ || is_local || !partitioned;
    for (std::uint32_t i = 0; i < arguments.size(); ++i) inner.name_leaf(i, arguments[i]);
    inner.write_nodes();
    std::vector<SsaValue> results;
    for (const Value& result : program.results()) results.push_back(inner.value_of(result));
    return results;
  }

 private:
  const NodeWriter& around_;
  const Node& node_;
  std::string location_;
};

// What is written between the op of a node and its results: constraints, and the division that
// keeps a value in memory.
class NodeWriter::Finish {
 public:
  Finish(NodeWriter& writer, const Node& node) : writer_(writer), node_(node) {}

  // The value that the op itself computes, for result i.
  SsaValue computed(std::uint32_t i, SsaValue result) {
    if (writer_.shared_.contains(&node_)) {
      in_memory_ = {result, writer_.writer_.temporary()};
      result = in_memory_->second;
    }
    for (const std::string& text : {writer_.pin_text(node_, i), writer_.whole_text(node_, i)}) {
      if (text.empty()) continue;
      pins_.push_back({result, writer_.writer_.temporary(), node_.type(i), text});
      result = pins_.back().computed;
    }
    return result;
  }

  void write(std::string_view location) const {
    // The innermost was made last.
    for (auto pin = pins_.rbegin(); pin != pins_.rend(); ++pin)
      writer_.writer_.sharding_constraint(pin->result, pin->computed, pin->type, pin->sharding,
                                          location);
    if (in_memory_)
      writer_.write_in_memory(in_memory_->first, in_memory_->second, node_.type(0), location);
  }

 private:
  // A result with an explicit sharding: the computed value, and the constraint to apply to it.
  struct Pin {
    SsaValue result, computed;
    const TensorType& type;
    std::string sharding;
  };
  NodeWriter& writer_;
  const Node& node_;
  std::vector<Pin> pins_;
  std::optional<std::pair<SsaValue, SsaValue>> in_memory_;  // the arguments of write_in_memory()
};

NodeWriter::NodeWriter(const Graph& graph, const ProgramMeshes& meshes,
                       stablehlo::ModuleWriter& writer, NanChecks* nan_checks, QuirkSet quirks)
    : graph_(graph),
      meshes_(meshes),
      writer_(writer),
      nan_checks_(nan_checks),
      quirks_(quirks),
      own_counters_{0, std::int64_t{graph.num_leaves()} + std::ssize(graph.nodes()) + 1, {}},
      counters_(own_counters_),
      leaves_(graph.num_leaves()),
      first_result_(graph.nodes().size()),
      superseded_(superseded_nodes(graph)) {
  if (quirks_.has(Quirk::kSharedValues)) shared_ = shared_values(graph);
}

NodeWriter::NodeWriter(const Graph& graph, const NodeWriter& around, std::string prefix,
                       std::size_t depth)
    : graph_(graph),
      meshes_(around.meshes_),
      writer_(around.writer_),
      nan_checks_(around.nan_checks_),
      quirks_(around.quirks_),
      prefix_(std::move(prefix)),
      depth_(depth),
      taken_(around.taken_),
      is_whole_(around.is_whole_),
      location_(around.location_),
      counters_(around.counters_),
      leaves_(graph.num_leaves()),
      first_result_(graph.nodes().size()),
      superseded_(superseded_nodes(graph)) {
  if (quirks_.has(Quirk::kSharedValues)) shared_ = shared_values(graph);
}

void NodeWriter::write_nodes() {
  // On one device, regions are not needed.
  if (is_whole_ || !meshes_.numbering() || meshes_.numbering()->size() == 1) {
    for (const Node* node : graph_.nodes()) {
      if (!meshes_.numbering() && node->annotations() && node->annotations()->manual)
        throw_invalid(node->where(), "[lowering] ", node->op().name, " is ",
                      *node->annotations()->manual,
                      ": manual regions cannot be lowered without shardings");
      write(*node);
    }
    return;
  }
  ProgramOrder order(graph_, depth_);
  write(order, order.steps);
}

void NodeWriter::write(const ProgramOrder& order, std::span<const ProgramStep> steps) {
  for (const ProgramStep& step : steps)
    step.node ? write(*step.node) : write(order, order.regions[step.region]);
}

NodeWriter::SsaValue NodeWriter::value_of(const Value& value) const {
  if (auto known = entered_.find({value.node(), value.index()}); known != entered_.end())
    return known->second;
  std::uint32_t number = graph_.number(value.node());
  if (number < leaves_.size()) return leaves_[number + value.index()];
  SsaValue first = first_result_[number - leaves_.size()];
  first.number += static_cast<std::int32_t>(value.index());
  return first;
}

void NodeWriter::write(const Node& node, const Node& takes) {
  if (auto better = superseded_.find(&node); better != superseded_.end()) {
    // Written here, before its users: its operands equal those of `more` and were recorded earlier.
    const Node& more = *better->second;
    write(more, takes);
    first_result_[graph_.number(&node) - leaves_.size()] =
        value_of(Value(const_cast<Node*>(&more)));
    return;
  }
  const OpDef& op = node.op();
  if (node.attributes() && !node.attributes()->extends().empty() &&
      !written_.emplace(&node, true).second)
    return;
  if (!op.emit)
    throw Error(ErrorCode::kUnimplemented, cat("[", op.name, "] cannot be written as StableHLO"),
                node.where());
  emit(node, takes);
}

void NodeWriter::emit(const Node& node, const Node& takes) {
  OpCall call{.op = node.op(),
              .attributes = node.attributes(),
              .operands = {},
              .results = {},
              .where = node.where()};
  InlineVector<Typed, 4> operands, results;
  for (std::size_t i = 0; i < node.operands().size(); ++i) {
    const Value& operand = takes.operands()[i];
    call.operands.push_back(&operand.type());
    operands.push_back(Typed(for_partitioner(node, i, value_of(operand)), operand.type()));
  }
  std::uint32_t number = graph_.number(&node);
  first_result_[number - leaves_.size()] = SsaValue::result(counters_.next_result);
  Finish finish(*this, node);
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
    call.results.push_back(&node.type(i));
    SsaValue result = SsaValue::result(counters_.next_result++);
    results.push_back(Typed(finish.computed(i, result), node.type(i)));
  }
  const std::string location = location_of(number);
  bool mark = node.attributes() && node.attributes()->type() == typeid(ShardingMark);
  std::string sharding;
  // Only results of the program are unreduced (partial_sums.h).
  if (mark) sharding = meshes_.sharding_text(summed(*node.attributes_as<ShardingMark>().sharding));
  if (mark && sharding.empty()) {
    // On one device, a mark has no effect: the result is the operand.
    writer_
        .op("stablehlo.reshape", std::span<const Typed>(results.data(), 1),
            std::span<const Typed>(operands.data(), 1))
        .done();
    finish.write(location);
    return;
  }
  OpEmission emission{.writer = writer_,
                      .operands = std::span<const Typed>(operands.data(), operands.size()),
                      .results = std::span<const Typed>(results.data(), results.size()),
                      .location = location,
                      .sharding = sharding,
                      .partitioned = is_partitioned(node),
                      .quirks = quirks_};
  if (node.annotations() && node.annotations()->manual) describe_place(node, number, emission);
  Bodies bodies(*this, node, location);
  emission.bodies = &bodies;
  if (const ImportedBody* body = imported_body(node))
    emit_imported_call(node, *body, emission);
  else if (is_host_call(node))
    emit_host_call(node, call, emission);
  else if (is_on_shards(node))
    write_on_shards(node, call, emission);
  else
    node.op().emit(call, emission);
  finish.write(location);
  if (nan_checks_) check_nan(node, takes);
}

// The result of a division that has several users is not fused into them. The one is behind a
// barrier, which the compiler removes after it has simplified divisions by one, and before it
// generates code, where the division costs nothing.
void NodeWriter::write_in_memory(SsaValue result, SsaValue computed, const TensorType& type,
                                 std::string_view location) {
  TensorType scalar{type.dtype, {}};
  SsaValue one = behind_barriers(writer_.scalar(type.dtype, 1), scalar, 1);
  SsaValue ones = writer_.temporary();
  writer_.op("stablehlo.broadcast_in_dim", {{ones, type}}, {{one, scalar}})
      .i64_array("broadcast_dimensions", {})
      .done();
  writer_.elementwise("stablehlo.divide", result, {computed, ones}, type, location);
}

void NodeWriter::describe_place(const Node& node, std::uint32_t number, OpEmission& emission) {
  const ManualAxes& place = *node.annotations()->manual;
  emission.by_all_devices = runs_on_all_devices(node, place, quirks_);
  emission.manual_axes = place.axes.of(place.mesh);
  emission.mesh = &place.mesh;
  emission.taken = taken_;
  emission.numbering = &meshes_.numbering_inside(place.mesh);
  emission.channel =
      &counters_ == &own_counters_ ? std::int64_t{number} + 1 : ++counters_.next_channel;
}

bool NodeWriter::is_partitioned(const Node& node) const {
  if (is_whole_ || !meshes_.numbering() || meshes_.numbering()->size() == 1) return false;
  if (!node.annotations() || !node.annotations()->manual) return true;
  const ManualAxes& manual = *node.annotations()->manual;
  return manual.axes != AxisSet::all(manual.mesh);
}

NodeWriter::SsaValue NodeWriter::for_partitioner(const Node& node, std::size_t operand,
                                                 SsaValue value) {
  if (!is_partitioned(node)) return value;
  const TensorType& type = node.operands()[operand].type();
  if (operand == 0 && quirks_.has(Quirk::kOnlyPadding) && keeps_only_padding(node))
    return behind_barriers(value, type, 1);
  if (std::string fill = window_fill(node, operand);
      !fill.empty() && quirks_.has(Quirk::kWindowFills))
    value = behind_barriers(value, type, counters_.fills.group(windowed_type(node), fill));
  std::optional<Sharding> needed = whole_local(node, type.rank());
  bool is_local = node.annotations() && node.annotations()->manual;
  if (!is_local && !is_on_shards(node))
    needed = whole_operand(node, operand, *meshes_.numbering(), quirks_);
  if (!needed) return value;
  SsaValue result = writer_.temporary();
  writer_.sharding_constraint(result, value, type, meshes_.sharding_text(*needed));
  return result;
}

NodeWriter::SsaValue NodeWriter::behind_barriers(SsaValue value, const TensorType& type,
                                                 std::size_t count) {
  for (; count > 0; --count) {
    SsaValue result = writer_.temporary();
    writer_.op("stablehlo.optimization_barrier", {{result, type}}, {{value, type}}).done();
    value = result;
  }
  return value;
}

std::optional<Sharding> NodeWriter::whole_local(const Node& node, int rank) const {
  if (!node.annotations() || !node.annotations()->manual) return std::nullopt;
  return gathered_in_region(node, rank, *node.annotations()->manual, quirks_);
}

std::string NodeWriter::whole_text(const Node& node, std::uint32_t result) const {
  if (!is_partitioned(node)) return {};
  if (is_on_shards(node)) return {};
  bool is_local = node.annotations() && node.annotations()->manual;
  std::optional<Sharding> needed = is_local ? whole_local(node, node.type(result).rank())
                                            : whole_result(node, *meshes_.numbering(), quirks_);
  return needed ? meshes_.sharding_text(*needed) : std::string();
}

std::string NodeWriter::pin_text(const Node& node, std::uint32_t result) const {
  const Sharding* sharding = explicit_sharding(node, result);
  bool is_mark = node.attributes() && node.attributes()->type() == typeid(ShardingMark);
  return sharding && !is_mark ? meshes_.sharding_text(summed(*sharding)) : std::string();
}

}  // namespace meshard
