#pragma once
#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// Which element of a window is selected; the first in row-major order if several are equal.
enum class WindowSelect : std::uint8_t { kGreatest, kLeast };

template <>
struct EnumNames<WindowSelect> {
  static constexpr EnumName<WindowSelect> kNames[] = {{WindowSelect::kGreatest, "greatest"},
                                                      {WindowSelect::kLeast, "least"}};
};

struct SelectAndScatterAddAttributes {
  WindowSelect select = WindowSelect::kGreatest;
  Dimensions window, strides, low, high;  ///< an entry for each dimension
  MESHARD_FIELDS(select, window, strides, low, high)
};

/// Adds each element of `source` at the position that its window of `x` selects. The result has the
/// type of `x` and is zero elsewhere. This routes the cotangents of max_pool. Padding is never
/// selected.
/// @error `source` does not have one element per window.
Tensor select_and_scatter_add(In x, In source, SelectAndScatterAddAttributes windows);

}  // namespace meshard
