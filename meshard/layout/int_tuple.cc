#include "meshard/layout/int_tuple.h"

#include <algorithm>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/layout/layout.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

// How the profile stores the number of a tuple's elements.
std::int16_t profile_count(std::size_t elements) {
  if (elements > static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max()))
    throw_invalid({}, "[int_tuple] too many elements: ", elements);
  return static_cast<std::int16_t>(elements);
}

// Appends without a call of memmove: most tuples have one to three elements.
template <class List>
void append_all(List& list, const List& more) {
  auto* to = list.append_uninitialized(more.size());
  for (const auto& element : more) *to++ = element;
}

// The addresses of a list's elements.
InlineVector<const IntTuple*, 8> addresses(std::span<const IntTuple> elements) {
  InlineVector<const IntTuple*, 8> pointers;
  pointers.reserve(elements.size());
  for (const IntTuple& element : elements) pointers.push_back(&element);
  return pointers;
}

}  // namespace

IntTuple::IntTuple(std::span<const IntTuple> elements)
    : IntTuple(std::span<const IntTuple* const>(addresses(elements))) {}

IntTuple::IntTuple(std::span<const IntTuple* const> elements) {
  profile_.push_back(profile_count(elements.size()));
  for (const IntTuple* element : elements) {
    append_all(leaves_, element->leaves_);
    append_all(profile_, element->profile_);
  }
}

IntTuple::IntTuple(IntVector&& values, Flat) : leaves_(std::move(values)) {
  std::int16_t count = profile_count(leaves_.size());
  std::int16_t* profile = profile_.append_uninitialized(leaves_.size() + 1);
  profile[0] = count;
  std::fill_n(profile + 1, leaves_.size(), kLeaf);
}

IntTuple IntTuple::operator[](std::size_t i) const {
  if (i >= rank())
    throw Error(ErrorCode::kOutOfRange, cat("[int_tuple] element ", i, " of ", to_string()));
  if (is_integer()) return *this;
  std::size_t at = 1, leaf = 0;
  auto skip = [&](auto&& self, IntTuple* into) -> void {  // skips one element in preorder
    std::int16_t count = profile_[at++];
    if (into) into->profile_.push_back(count);
    if (count == kLeaf) {
      if (into) into->leaves_.push_back(leaves_[leaf]);
      ++leaf;
    }
    for (std::int16_t k = 0; k < count; ++k) self(self, into);
  };
  for (std::size_t k = 0; k < i; ++k) skip(skip, nullptr);
  IntTuple element;
  element.profile_.clear();
  skip(skip, &element);
  return element;
}

std::size_t IntTuple::depth() const {
  if (is_integer()) return 0;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < rank(); ++i) deepest = std::max(deepest, (*this)[i].depth());
  return deepest + 1;
}

IntTuple IntTuple::with_leaves(IntView values) const {
  internal_check(values.size() == leaves_.size(), "[int_tuple] the number of leaves differs");
  IntTuple tuple = *this;
  std::copy(values.begin(), values.end(), tuple.leaves_.begin());
  return tuple;
}

std::int64_t IntTuple::product() const {
  std::int64_t product = 1;
  for (std::int64_t leaf : leaves_)
    if (__builtin_mul_overflow(product, leaf, &product))
      throw_invalid({}, "[int_tuple] the product of ", to_string(), " does not fit 64 bits");
  return product;
}

std::string IntTuple::to_string() const {
  std::string out;
  std::size_t at = 0, leaf = 0;
  auto print = [&](auto&& self) -> void {
    std::int16_t count = profile_[at++];
    if (count == kLeaf) {
      std::int64_t value = leaves_[leaf++];
      return value == hole ? append(out, '_') : append(out, value);
    }
    out += '(';
    for (std::int16_t k = 0; k < count; ++k) {
      if (k > 0) out += ',';
      self(self);
    }
    out += ')';
  };
  print(print);
  return out;
}

IntTuple IntTuple::read(TextScanner& scanner) {
  auto read = [&scanner](auto&& self, int depth) -> IntTuple {
    if (scanner.accept("_")) return IntTuple(hole);
    if (!scanner.accept("(")) return IntTuple(scanner.integer());
    if (depth == kMaxParsedDepth) scanner.fail(cat("nested more than ", depth, " levels deep"));
    std::vector<IntTuple> elements;
    scanner.list(")", [&] { elements.push_back(self(self, depth + 1)); });
    return IntTuple(std::span<const IntTuple>(elements));
  };
  return read(read, 0);
}

Result<IntTuple> IntTuple::parse(std::string_view text) {
  return parse_whole("int tuple", text, [](TextScanner& scanner) { return read(scanner); });
}

