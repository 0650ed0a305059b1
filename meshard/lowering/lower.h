// Lowers a graph to the text of a StableHLO module.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/lowering/nan_checks.h"
#include "meshard/mesh/mesh.h"
#include "meshard/quirks/quirks.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// One argument or result of a lowered program.
struct LoweredValue {
  /// The type as the user sees it.
  TensorType type;
  /// The type in the program, with the padding that makes the sharding even.
  TensorType padded;
  /// The sharding in the module text; empty: the compiler chooses.
  std::optional<Sharding> sharding;
  /// True if the text specifies a sharding that no mesh of the program can express. Then `sharding`
  /// is empty, and yet the compiler has no choice.
  bool is_specified_otherwise = false;

  /// True if the sharding is complete: it leaves no dimension open to the compiler.
  bool is_exact() const;
};

/// A program as StableHLO with Shardy shardings, for logical devices 0..n-1.
struct LoweredModule {
  /// The name of the program.
  std::string name = {};
  std::string text;
  /// Logical device i has the device id mesh.device_id(i). Empty: one device, any.
  std::optional<Mesh> mesh;
  /// All meshes that the program refers to, over the same devices; `mesh` is the first.
  std::vector<Mesh> meshes;
  /// Parameters, then captured values.
  std::vector<LoweredValue> arguments;
  std::vector<LoweredValue> results;
  /// True if the program calls functions of this process: debug_print, pure_callback, NaN checks.
  bool calls_host = false;
  /// Where the program reports NaNs; null: it does not check.
  std::shared_ptr<NanChecks> nan_checks = nullptr;

  /// True if the text was written elsewhere: it has no NaN checks, whether they are on or not.
  bool is_imported = false;
  /// Which partitioner the shardings are for: Shardy (default), or the older one.
  bool use_shardy = true;
  /// Whether the compiler may shard the arguments and results that have no sharding, as JAX lets
  /// it; otherwise it replicates them. Default: false.
  bool shards_open_values = false;

  std::int64_t num_partitions() const { return mesh ? mesh->size() : 1; }
};

/// Options of lower().
struct LowerOptions {
  /// Adds checks for NaNs after all operations and for the results.
  bool check_nans = false;
  /// The quirks of the compiler for the devices of a mesh, or for the one device that runs a
  /// program without a mesh. Default: those of all platforms, quirks_of(""). Called once; lower()
  /// rethrows its error.
  std::function<QuirkSet(const std::optional<Mesh>&)> quirks = {};
};

/// Lowers a program to module text. Op number n of the graph has the location `n<n>`. The text
/// depends neither on device ids nor on source lines.
///
/// An argument or result whose sharding does not divide its size is padded at the module's
/// boundary, because the compiler would silently drop such a sharding. Values inside have their own
/// sizes.
/// @error errors of ProgramMeshes and quirks_of(); unimplemented if an op cannot be lowered;
/// invalid argument if a result is a local value, or if a program with manual axes is to be
/// unsharded.
LoweredModule lower(const Program& program, const LowerOptions& options = {});

/// The text of lower() for readers that have neither the program nor its devices. The locations of
/// ops are their names and source lines, those of arguments their names. Attributes that only
/// meshard writes give the rest: of the module the mesh with its device ids (`meshard.mesh`), of
/// arguments and results their source lines (`meshard.place`) and their types without padding
/// (`meshard.type`), and which arguments are captured values (`meshard.captured`).
/// stablehlo::read_module() reads them.
/// @error as lower()
std::string lower_for_file(const Program& program);

}  // namespace meshard
