// Which mesh axes split which dimension of a tensor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// The type of `none`.
struct NoneType {};
/// The type of `unconstrained`.
struct UnconstrainedType {};
/// In a partition spec: this dimension is not split.
inline constexpr NoneType none{};
/// In a partition spec: an open dimension, which the compiler may split as it likes. JAX's
/// `P.UNCONSTRAINED`.
inline constexpr UnconstrainedType unconstrained{};

/// A value: how one dimension is split. Lists the axes, the most significant first. If the
/// dimension is open, the compiler may add axes after them.
class DimensionSpec {
 public:
  /// Not split.
  DimensionSpec() = default;
  DimensionSpec(NoneType) {}                                 // NOLINT: written P(none)
  DimensionSpec(UnconstrainedType) : is_open_(true) {}       // NOLINT: written P(unconstrained)
  DimensionSpec(const char* axis) : axes_{AxisRef(axis)} {}  // NOLINT: written P("x")
  DimensionSpec(std::nullptr_t) = delete;
  /// Split by the axis at this position of the mesh. @error invalid argument if negative.
  template <AxisPosition T>
  DimensionSpec(T axis, SourceLocation where = SourceLocation::current())  // NOLINT: written P(0)
      : axes_{AxisRef(axis, where)} {}
  DimensionSpec(std::string axis) : axes_{AxisRef(std::move(axis))} {}  // NOLINT
  DimensionSpec(std::string_view axis) : axes_{AxisRef(axis)} {}        // NOLINT
  DimensionSpec(AxisRef axis) : axes_{std::move(axis)} {}  // NOLINT: written P(AxisRef("x", 1, 2))
  DimensionSpec(std::initializer_list<AxisRef> axes)
      : axes_(axes) {}                                // NOLINT: written P({"x", "y"})
  DimensionSpec(AxisList axes, bool is_open = false)  // NOLINT
      : axes_(std::move(axes)), is_open_(is_open) {}

  const AxisList& axes() const { return axes_; }
  bool is_open() const { return is_open_; }

  /// `"x"`, `{"x", "y"}`, `none`, `unconstrained`, `{"x", unconstrained}`, `0`, `{0, "y"}`.
  std::string to_string() const;
  static DimensionSpec read(TextScanner& scanner);
  std::size_t hash() const;
  friend bool operator==(const DimensionSpec&, const DimensionSpec&) = default;

 private:
  AxisList axes_;
  bool is_open_ = false;
};

/// Axes that split one dimension together, the first the most significant: `P(axes("x", "y"),
/// none)`.
template <class... Axes>
DimensionSpec axes(const Axes&... names) {
  return DimensionSpec({AxisRef(names)...});
}

/// A value: a DimensionSpec for each dimension, first dimension first. May be shorter than the
/// tensor's rank: the remaining dimensions are not split. Written with `P(...)`.
///
/// An axis is given by its name, or by its position in the mesh, counted from 0: over
/// `mesh<data=2, model=4>`, `P(0, none)` is `P("data", none)` and `P({0, 1})` is
/// `P({"data", "model"})`. Positions are replaced by names when the spec is combined with a mesh in
/// a Sharding; until then a position equals only the same position.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// Sharding(mesh, P(1, none)).spec().to_string();  // P("model", none)
/// @endcode
class PartitionSpec {
 public:
  PartitionSpec() = default;
  explicit PartitionSpec(std::vector<DimensionSpec> dimensions)
      : dimensions_(std::move(dimensions)) {}

  std::size_t size() const { return dimensions_.size(); }
  const DimensionSpec& operator[](std::size_t dimension) const { return dimensions_[dimension]; }
  const std::vector<DimensionSpec>& dimensions() const { return dimensions_; }

  /// `P("data", none, {"x", "y"}, unconstrained)`.
  std::string to_string() const;
  static Result<PartitionSpec> parse(std::string_view text);
  static PartitionSpec read(TextScanner& scanner);

  std::size_t hash() const;
  /// Compares element by element: P("x") and P("x", none) differ, and so do P(0) and P("x").
  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;

 private:
  std::vector<DimensionSpec> dimensions_;
};

/// Shorthand for a PartitionSpec: `P("data", none, {"x", "y"}, unconstrained)`. These are
/// functions, not templates, so that braced lists work.
///
/// For more than eight dimensions use the constructor.
inline PartitionSpec P() { return PartitionSpec(); }
inline PartitionSpec P(DimensionSpec a) { return PartitionSpec({a}); }
inline PartitionSpec P(DimensionSpec a, DimensionSpec b) { return PartitionSpec({a, b}); }
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c) {
  return PartitionSpec({a, b, c});
}
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c, DimensionSpec d) {
  return PartitionSpec({a, b, c, d});
}
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c, DimensionSpec d,
                       DimensionSpec e) {
  return PartitionSpec({a, b, c, d, e});
}
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c, DimensionSpec d,
                       DimensionSpec e, DimensionSpec f) {
  return PartitionSpec({a, b, c, d, e, f});
}
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c, DimensionSpec d,
                       DimensionSpec e, DimensionSpec f, DimensionSpec g) {
  return PartitionSpec({a, b, c, d, e, f, g});
}
inline PartitionSpec P(DimensionSpec a, DimensionSpec b, DimensionSpec c, DimensionSpec d,
                       DimensionSpec e, DimensionSpec f, DimensionSpec g, DimensionSpec h) {
  return PartitionSpec({a, b, c, d, e, f, g, h});
}

}  // namespace meshard
