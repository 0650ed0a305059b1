#include "meshard/lowering/lower.h"

#include <algorithm>

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/lowering/uneven_results.h"
#include "meshard/ops/emission.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {
namespace {

using stablehlo::ArgumentText;
using stablehlo::ResultText;
using stablehlo::Typed;
using SsaValue = stablehlo::Value;

class Lowering {
 public:
  explicit Lowering(const Program& program)
      : program_(program),
        graph_(program.graph),
        meshes_(program.unsharded ? ProgramMeshes() : ProgramMeshes(program.graph)) {}

  LoweredModule run() {
    module_.mesh = meshes_.numbering();
    describe_arguments();
    describe_results();
    stablehlo::ModuleWriter writer(program_.name, module_.num_partitions());
    writer.reserve(128 * graph_.nodes().size() + 4096);
    for (const auto& [name, text] : meshes_.definitions()) writer.mesh(name, text);
    begin_main(writer);
    unpad_arguments(writer);
    for (const Node* node : graph_.nodes()) emit(writer, *node);
    end_main(writer);
    module_.text = std::move(writer).finish();
    return std::move(module_);
  }

 private:
  // ---- What goes in and comes out.

  LoweredValue describe(const TensorType& type, std::optional<Sharding> sharding) const {
    if (!module_.mesh) sharding.reset();
    // What has no elements is not split: the partitioner drops such a sharding without a word.
    if (sharding && type.size() == 0)
      sharding = Sharding::replicated(sharding->mesh(), static_cast<std::size_t>(type.rank()));
    LoweredValue value{type, type, std::move(sharding)};
    if (value.sharding && module_.num_partitions() > 1) {
      Dimensions padded;
      for (std::int64_t size : value.sharding->padded_shape(type.shape)) padded.push_back(size);
      value.padded.shape = Shape(std::move(padded));
    }
    return value;
  }

  void describe_arguments() {
    auto add = [&](const Value& leaf) {
      const Sharding* sharding = leaf_sharding(leaf);
      module_.arguments.push_back(
          describe(leaf.type(), sharding ? std::optional(*sharding) : std::nullopt));
    };
    for (const Value& leaf : graph_.parameters()) add(leaf);
    for (const Value& leaf : graph_.captured()) add(leaf);
  }

  void describe_results() {
    std::vector<std::optional<Sharding>> uneven(graph_.results().size());
    if (module_.num_partitions() > 1) uneven = uneven_results(graph_);
    for (std::size_t i = 0; i < graph_.results().size(); ++i) {
      const Value& result = graph_.results()[i];
      // A marked result is exact; so is a parameter that is only passed through, and a result whose
      // sharding is part of it.
      std::optional<Sharding> sharding = marked_sharding(result);
      if (!sharding)
        if (const Sharding* leaf = leaf_sharding(result)) sharding = *leaf;
      if (!sharding)
        if (const Sharding* part = explicit_sharding(result)) sharding = *part;
      if (!sharding) sharding = std::move(uneven[i]);
      module_.results.push_back(describe(result.type(), std::move(sharding)));
    }
  }

  // ---- Donation: an argument may give its memory to a result of the same padded type and
  // sharding.

  void pair_donations(std::vector<ArgumentText>& arguments) const {
    std::vector<bool> taken(module_.results.size(), false);
    for (std::uint32_t donated : program_.donated) {
      const LoweredValue& argument = module_.arguments[donated];
      arguments[donated].donated = true;
      for (std::size_t i = 0; i < module_.results.size(); ++i) {
        const LoweredValue& result = module_.results[i];
        bool known = module_.num_partitions() == 1 || (argument.sharding && result.sharding &&
                                                       *argument.sharding == *result.sharding);
        if (taken[i] || !known || result.padded != argument.padded) continue;
        taken[i] = true;
        arguments[donated].donated = false;
        arguments[donated].aliases_output = static_cast<int>(i);
        break;
      }
    }
  }

  // ---- The function.

  void begin_main(stablehlo::ModuleWriter& writer) {
    std::vector<std::string> texts(module_.arguments.size() + module_.results.size());
    std::vector<std::string> names(module_.arguments.size());
    std::vector<ArgumentText> arguments;
    for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
      const LoweredValue& argument = module_.arguments[i];
      if (argument.sharding) texts[i] = meshes_.sharding_text(*argument.sharding);
      names[i] = cat("n", i);
      arguments.push_back({.type = &argument.padded, .sharding = texts[i], .name = names[i]});
    }
    std::vector<ResultText> results;
    for (std::size_t i = 0; i < module_.results.size(); ++i) {
      const LoweredValue& result = module_.results[i];
      std::string& text = texts[module_.arguments.size() + i];
      if (result.sharding) text = meshes_.sharding_text(*result.sharding);
      results.push_back({.type = &result.padded, .sharding = text});
    }
    pair_donations(arguments);
    writer.begin_function("main", arguments, results);
  }

