#include "meshard/pjrt/compile_options.h"

#include <cstdlib>
#include <unordered_set>

#include "meshard/pjrt/wire.h"

namespace meshard::pjrt {
namespace {

// Field numbers from xla/pjrt/proto/compile_options.proto and xla/xla_data.proto.
enum CompileOptionsField { kBuildOptions = 3, kPortable = 4, kOverrides = 7 };
enum BuildOptionsField {
  kNumReplicas = 4,
  kNumPartitions = 5,
  kUseSpmd = 6,
  kDeviceAssignment = 9,
  kAliasPassthrough = 10,
  kPropagateToOutputs = 12,
  kPropagateToParameters = 18,
  kUseShardy = 19,
  kMemoryFittingLevel = 25,
};
enum DeviceAssignmentField { kReplicaCount = 1, kComputationCount = 2, kComputations = 3 };

WireWriter device_assignment(const CompileOptions& options) {
  WireWriter assignment;
  assignment.add_varint(kReplicaCount, static_cast<std::uint64_t>(options.num_replicas));
  assignment.add_varint(kComputationCount, static_cast<std::uint64_t>(options.num_partitions));
  for (int partition = 0; partition < options.num_partitions; ++partition) {
    std::vector<int> ids;
    for (int replica = 0; replica < options.num_replicas; ++replica)
      ids.push_back(options.device_assignment[replica * options.num_partitions + partition]);
    WireWriter computation;
    computation.add_packed(1, ids);
    assignment.add_message(kComputations, computation);
  }
  return assignment;
}

WireWriter override_value(const CompileOptions::Override& value) {
  WireWriter writer;
  if (auto* text = std::get_if<std::string>(&value))
    writer.add_bytes(1, *text);
  else if (auto* flag = std::get_if<bool>(&value))
    writer.add_varint(2, *flag);
  else if (auto* number = std::get_if<std::int64_t>(&value))
    writer.add_varint(3, static_cast<std::uint64_t>(*number));
  else
    writer.add_double(4, std::get<double>(value));
  return writer;
}

}  // namespace

Result<void> CompileOptions::check() const {
  auto invalid = [](auto... parts) {
    return Error(ErrorCode::kInvalidArgument, cat("[compile options] ", parts...));
  };
  // 2^20 of each keeps the product in range and exceeds any machine.
  constexpr int kMost = 1 << 20;
  if (num_replicas < 1 || num_replicas > kMost)
    return invalid("num_replicas must be 1 to ", kMost, ", got ", num_replicas);
  if (num_partitions < 1 || num_partitions > kMost / num_replicas)
    return invalid("num_partitions must be 1 to ", kMost / num_replicas, ", got ", num_partitions);
  if (num_partitions > 1 && !use_spmd_partitioning)
    return invalid("num_partitions = ", num_partitions, " needs use_spmd_partitioning");
  if (portable && num_devices() != 1)
    return invalid("a portable executable has one device, not ", num_devices());
  if (!device_assignment.empty()) {
    if (device_assignment.size() != static_cast<std::size_t>(num_devices()))
      return invalid("the device assignment has ", device_assignment.size(), " entries, but ",
                     num_replicas, " replicas x ", num_partitions, " partitions need ",
                     num_devices());
    std::unordered_set<int> seen;
    for (int id : device_assignment) {
      if (id < 0) return invalid("device id ", id, " in the device assignment is negative");
      if (!seen.insert(id).second)
        return invalid("device id ", id, " is in the device assignment twice");
    }
  }
  if (propagate_to_parameters.size() > 1 &&
      parameter_count != std::optional(propagate_to_parameters.size()))
    return invalid("propagate_to_parameters has ", propagate_to_parameters.size(),
                   " entries, and parameter_count must be the same number; it is ",
                   parameter_count ? cat(*parameter_count) : "not given");
  return {};
}

std::string CompileOptions::serialize() const {
  WireWriter build;
  build.add_varint(kNumReplicas, static_cast<std::uint64_t>(num_replicas));
  build.add_varint(kNumPartitions, static_cast<std::uint64_t>(num_partitions));
  build.add_varint(kUseSpmd, use_spmd_partitioning);
  if (!device_assignment.empty())
    build.add_message(kDeviceAssignment, pjrt::device_assignment(*this));
  if (alias_passthrough_parameters) build.add_varint(kAliasPassthrough, 1);
  build.add_packed(kPropagateToOutputs, propagate_to_outputs);
  build.add_packed(kPropagateToParameters, propagate_to_parameters);
  build.add_varint(kUseShardy, use_shardy);
  if (memory_fitting_level != 0)
    build.add_varint(kMemoryFittingLevel, static_cast<std::uint64_t>(memory_fitting_level));

  WireWriter all;
  all.add_message(kBuildOptions, build);
  if (portable) all.add_varint(kPortable, 1);
  for (const auto& [name, value] : overrides) {
    WireWriter entry;
    entry.add_bytes(1, name);
    entry.add_message(2, override_value(value));
    all.add_message(kOverrides, entry);
  }
  return all.take();
}

std::string compiler_variables() {
  std::string lines;
  for (const char* name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS", "TPU_LIBRARY_PATH"})
    if (const char* value = std::getenv(name)) append(lines, name, "=", value, "\n");
  return lines;
}

}  // namespace meshard::pjrt
