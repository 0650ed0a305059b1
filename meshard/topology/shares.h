// Enumerates the ways to take a number of places from several directions.
#pragma once
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// Calls take(shares) for each list of shares, one per direction, whose product is `size`. Each
/// share divides the free places of its direction. The lists come in ascending lexicographic order.
/// @pre `size` and all entries of `free` are at least 1
template <class Take>
void for_each_share(IntView free, std::int64_t size, Take&& take) {
  auto extend = [&](auto&& self, IntVector& shares, std::int64_t rest) -> void {
    if (shares.size() == free.size()) {
      if (rest == 1) take(shares);
      return;
    }
    std::int64_t room = free[shares.size()];
    for (std::int64_t share = 1; share <= room && share <= rest; ++share) {
      if (room % share != 0 || rest % share != 0) continue;
      shares.push_back(share);
      self(self, shares, rest / share);
      shares.pop_back();
    }
  };
  IntVector shares;
  extend(extend, shares, size);
}

}  // namespace meshard
