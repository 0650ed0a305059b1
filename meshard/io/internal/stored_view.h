// Tensors made of tensors in files: transposed, joined, split, converted.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/base/result.h"
#include "meshard/io/safetensors.h"

namespace meshard::io::internal {

/// A value: sources whose dimensions are put into another order; which are then joined along a
/// dimension; of which a part is taken; whose elements are converted. Only the needed parts of the
/// sources are read.
///
/// The joined dimension consists of `groups` groups. Each has a piece of every source, in turn, so
/// that source k with n elements there has n / groups in each group. The part is a range of each
/// group.
struct StoredView {
  std::vector<StoredTensor> sources;
  Dimensions order;            ///< dimension d of the result is dimension order[d] of a source
  std::int64_t dimension = 0;  ///< of the result, along which they are joined
  std::int64_t groups = 1;
  DimensionSlice part;  ///< of each group
  DType dtype = DType::f32;

  /// Reads the elements of the result in a box, in row-major order.
  /// @pre the box is inside @error as StoredTensor::read
  Result<void> read_into(const Box& box, std::byte* destination) const;
};

}  // namespace meshard::io::internal
