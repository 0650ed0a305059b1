// What a StableHLO module says about itself, without a compiler.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// How a module is written.
enum class ModuleForm { kText, kBytecode };

/// A value: an argument or result of a module's main function, as written. Bytecode tells only what
/// its strings tell.
struct ModuleValue {
  /// From its location or its `jax.arg_info`/`jax.result_info`: `p['blocks']['wq']`; empty: none.
  std::string name;
  /// `tensor<16x32xf32>`
  std::string type;
  /// `#sdy.sharding<@mesh, [{"x"}, {}]>`, `{devices=[2,1]<=[2]}`; empty: none.
  std::string sharding;
  /// Its memory is given to a result.
  bool donated = false;
};

/// A value: a mesh of a module: `mesh` and `["data"=4, "model"=2]`.
struct ModuleMesh {
  std::string name;
  /// The text after the `=`: what parse_shardy_mesh() of sharding/ and mesh/ read.
  std::string text;
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::vector<std::int64_t> device_ids;

  std::int64_t size() const;
};

/// A value.
struct ModuleFacts {
  ModuleForm form = ModuleForm::kText;
  std::string name;
  std::vector<ModuleMesh> meshes;
  /// `mhlo.num_partitions`; none if the module does not say.
  std::optional<std::int64_t> num_partitions;
  /// True if it has Shardy's meshes or shardings, false if only `mhlo.sharding`.
  bool uses_shardy = false;
  bool has_mhlo_shardings = false;
  std::vector<ModuleValue> arguments, results;
};

/// Reads a module's text, bytecode or portable artifact.
/// @error data loss: it is neither, it is cut off, or it has no main function; says where.
Result<ModuleFacts> read_module(std::string_view bytes);

}  // namespace meshard::stablehlo
