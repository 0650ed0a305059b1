// The interface through which an op writes its StableHLO: the writer, and the call's operands and
// results.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/graph/op_def.h"
#include "meshard/quirks/quirks.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

class Graph;

/// Writes the bodies of one node.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  /// Writes the ops of body `which` here, with `arguments` as its parameters, and returns its
  /// results.
  /// @pre the arguments are already defined in the text written so far
  std::vector<stablehlo::Value> write(std::size_t which,
                                      std::span<const stablehlo::Value> arguments) {
    return write_taken(which, arguments, std::nullopt);
  }
  /// The same for a body that all devices run although only some take it (where the bool `taken` is
  /// true). Empty: as the call itself.
  virtual std::vector<stablehlo::Value> write_taken(std::size_t which,
                                                    std::span<const stablehlo::Value> arguments,
                                                    std::optional<stablehlo::Value> taken) = 0;
  /// Writes the ops of a program that the op made for this call, and returns its results. They are
  /// not checked for NaN, and if the call is not partitioned, neither are they.
  /// @pre as write(); the program captures nothing
  virtual std::vector<stablehlo::Value> write_program(const Graph& program,
                                                      std::span<const stablehlo::Value> arguments,
                                                      bool partitioned) = 0;
};

/// One call being lowered. lowering/ creates it and passes it to OpDef::emit.
struct OpEmission {
  using Typed = stablehlo::Typed;

  stablehlo::ModuleWriter& writer;
  std::span<const Typed> operands;
  std::span<const Typed> results;
  /// `n7`: identifies the node, so that explain/ can find the user's source line.
  std::string_view location;
  /// The sharding of a sharding_constraint, as Shardy text.
  std::string_view sharding = {};
  /// For a call inside manual axes, the mesh of these axes, and the mesh that numbers the program's
  /// logical devices.
  const Mesh* mesh = nullptr;
  const Mesh* numbering = nullptr;
  /// The manual axes, for a call that all devices run (by_all_devices).
  AxisList manual_axes = {};
  /// The channel number of a collective, unique, from 1.
  std::int64_t channel = 0;
  /// True if the partitioner may split the work of this call over several devices.
  bool partitioned = false;
  /// The quirks of the compiler that the text is written for.
  QuirkSet quirks = quirks_of_table("");
  /// Writes bodies, and programs that the op makes.
  BodyWriter* bodies = nullptr;
  /// True for a branch or a loop whose predicate varies: all devices run all branches, or as many
  /// turns as any of them, and each selects its own values.
  bool by_all_devices = false;
  /// For a call in a body that all devices run, the bool of rank 0 that is true where the body is
  /// taken. Empty: everywhere.
  std::optional<stablehlo::Value> taken = std::nullopt;

  /// `%2 = stablehlo.add %0, %1 : type`, for ops whose operands and result all have one type.
  void element_wise(std::string_view mnemonic) {
    InlineVector<stablehlo::Value, 4> values;
    for (const Typed& operand : operands) values.push_back(operand.value);
    writer.elementwise(mnemonic, results[0].value,
                       std::span<const stablehlo::Value>(values.data(), values.size()),
                       *results[0].type, location);
  }
  /// Begins any op on all operands and results, in generic form; continue with attributes, end with
  /// done().
  stablehlo::OpWriter op(std::string_view mnemonic) {
    return writer.op(mnemonic, results, operands, location);
  }
};

// Lowers padding, at edges and between elements, to StableHLO.

/// The elements of a dimension that remain after negative edges removed some, and the padding
/// around them.
struct KeptElements {
  std::int64_t start, stop, low, high;
};
KeptElements kept_elements(std::int64_t size, std::int64_t low, std::int64_t high,
                           std::int64_t interior);

/// Writes `result`: `x` with `low` and `high` elements of `value` at the edges of each dimension,
/// and `interior` between its elements. Negative edges remove elements.
///
/// A negative edge is written as a slice before the pad (Quirk::kNegativePads).
/// @pre one entry per dimension; `interior` >= 0; the result's sizes follow from the others
void emit_pad(OpEmission& out, OpEmission::Typed result, OpEmission::Typed x,
              OpEmission::Typed value, const Dimensions& low, const Dimensions& high,
              const Dimensions& interior);

}  // namespace meshard
