#include "meshard/runtime/internal/pad_on_host.h"

namespace meshard {

StridedCopy copy_into_padded(const HostArray& array, const Box& box, HostArray& block) {
  return plan_copy(array.bytes(), array.shape(), box, block.mutable_bytes(), block.shape(),
                   whole_box(box_shape(box)), meshard::size_in_bytes(array.dtype()));
}

HostArray padded_on_host(const HostArray& array, const TensorType& type) {
  if (array.shape() == type.shape) return array;
  HostArray block = HostArray::zeros(type);
  if (array.size() > 0) copy_into_padded(array, whole_box(array.shape()), block).run();
  return block;
}

}  // namespace meshard