  void unpad_arguments(stablehlo::ModuleWriter& writer) {
    leaf_values_.resize(module_.arguments.size());
    for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
      const LoweredValue& argument = module_.arguments[i];
      SsaValue given = SsaValue::argument(static_cast<std::int32_t>(i));
      if (argument.padded != argument.type) {
        SsaValue whole = writer.temporary();
        Dimensions zeros(static_cast<std::size_t>(argument.type.rank()), 0);
        Dimensions ones(static_cast<std::size_t>(argument.type.rank()), 1);
        writer
            .op("stablehlo.slice", {{whole, argument.type}}, {{given, argument.padded}},
                cat("n", i))
            .i64_array("start_indices", zeros)
            .i64_array("limit_indices", argument.type.shape)
            .i64_array("strides", ones)
            .done();
        given = whole;
      }
      leaf_values_[i] = given;
    }
  }

  SsaValue value_of(const Value& value) const {
    std::uint32_t number = graph_.number(value.node());
    if (number < leaf_values_.size()) return leaf_values_[number];
    return SsaValue::result(
        static_cast<std::int32_t>(first_result_[number - leaf_values_.size()] + value.index()));
  }

  // A result whose sharding is part of it: what the op computes, constrained.
  struct Pin {
    SsaValue result, computed;
    const TensorType& type;
    std::string sharding;
  };

  // Empty: nothing to pin, or the op itself is a constraint.
  std::string pin_text(const Node& node, std::uint32_t result) const {
    const Sharding* sharding = explicit_sharding(node, result);
    bool is_mark = node.attributes() && node.attributes()->type() == typeid(ShardingMark);
    return sharding && !is_mark ? meshes_.sharding_text(*sharding) : std::string();
  }

  void emit(stablehlo::ModuleWriter& writer, const Node& node) {
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
    for (const Value& operand : node.operands()) {
      call.operands.push_back(&operand.type());
      operands.push_back(Typed(value_of(operand), operand.type()));
    }
    first_result_.push_back(next_result_);
    std::vector<Pin> pins;
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
      call.results.push_back(&node.type(i));
      SsaValue result = SsaValue::result(next_result_++);
      if (std::string text = pin_text(node, i); !text.empty()) {
        pins.push_back({result, writer.temporary(), node.type(i), std::move(text)});
        result = pins.back().computed;
      }
      results.push_back(Typed(result, node.type(i)));
    }
    char location[16] = "n";
    auto end = std::to_chars(location + 1, location + sizeof location, graph_.number(&node)).ptr;
    std::string sharding;
    if (node.attributes() && node.attributes()->type() == typeid(ShardingMark))
      sharding = meshes_.sharding_text(*node.attributes_as<ShardingMark>().sharding);
    if (!sharding.empty() || node.attributes() == nullptr ||
        node.attributes()->type() != typeid(ShardingMark)) {
      OpEmission emission{
          .writer = writer,
          .operands = std::span<const Typed>(operands.data(), operands.size()),
          .results = std::span<const Typed>(results.data(), results.size()),
          .location = std::string_view(location, static_cast<std::size_t>(end - location)),
          .sharding = sharding};
      op.emit(call, emission);
    } else {
      // On one device a mark says nothing: the result is the operand.
      writer
          .op("stablehlo.reshape", std::span<const Typed>(results.data(), 1),
              std::span<const Typed>(operands.data(), 1))
          .done();
    }
    for (const Pin& pin : pins)
      writer.sharding_constraint(
          pin.result, pin.computed, pin.type, pin.sharding,
          std::string_view(location, static_cast<std::size_t>(end - location)));
  }

  void end_main(stablehlo::ModuleWriter& writer) {
    std::vector<Typed> returned;
    for (std::size_t i = 0; i < module_.results.size(); ++i) {
      const LoweredValue& result = module_.results[i];
      SsaValue value = value_of(graph_.results()[i]);
      if (result.padded != result.type) {
        SsaValue padded = writer.temporary();
        SsaValue zero = writer.scalar(result.type.dtype, 0);
        TensorType scalar{result.type.dtype, Shape{}};
        Dimensions none(static_cast<std::size_t>(result.type.rank()), 0);
        Dimensions high;
        for (int d = 0; d < result.type.rank(); ++d)
          high.push_back(result.padded.shape[d] - result.type.shape[d]);
        writer
            .op("stablehlo.pad", {{padded, result.padded}}, {{value, result.type}, {zero, scalar}},
                cat("n", graph_.number(graph_.results()[i].node())))
            .i64_array("edge_padding_low", none)
            .i64_array("edge_padding_high", high)
            .i64_array("interior_padding", none)
            .done();
        value = padded;
      }
      returned.push_back(Typed(value, result.padded));
    }
    writer.end_function(returned);
  }

  const Program& program_;
  const Graph& graph_;
  ProgramMeshes meshes_;
  LoweredModule module_;
  std::vector<SsaValue> leaf_values_;
  std::vector<std::int32_t> first_result_;
  std::int32_t next_result_ = 0;
};

}  // namespace

bool LoweredValue::is_exact() const {
  if (!sharding) return false;
  for (std::size_t d = 0; d < sharding->rank(); ++d)
    if (sharding->is_open(d)) return false;
  return true;
}

LoweredModule lower(const Program& program) { return Lowering(program).run(); }

}  // namespace meshard
