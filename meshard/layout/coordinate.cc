#include "meshard/layout/coordinate.h"

#include "meshard/layout/layout.h"

namespace meshard {

IntTuple coordinate_of(const IntTuple& shape, std::int64_t index) {
  IntVector digits(shape.leaves().begin(), shape.leaves().end());
  for (std::size_t i = digits.size(); i-- > 1;) {
    std::int64_t size = digits[i];
    digits[i] = index % size;
    index /= size;
  }
  if (!digits.empty()) digits[0] = index;
  return shape.with_leaves(digits);
}

std::int64_t index_of(const IntTuple& shape, const IntTuple& coordinate) {
  return Layout(shape)(coordinate);
}

}  // namespace meshard
