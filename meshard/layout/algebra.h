// The algebra of layouts: coalesce, composition, inverses and complement, division and product.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/layout/layout.h"

namespace meshard {

// Coalesce: the shortest layout of the same function (row-major).

/// The same function with as few modes as possible. Modes of size 1 are dropped, and an outer mode
/// (s, d) merges with the next inner one (t, e) if d = t e. If one mode remains, the result is an
/// integer layout `s:d`; if none remains, `1:0`.
/// @post coalesce(L)(i) = L(i) for all i in 0..size-1; the depth is at most 1; no two adjacent
/// modes can merge. Layouts of equal size are the same function exactly if they coalesce to the
/// same layout.
Layout coalesce(const Layout& layout);

/// Coalesces mode by mode: mode k according to element k of the tuple `profile`. Where the profile
/// is an integer, whatever its value, the whole is coalesced. Modes beyond the profile are
/// unchanged.
/// @post the same function; the modes that the profile lists keep their sizes.
/// @error the profile has more elements than the layout has modes.
Result<Layout> coalesce(const Layout& layout, const IntTuple& profile);

/// The coalesced layout of the modes whose size is not 1 and whose stride is not 0.
/// @post has the same set of values as `layout`; no stride is 0, unless it is `1:0`.
Layout filter(const Layout& layout);

/// Filters mode by mode: mode k according to element k of the tuple `profile`. Where the profile is
/// an integer, whatever its value, the whole is filtered. Modes beyond the profile are unchanged.
/// @error the profile has more elements than the layout has modes.
Result<Layout> filter(const Layout& layout, const IntTuple& profile);

/// True if a and b have equal sizes and equal values at every index. Does not enumerate the values:
/// each function has exactly one coalesced layout.
bool same_function(const Layout& a, const Layout& b);

// Composition: one layout applied after another, and the tilers that describe the second one
// (row-major).

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

// Complements and inverses of layouts (row-major).

/// The coalesced layout of the offsets at which copies of `layout` fill 0..cotarget-1. Modes of
/// stride 0 are ignored.
/// @post the values of (complement, layout) are distinct, except for modes of stride 0; the
/// complement's own values increase; if each stride of `layout` is divisible by the reach (stride
/// times size) of the next smaller one, the values cover 0..cotarget-1. The last copies may extend
/// beyond cotarget, because the outermost size is rounded up.
/// @error modes interlock (one's stride is smaller than the reach of a smaller one), which is
/// always so if values repeat; a negative stride; cotarget below 1; a reach that does not fit 64
/// bits.
Result<Layout> complement(const Layout& layout, std::int64_t cotarget);

/// The coalesced layout R that maps the values of `layout` to their indices. R takes the modes,
/// smallest stride first, as long as they nest. It ends before a mode that interlocks with the
/// smaller ones (its stride is smaller than their reach, which is always so if values repeat), and
/// at a mode whose stride is not divisible by their reach. If the layout is orthogonal, R covers
/// all its values, and maps the numbers between them to distinct indices from layout.size() on.
/// `1:0` if a mode has stride 0.
/// @post R(layout(i)) = i for all i with layout(i) below R.size() and below the strides of the
/// modes that interlock, if no mode has stride 0.
/// @error a mode that is wholly within the reach of the next smaller stride; a negative stride;
/// sizes that do not fit 64 bits.
Result<Layout> left_inverse(const Layout& layout);

/// The coalesced layout R of the indices at which `layout` has the values 0, 1, ... R takes the
/// modes, smallest stride first, as long as each continues the previous ones without a gap. `1:0`
/// if one of several modes has stride 0 (as in PyTorch 2.15), or if no stride is 1.
/// @post layout(R(i)) = i for all i in 0..R.size()-1.
Layout right_inverse(const Layout& layout);

// Divides layouts into tiles, and repeats them: logical, zipped and tiled forms (row-major).

/// Divides `a` into the tiles that `b` describes. For a layout b (an integer n means n:1): `a`
/// after (b, complement(b, a.size())); mode 0 steps within a tile, mode 1 from tile to tile. For a
/// tuple: each of a's first modes is divided by its element, nested ((tile, rest), (tile, rest),
/// ...); the other modes are unchanged. For none: `a`.
/// @post for a layout b with C = complement(b, a.size()): the value at (i, j) is a(b(i) + C(j));
/// where b(i) + C(j) is at or above a.size(), it is the value of coalesce(a).
/// @error errors of complement and composition; a tuple with more elements than a has modes.
Result<Layout> logical_divide(const Layout& a, const Tiler& b);

/// logical_divide with the tiles collected in mode 0 and the rest in mode 1. ((tile, rest), (tile,
/// rest), ...) becomes ((tile, tile, ...), (rest, rest, ..., other modes)): mode 0 steps within a
/// tile, mode 1 from tile to tile. For none: (1:0, a).
/// @post the values of logical_divide, in another order.
/// @error as logical_divide.
Result<Layout> zipped_divide(const Layout& a, const Tiler& b);

/// zipped_divide with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_divide.
/// @error as logical_divide.
Result<Layout> tiled_divide(const Layout& a, const Tiler& b);

/// Repeats `a` at the positions that `b` describes. For a layout b: (a, complement(a, a.size() *
/// b.cosize()) after b); mode 0 steps within one copy of `a`, mode 1 from copy to copy. For a
/// tuple: each of a's first modes is multiplied by its element, nested ((mode, copies), (mode,
/// copies), ...); the other modes are unchanged. For none: `a`.
/// @post for a layout b with C = complement(a, a.size() * b.cosize()): the value at (i, j) is a(i)
/// + C(b(j)). If `a` is orthogonal and both are injective, no value repeats. Between the values of
/// an `a` that is not orthogonal there may be room for fewer copies than b requests; C then
/// continues beyond.
/// @error an integer, which has no meaning here (PyTorch 2.15 divides by it); errors of complement
/// and composition; a tuple with more elements than a has modes.
Result<Layout> logical_product(const Layout& a, const Tiler& b);

/// logical_product with the modes of `a` collected in mode 0 and the copies in mode 1. ((mode,
/// copies), (mode, copies), ...) becomes ((mode, mode, ...), (copies, copies, ..., other modes)):
/// mode 0 steps within one copy, mode 1 from copy to copy. For none: (1:0, a).
/// @post the values of logical_product, in another order.
/// @error as logical_product.
Result<Layout> zipped_product(const Layout& a, const Tiler& b);

/// zipped_product with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_product.
/// @error as logical_product.
Result<Layout> tiled_product(const Layout& a, const Tiler& b);

}  // namespace meshard
