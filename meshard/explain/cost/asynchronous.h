// The instructions that start and end asynchronous work of a compiled module.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "meshard/hlo/module_index.h"

namespace meshard {

/// True for an instruction that starts asynchronous work: a collective, copy or send that another
/// instruction ends, or a fusion with the custom call `AsyncCollectiveStart` (libtpu 0.0.51).
bool starts_asynchronous(const ModuleIndex& module, const HloInstruction& one);

/// True for an instruction that waits for such work, or a fusion with `AsyncCollectiveDone`.
bool ends_asynchronous(const ModuleIndex& module, const HloInstruction& one);

/// The starts and ends of one computation. Refers to the module.
class AsynchronousPairs {
 public:
  AsynchronousPairs(const ModuleIndex& module, const InstructionIndex& in);

  /// The instruction whose work this one ends; null if it ends none of the computation's.
  const HloInstruction* start_of(const HloInstruction& end) const;

 private:
  std::unordered_map<const HloInstruction*, const HloInstruction*> start_of_;
};

}  // namespace meshard
