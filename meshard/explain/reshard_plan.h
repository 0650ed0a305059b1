// What it takes to bring a value from one sharding to another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/collective.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: one movement of data. kAllGather, kAllToAll or kCollectivePermute.
struct ReshardStep {
  CollectiveKind kind = CollectiveKind::kAllGather;
  /// The axes that are gathered, or that move to another dimension. Empty for a permutation.
  AxisList axes = {};
  /// The larger of what one device gives and gets.
  std::int64_t bytes = 0;

  friend bool operator==(const ReshardStep&, const ReshardStep&) = default;
};

/// A value: the movements of one reshard, in order. None: each device cuts its part out of what it
/// has.
struct ReshardPlan {
  std::vector<ReshardStep> steps;
  /// Every device gets the whole value and cuts its part out of it, though neither sharding is
  /// replicated.
  bool full_rematerialization = false;

  bool is_free() const { return steps.empty(); }
  /// Sum over the steps.
  std::int64_t bytes() const;
};

/// How XLA's partitioner goes from one sharding to another, told from how many tiles each dimension
/// has before and after (openxla/xla, xla/service/spmd/spmd_partitioner.cc,
/// PartitionedHlo::ReshardNoCache):
///
/// - more tiles, or as many, in each dimension: devices cut; then a permutation, if the tiles are
///   not where they are wanted;
/// - fewer or as many: that permutation first, then an all-gather for each dimension, last first;
/// - as many in all, of other dimensions: an all-to-all, then a permutation if needed;
/// - else, if the target uses all devices, a cut of whole dimensions may make it the case before;
///   or an all-gather of one dimension may;
/// - else the whole value is gathered and cut again.
///
/// This was compared with the compiler's answer for every pair of shardings of small meshes.
///
/// @pre both are shardings of values of this type, over meshes of the same devices; else
/// all-gathers of everything are planned.
ReshardPlan plan_reshard(const TensorType& type, const Sharding& from, const Sharding& to);

}  // namespace meshard
