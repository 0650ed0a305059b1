// Which mesh axes a collective instruction runs over.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/hlo/module.h"
#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// (source, target) pairs of mesh positions.
using PositionPairs = std::span<const std::pair<std::int64_t, std::int64_t>>;

/// The axes of an instruction's device groups, and the size of a group.
struct GroupAxes {
  std::optional<AxisList> axes;
  std::int64_t group_size = 0;
};

/// Finds the mesh axes of an instruction's device groups, in any form of groups. A compiled module
/// numbers devices by their positions in the program's mesh. Programs have one replica; the meaning
/// of the numbers then follows HLO's rules: with a channel and global ids, or in an all-to-all,
/// devices; with a channel only, replicas with all devices of each; without a channel, replicas
/// (xla/service/collective_ops_utils.h, GetCollectiveOpGroupMode).
/// @error data loss or unimplemented if the groups cannot be parsed.
Result<GroupAxes> axes_of_instruction(const HloInstruction& instruction, const Mesh& mesh);

/// The axes along which a permutation moves data.
struct PermutationAxes {
  /// The whole axes along which source and target differ in at least one pair; none if a number is
  /// not a valid position.
  std::optional<AxisList> axes;
  /// Empty if the pairs have different shifts.
  std::vector<AxisShift> shifts;
};

/// The axes along which a permutation moves data, and how far. The shifts are given for each axis
/// separately if that explains the pairs, else for all the axes flattened. Pairs of a device with
/// itself count.
PermutationAxes axes_of_permutation(const Mesh& mesh, PositionPairs pairs);

/// Value type: the mesh positions of each slice. For a program over several slices, a TPU compiler
/// produces the program of one slice, which is the same for all: it numbers the slice's devices 0
/// to n-1, in mesh order, and reaches other slices by sends and receives (libtpu 0.0.51).
class SliceNumbering {
 public:
  using Groups = std::vector<std::vector<std::int64_t>>;

  /// None unless the module's device count equals that of each of several slices.
  static std::optional<SliceNumbering> of(const HloModule& module, const Mesh& mesh,
                                          const Topology& topology);

  /// Converts groups of a slice's device numbers to groups of mesh positions, for all slices. If
  /// there are no groups, all devices of a slice form one.
  /// @error out of range: a number that does not exist in the slice
  Result<Groups> positions(Groups groups) const;
  /// The same for the pairs of a permutation.
  Result<std::vector<std::pair<std::int64_t, std::int64_t>>> positions(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const;
  /// The groups of devices with the same number in different slices.
  Groups across() const;

 private:
  explicit SliceNumbering(Groups slices) : slices_(std::move(slices)) {}
  Result<std::int64_t> position(std::size_t slice, std::int64_t number) const;
  Groups slices_;
};

}  // namespace meshard