std::size_t IntTuple::hash() const {
  std::size_t seed = profile_.size();
  for (std::int16_t count : profile_) seed = hash_combine(seed, static_cast<std::size_t>(count));
  for (std::int64_t leaf : leaves_) seed = hash_combine(seed, static_cast<std::size_t>(leaf));
  return seed;
}

bool has_hole(const IntTuple& tuple) {
  return std::find(tuple.leaves().begin(), tuple.leaves().end(), hole) != tuple.leaves().end();
}

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

namespace {

[[noreturn]] void throw_unlike(std::string_view operation, const IntTuple& a, const IntTuple& b) {
  throw_invalid({}, "[", operation, "] ", a, " and ", b, " differ in nesting");
}

std::int64_t checked_product(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw_invalid({}, "[", operation, "] ", a, " times ", b, " does not fit 64 bits");
  return product;
}

// The tuple of the results of `element(a[i], b[i])`.
template <class Element>
IntTuple by_element(std::string_view operation, const IntTuple& a, const IntTuple& b,
                    Element element) {
  if (b.is_integer() || a.rank() != b.rank()) throw_unlike(operation, a, b);
  std::vector<IntTuple> elements;
  for (std::size_t i = 0; i < a.rank(); ++i) elements.push_back(element(a[i], b[i]));
  return IntTuple(std::span<const IntTuple>(elements));
}

IntTuple quotient(const IntTuple& a, const IntTuple& b) {
  if (!a.is_integer() && !b.is_integer()) return by_element("shape_divide", a, b, quotient);
  if (!a.is_integer()) {
    IntTuple divisor = b;
    std::vector<IntTuple> elements;
    for (std::size_t i = 0; i < a.rank(); ++i) {
      elements.push_back(quotient(a[i], divisor));
      divisor = quotient(divisor, a[i]);
    }
    return IntTuple(std::span<const IntTuple>(elements));
  }
  std::int64_t size = a.value(), divisor = b.product();
  if (size < 1 || divisor < 1) throw_invalid({}, "[shape_divide] ", a, " by ", b, ": not positive");
  if (size % divisor != 0 && divisor % size != 0)
    throw_invalid({}, "[shape_divide] ", a, " by ", b, ": neither divides the other");
  return (size - 1) / divisor + 1;
}

// The strides of `shape`. On return, `running` is the stride of the mode to its left.
IntTuple strides_from(const IntTuple& shape, std::int64_t& running) {
  if (shape.is_integer()) {
    IntTuple stride(running);
    running = checked_product("compact_stride", running, shape.value());
    return stride;
  }
  std::vector<IntTuple> strides(shape.rank());
  for (std::size_t i = shape.rank(); i-- > 0;) strides[i] = strides_from(shape[i], running);
  return IntTuple(std::span<const IntTuple>(strides));
}

}  // namespace

std::int64_t inner_product(const IntTuple& a, const IntTuple& b) {
  if (!a.congruent(b)) throw_unlike("inner_product", a, b);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.leaves().size(); ++i)
    if (__builtin_add_overflow(sum, checked_product("inner_product", a.leaves()[i], b.leaves()[i]),
                               &sum))
      throw_invalid({}, "[inner_product] of ", a, " and ", b, " does not fit 64 bits");
  return sum;
}

IntTuple elementwise_product(const IntTuple& a, const IntTuple& b) {
  if (!a.is_integer()) return by_element("elementwise_product", a, b, elementwise_product);
  return checked_product("elementwise_product", a.value(), b.product());
}

std::int64_t largest(const IntTuple& tuple) {
  std::span<const std::int64_t> leaves = tuple.leaves();
  return leaves.empty() ? 0 : *std::max_element(leaves.begin(), leaves.end());
}

IntTuple signs(const IntTuple& tuple) {
  IntVector signs;
  for (std::int64_t leaf : tuple.leaves()) signs.push_back((leaf > 0) - (leaf < 0));
  return tuple.with_leaves(signs);
}

Result<IntTuple> shape_divide(const IntTuple& a, const IntTuple& b) {
  return caught([&] { return quotient(a, b); });
}

IntTuple compact_stride(const IntTuple& shape, const IntTuple& start) {
  if (!start.is_integer()) {
    if (shape.is_integer()) throw_unlike("compact_stride", shape, start);
    return by_element(
        "compact_stride", shape, start,
        [](const IntTuple& mode, const IntTuple& first) { return compact_stride(mode, first); });
  }
  std::int64_t running = start.value();
  return strides_from(shape, running);
}

}  // namespace meshard
