// Tested in meshard/io/weights_test.cc.
#include "meshard/io/stored_tensor.h"

#include <optional>

#include "meshard/array/box_overlap.h"

namespace meshard::io {

Result<HostArray> StoredTensor::read(const Box& box) const {
  for (const Part& part : parts_)
    if (part.box == box) return part.file.array(part.name);
  HostArray array = HostArray::uninitialized({type_.dtype, box_shape(box)});
  if (array.size() > 0) MESHARD_RETURN_IF_ERROR(read_into(box, array.mutable_bytes()));
  return array;
}

Result<void> StoredTensor::read_into(const Box& box, std::byte* destination) const {
  for (const Part& part : parts_) {
    std::optional<Box> both = overlap(part.box, box);
    if (!both) continue;
    MESHARD_ASSIGN_OR_RETURN(HostArray source, part.file.array(part.name));
    plan_copy(source.bytes(), source.shape(), relative_to(part.box, *both), destination,
              box_shape(box), relative_to(box, *both), size_in_bytes(type_.dtype))
        .run();
  }
  return {};
}

}  // namespace meshard::io
