#include "meshard/layout/split.h"

#include <span>
#include <vector>

#include "meshard/layout/composition.h"

namespace meshard {
namespace {

// The pieces of a mode as a tuple, which is empty for size 1.
IntTuple pieces_of(const IntTuple& mode, std::int64_t size) {
  if (!mode.is_integer()) return mode;
  // Not IntTuple{mode}: compilers that implement only CWG 1467 treat it as a copy.
  return size == 1 ? IntTuple() : IntTuple(std::span<const IntTuple>(&mode, 1));
}

}  // namespace

Result<Layout> split(const Layout& layout, IntView sizes) {
  IntTuple wanted = IntTuple::flat(sizes);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[split] ", layout, " into sizes ", wanted, ": ", why));
  };
  std::int64_t product = 1;
  for (std::int64_t size : sizes) {
    if (size < 1) return failure("a size is below 1");
    if (__builtin_mul_overflow(product, size, &product)) return failure("the products differ");
  }
  if (product != layout.size()) return failure("the products differ");
  Result<Layout> cut = composition(layout, Layout(wanted));
  if (!cut) return failure(cut.error().message());
  std::vector<IntTuple> shapes, strides;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    shapes.push_back(pieces_of(cut->shape()[k], sizes[k]));
    strides.push_back(pieces_of(cut->stride()[k], sizes[k]));
  }
  return Layout(IntTuple(std::span<const IntTuple>(shapes)),
                IntTuple(std::span<const IntTuple>(strides)));
}

}  // namespace meshard
