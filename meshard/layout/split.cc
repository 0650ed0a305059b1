#include "meshard/layout/split.h"

#include <algorithm>
#include <vector>

#include "meshard/layout/coalesce.h"

namespace meshard {
namespace {

// Pieces are gathered minor first; a tuple lists them major first.
IntTuple reversed(IntVector values) {
  std::reverse(values.begin(), values.end());
  return IntTuple::flat(values);
}

}  // namespace

Result<Layout> split(const Layout& layout, IntView sizes) {
  IntTuple wanted = IntTuple::flat(sizes);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[split] ", layout, " into sizes ", wanted, ": ", why));
  };
  for (std::int64_t size : sizes)
    if (size < 1) return failure("a size is below 1");
  if (wanted.product() != layout.size()) return failure("the products differ");

  Layout modes = coalesce(layout);
  std::size_t mode = modes.shape().leaves().size();
  std::int64_t left = 1, stride = 0;  // what is left of the current mode
  std::vector<IntTuple> shapes(sizes.size()), strides(sizes.size());
  for (std::size_t k = sizes.size(); k-- > 0;) {
    IntVector piece_sizes, piece_strides;
    for (std::int64_t need = sizes[k]; need > 1;) {
      if (left == 1) {
        --mode;
        left = modes.shape().leaves()[mode];
        stride = modes.stride().leaves()[mode];
      }
      std::int64_t taken = std::min(left, need);
      if (left % taken != 0 || need % taken != 0) return failure("a mode would be cut unevenly");
      piece_sizes.push_back(taken);
      piece_strides.push_back(stride);
      stride *= taken;
      left /= taken;
      need /= taken;
    }
    shapes[k] = reversed(std::move(piece_sizes));
    strides[k] = reversed(std::move(piece_strides));
  }
  return Layout(IntTuple(std::span<const IntTuple>(shapes)),
                IntTuple(std::span<const IntTuple>(strides)));
}

}  // namespace meshard
