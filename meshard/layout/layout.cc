#include "meshard/layout/layout.h"

#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

void check_sizes(const IntTuple& shape) {
  for (std::int64_t size : shape.leaves())
    if (size < 1) throw_invalid({}, "[layout] a size below 1 in shape ", shape);
}

IntTuple compact_stride(const IntTuple& shape) {
  check_sizes(shape);
  IntVector stride(shape.leaves().begin(), shape.leaves().end());
  std::int64_t running = 1;
  shape.product();  // checks that it fits
  for (std::size_t i = stride.size(); i-- > 0;) {
    std::int64_t size = stride[i];
    stride[i] = running;
    running *= size;
  }
  return shape.with_leaves(stride);
}

std::int64_t at_coordinate(const IntTuple& shape, const IntTuple& stride,
                           const IntTuple& coordinate) {
  if (coordinate.is_integer()) return Layout(shape, stride)(coordinate.value());
  if (shape.is_integer() || coordinate.rank() != shape.rank())
    throw_invalid({}, "[layout] coordinate ", coordinate, " does not fit shape ", shape);
  std::int64_t value = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    value += at_coordinate(shape[i], stride[i], coordinate[i]);
  return value;
}

}  // namespace

Layout::Layout(IntTuple shape) : Layout(shape, compact_stride(shape)) {}

Layout::Layout(IntTuple shape, IntTuple stride)
    : shape_(std::move(shape)), stride_(std::move(stride)) {
  if (!shape_.congruent(stride_))
    throw_invalid({}, "[layout] shape ", shape_, " and stride ", stride_, " differ in nesting");
  check_sizes(shape_);
  size_ = shape_.product();
  for (std::size_t i = 0; i < shape_.leaves().size(); ++i) {
    std::int64_t reach;
    if (__builtin_mul_overflow(shape_.leaves()[i] - 1, stride_.leaves()[i], &reach) ||
        __builtin_add_overflow(cosize_, std::max<std::int64_t>(reach, 0), &cosize_))
      throw_invalid({}, "[layout] the values of ", to_string(), " do not fit 64 bits");
  }
}

std::int64_t Layout::operator()(std::int64_t index) const {
  std::span<const std::int64_t> sizes = shape_.leaves(), strides = stride_.leaves();
  std::int64_t value = 0;
  for (std::size_t i = sizes.size(); i-- > 1;) {
    value += index % sizes[i] * strides[i];
    index /= sizes[i];
  }
  return sizes.empty() ? 0 : value + index * strides[0];
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

std::size_t Layout::hash() const { return hash_combine(shape_.hash(), stride_.hash()); }

}  // namespace meshard
