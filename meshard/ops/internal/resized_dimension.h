// Sharding-rule factors of a dimension that an op makes longer or shorter.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard::internal {

/// The factors of one dimension in several tensors, for slice, pad and concat, which move parts of
/// it along the dimension. sizes[t] is its size in tensor t. The greatest common divisor of the
/// sizes is one factor, the most significant, whose shards exchange parts (kPermutation); the
/// remaining factor of each size must be whole.
std::vector<DimensionFactors> resized_dimension(ShardingRuleBuilder& builder,
                                                std::span<const std::int64_t> sizes);

/// The factors of a tensor and of a box cut from it: dimensions of equal size share a factor.
struct BoxFactors {
  TensorFactors whole, box;
};
BoxFactors box_factors(ShardingRuleBuilder& builder, const Shape& whole, const Shape& box);

}  // namespace meshard::internal
