// Sharded StableHLO programs with collectives of every kind, for any even number of devices.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace meshard {

/// An argument of a sharded program.
struct ProgramArgument {
  /// StableHLO name of the element type.
  std::string element;
  std::vector<std::int64_t> dimensions;
  /// For each dimension, the axes of the mesh that split it, major first. Axes: `a` and `b`.
  std::vector<std::string> axes;
  /// The output that reuses its memory; -1: none.
  int donated_to = -1;
};

/// A program over the mesh a=2, b=devices/2.
struct ShardedProgram {
  std::string name;
  std::vector<ProgramArgument> arguments;
  /// The module.
  std::string text;
  /// Relative to the largest value. 0: equal bits.
  double tolerance = 0;
  /// False for programs with a collective that XLA's CPU backend does not have.
  bool runs_in_one_process = true;
};

/// All programs for `devices` (2, 4, 8, ...) devices.
std::vector<ShardedProgram> sharded_programs(int devices);
/// The one with this name.
ShardedProgram sharded_program(const std::string& name, int devices);

}  // namespace meshard
