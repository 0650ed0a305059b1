#include "meshard/array/box_overlap.h"

#include <algorithm>

namespace meshard {

std::optional<Box> overlap(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < both.size(); ++d) {
    both[d].start = std::max(a[d].start, b[d].start);
    both[d].stop = std::min(a[d].stop, b[d].stop);
    if (both[d].start >= both[d].stop) return std::nullopt;
  }
  return both;
}

Box relative_to(const Box& outer, Box inner) {
  for (std::size_t d = 0; d < inner.size(); ++d) {
    inner[d].start -= outer[d].start;
    inner[d].stop -= outer[d].start;
  }
  return inner;
}

std::vector<std::int64_t> numbers_in(const Box& box, std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> numbers{0};
  for (std::size_t d = 0; d < box.size(); ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t number : numbers)
      for (std::int64_t i = box[d].start; i < box[d].stop; ++i)
        next.push_back(number * sizes[d] + i);
    numbers = std::move(next);
  }
  return numbers;
}

std::optional<std::int64_t> contiguous_at(const Box& box, const Shape& shape) {
  std::size_t d = 0;
  while (d < box.size() && box[d].size() == 1) ++d;
  for (++d; d < box.size(); ++d)
    if (box[d].size() != shape[static_cast<std::int64_t>(d)]) return std::nullopt;
  const Dimensions strides = shape.strides();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < box.size(); ++i) first += box[i].start * strides[i];
  return first;
}

}  // namespace meshard
