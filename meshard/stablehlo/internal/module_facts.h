// Reads the facts about a module from text and from bytecode, and interprets the attributes of both
// alike.
#pragma once
#include <string_view>

#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// Reads text in pretty or generic form, with or without locations.
/// @error throws data loss
ModuleFacts read_text_module(std::string_view text);

/// @error throws data loss
ModuleFacts read_bytecode_module(std::string_view bytes);

/// Frontend attributes that carry Shardy's meshes and shardings through older formats.
inline constexpr std::string_view kFrontendMeshes = "xla.sdy.meshes";
inline constexpr std::string_view kFrontendSharding = "xla.sdy.sharding";

/// Records one attribute of an argument or result in `value` and `facts`. Known names are
/// `sdy.sharding`, `mhlo.sharding`, `tf.aliasing_output`, `jax.buffer_donor`, `jax.arg_info`,
/// `jax.result_info`, `mhlo.memory_kind`, and those of meshard's own files; others are ignored.
/// @param text the value of the attribute; without quotes if it is a string
void set_boundary_attribute(std::string_view name, std::string_view text, ModuleValue& value,
                            ModuleFacts& facts);

/// The attributes of a module, and of arguments and results, that only meshard writes.
inline constexpr std::string_view kDeviceMesh = "meshard.mesh", kPlace = "meshard.place",
                                  kOwnType = "meshard.type", kCaptured = "meshard.captured";

/// Records one attribute of the module about the framework that wrote it.
/// @param text as for set_boundary_attribute
/// @error throws data loss
void set_module_attribute(std::string_view name, std::string_view text, ModuleFacts& facts);

/// Parses the text of a mesh: `<["data"=4, "model"=2], device_ids=[...]>`.
/// @error throws data loss
ModuleMesh parse_module_mesh(std::string_view name, std::string_view text);

/// Parses `{mesh = #sdy.mesh<["data"=4]>, ...}`, with quotes escaped or not, and adds the meshes.
/// @error throws data loss
void add_frontend_meshes(std::string_view text, ModuleFacts& facts);

}  // namespace meshard::stablehlo
