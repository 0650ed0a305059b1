// What a compile is asked for, and its serialized form.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// A value: the options of one compile. Serializes to XLA's CompileOptionsProto.
struct CompileOptions {
  using Override = std::variant<std::string, bool, std::int64_t, double>;

  int num_replicas = 1;
  int num_partitions = 1;
  bool use_spmd_partitioning = true;
  bool use_shardy = true;
  /// Device ids, replica by replica, num_partitions each: entry [replica * num_partitions +
  /// partition]. Empty: the client's first devices.
  std::vector<int> device_assignment;
  /// Whether the partitioner may choose the shardings of arguments and results that have none:
  /// nothing, one entry for all, or one each. Only the older partitioner (use_shardy = false) looks
  /// at them.
  std::vector<bool> propagate_to_parameters;
  std::vector<bool> propagate_to_outputs;
  /// How many parameters the program has. Needed only if propagate_to_parameters has several
  /// entries.
  std::optional<std::size_t> parameter_count;
  /// Outputs may be the arguments themselves where a program only passes them on.
  bool alias_passthrough_parameters = false;
  /// No device assignment in the executable: it runs on any one device.
  bool portable = false;
  /// Options of the compiler for this compile alone, by the names of XLA's DebugOptions.
  std::map<std::string, Override> overrides;

  int num_devices() const { return num_replicas * num_partitions; }
  /// Counts, assignment length, negative or repeated ids, and lengths of the flag vectors.
  /// @error invalid argument, naming both numbers
  Result<void> check() const;
  /// The bytes of a CompileOptionsProto. Equal options give equal bytes.
  std::string serialize() const;

  friend bool operator==(const CompileOptions&, const CompileOptions&) = default;
};

}  // namespace meshard::pjrt
