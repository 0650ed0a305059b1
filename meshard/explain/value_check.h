// Compares the values of a partitioned program with those of one device.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/explain/rounding.h"
#include "meshard/graph/tensor.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// A value: what one device holds of a value.
struct HeldShard {
  int device = 0;
  Box box;
  HostArray data;
};

/// The shards of a computed tensor. Of shards with the same part and the same bytes, the first one.
std::vector<HeldShard> different_shards(const Tensor& tensor, SourceLocation where);

/// A value: the largest distance between the shards of a value and the expected whole value.
/// Of equal distances, the first one.
struct ValueDistance {
  /// In ULPs of the largest expected value; infinite if only one of them is NaN or infinite, or if
  /// integers differ.
  double ulps = 0;
  Dimensions index;
  /// The first device that has it; -1 of a whole value.
  int device = -1;
  double got = 0, expected = 0;
};
ValueDistance farthest(std::span<const HeldShard> shards, const HostArray& expected);
/// The same for a whole value. @pre got and expected have one type
ValueDistance farthest(const HostArray& got, const HostArray& expected);

/// A value: how far a value may be from what is expected.
struct AllowedDistance {
  /// For each element of floating-point numbers.
  double absolute = 0;
  /// What the op gives for operands that differ by rounding. An element that changes with them may
  /// differ: an integer, or NaN, in any way, and a number by a few times as much.
  std::vector<HostArray> perturbed = {};
  /// Whether an element may differ as much as any other one does: sums and loops mix them.
  bool mixes_elements = false;
};

/// Whether all elements of the shards are as near as is allowed.
bool is_near(std::span<const HeldShard> shards, const HostArray& expected,
             const AllowedDistance& allowed);

/// The array with each floating-point number rounded up or down by about one ULP, at random; other
/// arrays as they are. `seed` and `seed + 1`, for even seeds, go in opposite directions.
HostArray perturbed(const HostArray& array, std::uint64_t seed);

/// What an op of a module adds up, with the ops in its regions and in the functions that it calls.
OpSums sums_of(const stablehlo::Module& module, const stablehlo::ModuleOp& op);

}  // namespace meshard
