// A compiled program as the plugin tells it: what is needed to explain it, read from its bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/hlo_instruction.h"

namespace meshard::pjrt {

/// Instructions that run together: a function, a loop's body, what a fusion does.
struct HloComputation {
  std::int64_t id = 0;
  std::string name;
  std::int64_t root = 0;  // id of an instruction
  std::vector<HloInstruction> instructions;
  /// Ids in the order in which the device runs them; empty if the module has no schedule.
  std::vector<std::int64_t> schedule;

  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t instruction) const;
};

/// An output that lies in the memory of a parameter.
struct HloAlias {
  std::vector<std::int64_t> output_index;
  std::int64_t parameter = 0;
  std::vector<std::int64_t> parameter_index;
  bool must_alias = false;
};

/// A module: its computations, and what the partitioner decided about its boundary.
struct HloModule {
  std::string name;
  std::string entry_name;
  std::int64_t entry_id = 0;
  std::vector<HloComputation> computations;
  /// What one device takes and gives: shard shapes.
  std::vector<HloShape> parameters;
  HloShape result;
  std::vector<HloAlias> aliases;
  /// What the compiler chose; empty if the module does not say.
  std::optional<OpSharding> output_sharding;
  std::vector<OpSharding> parameter_shardings;
  /// Device ids by replica and partition: [partition][replica]. Empty if not given.
  std::vector<std::vector<std::int64_t>> device_assignment;

  /// Reads the bytes of Executable::optimized_program().
  /// Instructions that name a frame of a call stack are given the innermost frame's file and line.
  /// @error data loss if they are damaged
  static Result<HloModule> from_bytes(std::string_view module_with_config);

  const HloComputation* find(std::int64_t computation) const;
  /// The computation that runs first. @pre the module has one, which from_bytes made sure of
  const HloComputation& entry() const;
};

}  // namespace meshard::pjrt
