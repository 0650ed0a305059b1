// A change of the shardings of a module, to see what it would save.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/explain.h"
#include "meshard/plan/module_template.h"
#include "meshard/report/diff.h"

namespace meshard {

/// Value type: other shardings for some arguments and results of a module, and another mesh.
struct ShardingTrial {
  struct Change {
    /// An argument's name (`*` matches any text) or number; `result 0` for a result.
    std::string value;
    PartitionSpec spec;
    friend bool operator==(const Change&, const Change&) = default;
  };
  /// Applied in order: a later change of the same value replaces an earlier one.
  std::vector<Change> changes = {};
  /// The axes of the mesh. Empty: the module's own mesh.
  std::vector<MeshAxis> axes = {};

  /// Parses `w2: P(data, none); result 0: P(data)`. Axis names need no quotation marks. A dimension
  /// is split by one axis, by several (`{data, model}` or `(data, model)`), by none (`none` or
  /// `None`), or as the compiler likes (`unconstrained` or `?`).
  /// @error invalid argument
  static Result<ShardingTrial> parse(std::string_view text);
  /// `w2: P("data", none); mesh data=4,model=2`
  std::string to_string() const;
  friend bool operator==(const ShardingTrial&, const ShardingTrial&) = default;
};

/// The module with the trial's shardings. A result that is the next value of a changed argument
/// (find_next_results()) gets the argument's sharding too if it had that of the argument, or none;
/// unless the trial changes the result itself.
/// @error invalid argument: a name or number that no value has (the message has the nearest names);
/// an axis that the mesh lacks; a spec that does not divide its value, or has more entries than
/// dimensions; a mesh that does not divide another value, or on whose sizes the text depends
Result<std::string> apply(const ShardingTrial& trial, const ModuleTemplate& module);

/// Value type: a program before and after a trial.
struct TriedShardings {
  ProgramReport before, after;
  ReportDiff diff;
  /// The changed module.
  std::string module;
};

/// Compiles a module for a target as it is, and with other shardings, and compares both.
///
/// ```
/// ShardingTrial trial{.changes = {{"params['w2']", P("data", none)}}};
/// std::cout << try_shardings(text, Target::parse("v5e:4x4").value(), trial).diff.to_string();
/// ```
/// @param module StableHLO text with Shardy shardings
/// @error errors of ModuleTemplate::parse(), apply() and explain_module()
TriedShardings try_shardings(std::string_view module, const Target& target,
                             const ShardingTrial& trial, const ExplainForOptions& options = {},
                             SourceLocation where = SourceLocation::current());

}  // namespace meshard
