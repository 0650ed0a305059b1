// The boundary of a module that was written elsewhere: its arguments and results as meshard sees
// them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/base/result.h"
#include "meshard/lowering/lower.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard {

/// Parses `tensor<16x32xf32>`.
/// @param element_type the dtype of an element type that is not a DType; default: an error
/// @error invalid argument: a size is dynamic or cannot be read. unimplemented: the type is not a
/// tensor, or `element_type` has no dtype for it
Result<TensorType> module_tensor_type(
    std::string_view text,
    FunctionRef<Result<DType>(std::string_view)> element_type = parse_stablehlo_dtype);

/// The number of devices of a module: its attribute, otherwise the number of its largest mesh or
/// sharding.
std::int64_t devices_of_module(const stablehlo::ModuleFacts& module);

/// The mesh of a module over all its devices, preferably one with devices in order; null if none.
const stablehlo::ModuleMesh* mesh_of_all_devices(const stablehlo::ModuleFacts& module,
                                                 std::int64_t devices);
/// Whether a mesh lists its devices in order, or does not list them.
bool has_devices_in_order(const stablehlo::ModuleMesh& mesh);

/// A mesh of a module on the devices that `numbering` numbers: position i of `numbering` is logical
/// device i. None if it has another size, or axis names that a Mesh cannot have.
std::optional<Mesh> mesh_on(const stablehlo::ModuleMesh& mesh, const Mesh& numbering);

/// `numbering` and the other meshes of the module: position i of `numbering` is logical device i.
/// Meshes of other sizes are left out, and those with axis names that a Mesh cannot have.
/// @param own the mesh of the module that `numbering` stands for; null if it stands for none
std::vector<Mesh> meshes_of_module(const stablehlo::ModuleFacts& module, const Mesh& numbering,
                                   const stablehlo::ModuleMesh* own);

/// The sharding that the module gives to a value, over the mesh of `meshes` that it names; none if
/// the module gives no sharding or names another mesh.
/// @param meshes of meshes_of_module()
std::optional<Sharding> sharding_in_module(const stablehlo::ModuleFacts& module,
                                           const stablehlo::ModuleValue& value,
                                           const TensorType& type, const std::vector<Mesh>& meshes);

/// The module as a program for the devices of `devices`, in the order of their positions.
///
/// Shardings are over the module's meshes, on these devices. `devices` itself is the first of them
/// if it has the module's axes. A sharding that does not divide its value is the compiler's to
/// choose, since XLA does not keep it.
/// @param text the module that the facts were read from
/// @param devices none: a program for one device
/// @error invalid argument: it has another number of devices than the module (the message has both
/// numbers); the errors of module_tensor_type(), with the argument or result
Result<LoweredModule> lowered_from_module(std::string text, const stablehlo::ModuleFacts& module,
                                          const std::optional<Mesh>& devices);

}  // namespace meshard
