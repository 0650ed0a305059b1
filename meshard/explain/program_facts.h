// Facts about a program that do not come from its compiler.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/graph/graph.h"
#include "meshard/lowering/lower.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/target/target.h"

namespace meshard {

/// Value type: a program as it was given to the compiler.
struct ProgramFacts {
  /// Meshes, arguments and results, with the requested shardings. The text may be empty.
  LoweredModule program;
  /// Names in the program; one for each argument and result, empty if unnamed.
  std::vector<std::string> argument_names, result_names;
  /// Whether each argument's memory is donated to a result.
  std::vector<bool> donated;
  std::size_t num_captured = 0;
  /// The recorded program; none for a module from elsewhere.
  std::optional<Graph> graph = std::nullopt;
  /// The target hardware; none: the hardware of this process.
  std::optional<Target> target = std::nullopt;
  /// Assumptions that were made.
  std::vector<std::string> notes = {};
};

/// Sets the facts of a recorded program: its graph, parameter names and donated parameters.
void describe_graph(const Graph& graph, const std::vector<std::string>& parameter_names,
                    const std::vector<std::uint32_t>& donated, ProgramFacts& facts);

/// The order in which a target's devices are assigned to mesh positions.
enum class DeviceOrder {
  kTorus,  ///< JAX 0.10's order for a mesh of this shape: along the torus, first axes over slices
  kIds,    ///< by device id
};

/// A mesh with these axes over a target's devices. Devices without coordinates are ordered by id.
/// @param devices how many devices to use, from the first; none: all
/// @error invalid argument: the axes' sizes do not match the number of devices (the message has
/// both numbers), or the target has fewer devices than requested.
Result<Mesh> mesh_on_target(std::vector<MeshAxis> axes, const Target& target, DeviceOrder order,
                            std::optional<std::int64_t> devices = std::nullopt);

/// How to place a module from elsewhere on a target.
struct ModuleLayout {
  /// Axes that replace the module's own. Default: the module's own.
  std::vector<MeshAxis> axes = {};
  DeviceOrder order = DeviceOrder::kTorus;
  /// Number of partitions. None: as the module declares.
  std::optional<std::int64_t> partitions = std::nullopt;
  /// Allows the module to use only the first devices of the target. Default: false.
  bool part_of_target = false;
};

/// The facts of a module from elsewhere, placed on a target. For shardings that cannot be parsed,
/// the compiler's are used.
/// @error invalid argument: the mesh does not fit the target or the module (the message has both
/// numbers), or an argument has an unknown size. unimplemented: an element type of unknown size.
Result<ProgramFacts> facts_of_module(const stablehlo::ModuleFacts& module, const Target& target,
                                     const ModuleLayout& layout = {});

}  // namespace meshard
