// Composition: one layout applied after another, and the tilers that describe the second one
// (row-major).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/layout/layout.h"

namespace meshard {

/// A value: the second argument of composition, divide and product. One of
/// - none, printed `_`: leaves the layout unchanged;
/// - an integer n, printed `n`: short for the layout `n:1`;
/// - a layout, printed `(2,4):(4,1)`: applies to the layout as a whole;
/// - a tuple of tilers, printed `<2, _, 3:2>`: one for each of the first modes of the layout.
class Tiler {
 public:
  enum class Kind { kNone, kInteger, kLayout, kTuple };

  /// None.
  Tiler() : layout_(IntTuple(1), IntTuple(0)) {}
  /// @error n is below 1.
  Tiler(std::int64_t n) : kind_(Kind::kInteger), layout_(IntTuple(n)) {}                 // NOLINT
  Tiler(Layout layout) : kind_(Kind::kLayout), layout_(std::move(layout)) {}             // NOLINT
  Tiler(std::vector<Tiler> tilers) : kind_(Kind::kTuple), tilers_(std::move(tilers)) {}  // NOLINT
  explicit Tiler(std::span<const Tiler> tilers)
      : Tiler(std::vector<Tiler>(tilers.begin(), tilers.end())) {}
  /// `Tiler{2, Tiler(), 3}` is a tuple of three.
  Tiler(std::initializer_list<Tiler> tilers) : Tiler(std::vector<Tiler>(tilers)) {}

  Kind kind() const { return kind_; }
  /// The layout: `n:1` for an integer n, `1:0` for none. @pre not a tuple
  const Layout& layout() const { return layout_; }
  /// The elements of a tuple; otherwise empty.
  std::span<const Tiler> tilers() const { return tilers_; }

  std::string to_string() const;
  static Result<Tiler> parse(std::string_view text);

  friend bool operator==(const Tiler&, const Tiler&) = default;

 private:
  Kind kind_ = Kind::kNone;
  Layout layout_;
  std::vector<Tiler> tilers_;
};

/// The composition of `a` after `b`: the function i -> a(b(i)), nested like b. A mode of b that
/// spans several modes of a becomes a tuple of pieces. Values of b at or above a.size() continue
/// along the first mode of coalesce(a). A mode of size 1 also takes its stride from there; that
/// stride has no effect.
///
/// Compositions that are not layouts are rejected. A mode s:d of b takes its pieces from the modes
/// of coalesce(a), fastest first. At each mode except the first (which takes all that remains), two
/// rules must hold: one of d and the mode's size divides the other, and the piece's size divides
/// what remains of s. Published libraries check the first rule only, and reduce (3,4):(100,1) after
/// 6:1 to 4:1. In addition, the pieces of several modes of b must not together exceed a mode of a.
/// @post composition(a, b)(i) = coalesce(a)(b(i)) for all i in 0..b.size()-1, which is a(b(i))
/// where b(i) < a.size(); one mode for each mode of b, of the same size.
/// @error a rule does not hold (the message names the mode and the sizes or strides that would
/// work); a negative stride in b, unless coalesce(a) has one mode; values that do not fit 64 bits.
Result<Layout> composition(const Layout& a, const Layout& b);

/// Composes `a` with a tiler. For none: `a` itself; for an integer n: `a` after n:1; for a layout:
/// `a` after it; for a tuple: each of a's first modes after its tiler, the other modes unchanged.
/// @error one of these compositions fails; a tuple with more elements than a has modes.
Result<Layout> composition(const Layout& a, const Tiler& b);

}  // namespace meshard
