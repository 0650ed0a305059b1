// Collectives of a partitioned module, read from its instructions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/internal/edited_module.h"

namespace meshard::internal {

/// How the devices of a partitioned program become processes.
struct Placement {
  int partitions = 1;
  /// The rank of the process at each position; empty: the position.
  std::vector<int> ranks;
  std::function<std::string(std::string_view op_name)> source_of;

  int rank(std::int64_t position) const {
    return ranks.empty() ? static_cast<int>(position) : ranks[static_cast<std::size_t>(position)];
  }
};

/// The two halves of an asynchronous collective are separate instructions.
enum class CollectivePart { kWhole, kStart, kDone };

/// The communication of an instruction between processes.
struct FoundCollective {
  CollectiveCallKind kind = CollectiveCallKind::kAllReduce;
  CollectivePart part = CollectivePart::kWhole;
  Reduction reduction = Reduction::kSum;
  std::int32_t dimension = 0;
  std::vector<std::int32_t> ranks = {};
  std::vector<std::int32_t> sizes = {};
  std::string where = {};
};

/// The collective that an instruction is; nothing if it moves no data between partitions. A `done`
/// half has only `part`.
/// @error unimplemented, naming the op and its source line, for an operation between partitions
/// that cannot be replaced; data loss if it is damaged
Result<std::optional<FoundCollective>> find_collective(const HloInstruction& instruction,
                                                       const HloModule& module,
                                                       const Placement& placement);

/// `all-reduce n17 (train.cc:42)`: what an instruction is, and where it comes from.
std::string describe(const HloInstruction& instruction, const Placement& placement);

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
