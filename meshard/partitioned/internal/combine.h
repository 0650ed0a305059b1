// Which all-reduces of a computation become one call.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "meshard/partitioned/internal/edited_module.h"
#include "meshard/partitioned/internal/read_collective.h"

namespace meshard::internal {

/// All-reduces of at most this many bytes are combined: sending more takes longer than a call, and
/// combined operands are copied.
inline constexpr std::int64_t kMostCombinedBytes = 1 << 20;
/// A combined call has at most this many bytes.
inline constexpr std::int64_t kMostBytesOfCall = 4 << 20;

/// The collective that an instruction is, or null.
using CollectiveOf = std::function<const FoundCollective*(const EditedInstruction&)>;

/// An order of the instructions, given by their indices, in which operands precede their users.
/// Each entry is one instruction, or several all-reduces with one group, reduction and element
/// type that do not depend on one another. Without any to combine, the order does not change.
std::vector<std::vector<std::size_t>> combined_order(const EditedComputation& computation,
                                                     const CollectiveOf& collective_of);

}  // namespace meshard::internal
