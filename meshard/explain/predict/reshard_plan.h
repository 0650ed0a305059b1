// Predicts the collectives that change a value from one sharding to another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Value type: one collective: kAllGather, kAllToAll or kCollectivePermute.
struct ReshardStep {
  CollectiveKind kind = CollectiveKind::kAllGather;
  /// The axes that are gathered, or that move to another dimension. Empty for a permutation.
  AxisList axes = {};
  /// The larger of what one device sends and receives.
  std::int64_t bytes = 0;

  friend bool operator==(const ReshardStep&, const ReshardStep&) = default;
};

/// A predicted collective, for LinkModel. Without axes it is over all devices of the mesh.
Collective predicted_collective(CollectiveKind kind, const AxisList& axes, std::int64_t bytes,
                                std::int64_t devices);

/// Value type: the steps of one reshard, in order. No steps: each device slices its part from its
/// own data.
struct ReshardPlan {
  std::vector<ReshardStep> steps;
  /// True if every device receives the whole value and slices its part from it. Not set if one of
  /// the shardings is replicated.
  bool full_rematerialization = false;

  bool is_free() const { return steps.empty(); }
  /// Sum over the steps.
  std::int64_t bytes() const;
};

/// Models how XLA's partitioner changes a sharding to another. The plan depends on the number of
/// tiles of each dimension before and after (openxla/xla, xla/service/spmd/spmd_partitioner.cc,
/// PartitionedHlo::ReshardNoCache):
///
/// - each dimension has as many or more tiles after: devices slice; then a permutation, if the
///   tiles are not in place;
/// - as many or fewer: that permutation first, then an all-gather for each dimension, last first;
/// - the same total, in different dimensions: an all-to-all, then a permutation if needed;
/// - else, if the target uses all devices, slicing whole dimensions may give the previous case; or
///   an all-gather of one dimension may;
/// - else the whole value is gathered and sliced.
///
/// The plans were compared with the compiler's output for all pairs of shardings of small meshes.
///
/// @pre both are shardings of values of this type, over meshes of the same devices; otherwise the
/// plan gathers everything.
ReshardPlan plan_reshard(const TensorType& type, const Sharding& from, const Sharding& to);

}  // namespace meshard
