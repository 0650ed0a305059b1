#include "meshard/layout/int_tuple.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "meshard/base/fingerprint.h"
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

}  // namespace meshard
