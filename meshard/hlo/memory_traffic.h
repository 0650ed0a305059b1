// What an instruction of a compiled module reads from and writes to a device's main memory.
#pragma once
#include "meshard/hlo/module_index.h"

namespace meshard {

/// Bytes that one instruction reads from and writes to main memory, each time that it runs, without
/// what the computations of a loop, a branch or a call do. Operands and results that lie in another
/// memory (the fast memory on a TPU's chip) do not count, and neither does what only names or
/// groups values. Of slices and updates in place the part counts, also where they are inside a
/// fusion and its operand is used for nothing else. Sizes are with the padding of the layouts.
double memory_traffic(const ModuleIndex& module, const InstructionIndex& computation,
                      const pjrt::HloInstruction& instruction);

}  // namespace meshard
