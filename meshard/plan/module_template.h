// A module's text with places for another mesh and other shardings of its arguments.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/plan/candidate.h"

namespace meshard {

/// A value: an argument or result of a module's main function.
struct TemplateValue {
  /// From its location or its `jax.arg_info`; empty: none.
  std::string name;
  /// None if it is no tensor of known sizes and type.
  std::optional<TensorType> type;
  /// Whole as its type is long; none without a sharding.
  std::optional<PartitionSpec> spec;
  /// Of an argument: the result that takes its memory.
  std::optional<std::size_t> aliased_result;
};

/// A value: which arguments the search may place.
struct FreeArguments {
  std::vector<FreeValue> values;
  /// The arguments that each value stands for. Several where they belong together: a parameter and
  /// the optimiser's state for it.
  std::vector<std::vector<std::size_t>> arguments;
};

/// A value: module text, and where in it the mesh and the shardings stand.
class ModuleTemplate {
 public:
  /// Reads StableHLO text in its usual (not its generic) form.
  /// @error data loss: no main function, brackets that do not match, a sharding that cannot be
  /// read; unimplemented: bytecode, several meshes
  static Result<ModuleTemplate> parse(std::string text);

  const std::vector<TemplateValue>& arguments() const { return arguments_; }
  const std::vector<TemplateValue>& results() const { return results_; }
  /// Of its mesh; empty if it has none.
  const std::vector<MeshAxis>& axes() const { return axes_; }
  /// Axes whose sizes the text depends on: those of manual computations; all of them if it lists
  /// groups of devices.
  const std::map<std::string, std::int64_t>& pinned() const { return pinned_; }

  /// The arguments with an open dimension, and wholly those that a pattern names: by name (`*`
  /// stands for any text) or by number. Arguments of one type and sharding whose names differ only
  /// in their first part (`p['w']`, `m['w']`) become one value.
  /// @error invalid argument: a pattern names no argument, or one of unknown type
  Result<FreeArguments> free(const std::vector<std::string>& patterns) const;

  /// False if the sharding of an argument that is not free, or of a result, would not divide it.
  bool suits(const std::vector<MeshAxis>& axes, const FreeArguments& free) const;

  /// The text for a candidate. A result that takes a free argument's memory lies as it does. The
  /// mesh's own order of devices is dropped.
  /// @pre the candidate is of these free arguments
  std::string with(const PlanCandidate& candidate, const FreeArguments& free) const;

 private:
  // A range of the text; empty ones are places to insert at.
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  // Where a value's sharding stands or is to be inserted, and what goes around it.
  struct Site {
    Range range;
    std::string before, after;
  };
  friend class ModuleTemplateReader;

  std::string text_, mesh_name_ = "mesh";
  std::vector<TemplateValue> arguments_, results_;
  std::vector<Site> argument_sites_, result_sites_;
  std::vector<MeshAxis> axes_;
  std::map<std::string, std::int64_t> pinned_;
  Site mesh_site_;
  std::optional<Range> num_partitions_;
};

}  // namespace meshard
