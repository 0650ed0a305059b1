// Reads what `jax.export.Exported.serialize()` writes: a StableHLO module and how it is called.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/stablehlo/export_tree.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// A value: an exported function (jax/_src/export/serialization.py, versions 2 to 12).
struct JaxExport {
  std::string function;
  /// The module, a portable artifact. A view of the bytes that were read.
  std::string_view module;
  std::int64_t devices = 1;
  /// `cpu`, `tpu`, `cuda`, `rocm`. If there are several, the module's first argument is the number
  /// of the platform.
  std::vector<std::string> platforms;
  std::int64_t calling_convention = 0;
  /// The sizes of each argument, which may be expressions of dimension variables: `4`, `b`,
  /// `2*b + 1`.
  std::vector<std::vector<std::string>> argument_sizes;
  /// The element type of each argument in StableHLO's words, `f32`; empty for keys of random
  /// numbers.
  std::vector<std::string> argument_dtypes;
  /// The arguments that the module has, in order; the others are not used.
  std::vector<std::size_t> kept;
  /// The arguments, a tuple of those by position and a dict of those by name; and the results.
  ExportTree argument_tree, result_tree;
  /// The effects that calls must have in order, such as printing: each has a token among the
  /// module's arguments and results.
  std::vector<std::string> ordered_effects;
  /// The meshes of the arguments' and results' shardings.
  std::vector<ModuleMesh> meshes;
  /// True if it may be called on other platforms than its own.
  bool any_platform = false;
  /// The function's derivative, if it was exported (`serialize(vjp_order=1)`): takes the arguments
  /// and the cotangents of the results, in order, and returns the cotangents of the arguments.
  std::shared_ptr<const JaxExport> vjp = nullptr;

  /// An argument with a dimension variable, `(b, 16)`; empty if all sizes are numbers.
  std::string symbolic_argument() const;
};

/// True if the bytes are a serialized export, damaged or not: they are not MLIR text or bytecode,
/// and contain MLIR bytecode.
bool is_jax_export(std::string_view bytes);

/// Reads a serialized export.
/// @error data loss: the bytes are damaged. unimplemented: a calling convention that is not known,
/// with the number.
Result<JaxExport> read_jax_export(std::string_view bytes);

/// Adds what an export contains and its module may not: the number of devices, and the names of the
/// mesh axes, which a module for the older partitioner does not have.
void describe_export(const JaxExport& exported, ModuleFacts& facts);

}  // namespace meshard::stablehlo
