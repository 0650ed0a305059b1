#include "meshard/layout/algebra.h"

#include <algorithm>
#include <optional>

#include "meshard/layout/internal/by_mode.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

// True if the mode outer:outer_stride continues size:stride without a gap.
bool continues(std::int64_t outer_stride, std::int64_t size, std::int64_t stride) {
  std::int64_t reach;  // no stride equals a product that overflows
  return !__builtin_mul_overflow(size, stride, &reach) && outer_stride == reach;
}

}  // namespace

Layout coalesce(const Layout& layout) {
  const IntTuple& shape = layout.shape();
  std::span<const std::int64_t> sizes = shape.leaves(), strides = layout.stride().leaves();
  IntVector merged_sizes, merged_strides;
  std::int64_t* size = merged_sizes.append_uninitialized(sizes.size());
  std::int64_t* stride = merged_strides.append_uninitialized(sizes.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (count > 0 && continues(stride[count - 1], sizes[i], strides[i])) {
      size[count - 1] *= sizes[i];
      stride[count - 1] = strides[i];
    } else {
      size[count] = sizes[i];
      stride[count++] = strides[i];
    }
  }
  if (count == 0) return Layout(1, 0, layout);
  if (count == sizes.size() && (count == 1 ? shape.is_integer() : shape.is_flat())) return layout;
  if (count == 1) return Layout(size[0], stride[0], layout);
  merged_sizes.resize(count);
  merged_strides.resize(count);
  return Layout(IntTuple::flat(std::move(merged_sizes)), IntTuple::flat(std::move(merged_strides)),
                layout);
}

Result<Layout> coalesce(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return coalesce(layout);
  return by_profile("coalesce", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return coalesce(mode, element);
  });
}

Layout filter(const Layout& layout) {
  IntVector sizes, strides;
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i) {
    if (layout.shape().leaves()[i] == 1 || layout.stride().leaves()[i] == 0) continue;
    sizes.push_back(layout.shape().leaves()[i]);
    strides.push_back(layout.stride().leaves()[i]);
  }
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

Result<Layout> filter(const Layout& layout, const IntTuple& profile) {
  if (profile.is_integer()) return filter(layout);
  return by_profile("filter", layout, profile, [](const Layout& mode, const IntTuple& element) {
    return filter(mode, element);
  });
}

bool same_function(const Layout& a, const Layout& b) {
  return a.size() == b.size() && coalesce(a) == coalesce(b);
}

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

Result<Layout> complement(const Layout& layout, std::int64_t cotarget) {
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[complement] of ", layout, " in ", cotarget, ": ", why));
  };
  if (cotarget < 1) return failure("the bound is below 1");
  IntVector sizes, strides;  // fastest first
  std::int64_t reach = 1;    // the modes so far and their complement cover 0..reach-1
  for (const Mode& mode : sorted_modes(layout)) {
    if (mode.stride == 0) continue;
    if (mode.stride < 0) return failure("a stride is negative");
    if (mode.stride < reach)
      return failure(cat("mode ", mode.size, ":", mode.stride,
                         " overlaps the modes with smaller strides, whose extent is ", reach));
    std::int64_t copies = mode.stride / reach;
    if (copies > 1) {
      sizes.push_back(copies);
      strides.push_back(reach);
    }
    if (__builtin_mul_overflow(mode.stride, mode.size, &reach))
      return failure("the extent of the layout does not fit in 64 bits");
  }
  if (cotarget > reach) {
    sizes.push_back((cotarget - 1) / reach + 1);
    strides.push_back(reach);
  }
  // Already coalesced: a mode of `layout`, of size above 1, separates any two of these modes.
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return Layout::of_modes(std::move(sizes), std::move(strides));
}

