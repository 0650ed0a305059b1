#include "meshard/layout/coordinate.h"

#include <vector>

#include "meshard/layout/layout.h"

namespace meshard {
namespace {

[[noreturn]] void throw_misfit(const IntTuple& coordinate, const IntTuple& shape) {
  throw_invalid({}, "[coordinate] ", coordinate, " does not fit shape ", shape);
}

void check_fit(const IntTuple& coordinate, const IntTuple& shape) {
  if (shape.is_integer() || coordinate.rank() != shape.rank()) throw_misfit(coordinate, shape);
}

}  // namespace

IntTuple coordinate_of(const IntTuple& shape, std::int64_t index) {
  IntVector digits(shape.leaves().begin(), shape.leaves().end());
  for (std::size_t i = digits.size(); i-- > 1;) {
    std::int64_t size = digits[i];
    digits[i] = index % size;
    index /= size;
  }
  if (!digits.empty()) digits[0] = index;
  return shape.with_leaves(digits);
}

IntTuple coordinate_of(const IntTuple& shape, const IntTuple& stride, const IntTuple& index) {
  if (!shape.congruent(stride))
    throw_invalid({}, "[coordinate] shape ", shape, " and stride ", stride, " differ in nesting");
  if (!index.is_integer()) {
    check_fit(index, shape);
    std::vector<IntTuple> elements;
    for (std::size_t i = 0; i < shape.rank(); ++i)
      elements.push_back(coordinate_of(shape[i], stride[i], index[i]));
    return IntTuple(std::span<const IntTuple>(elements));
  }
  IntVector digits;
  for (std::size_t i = 0; i < shape.leaves().size(); ++i) {
    if (stride.leaves()[i] < 1)
      throw_invalid({},
                    "[coordinate] a value does not determine the coordinate in a mode of stride ",
                    stride.leaves()[i], " in ", shape, ":", stride);
    digits.push_back(index.value() / stride.leaves()[i] % shape.leaves()[i]);
  }
  return shape.with_leaves(digits);
}

std::int64_t index_of(const IntTuple& shape, const IntTuple& coordinate) {
  return Layout(shape)(coordinate);
}

std::int64_t value_of(const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride) {
  IntVector filled;
  for (std::int64_t value : coordinate.leaves()) filled.push_back(value == hole ? 0 : value);
  return Layout(shape, stride)(coordinate.with_leaves(filled));
}

IntTuple convert_coordinate(const IntTuple& coordinate, const IntTuple& destination,
                            const std::optional<IntTuple>& source) {
  if (!coordinate.is_integer() && destination.is_integer()) {
    if (!source)
      throw_invalid({}, "[coordinate] ", coordinate, " cannot be converted to an index below ",
                    destination, " without the shape of the coordinate");
    return index_of(*source, coordinate);
  }
  if (!coordinate.is_integer()) {
    check_fit(coordinate, destination);
    std::vector<IntTuple> elements;
    for (std::size_t i = 0; i < destination.rank(); ++i)
      elements.push_back(convert_coordinate(coordinate[i], destination[i]));
    return IntTuple(std::span<const IntTuple>(elements));
  }
  if (coordinate.value() < 0 || coordinate.value() >= destination.product())
    throw Error(ErrorCode::kOutOfRange,
                cat("[coordinate] ", coordinate, " is not an index of shape ", destination));
  return coordinate_of(destination, coordinate.value());
}

}  // namespace meshard
