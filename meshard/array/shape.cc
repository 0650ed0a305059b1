#include "meshard/array/shape.h"

#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/fingerprint.h"

namespace meshard {
namespace {

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool consume(std::string_view& text, char wanted) {
  skip_spaces(text);
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

Error bad_text(std::string_view what, std::string_view text, std::string_view example) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[", what, "] cannot read \"", text, "\": expected a form like ", example));
}

/// Parses `[8, 4]` up to the end of the text.
bool read_sizes(std::string_view text, Dimensions& sizes) {
  if (!consume(text, '[')) return false;
  while (!consume(text, ']')) {
    if (!sizes.empty() && !consume(text, ',')) return false;
    skip_spaces(text);
    std::int64_t size = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{} || size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    sizes.push_back(size);
  }
  skip_spaces(text);
  return text.empty();
}

}  // namespace

void Shape::check(const SourceLocation& where) const {
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    if (sizes_[i] < 0) [[unlikely]]
      throw Error(
          ErrorCode::kInvalidArgument,
          cat("[shape] the size of dimension ", i, " is negative: [", join(sizes_, ", "), "]"),
          where);
}

std::int64_t Shape::operator[](std::int64_t dimension) const {
  return sizes_[static_cast<std::size_t>(normalize_dimension(dimension, rank()))];
}

std::int64_t Shape::size() const {
  std::int64_t product = 1;
  bool overflow = false;
  for (std::int64_t size : sizes_) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflow) [[unlikely]]
    throw Error(ErrorCode::kOutOfRange, cat("[shape] more than 2^63 - 1 elements: ", to_string()));
  return product;
}

Dimensions Shape::strides() const {
  Dimensions strides(sizes_.size());
  std::int64_t product = 1;
  for (std::size_t i = sizes_.size(); i-- > 0;) {
    strides[i] = product;
    product *= sizes_[i] == 0 ? 1 : sizes_[i];
  }
  return strides;
}

Shape Shape::with(std::int64_t dimension, std::int64_t size) const {
  Dimensions sizes = sizes_;
  sizes[static_cast<std::size_t>(normalize_dimension(dimension, rank()))] = size;
  return Shape(std::move(sizes));
}

std::string Shape::to_string() const { return cat("[", join(sizes_, ", "), "]"); }

Result<Shape> Shape::parse(std::string_view text) {
  Dimensions sizes;
  if (!read_sizes(text, sizes)) return bad_text("shape", text, "[8, 4]");
  return Shape(std::move(sizes));
}

std::size_t Shape::hash() const {
  std::size_t seed = sizes_.size();
  for (std::int64_t size : sizes_) seed = hash_combine(seed, static_cast<std::size_t>(size));
  return seed;
}

int normalize_dimension(std::int64_t dimension, int rank, std::string_view place,
                        SourceLocation where) {
  if (dimension < -rank || dimension >= rank) [[unlikely]]
    throw Error(
        ErrorCode::kOutOfRange,
        rank == 0 ? cat("[", place, "] dimension ", dimension, " is invalid for a scalar (rank 0)")
                  : cat("[", place, "] dimension ", dimension, " is outside ", -rank, "..",
                        rank - 1, " (rank ", rank, ")"),
        where);
  return static_cast<int>(dimension < 0 ? dimension + rank : dimension);
}

std::int64_t TensorType::bytes() const {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.size(), static_cast<std::int64_t>(size_in_bytes(dtype)), &bytes))
      [[unlikely]]
    throw Error(ErrorCode::kOutOfRange, cat("[shape] more than 2^63 - 1 bytes: ", to_string()));
  return bytes;
}

std::string TensorType::to_string() const {
  return cat(meshard::to_string(dtype), "[", join(shape.sizes(), ","), "]");
}

Result<TensorType> TensorType::parse(std::string_view text) {
  std::size_t bracket = text.find('[');
  Dimensions sizes;
  if (bracket == std::string_view::npos || !read_sizes(text.substr(bracket), sizes))
    return bad_text("type", text, "f32[8,4]");
  MESHARD_ASSIGN_OR_RETURN(DType dtype, parse_dtype(text.substr(0, bracket)));
  return TensorType{dtype, Shape(std::move(sizes))};
}

std::size_t TensorType::hash() const {
  return hash_combine(shape.hash(), static_cast<std::size_t>(dtype));
}

}  // namespace meshard
