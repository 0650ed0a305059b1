// A compiled program, parsed from the plugin's bytes: the parts that explaining it requires.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/instruction.h"
#include "meshard/hlo/interface.h"

namespace meshard {

/// A computation: the instructions of a function, a loop body, or a fusion.
struct HloComputation {
  std::int64_t id = 0;
  std::string name;
  std::int64_t root = 0;  // id of an instruction
  std::vector<HloInstruction> instructions;
  /// Ids in execution order; empty if the module has no schedule.
  std::vector<std::int64_t> schedule;

  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t instruction) const;
};

/// An output that aliases a parameter's memory.
struct HloAlias {
  std::vector<std::int64_t> output_index;
  std::int64_t parameter = 0;
  std::vector<std::int64_t> parameter_index;
  bool must_alias = false;
};

/// One frame of a call stack.
struct HloFrame {
  std::string file;
  std::string function;
  std::int64_t line = 0;
  /// The caller: an index in HloModule::frames, from 1. 0: none.
  std::int64_t parent = 0;
  friend bool operator==(const HloFrame&, const HloFrame&) = default;
};

/// A module: its computations, and what the partitioner decided about its inputs and outputs.
struct HloModule : HloInterface {
  std::string name;
  std::string entry_name;
  std::int64_t entry_id = 0;
  std::vector<HloComputation> computations;
  std::vector<HloAlias> aliases;
  /// The frames of the call stacks; HloMetadata::stack_frame is an index in this list, from 1. A
  /// frame that the module refers to but does not describe is empty.
  std::vector<HloFrame> frames;
  /// Device ids by partition and replica: [partition][replica]. Empty if not present.
  std::vector<std::vector<std::int64_t>> device_assignment;

  /// Reads the bytes of Executable::optimized_program(). Instructions that refer to a frame of a
  /// call stack get the innermost frame's file and line.
  /// @error data loss if they are damaged
  static Result<HloModule> from_bytes(std::string_view module_with_config);

  const HloComputation* find(std::int64_t computation) const;
  /// The entry computation. @pre the module has one, which from_bytes ensures
  const HloComputation& entry() const;
};

}  // namespace meshard
