// Memory traffic of instructions of a compiled module.
#pragma once
#include "meshard/hlo/module.h"

namespace meshard {

/// Bytes that one execution of an instruction reads from and writes to main memory. Excludes the
/// bodies of loops, branches and calls. Operands and results in another memory (the on-chip memory
/// of a TPU) do not count, nor do instructions that only name or group values. Slices and in-place
/// updates count only the part that is accessed, also inside a fusion whose operand has no other
/// use. Sizes include layout padding.
double memory_traffic(const ModuleIndex& module, const InstructionIndex& computation,
                      const HloInstruction& instruction);

/// Value type: bytes between a device and the memory of its host.
struct HostTraffic {
  double from_host = 0, to_host = 0;
  friend bool operator==(const HostTraffic&, const HostTraffic&) = default;
};

/// Bytes that one execution of an instruction moves from or to host memory, by the same rules. For
/// an asynchronous instruction, the bytes of its computation, at its start.
HostTraffic host_traffic(const ModuleIndex& module, const InstructionIndex& computation,
                         const HloInstruction& instruction);

}  // namespace meshard
