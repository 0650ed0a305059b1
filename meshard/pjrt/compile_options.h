// The options of a compilation, and their serialized form.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"

namespace meshard::pjrt {

/// A value: the options of one compilation. Serializes to XLA's CompileOptionsProto.
struct CompileOptions {
  using Override = std::variant<std::string, bool, std::int64_t, double>;

  int num_replicas = 1;
  int num_partitions = 1;
  bool use_spmd_partitioning = true;
  bool use_shardy = true;
  /// Device ids in replica-major order: entry [replica * num_partitions + partition]. Empty: the
  /// client's first devices.
  std::vector<int> device_assignment;
  /// Whether the partitioner may choose the shardings of unsharded arguments and results: no
  /// entry, one for all, or one for each. The older partitioner (use_shardy = false) replicates a
  /// value without permission.
  std::vector<bool> propagate_to_parameters;
  std::vector<bool> propagate_to_outputs;
  /// The program's number of parameters. Needed only if propagate_to_parameters has several
  /// entries.
  std::optional<std::size_t> parameter_count;
  /// Whether an output that a program only passes through may alias its argument.
  bool alias_passthrough_parameters = false;
  /// XLA's EffortLevel for fitting the program into memory: 9 (O0), 19, 29 or 39 (O3). 0: the
  /// compiler's default.
  int memory_fitting_level = 0;
  /// Omits the device assignment from the executable, which then runs on any one device.
  bool portable = false;
  /// Compiler options for this compilation only, by the names of XLA's DebugOptions.
  std::map<std::string, Override> overrides;

  MESHARD_FIELDS(num_replicas, num_partitions, use_spmd_partitioning, use_shardy, device_assignment,
                 propagate_to_parameters, propagate_to_outputs, parameter_count,
                 alias_passthrough_parameters, memory_fitting_level, portable, overrides)
  int num_devices() const { return num_replicas * num_partitions; }
  /// Checks the counts, the length of the assignment, negative or repeated ids, and the lengths of
  /// the flag vectors.
  /// @error invalid argument, naming both numbers
  Result<void> check() const;
  /// The bytes of a CompileOptionsProto. Equal options give equal bytes.
  std::string serialize() const;

  friend bool operator==(const CompileOptions&, const CompileOptions&) = default;
};

/// The environment variables that compilers read, as lines `NAME=VALUE`. Unset variables are
/// left out. Caches of compiled programs have them in their keys.
std::string compiler_variables();

}  // namespace meshard::pjrt
