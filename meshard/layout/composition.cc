#include "meshard/layout/composition.h"

#include <algorithm>
#include <vector>

#include "meshard/layout/coalesce.h"

namespace meshard {
namespace {

// The modes that one integer of b's shape becomes, fastest first.
struct Pieces {
  IntVector sizes, strides;
};

// coalesce(a); with a first mode of size 1 if b reaches beyond a's indices, which run on along it.
Layout digits_of(const Layout& a, const Layout& b) {
  Layout modes = coalesce(a);
  std::span<const std::int64_t> sizes = a.shape().leaves(), steps = b.stride().leaves();
  if (sizes.empty() || sizes[0] != 1) return modes;
  if (b.cosize() <= a.size() &&
      std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step >= 0; }))
    return modes;
  std::int64_t outer = a.stride().leaves()[0];
  if (modes.size() == 1) return Layout(IntTuple(1), IntTuple(outer));
  IntVector kept{1}, strides{outer};
  for (std::int64_t size : modes.shape().leaves()) kept.push_back(size);
  for (std::int64_t stride : modes.stride().leaves()) strides.push_back(stride);
  std::int64_t reach;
  if (!__builtin_mul_overflow(kept[1], strides[1], &reach) && reach == outer) return modes;
  return Layout(IntTuple::flat(kept), IntTuple::flat(strides));
}

/// Composes the modes of b, one after the other, with the modes of coalesce(a).
///
/// An index of a is a number in mixed radix: a digit below the size for each mode, the first
/// digit unbounded. a is linear in the digits, so that sums of steps map to sums of values as long
/// as no digit carries; and a carry changes the value, since coalesced neighbours do not line up.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b) : a_(a), b_(b), modes_(digits_of(a, b)) {
    used_.resize(sizes().size());
  }

  Layout compose() {
    std::span<const std::int64_t> counts = b_.shape().leaves(), steps = b_.stride().leaves();
    std::vector<Pieces> cut;  // stays empty as long as each mode is one piece
    IntVector strides;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      Pieces pieces = pieces_of(counts[i], steps[i]);
      if (cut.empty() && pieces.sizes.size() == 1) {
        strides.push_back(pieces.strides[0]);
        continue;
      }
      for (std::size_t k = cut.size(); k < i; ++k)
        cut.push_back({IntVector{counts[k]}, IntVector{strides[k]}});
      cut.push_back(std::move(pieces));
    }
    if (cut.empty()) return Layout(b_.shape(), b_.shape().with_leaves(strides));
    std::size_t at = 0;
    IntTuple shape = nested(b_.shape(), cut, &Pieces::sizes, at);
    at = 0;
    return Layout(std::move(shape), nested(b_.shape(), cut, &Pieces::strides, at));
  }

 private:
  std::span<const std::int64_t> sizes() const { return modes_.shape().leaves(); }
  std::span<const std::int64_t> strides() const { return modes_.stride().leaves(); }

  Pieces pieces_of(std::int64_t count, std::int64_t step) {
    if (count == 1 || step == 0) return {IntVector{count}, IntVector{rest_of_stride(step)}};
    if (sizes().size() == 1) return {IntVector{count}, IntVector{times(step, strides()[0])}};
    if (step < 0) refuse(cat("the negative stride of ", count, ":", step, " leaves it"));
    Pieces pieces;
    IntVector digits(sizes().size()), reached(sizes().size());
    for (std::int64_t done = 1;;) {
      std::int64_t rest = step * done;
      std::int64_t fitting = count / done;  // as many steps as do not carry
      std::size_t tight = 0;
      for (std::size_t k = sizes().size(); k-- > 1;) {
        digits[k] = rest % sizes()[k];
        rest /= sizes()[k];
        if (digits[k] == 0) continue;
        std::int64_t free = (sizes()[k] - 1 - reached[k]) / digits[k] + 1;
        if (free < fitting) fitting = free, tight = k;
      }
      digits[0] = rest;
      if (fitting == 1 || count / done % fitting != 0)
        refuse_extent(count, step, done, fitting, tight);
      pieces.sizes.push_back(fitting);
      pieces.strides.push_back(value_of(digits));
      for (std::size_t k = 1; k < digits.size(); ++k) reached[k] += (fitting - 1) * digits[k];
      done *= fitting;
      if (done == count) break;
    }
    for (std::size_t k = 1; k < reached.size(); ++k) {
      used_[k] += reached[k];
      if (used_[k] >= sizes()[k])
        refuse(cat("modes that fit one by one carry together over mode ", mode(k)));
    }
    return pieces;
  }

  std::int64_t value_of(const IntVector& digits) const {
    std::int64_t value = 0;
    for (std::size_t k = 0; k < digits.size(); ++k)
      if (__builtin_add_overflow(value, times(digits[k], strides()[k]), &value)) refuse_width();
    return value;
  }

  std::int64_t times(std::int64_t x, std::int64_t y) const {
    std::int64_t product;
    if (__builtin_mul_overflow(x, y, &product)) refuse_width();
    return product;
  }

  // The stride of a mode of size 1: PyTorch 2.15's, so that results print alike.
  std::int64_t rest_of_stride(std::int64_t step) const {
    for (std::size_t k = sizes().size(); k-- > 1;)
      step = step / sizes()[k] + (step % sizes()[k] > 0 ? 1 : 0);
    std::int64_t stride;
    return __builtin_mul_overflow(step, strides()[0], &stride) ? 0 : stride;
  }

  static IntTuple nested(const IntTuple& profile, const std::vector<Pieces>& leaves,
                         IntVector Pieces::*member, std::size_t& at) {
    if (profile.is_integer()) {
      const IntVector& values = leaves[at++].*member;
      if (values.size() == 1) return IntTuple(values[0]);
      return IntTuple::flat(IntVector(values.rbegin(), values.rend()));
    }
    std::vector<IntTuple> elements;
    for (std::size_t k = 0; k < profile.rank(); ++k)
      elements.push_back(nested(profile[k], leaves, member, at));
    return IntTuple(std::span<const IntTuple>(elements));
  }

  std::string mode(std::size_t k) const { return cat(sizes()[k], ":", strides()[k]); }

  [[noreturn]] void refuse(std::string_view why) const {
    throw_invalid({}, "[composition] ", a_, " after ", b_, ": ", why);
  }
  [[noreturn]] void refuse_width() const { refuse("the values do not fit 64 bits"); }
  [[noreturn]] void refuse_extent(std::int64_t count, std::int64_t step, std::int64_t done,
                                  std::int64_t fitting, std::size_t tight) const {
    std::string possible = cat(done, fitting > 1 ? cat(" k with k up to ", fitting) : "");
    if (done == 1) possible = cat("up to ", fitting);
    if (fitting > 1) append(possible, cat(", beyond that only multiples of ", done * fitting));
    refuse(cat(count, " indices ", step, " apart carry unevenly over mode ", mode(tight),
               "; extents that work: ", possible));
  }

  const Layout& a_;
  const Layout& b_;
  Layout modes_;
  IntVector used_;  // the largest digits that all modes so far reach together
};

}  // namespace

Result<Layout> composition(const Layout& a, const Layout& b) {
  try {
    return Composer(a, b).compose();
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace meshard
