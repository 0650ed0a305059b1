// Module text in which the mesh and the arguments' shardings can be replaced.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/plan/candidate.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// Value type: an argument or result of a module's main function.
struct TemplateValue {
  /// The name from its location or `jax.arg_info`; empty if none.
  std::string name;
  /// None if the value is not a tensor of known shape and element type.
  std::optional<TensorType> type;
  /// As long as the rank of `type`; none without a sharding.
  std::optional<PartitionSpec> spec;
  /// For an argument: the result that reuses its memory.
  std::optional<std::size_t> aliased_result;
  /// For an argument: the result that is this argument in the next run of a step; see
  /// find_next_results().
  std::optional<std::size_t> next_result;
};

/// Value type: the specs of all arguments and results of a module; none without a sharding.
struct BoundarySpecs {
  std::vector<std::optional<PartitionSpec>> arguments, results;
};

/// Value type: the arguments whose sharding the search may choose.
struct FreeArguments {
  std::vector<FreeValue> values;
  /// The arguments that each value stands for. Several arguments share a value if they belong
  /// together: a parameter and its optimizer state.
  std::vector<std::vector<std::size_t>> arguments;
};

/// Value type: module text with the positions of its mesh and shardings.
class ModuleTemplate {
 public:
  /// Parses a StableHLO module as text, bytecode or portable artifact, or what jax.export
  /// serialized for one platform. In text, functions are in the pretty (not generic) form.
  /// Meshes that are equal count as one.
  /// @param entry the function that runs the program, as for stablehlo::text_for_compiler()
  /// @error data loss: errors of stablehlo::Module, an invalid sharding; errors of
  /// program_as_text() and text_for_compiler(); unimplemented: meshes that differ
  static Result<ModuleTemplate> parse(std::string file, std::string_view entry = {});

  const stablehlo::Module& module() const { return module_; }
  const std::vector<TemplateValue>& arguments() const { return arguments_; }
  const std::vector<TemplateValue>& results() const { return results_; }
  /// False for a result that is written without parentheses: it cannot have a sharding.
  bool takes_sharding(std::size_t result) const {
    return !result_sites_[result].before.empty() || results_[result].spec.has_value();
  }
  /// The specs as the text gives them.
  BoundarySpecs given() const;
  /// The axes of the module's mesh; empty if it has no mesh.
  const std::vector<MeshAxis>& axes() const { return axes_; }
  /// Axes whose sizes the text depends on. These are the axes of manual computations; all axes if
  /// the text lists groups of devices.
  const std::map<std::string, std::int64_t>& pinned() const { return pinned_; }

  /// The arguments that have an open dimension or match a pattern. All dimensions of a matching
  /// argument become free. A pattern is a name (`*` matches any text) or a number. Arguments of one
  /// type and sharding whose names differ only in their first part (`p['w']`, `m['w']`) become one
  /// value.
  /// @error invalid argument: a pattern matches no argument, or one of unknown type
  Result<FreeArguments> free(const std::vector<std::string>& patterns) const;

  /// False if these axes would not divide some fixed sharding. The shardings of arguments that are
  /// not free are fixed, and of results that are not the next value of an argument.
  bool suits(const std::vector<MeshAxis>& axes, const FreeArguments& free) const;

  /// The specs for a candidate. A result that is the next value of an argument has the argument's
  /// spec, also if the argument is not free: otherwise a candidate could move communication to the
  /// next run.
  /// @pre the candidate has a spec for each of these free arguments
  BoundarySpecs specs(const PlanCandidate& candidate, const FreeArguments& free) const;

  /// The candidate that the text itself is, with unconstrained specs for arguments without a
  /// sharding; none without a mesh. Axes of `axes` that the module lacks have size 1.
  /// @pre `axes` includes all axes of the module
  std::optional<PlanCandidate> as_given(const std::vector<std::string>& axes,
                                        const FreeArguments& free) const;
  /// True if with() gives a module with the text's own shardings and device order.
  bool is_given(const PlanCandidate& candidate, const FreeArguments& free) const;

  /// The module text for a candidate, with the specs of specs(). The device order of the module's
  /// mesh is dropped.
  /// @pre the candidate has a spec for each of these free arguments
  std::string with(const PlanCandidate& candidate, const FreeArguments& free) const;

  /// A text that is equal for candidates whose modules are equal except for names of axes and axes
  /// of size 1.
  /// @pre the candidate has a spec for each of these free arguments
  std::string program_key(const PlanCandidate& candidate, const FreeArguments& free) const;

  /// The module text with other axes and specs.
  /// @param axes none: the module's own mesh, with its device order
  /// @pre each spec that differs from given() is of a value of known type, and divides its shape
  /// @error invalid argument: a result that is written without parentheses cannot have a sharding
  std::string with(const std::optional<std::vector<MeshAxis>>& axes,
                   const BoundarySpecs& specs) const;

 private:
  // Where a value's sharding is or will be inserted, and the text around it. Empty ranges are
  // insertion points.
  struct Site {
    stablehlo::TextRange range;
    std::string before, after;
    bool repeats_axes = false;  // of a mesh: in an attribute `stablehlo.mesh`
  };
  friend class ModuleTemplateReader;
  explicit ModuleTemplate(stablehlo::Module module) : module_(std::move(module)) {}

  stablehlo::Module module_;
  std::string mesh_name_ = "mesh";
  std::vector<TemplateValue> arguments_, results_;
  std::vector<Site> argument_sites_, result_sites_;
  std::vector<MeshAxis> axes_;
  bool orders_devices_ = false;
  std::map<std::string, std::int64_t> pinned_;
  std::vector<std::string> fixed_names_;  // axes that the rest of the text names
  std::vector<Site> mesh_sites_;          // of the first mesh, and of others that are equal
  std::optional<stablehlo::TextRange> num_partitions_;
};

/// The name without its first part: `['w'][0]` of `params['w'][0]`; empty if it has one part.
std::string_view name_tail(std::string_view name);

/// Sets `next_result` of the arguments. A result is the next value of an argument of its type
///
/// 1. if it reuses the argument's memory;
/// 2. if it has the argument's name after the first part: `[0]['w']` or `result[0]['w']` for
///    `params['w']`. Where several do (`params['w']`, `mean['w']`), the first result belongs to the
///    first argument, and so on, if there are as many results as arguments;
/// 3. if the argument is donated to any result: the first one left of its type;
/// 4. if it is at the same position, and the text gives it no sharding.
///
/// Each result is the next value of one argument at most.
/// @param donors by argument: whether its memory may be reused for any result
void find_next_results(std::vector<TemplateValue>& arguments, const std::vector<bool>& donors,
                       const std::vector<TemplateValue>& results);

}  // namespace meshard
