// Chains of layout operations: each returns a result that satisfies its postcondition, or an Error.
#include <algorithm>
#include <vector>

#include "meshard/layout/algebra.h"
#include "meshard/layout/values.h"
#include "tests/fuzz/byte_source.h"

namespace meshard {
namespace {

constexpr std::int64_t kMostIndices = 512;

IntTuple fuzz_tuple(ByteSource& bytes, int depth, std::int64_t high) {
  if (depth == 0 || bytes.between(0, 2) > 0) return IntTuple(bytes.between(1, high));
  std::vector<IntTuple> elements;
  for (std::int64_t i = bytes.between(0, 3); i > 0; --i)
    elements.push_back(fuzz_tuple(bytes, depth - 1, high));
  return IntTuple(std::span<const IntTuple>(elements));
}

Layout fuzz_layout(ByteSource& bytes) {
  IntTuple shape = fuzz_tuple(bytes, 2, 6);
  if (shape.product() > kMostIndices) return Layout(6, 1);
  if (bytes.between(0, 1) == 0) return Layout(shape);
  IntVector strides;
  for (std::size_t i = 0; i < shape.leaves().size(); ++i) strides.push_back(bytes.between(-2, 24));
  return Layout(shape, shape.with_leaves(strides));
}

std::vector<std::int64_t> values_of(const Layout& layout) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < layout.size(); ++i) values.push_back(layout(i));
  return values;
}

Result<Layout> composed(const Layout& a, const Layout& b, const std::string& done) {
  Result<Layout> r = composition(a, b);
  for (std::int64_t i = 0; r && i < b.size(); ++i)
    fuzz_check((*r)(i) == coalesce(a)(b(i)), "composition(a, b)(i) = a(b(i))", done);
  return r;
}

Result<Layout> complemented(const Layout& a, std::int64_t cotarget, const std::string& done) {
  Result<Layout> r = complement(a, cotarget);
  if (r && r->size() <= kMostIndices && is_injective(filter(a)))
    for (std::int64_t i = 1; i < r->size(); ++i)
      fuzz_check(are_disjoint(a, a, (*r)(i)), "copies at the complement's offsets", done);
  return r;
}

Result<Layout> left_inverted(const Layout& a, const std::string& done) {
  Result<Layout> r = left_inverse(a);
  if (!r || !is_orthogonal(a) || !is_injective(a)) return r;
  for (std::int64_t i = 0; i < a.size(); ++i)
    fuzz_check(a(i) >= r->size() || (*r)(a(i)) == i, "left_inverse(a)(a(i)) = i", done);
  return r;
}

Layout right_inverted(const Layout& a, const std::string& done) {
  Layout r = right_inverse(a);
  for (std::int64_t i = 0; i < r.size(); ++i)
    fuzz_check(a(r(i)) == i, "a(right_inverse(a)(i)) = i", done);
  return r;
}

Layout recognized(const Layout& a, const std::string& done) {
  std::vector<std::int64_t> values = values_of(a);
  std::optional<Layout> r = from_values(values);
  fuzz_check(r.has_value(), "values of a layout are recognized", done);
  for (std::size_t i = 0; i < values.size(); ++i)
    fuzz_check((*r)(static_cast<std::int64_t>(i)) == values[i] - values[0], "from_values", done);
  return *r;
}

void check_predicates(const Layout& a, const Layout& b, const std::string& done) {
  bool disjoint = true;
  for (std::int64_t x : values_of(a))
    for (std::int64_t y : values_of(b)) disjoint = disjoint && x != y;
  fuzz_check(are_disjoint(a, b) == disjoint, "are_disjoint", done);
  const auto strides = a.stride().leaves();
  bool stays = std::find(strides.begin(), strides.end(), 0) != strides.end();
  fuzz_check(stays || !is_orthogonal(a) || is_injective(a), "orthogonal is injective", done);
}

Result<Layout> fuzz_step(ByteSource& bytes, const Layout& a, std::string& done) {
  Layout b = fuzz_layout(bytes);
  std::int64_t op = bytes.between(0, 8);
  done += cat("\n  ", a, " op ", op, " with ", b);
  switch (op) {
    case 0: return composed(a, b, done);
    case 1: return complemented(a, bytes.between(1, 200), done);
    case 2: {
      Layout r = coalesce(a);
      fuzz_check(same_function(a, r) && values_of(a) == values_of(r), "coalesce", done);
      return r;
    }
    case 3: return right_inverted(a, done);
    case 4: return left_inverted(a, done);
    case 5: {
      Result<Layout> r = logical_divide(a, b);
      if (r) fuzz_check(r->size() % b.size() == 0, "logical_divide's size", done);
      return r;
    }
    case 6: return logical_product(a, b);
    case 7: return recognized(a, done);
    default: check_predicates(a, b, done); return b;
  }
}

}  // namespace
}  // namespace meshard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshard;
  ByteSource bytes(data, size);
  try {
    Layout layout = fuzz_layout(bytes);
    std::string done;
    for (int step = 0; step < 8 && !bytes.empty(); ++step) {
      Result<Layout> next = fuzz_step(bytes, layout, done);
      if (next && next->size() <= kMostIndices) layout = *next;
      fuzz_check(Layout::parse(layout.to_string()).value() == layout, "parse(print)", done);
    }
  } catch (const InternalError&) {
    throw;  // a bug in meshard
  } catch (const Error&) {
  }
  return 0;
}
