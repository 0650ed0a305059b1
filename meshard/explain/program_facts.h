// What is known of a program besides what its compiler gave.
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

/// A value: a program as it was given to the compiler.
struct ProgramFacts {
  /// Its meshes, arguments and results, as asked for. The text may be empty.
  LoweredModule program;
  /// As the program calls them; as many as arguments and results, empty where there is no name.
  std::vector<std::string> argument_names, result_names;
  /// Arguments whose memory is given to a result.
  std::vector<bool> donated;
  std::size_t num_captured = 0;
  /// The recorded program; none of a module from elsewhere.
  std::optional<Graph> graph = std::nullopt;
  /// The hardware; none: that of this process.
  std::optional<Target> target = std::nullopt;
  /// What had to be assumed.
  std::vector<std::string> notes = {};
};

/// Enters a recorded program: its graph, the names of its parameters and which are donated.
void describe_graph(const Graph& graph, const std::vector<std::string>& parameter_names,
                    const std::vector<std::uint32_t>& donated, ProgramFacts& facts);

/// The order in which a mesh's positions take a target's devices.
enum class DeviceOrder {
  kTorus,  ///< as JAX 0.10 lays a mesh of this shape: along the torus, the first axes over slices
  kIds,    ///< by device id
};

/// A mesh of these axes over a target's devices. Devices without places in a grid are taken in the
/// order of their ids.
/// @param devices how many to use, the first ones; none: all
/// @error invalid argument: the axes do not have a place for each device, both numbers; fewer
/// devices are there.
Result<Mesh> mesh_on_target(std::vector<MeshAxis> axes, const Target& target, DeviceOrder order,
                            std::optional<std::int64_t> devices = std::nullopt);

/// How a module from elsewhere is laid on a target.
struct ModuleLayout {
  /// Axes in place of the module's own; empty: its own.
  std::vector<MeshAxis> axes = {};
  DeviceOrder order = DeviceOrder::kTorus;
  /// Partitions in place of what the module says.
  std::optional<std::int64_t> partitions = std::nullopt;
  /// The module may use the first devices of the target only.
  bool part_of_target = false;
};

/// The facts of a module from elsewhere, on a target. Shardings that cannot be read are left to
/// what the compiler says.
/// @error invalid argument: the mesh does not fit the target or the module, both numbers; an
/// argument has a size that is not known. unimplemented: an element type without a size.
Result<ProgramFacts> facts_of_module(const stablehlo::ModuleFacts& module, const Target& target,
                                     const ModuleLayout& layout = {});

}  // namespace meshard
