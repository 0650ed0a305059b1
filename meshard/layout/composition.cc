#include "meshard/layout/composition.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/internal/by_mode.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

Tiler read_tiler(TextScanner& scanner, int depth) {
  if (scanner.accept("_")) return Tiler();
  if (scanner.accept("<")) {
    if (depth == kMaxParsedDepth) scanner.fail(cat("nested more than ", depth, " levels deep"));
    std::vector<Tiler> tilers;
    scanner.list(">", [&] { tilers.push_back(read_tiler(scanner, depth + 1)); });
    return Tiler(std::move(tilers));
  }
  IntTuple shape = IntTuple::read(scanner);
  if (shape.is_integer() && !scanner.peek(":")) return Tiler(shape.value());
  scanner.expect(":");
  return Tiler(Layout(std::move(shape), IntTuple::read(scanner)));
}

}  // namespace

std::string Tiler::to_string() const {
  switch (kind_) {
    case Kind::kNone: return "_";
    case Kind::kInteger: return layout_.shape().to_string();
    case Kind::kLayout: return layout_.to_string();
    case Kind::kTuple: break;
  }
  return cat("<", join(tilers_, ", "), ">");
}

Result<Tiler> Tiler::parse(std::string_view text) {
  return parse_whole("tiler", text, [](TextScanner& scanner) { return read_tiler(scanner, 0); });
}

namespace {

/// Composes each mode of b in turn with the modes of coalesce(a).
///
/// An index of a is a mixed-radix number with one digit per mode; the first digit is unbounded. a
/// is linear in the digits, so sums of steps map to sums of values as long as no digit carries.
class Composer {
 public:
  Composer(const Layout& a, const Layout& b)
      : a_(a), b_(b), modes_(is_one_mode(a) ? a : coalesced_.emplace(coalesce(a))) {
    used_.resize(sizes().size());
  }

  Layout compose() {
    std::span<const std::int64_t> counts = b_.shape().leaves(), steps = b_.stride().leaves();
    IntVector ends;  // where the pieces of each integer of b's shape end
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::size_t begin = piece_sizes_.size();
      cut_mode(counts[i], steps[i]);
      std::reverse(piece_sizes_.begin() + begin, piece_sizes_.end());
      std::reverse(piece_strides_.begin() + begin, piece_strides_.end());
      ends.push_back(static_cast<std::int64_t>(piece_sizes_.size()));
    }
    if (piece_sizes_.size() == counts.size())
      return Layout(b_.shape(), b_.shape().with_leaves(piece_strides_));
    return Layout(nested(b_.shape(), piece_sizes_, ends), nested(b_.shape(), piece_strides_, ends));
  }

 private:
  // True if a is the coalesced layout already, which saves a copy.
  static bool is_one_mode(const Layout& a) { return a.shape().is_integer() && a.size() > 1; }
  std::span<const std::int64_t> sizes() const { return modes_.shape().leaves(); }
  std::span<const std::int64_t> strides() const { return modes_.stride().leaves(); }

  // Appends the pieces of the mode count:step, fastest first.
  void cut_mode(std::int64_t count, std::int64_t step) {
    auto add = [&](std::int64_t size, std::int64_t distance, std::size_t k) {
      std::int64_t stride;
      if (__builtin_mul_overflow(distance, strides()[k], &stride))
        refuse("the values do not fit 64 bits");
      piece_sizes_.push_back(size);
      piece_strides_.push_back(stride);
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

  // `profile` with each integer replaced by its pieces.
  static IntTuple nested(const IntTuple& profile, const IntVector& pieces, const IntVector& ends) {
    std::size_t leaf = 0;
    std::int64_t at = 0;
    auto build = [&](auto&& self, const IntTuple& node) -> IntTuple {
      std::vector<IntTuple> elements;
      if (!node.is_integer()) {
        for (std::size_t k = 0; k < node.rank(); ++k) elements.push_back(self(self, node[k]));
        return IntTuple(std::span<const IntTuple>(elements));
      }
      IntVector values(pieces.begin() + at, pieces.begin() + ends[leaf]);
      at = ends[leaf++];
      return values.size() == 1 ? IntTuple(values[0]) : IntTuple::flat(std::move(values));
    };
    return build(build, profile);
  }

  std::string mode(std::size_t k) const { return cat(sizes()[k], ":", strides()[k]); }

  [[noreturn]] void refuse(std::string_view why) const {
    throw_invalid({}, "[composition] ", a_, " after ", b_, ": ", why);
  }
  [[noreturn]] void refuse_stride(std::int64_t count, std::int64_t step, std::size_t k) const {
    std::int64_t inner = 1;  // the number of indices of a per step along mode k
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
  std::optional<Layout> coalesced_;
  const Layout& modes_;
  IntVector piece_sizes_, piece_strides_;  // for all integers of b's shape, concatenated
  IntVector used_;  // the largest digits that the modes so far reach together
};

}  // namespace

Result<Layout> composition(const Layout& a, const Layout& b) {
  return caught([&] { return Composer(a, b).compose(); });
}

Result<Layout> composition(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() != Tiler::Kind::kTuple) return composition(a, b.layout());
  return by_tiler("composition", a, b,
                  [](const Layout& mode, const Tiler& tiler) { return composition(mode, tiler); });
}

}  // namespace meshard
