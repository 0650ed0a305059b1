// What the attributes of a module and of its main function's arguments and results say, in
// whatever form they were written.
#pragma once
#include <string_view>

#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// Frontend attributes in which Shardy's meshes and shardings travel through older formats.
inline constexpr std::string_view kFrontendMeshes = "xla.sdy.meshes";
inline constexpr std::string_view kFrontendSharding = "xla.sdy.sharding";

/// Enters one attribute of an argument or result: `sdy.sharding`, `mhlo.sharding`,
/// `tf.aliasing_output`, `jax.buffer_donor`, `jax.arg_info`, `jax.result_info`. Others are left
/// alone.
/// @param text the value: of a string without its quotes
void set_boundary_attribute(std::string_view name, std::string_view text, ModuleValue& value,
                            ModuleFacts& facts);

/// Reads a mesh's text, `<["data"=4, "model"=2], device_ids=[...]>`.
/// @error throws data loss
ModuleMesh parse_module_mesh(std::string_view name, std::string_view text);

/// Reads `{mesh = #sdy.mesh<["data"=4]>, ...}`, the quotes escaped or not.
/// @error throws data loss
void add_frontend_meshes(std::string_view text, ModuleFacts& facts);

}  // namespace meshard::stablehlo
