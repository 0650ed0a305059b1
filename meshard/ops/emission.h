// What an op writes itself into: the module's text, with this call's operands and results at hand.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "meshard/graph/op_def.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// Writes the programs inside of one node.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  /// Writes the ops of body number `which` here, with `arguments` for its parameters; what its
  /// results are called.
  /// @pre in the text as it stands the arguments are known
  virtual std::vector<stablehlo::Value> write(std::size_t which,
                                              std::span<const stablehlo::Value> arguments) = 0;
};

/// One call being written. lowering/ makes it and passes it to OpDef::emit.
struct OpEmission {
  using Typed = stablehlo::Typed;

  stablehlo::ModuleWriter& writer;
  std::span<const Typed> operands;
  std::span<const Typed> results;
  /// `n7`: names the node, so that explain/ finds the user's line again.
  std::string_view location;
  /// The Shardy text of a sharding_constraint.
  std::string_view sharding = {};
  /// Of a call inside manual axes: their mesh, and the mesh that numbers the program's logical
  /// devices.
  const Mesh* mesh = nullptr;
  const Mesh* numbering = nullptr;
  /// Of a collective: its own number, from 1.
  std::int64_t channel = 0;
  /// The partitioner may split the work of this call over several devices.
  bool partitioned = false;
  /// Of an op with control flow: writes its bodies.
  BodyWriter* bodies = nullptr;

  /// `%2 = stablehlo.add %0, %1 : type`, for ops of which all operands and the result have one
  /// type.
  void element_wise(std::string_view mnemonic) {
    InlineVector<stablehlo::Value, 4> values;
    for (const Typed& operand : operands) values.push_back(operand.value);
    writer.elementwise(mnemonic, results[0].value,
                       std::span<const stablehlo::Value>(values.data(), values.size()),
                       *results[0].type, location);
  }
  /// Any op on all operands and results, in generic form; continue with attributes, end with
  /// done().
  stablehlo::OpWriter op(std::string_view mnemonic) {
    return writer.op(mnemonic, results, operands, location);
  }
};

}  // namespace meshard
