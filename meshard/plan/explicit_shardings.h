// From automatic to explicit: the shardings that a compiler chose, as constraints that can be
// written into the program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/explain.h"

namespace meshard {

/// The framework in whose words a constraint is written.
enum class ConstraintWords : std::uint8_t { kJax, kPyTorch, kMeshard };

template <>
struct EnumNames<ConstraintWords> {
  using enum ConstraintWords;
  static constexpr EnumName<ConstraintWords> kNames[] = {
      {kJax, "jax"}, {kPyTorch, "pytorch"}, {kMeshard, "meshard"}};
};

/// What has a sharding.
enum class ShardedPart : std::uint8_t { kArgument, kValue, kResult };

template <>
struct EnumNames<ShardedPart> {
  using enum ShardedPart;
  static constexpr EnumName<ShardedPart> kNames[] = {
      {kArgument, "argument"}, {kValue, "value"}, {kResult, "result"}};
};

/// Value type: a sharding that the compiler chose.
struct ChosenSharding {
  ShardedPart part = ShardedPart::kValue;
  /// The file and line that made the value; 0 and empty if unknown.
  std::string file = {};
  std::int64_t line = 0;
  /// The op that made the value, `dot_general`; of an argument or result, its name or number.
  std::string op = {};
  /// The phase that the op is in: a value of the backward pass has no expression in the program.
  ProgramPhase phase = ProgramPhase::kUnknown;
  TensorType type = {};
  PartitionSpec spec = {};
  /// How many values of this line, op, type and sharding there are.
  std::int64_t count = 1;
  /// The line, if the file can be read.
  std::string source = {};
  /// The constraint: `h = jax.lax.with_sharding_constraint(h, P("data", None))`, with `...` for a
  /// value without a name of its own; for an argument `in_shardings=`, for a result
  /// `out_shardings=`.
  std::string constraint = {};
  /// The same where the axes are explicit, or of a DTensor; empty if there is no such form.
  std::string other_constraint = {};
  /// If the sharding is not offered: what changes with it.
  std::string difference = {};

  MESHARD_FIELDS(part, file, line, op, phase, type, spec, count, source, constraint,
                 other_constraint, difference)
  /// `train.py:23`; empty if unknown.
  std::string place() const;
  std::string to_string() const;
};

/// Value type: the result of explicit_shardings().
struct ExplicitShardings {
  std::string name = {};
  /// In the order of the program: arguments, values, results.
  std::vector<ChosenSharding> offered = {};
  /// Choices that, written down, would change the collectives.
  std::vector<ChosenSharding> dropped = {};
  /// The number of values whose sharding follows from the program.
  std::int64_t determined = 0;
  /// The number of logical collectives, which the program and the constrained one share.
  std::int64_t collectives = 0;
  std::int64_t collective_bytes = 0;
  /// The number of compiles.
  std::int64_t compiles = 0;
  std::vector<std::string> notes = {};
  /// The module with the constraints that are offered.
  std::string module = {};

  MESHARD_FIELDS(name, offered, dropped, determined, collectives, collective_bytes, compiles, notes,
                 module)
  static constexpr FieldNotes kFieldNotes{.local = "module"};
  /// A list of changes: each line of the program with the constraint to add.
  std::string to_string() const;
};

/// The same as JSON. @param indent spaces per level; 0: all on one line
std::string to_json(const ExplicitShardings& found, std::size_t indent = 0);

/// Options of explicit_shardings().
struct ExplicitShardingsOptions {
  /// How the program is compiled; layout.axes is not used.
  ExplainForOptions explain = {};
  /// None: those of the framework that wrote the module; JAX's if it does not say.
  std::optional<ConstraintWords> words = std::nullopt;
  /// If constraints change the collectives, the most compiles to find out which. Constraints that
  /// are not
  /// known to change nothing then are dropped. Default: 64.
  std::int64_t most_compiles = 64;
};

/// Compiles a module for a target, and finds the shardings that the compiler chose for its values.
///
/// Determined shardings are left out: shardings that the arguments, results and constraints of the
/// program give, and shardings that the op's sharding rule infers from the operands, as along
/// explicit axes (Propagating::kInfer). Values that depend on no argument (constants, and values
/// computed from them and from scalars) are left out, too.
///
/// The program with the constraints is compiled again. If its collectives differ (kind, axes,
/// bytes, executions), the constraints that make the difference are found by bisection and dropped:
/// the listed constraints have been compiled, and give the collectives of the program.
/// @param module StableHLO for Shardy: text, bytecode, a portable artifact, or an export of JAX for
/// one platform
/// @error errors of module_as_text(), ModuleTemplate::parse() and explain_module(); invalid
/// argument: the program has no mesh; unimplemented: its shardings are for the older partitioner,
/// or the compiler does not write the module after propagation; resource exhausted: it does not fit
/// into memory
ExplicitShardings explicit_shardings(std::string_view module, const Target& target,
                                     const ExplicitShardingsOptions& options = {},
                                     SourceLocation where = SourceLocation::current());

}  // namespace meshard
