#include "meshard/layout/layout.h"

#include <numeric>

#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

void check_sizes(const IntTuple& shape) {
  for (std::int64_t size : shape.leaves())
    if (size < 1) throw_invalid({}, "[layout] a size below 1 in shape ", shape);
}

IntTuple row_major_stride(const IntTuple& shape) {
  check_sizes(shape);
  IntVector stride(shape.leaves().begin(), shape.leaves().end());
  std::int64_t running = 1;
  shape.product();  // throws if it does not fit
  for (std::size_t i = stride.size(); i-- > 0;) {
    std::int64_t size = stride[i];
    stride[i] = running;
    running *= size;
  }
  return shape.with_leaves(stride);
}

std::int64_t at_index(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                      std::int64_t index) {
  std::int64_t value = 0;
  for (std::size_t i = sizes.size(); i-- > 1;) {
    value += index % sizes[i] * strides[i];
    index /= sizes[i];
  }
  return sizes.empty() ? 0 : value + index * strides[0];
}

std::int64_t at_coordinate(const IntTuple& shape, const IntTuple& stride,
                           const IntTuple& coordinate) {
  std::span<const std::int64_t> digits = coordinate.leaves();
  if (coordinate.congruent(shape))
    return std::inner_product(digits.begin(), digits.end(), stride.leaves().begin(),
                              std::int64_t{0});
  if (coordinate.is_integer()) return at_index(shape.leaves(), stride.leaves(), digits[0]);
  if (shape.is_integer() || coordinate.rank() != shape.rank())
    throw_invalid({}, "[layout] coordinate ", coordinate, " does not fit shape ", shape);
  std::int64_t value = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    value += at_coordinate(shape[i], stride[i], coordinate[i]);
  return value;
}

}  // namespace

Layout::Layout(IntTuple shape) : Layout(shape, row_major_stride(shape)) {}

Layout::Layout(IntTuple shape, IntTuple stride)
    : shape_(std::move(shape)), stride_(std::move(stride)) {
  if (!shape_.congruent(stride_))
    throw_invalid({}, "[layout] shape ", shape_, " and stride ", stride_, " differ in nesting");
  std::span<const std::int64_t> sizes = shape_.leaves(), strides = stride_.leaves();
  bool fits = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t reach;
    if (sizes[i] < 1) throw_invalid({}, "[layout] a size below 1 in shape ", shape_);
    if (strides[i] == hole) throw_invalid({}, "[layout] a hole in stride ", stride_);
    fits &= !__builtin_mul_overflow(size_, sizes[i], &size_) &&
            !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
            !__builtin_add_overflow(cosize_, std::max<std::int64_t>(reach, 0), &cosize_);
  }
  if (!fits) throw_invalid({}, "[layout] the indices or values of ", *this, " do not fit 64 bits");
}

Layout Layout::of_modes(IntVector&& sizes, IntVector&& strides) {
  if (sizes.empty()) return Layout(IntTuple(1), IntTuple(0));
  if (sizes.size() == 1) return Layout(IntTuple(sizes[0]), IntTuple(strides[0]));
  return Layout(IntTuple::flat(std::move(sizes)), IntTuple::flat(std::move(strides)));
}

std::int64_t Layout::operator()(std::int64_t index) const {
  return at_index(shape_.leaves(), stride_.leaves(), index);
}

std::int64_t Layout::operator()(const IntTuple& coordinate) const {
  return at_coordinate(shape_, stride_, coordinate);
}

std::string Layout::to_string() const { return cat(shape_, ":", stride_); }

Result<Layout> Layout::parse(std::string_view text) {
  return parse_whole("layout", text, [](TextScanner& scanner) {
    IntTuple shape = IntTuple::read(scanner);
    scanner.expect(":");
    return Layout(std::move(shape), IntTuple::read(scanner));
  });
}

std::size_t Layout::hash() const {
  // The seed distinguishes the hashes of shapes that equal their strides.
  return hash_combine(hash_combine(1, shape_.hash()), stride_.hash());
}

}  // namespace meshard
