// Tested in meshard/ops/movement_test.cc.
#include "meshard/ops/internal/resized_dimension.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace meshard::internal {

std::vector<DimensionFactors> resized_dimension(ShardingRuleBuilder& builder,
                                                std::span<const std::int64_t> sizes) {
  std::vector<DimensionFactors> factors(sizes.size());
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  std::int64_t common = 0;
  for (std::int64_t size : sizes) common = std::gcd(common, size);
  if (empty) common = 1;
  int shared = common == 1 ? 0 : builder.factor(common, FactorKind::kPermutation);
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    if (common != 1) factors[t].push_back(shared);
    if (common == 1 || sizes[t] != common)
      factors[t].push_back(builder.factor(sizes[t] / common, FactorKind::kNeedReplication));
  }
  return factors;
}

BoxFactors box_factors(ShardingRuleBuilder& builder, const Shape& whole, const Shape& box) {
  BoxFactors out;
  for (int d = 0; d < whole.rank(); ++d) {
    if (whole[d] == box[d]) {
      out.whole.push_back({builder.factor(whole[d])});
      out.box.push_back(out.whole.back());
    } else {
      auto factors = resized_dimension(builder, std::array{whole[d], box[d]});
      out.whole.push_back(factors[0]);
      out.box.push_back(factors[1]);
    }
  }
  return out;
}

}  // namespace meshard::internal
