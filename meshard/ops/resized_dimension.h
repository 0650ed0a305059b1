// The factors of a dimension that an op makes longer or shorter.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// The factors of one dimension in several tensors, where slice, pad and concat move parts of it
/// along: sizes[t] is its size in tensor t. What divides all sizes is one factor, the most
/// significant, that shards exchange parts of (kPermutation); what is left of each size must be
/// whole.
std::vector<DimensionFactors> resized_dimension(ShardingRuleBuilder& builder,
                                                std::span<const std::int64_t> sizes);

/// The factors of a tensor and of a box of it: dimensions of equal size are one factor.
struct BoxFactors {
  TensorFactors whole, box;
};
BoxFactors box_factors(ShardingRuleBuilder& builder, const Shape& whole, const Shape& box);

}  // namespace meshard
