// Tested in meshard/io/weights_test.cc.
#include "meshard/io/stored_tensor.h"

#include <algorithm>
#include <optional>

namespace meshard::io {
namespace {

// Empty if the boxes have no element in common.
std::optional<Box> common_part(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < both.size(); ++d) {
    both[d].start = std::max(a[d].start, b[d].start);
    both[d].stop = std::min(a[d].stop, b[d].stop);
    if (both[d].start >= both[d].stop) return std::nullopt;
  }
  return both;
}

Box inside_of(const Box& outer, Box inner) {
  for (std::size_t d = 0; d < inner.size(); ++d) {
    inner[d].start -= outer[d].start;
    inner[d].stop -= outer[d].start;
  }
  return inner;
}

}  // namespace

Result<HostArray> StoredTensor::read(const Box& box) const {
  for (const Part& part : parts_)
    if (part.box == box) return part.file.array(part.name);
  HostArray array = HostArray::uninitialized({type_.dtype, box_shape(box)});
  if (array.size() > 0) MESHARD_RETURN_IF_ERROR(read_into(box, array.mutable_bytes()));
  return array;
}

Result<void> StoredTensor::read_into(const Box& box, std::byte* destination) const {
  for (const Part& part : parts_) {
    std::optional<Box> both = common_part(part.box, box);
    if (!both) continue;
    MESHARD_ASSIGN_OR_RETURN(HostArray source, part.file.array(part.name));
    plan_copy(source.bytes(), source.shape(), inside_of(part.box, *both), destination,
              box_shape(box), inside_of(box, *both), size_in_bytes(type_.dtype))
        .run();
  }
  return {};
}

}  // namespace meshard::io
