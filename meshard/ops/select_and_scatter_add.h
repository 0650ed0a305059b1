#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Which element of a window is selected; of equal ones the first, in row-major order.
enum class WindowSelect : std::uint8_t { kGreatest, kLeast };

template <>
struct EnumNames<WindowSelect> {
  static constexpr std::array kNames{
      std::pair{WindowSelect::kGreatest, std::string_view("greatest")},
      std::pair{WindowSelect::kLeast, std::string_view("least")}};
};

struct SelectAndScatterAddAttributes {
  WindowSelect select = WindowSelect::kGreatest;
  Dimensions window, strides, low, high;  ///< an entry for each dimension
  MESHARD_FIELDS(select, window, strides, low, high)
};

/// A tensor like `x` in which every element of `source` is added at the place of the element that
/// its window of `x` selects: what max_pool lets cotangents through by. Padding is never selected.
/// @error `source` has not one element for each window.
Tensor select_and_scatter_add(In x, In source, SelectAndScatterAddAttributes windows);

}  // namespace meshard
