#include "meshard/layout/composition.h"

#include <algorithm>
#include <vector>

#include "meshard/layout/by_mode.h"
#include "meshard/layout/coalesce.h"

namespace meshard {
namespace {

// What one integer of b's shape becomes, fastest first.
struct Pieces {
  IntVector sizes, strides;
};

// coalesce(a); with a first mode of size 1 if b reaches beyond a's indices, which run on along it.
Layout modes_for(const Layout& a, const Layout& b) {
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

/// Composes the modes of b, one after the other, with the modes of a.
///
/// An index of a is a number in mixed radix: a digit below the size for each mode, the first digit
/// unbounded. a is linear in the digits, so that sums of steps map to sums of values as long as no
/// digit carries.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b) : a_(a), b_(b), modes_(modes_for(a, b)) {
    used_.resize(sizes().size());
  }

  Layout compose() {
    std::span<const std::int64_t> counts = b_.shape().leaves(), steps = b_.stride().leaves();
    std::vector<Pieces> cut;  // stays empty as long as each mode is one piece
    IntVector strides(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      Pieces pieces;
      cut_mode(counts[i], steps[i], pieces);
      if (pieces.sizes.size() > 1 && cut.empty())
        for (std::size_t k = 0; k < i; ++k) cut.push_back({{counts[k]}, {strides[k]}});
      if (pieces.sizes.size() == 1) strides[i] = pieces.strides[0];
      if (pieces.sizes.size() > 1 || !cut.empty()) cut.push_back(std::move(pieces));
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

  void cut_mode(std::int64_t count, std::int64_t step, Pieces& pieces) {
    auto add = [&](std::int64_t size, std::int64_t distance, std::size_t k) {
      std::int64_t stride;
      if (__builtin_mul_overflow(distance, strides()[k], &stride))
        refuse("the values do not fit 64 bits");
      pieces.sizes.push_back(size);
      pieces.strides.push_back(stride);
    };
    if (step == 0 || sizes().size() == 1) return add(count, step, 0);
    if (step < 0) refuse(cat("mode ", count, ":", step, " has a negative stride"));
    std::int64_t rest = count, distance = step;
    for (std::size_t k = sizes().size(); k-- > 1;) {
      std::int64_t size = sizes()[k];
      if (distance >= size) {
        if (distance % size != 0) refuse_stride(count, step, k);
        distance /= size;
        continue;
      }
      if (size % distance != 0) refuse_stride(count, step, k);
      std::int64_t piece = std::min(size / distance, rest);
      if (piece > 1) {
        if (rest % piece != 0) refuse_extent(count, step, count / rest, piece, k);
        add(piece, distance, k);
        used_[k] += (piece - 1) * distance;
        if (used_[k] >= size)
          refuse(cat("modes that fit one by one reach together beyond mode ", mode(k)));
        rest /= piece;
        if (rest == 1) return;
      }
      distance = 1;
    }
    add(rest, distance, 0);
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
  [[noreturn]] void refuse_stride(std::int64_t count, std::int64_t step, std::size_t k) const {
    std::int64_t inner = 1;  // indices of a between two steps along mode k
    for (std::size_t i = k + 1; i < sizes().size(); ++i) inner *= sizes()[i];
    refuse(cat(count, " indices ", step, " apart cut mode ", mode(k),
               " unevenly; strides that work: ", inner == 1 ? "" : cat(inner, " times "),
               "a divisor or a multiple of ", sizes()[k]));
  }
  [[noreturn]] void refuse_extent(std::int64_t count, std::int64_t step, std::int64_t done,
                                  std::int64_t piece, std::size_t k) const {
    refuse(cat(count, " indices ", step, " apart cut mode ", mode(k),
               " unevenly; extents that work: ", done == 1 ? "" : cat(done, " times "), "1 to ",
               piece, ", or else a multiple of ", done * piece));
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

Result<Layout> composition(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() != Tiler::Kind::kTuple) return composition(a, b.layout());
  return by_tiler("composition", a, b,
                  [](const Layout& mode, const Tiler& tiler) { return composition(mode, tiler); });
}

}  // namespace meshard
