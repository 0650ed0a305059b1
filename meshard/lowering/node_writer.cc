// Tested in meshard/lowering/lower_test.cc.
#include "meshard/lowering/node_writer.h"

#include <charconv>

#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/scattered_updates.h"
#include "meshard/ops/emission.h"

namespace meshard {
namespace {

using stablehlo::Typed;

// A result whose sharding is part of it: what the op computes, constrained.
struct Pin {
  stablehlo::Value result, computed;
  const TensorType& type;
  std::string sharding;
};

}  // namespace

NodeWriter::NodeWriter(const Graph& graph, const ProgramMeshes& meshes,
                       stablehlo::ModuleWriter& writer)
    : graph_(graph),
      meshes_(meshes),
      writer_(writer),
      leaves_(graph.num_leaves()),
      first_result_(graph.nodes().size()) {}

void NodeWriter::write_nodes() {
  // On one device a region has nothing to say.
  if (!meshes_.numbering() || meshes_.numbering()->size() == 1) {
    for (const Node* node : graph_.nodes()) {
      if (!meshes_.numbering() && node->annotations() && node->annotations()->manual)
        throw_invalid(node->where(), "[lowering] ", node->op().name, " is ",
                      *node->annotations()->manual,
                      ": what each of several devices does has no form without shardings");
      write(*node);
    }
    return;
  }
  ProgramOrder order(graph_);
  for (const ProgramStep& step : order.steps)
    step.node ? write(*step.node) : write(order.regions[step.region]);
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

void NodeWriter::write(const Node& node) {
  const OpDef& op = node.op();
  if (!op.emit)
    throw Error(ErrorCode::kUnimplemented, cat("[", op.name, "] cannot be written as StableHLO"),
                node.where());
  OpCall call{.op = op,
              .attributes = node.attributes(),
              .operands = {},
              .results = {},
              .where = node.where()};
  InlineVector<Typed, 4> operands, results;
  for (std::size_t i = 0; i < node.operands().size(); ++i) {
    const Value& operand = node.operands()[i];
    call.operands.push_back(&operand.type());
    operands.push_back(Typed(scattered(node, i, value_of(operand)), operand.type()));
  }
  std::uint32_t number = graph_.number(&node);
  first_result_[number - leaves_.size()] = SsaValue::result(next_result_);
  std::vector<Pin> pins;
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
    call.results.push_back(&node.type(i));
    SsaValue result = SsaValue::result(next_result_++);
    if (std::string text = pin_text(node, i); !text.empty()) {
      pins.push_back({result, writer_.temporary(), node.type(i), std::move(text)});
      result = pins.back().computed;
    }
    results.push_back(Typed(result, node.type(i)));
  }
  char location[16] = "n";
  auto end = std::to_chars(location + 1, location + sizeof location, number).ptr;
  bool mark = node.attributes() && node.attributes()->type() == typeid(ShardingMark);
  std::string sharding;
  if (mark) sharding = meshes_.sharding_text(*node.attributes_as<ShardingMark>().sharding);
  if (mark && sharding.empty()) {
    // On one device a mark says nothing: the result is the operand.
    writer_
        .op("stablehlo.reshape", std::span<const Typed>(results.data(), 1),
            std::span<const Typed>(operands.data(), 1))
        .done();
    return;
  }
  OpEmission emission{.writer = writer_,
                      .operands = std::span<const Typed>(operands.data(), operands.size()),
                      .results = std::span<const Typed>(results.data(), results.size()),
                      .location = std::string_view(location, end),
                      .sharding = sharding};
  if (node.annotations() && node.annotations()->manual) {
    emission.mesh = &node.annotations()->manual->mesh;
    emission.numbering = &*meshes_.numbering();
    emission.channel = std::int64_t{number} + 1;
  }
  op.emit(call, emission);
  for (const Pin& pin : pins)
    writer_.sharding_constraint(pin.result, pin.computed, pin.type, pin.sharding,
                                emission.location);
}

NodeWriter::SsaValue NodeWriter::scattered(const Node& node, std::size_t operand, SsaValue value) {
  bool is_local = node.annotations() && node.annotations()->manual;
  if (is_local || !meshes_.numbering() || meshes_.numbering()->size() == 1) return value;
  std::optional<Sharding> even = even_for_scatter(node, operand, *meshes_.numbering());
  if (!even) return value;
  SsaValue result = writer_.temporary();
  writer_.sharding_constraint(result, value, node.operands()[operand].type(),
                              meshes_.sharding_text(*even));
  return result;
}

std::string NodeWriter::pin_text(const Node& node, std::uint32_t result) const {
  const Sharding* sharding = explicit_sharding(node, result);
  bool is_mark = node.attributes() && node.attributes()->type() == typeid(ShardingMark);
  return sharding && !is_mark ? meshes_.sharding_text(*sharding) : std::string();
}

NodeWriter::SsaValue NodeWriter::cut(SsaValue padded, const TensorType& from, const TensorType& to,
                                     std::uint32_t location) {
  if (from == to) return padded;
  SsaValue whole = writer_.temporary();
  Dimensions zeros(static_cast<std::size_t>(to.rank()), 0);
  Dimensions ones(static_cast<std::size_t>(to.rank()), 1);
  writer_.op("stablehlo.slice", {{whole, to}}, {{padded, from}}, cat("n", location))
      .i64_array("start_indices", zeros)
      .i64_array("limit_indices", to.shape)
      .i64_array("strides", ones)
      .done();
  return whole;
}

NodeWriter::SsaValue NodeWriter::pad(SsaValue value, const TensorType& from, const TensorType& to,
                                     std::uint32_t location) {
  if (from == to) return value;
  SsaValue padded = writer_.temporary();
  SsaValue zero = writer_.scalar(from.dtype, 0);
  TensorType scalar{from.dtype, Shape{}};
  Dimensions none_low(static_cast<std::size_t>(from.rank()), 0);
  Dimensions high;
  for (int d = 0; d < from.rank(); ++d) high.push_back(to.shape[d] - from.shape[d]);
  writer_.op("stablehlo.pad", {{padded, to}}, {{value, from}, {zero, scalar}}, cat("n", location))
      .i64_array("edge_padding_low", none_low)
      .i64_array("edge_padding_high", high)
      .i64_array("interior_padding", none_low)
      .done();
  return padded;
}

}  // namespace meshard
