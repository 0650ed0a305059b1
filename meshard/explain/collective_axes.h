// Which mesh axes a collective instruction runs over.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collective.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// Pairs (source, target) of positions of a mesh.
using PositionPairs = std::span<const std::pair<std::int64_t, std::int64_t>>;

/// The axes of an instruction's device groups, and the size of a group.
struct GroupAxes {
  std::optional<AxisList> axes;
  std::int64_t group_size = 0;
};

/// Reads the groups, in whichever form they are written. A compiled module numbers devices by their
/// positions in the program's mesh. Programs have one replica; what a group's numbers count then
/// follows HLO's rules: with a channel and global ids, or in an all-to-all, devices; with a channel
/// alone, replicas with all devices of each; without a channel, replicas
/// (xla/service/collective_ops_utils.h, GetCollectiveOpGroupMode).
/// @error data loss or unimplemented if the groups cannot be read.
Result<GroupAxes> axes_of_instruction(const pjrt::HloInstruction& instruction, const Mesh& mesh);

/// Where a permutation moves data.
struct PermutationAxes {
  /// The whole axes along which source and target differ in some pair; none if a number is no
  /// position.
  std::optional<AxisList> axes;
  /// Empty if pairs differ in how far they move.
  std::vector<AxisShift> shifts;
};

/// The axes that a permutation moves data along, and by how much: each axis on its own if that
/// explains the pairs, else all of them taken as one. Pairs of a device with itself count.
PermutationAxes axes_of_permutation(const Mesh& mesh, PositionPairs pairs);

}  // namespace meshard