Result<Layout> left_inverse(const Layout& layout) {
  InlineVector<PlacedMode, 6> modes = placed_modes(layout);
  auto failure = [&](const PlacedMode& mode, std::string_view why) {
    return Error(ErrorCode::kInvalidArgument, cat("[left_inverse] of ", layout, ": mode ",
                                                  mode.size, ":", mode.stride, " ", why));
  };
  std::int64_t reach = 1;
  for (const PlacedMode& mode : modes) {
    if (mode.stride == 0) return Layout(1, 0);
    if (mode.stride < 0) return failure(mode, "has a negative stride");
    std::int64_t own;
    if (__builtin_mul_overflow(mode.stride, mode.size, &own))
      return failure(mode, "has an extent that does not fit in 64 bits");
    if (own < reach)
      return failure(mode, cat("lies within the extent of a mode with a smaller stride, ", reach));
    reach = own;
  }
  // The value as a mixed-radix number, fastest digit first: one digit per mode, and one per gap
  // before a mode for the copies that fit into it (the complement); the latter are slower than all
  // modes.
  IntVector sizes, strides;
  std::int64_t unit = 1, outside = layout.size();
  for (const PlacedMode& mode : modes) {
    if (mode.stride < unit) break;
    std::int64_t copies = mode.stride / unit;
    sizes.push_back(copies);
    strides.push_back(outside);
    if (__builtin_mul_overflow(outside, copies, &outside))
      return failure(mode, "leaves more between its values than fits 64 bits");
    unit *= copies;
    if (unit != mode.stride) break;
    sizes.push_back(mode.size);
    strides.push_back(mode.place);
    unit *= mode.size;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

Layout right_inverse(const Layout& layout) {
  IntVector sizes, strides;  // fastest first
  std::int64_t reach = 1;
  for (const PlacedMode& mode : placed_modes(layout)) {
    if (mode.stride != reach) break;
    sizes.push_back(mode.size);
    strides.push_back(mode.place);
    if (__builtin_mul_overflow(mode.stride, mode.size, &reach)) break;
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  return coalesce(Layout::of_modes(std::move(sizes), std::move(strides)));
}

namespace {

// Applies `split` mode by mode and collects the halves: ((first halves), (second halves, other
// modes)). `split` takes a layout and a tiler and returns a Result of a layout of two modes. A
// tiler that is not a tuple applies to the whole layout; none gives `1:0` as the first half.
template <class Split>
Result<Layout> unzip(std::string_view operation, const Layout& a, const Tiler& b, Split split) {
  if (b.kind() == Tiler::Kind::kNone) return concatenate(Layout(IntTuple(1), IntTuple(0)), a);
  if (b.kind() != Tiler::Kind::kTuple) return split(a, b);
  MESHARD_RETURN_IF_ERROR(check_tiler(operation, a, b));
  std::vector<Layout> firsts, seconds;
  for (std::size_t k = 0; k < a.rank(); ++k) {
    if (k >= b.tilers().size()) {
      seconds.push_back(a.mode(k));
      continue;
    }
    MESHARD_ASSIGN_OR_RETURN(Layout halves, unzip(operation, a.mode(k), b.tilers()[k], split));
    firsts.push_back(halves.mode(0));
    seconds.push_back(halves.mode(1));
  }
  return concatenate(concatenate(firsts), concatenate(seconds));
}

// Converts (first, (second, third, ...)) to (first, second, third, ...).
Layout tiled_form(const Layout& zipped) {
  std::vector<Layout> modes{zipped.mode(0)};
  Layout rest = zipped.mode(1);
  for (std::size_t k = 0; k < rest.rank(); ++k) modes.push_back(rest.mode(k));
  return concatenate(modes);
}

}  // namespace

Result<Layout> logical_divide(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_divide", a, b, logical_divide);
  MESHARD_ASSIGN_OR_RETURN(Layout rest, complement(b.layout(), a.size()));
  return composition(a, concatenate(b.layout(), rest));
}

Result<Layout> zipped_divide(const Layout& a, const Tiler& b) {
  return unzip("zipped_divide", a, b, logical_divide);
}

Result<Layout> tiled_divide(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_divide(a, b));
  return tiled_form(zipped);
}

Result<Layout> logical_product(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_product", a, b, logical_product);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[logical_product] of ", a, " and ", b, ": ", why));
  };
  if (b.kind() == Tiler::Kind::kInteger)
    return failure(cat("an integer does not define how the copies are arranged; for ", b,
                       " consecutive copies, pass ", b.layout()));
  std::int64_t cotarget;
  if (__builtin_mul_overflow(a.size(), b.layout().cosize(), &cotarget))
    return failure("the values do not fit 64 bits");
  MESHARD_ASSIGN_OR_RETURN(Layout places, complement(a, cotarget));
  MESHARD_ASSIGN_OR_RETURN(Layout copies, composition(places, b.layout()));
  return concatenate(a, copies);
}

Result<Layout> zipped_product(const Layout& a, const Tiler& b) {
  return unzip("zipped_product", a, b, logical_product);
}

Result<Layout> tiled_product(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_product(a, b));
  return tiled_form(zipped);
}

}  // namespace meshard
