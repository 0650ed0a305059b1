// Reads facts about a StableHLO module without a compiler: its meshes, arguments and results.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// The format of a module.
enum class ModuleForm { kText, kBytecode };

/// The framework that wrote a module, as far as the module says.
enum class ModuleOrigin { kUnknown, kJax, kMeshard };

/// A value: an argument or result of a module's main function, as written in the module.
struct ModuleValue {
  /// From its location or `jax.arg_info`/`jax.result_info`: `p['blocks']['wq']`; empty if none.
  std::string name;
  /// `tensor<16x32xf32>`; in bytecode, `?` for an unknown type.
  std::string type;
  /// `#sdy.sharding<@mesh, [{"x"}, {}]>` or `{devices=[2,1]<=[2]}`; empty if none.
  std::string sharding;
  /// True if its buffer is donated to a result.
  bool donated = false;
  /// `pinned_host`; empty: the device's memory.
  std::string memory_kind = {};
  /// In modules that lower_for_file() of lowering/ wrote: the source line, `step.cc:42`; the type
  /// before padding, if it differs; true for a captured value.
  std::string place = {}, own_type = {};
  bool captured = false;

  /// Whether it has a sharding that leaves nothing to the compiler.
  bool has_closed_sharding() const {
    return !sharding.empty() && sharding.find('?') == std::string::npos;
  }
};

/// A value: a mesh of a module, with a name (`mesh`) and axes (`["data"=4, "model"=2]`).
struct ModuleMesh {
  std::string name;
  /// The text after the `=`, which parse_shardy_mesh() of mesh/ reads.
  std::string text;
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::vector<std::int64_t> device_ids;

  std::int64_t size() const;
};

/// A value: what a module says about its ops, by which instructions of the compiled program are
/// recognized.
struct ModuleOpNames {
  /// True if an op is a collective, which the program itself requests.
  bool has_collectives = false;
  /// In text: the names in the locations of the collectives, `jit(f)/psum`.
  std::set<std::string, std::less<>> collectives = {};
  /// In text: the names of the ops without a location, by line, from 1: `all_reduce`. MLIR's parser
  /// gives such ops the place of the text itself.
  std::map<std::int64_t, std::string> by_line = {};
};

/// True for the name of a collective op, without its dialect: `all_reduce`.
bool is_collective_op(std::string_view name);

/// A value: the facts that read_module finds in a module.
struct ModuleFacts {
  ModuleForm form = ModuleForm::kText;
  std::string name;
  ModuleOrigin origin = ModuleOrigin::kUnknown;
  std::vector<ModuleMesh> meshes;
  /// The mesh that numbers the devices, with device ids of the hardware: in modules that
  /// lower_for_file() of lowering/ wrote.
  std::optional<ModuleMesh> device_mesh = std::nullopt;
  /// `mhlo.num_partitions`; nullopt if the module does not have it.
  std::optional<std::int64_t> num_partitions;
  /// `mhlo.num_replicas`; 1 if the module does not have it.
  std::int64_t num_replicas = 1;
  /// True if it has Shardy's meshes or shardings, false if it has only `mhlo.sharding` or none.
  bool uses_shardy = false;
  bool has_mhlo_shardings = false;
  /// Whether it is for the partitioner Shardy: it is unless it has only shardings in the form
  /// of the older one.
  bool is_for_shardy() const { return uses_shardy || !has_mhlo_shardings; }
  std::vector<ModuleValue> arguments, results;
  ModuleOpNames op_names = {};
};

/// Reads a module in text, bytecode or portable-artifact form.
/// @error data loss, with the position: the input is in none of these forms, is truncated, or has
/// no main function.
Result<ModuleFacts> read_module(std::string_view bytes);

}  // namespace meshard::stablehlo
