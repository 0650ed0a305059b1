// Tested in meshard/io/load_rule_test.cc.
#include "meshard/io/internal/stored_view.h"

#include <algorithm>

namespace meshard::io::internal {
namespace {

// Copies `array`, whose dimension order[d] is dimension d of the box, into the box of a dense array
// of `shape`.
void copy_in_order(const HostArray& array, const Dimensions& order, const Box& box,
                   std::byte* destination, const Shape& shape) {
  if (array.size() == 0) return;
  auto element = static_cast<std::int64_t>(size_in_bytes(array.dtype()));
  Dimensions from = array.shape().strides(), to = shape.strides();
  StridedCopy copy{
      .source = array.bytes(), .destination = destination, .row_bytes = element, .levels = {}};
  std::size_t rank = order.size();
  for (std::size_t d = 0; d < rank; ++d) copy.destination += box[d].start * to[d] * element;
  // Whole rows, if the last dimensions keep their places.
  std::size_t last = rank;
  while (last > 0 && order[last - 1] == static_cast<std::int64_t>(last - 1)) {
    bool is_dense = last == rank || (to[last - 1] * element == copy.row_bytes &&
                                     from[last - 1] * element == copy.row_bytes);
    if (!is_dense) break;
    copy.row_bytes *= box[last - 1].stop - box[last - 1].start;
    --last;
  }
  for (std::size_t d = 0; d < last; ++d)
    copy.levels.push_back({.count = box[d].stop - box[d].start,
                           .source_stride = from[static_cast<std::size_t>(order[d])] * element,
                           .destination_stride = to[d] * element});
  copy.run();
}

}  // namespace

Result<void> StoredView::read_into(const Box& box, std::byte* destination) const {
  auto along = static_cast<std::size_t>(dimension);
  const Shape whole = box_shape(box);
  const std::int64_t width = part.stop - part.start;
  std::vector<std::int64_t> widths;  // of the sources, in a group
  for (const StoredTensor& source : sources) {
    std::int64_t size = order.empty() ? 1 : source.type().shape[order[along]];
    widths.push_back(size / groups);
  }
  auto copy = [&](const StoredTensor& source, const Box& from, const Box& to) -> Result<void> {
    Box in_source = from;
    for (std::size_t d = 0; d < order.size(); ++d)
      in_source[static_cast<std::size_t>(order[d])] = from[d];
    MESHARD_ASSIGN_OR_RETURN(HostArray array, source.read(in_source));
    if (array.dtype() != dtype) array = array.astype(dtype);
    copy_in_order(array, order, to, destination, whole);
    return {};
  };
  if (order.empty()) return copy(sources[0], box, box);
  for (std::int64_t g = 0; g < groups; ++g) {
    // Positions in the group: of the box, and of each source.
    std::int64_t first = std::max(box[along].start, g * width) - g * width + part.start;
    std::int64_t last = std::min(box[along].stop, (g + 1) * width) - g * width + part.start;
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < sources.size(); begin += widths[k], ++k) {
      std::int64_t start = std::max(first, begin), stop = std::min(last, begin + widths[k]);
      if (start >= stop) continue;
      Box from = box, to = relative_to(box, box);
      from[along] = {g * widths[k] + start - begin, g * widths[k] + stop - begin};
      std::int64_t shift = g * width - part.start - box[along].start;
      to[along] = {start + shift, stop + shift};
      MESHARD_RETURN_IF_ERROR(copy(sources[k], from, to));
    }
  }
  return {};
}

}  // namespace meshard::io::internal
