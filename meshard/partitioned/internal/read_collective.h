// Collectives of a partitioned module, read from its instructions.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"
#include "meshard/partitioned/collective_call.h"

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

/// What an instruction does between processes.
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

}  // namespace meshard::internal
