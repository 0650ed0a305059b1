// Tilers: describe which indices of each mode of a layout belong to a tile (row-major).
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

}  // namespace meshard
