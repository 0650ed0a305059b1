// A reference to a mesh axis or to a part of one.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/inline_vector.h"
#include "meshard/base/print.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// Who decides how tensors are sharded over a mesh axis:
/// the compiler or the program.
enum class AxisKind : std::uint8_t {
  kAuto,      ///< the compiler
  kExplicit,  ///< the program: the sharding is part of a value's type, inferred at the call
};

/// `auto`, `explicit`.
constexpr std::string_view to_string(AxisKind kind) {
  return kind == AxisKind::kAuto ? "auto" : "explicit";
}

class TextScanner;

/// An integer type that can number axes.
template <class T>
concept AxisPosition = std::integral<T> && !std::same_as<T, bool>;

/// A value: a reference to a whole mesh axis, `"x"`, or to a sub-axis, `"x":(2)4`. In a partition
/// spec it may also be a position, `0`: the whole axis at that position of the mesh to which the
/// spec is applied.
///
/// The sub-axis `"x":(p)s` of an axis of n splits the axis row-major into (p, s, n/(p s)) and
/// selects the middle part: p is the product of the sizes to its left (more significant), s its own
/// size. Notation and predicates are Shardy's (openxla/shardy, attrs.td). A whole axis has pre_size
/// 1 and size 0. A position has no name until Mesh::named() resolves it; until then it equals only
/// the same position.
///
/// With "x" of size 8, for a and b:
///
/// | a          | b          | a contains b | a overlaps b | a is a prefix of b |
/// |------------|------------|--------------|--------------|--------------------|
/// | "x"        | "x"        | yes          | yes          | yes                |
/// | "x"        | "y"        | no           | no           | no                 |
/// | "x"        | "x":(2)2   | yes          | yes          | no                 |
/// | "x":(2)2   | "x"        | no           | yes          | no                 |
/// | "x":(1)2   | "x"        | no           | yes          | yes                |
/// | "x":(1)2   | "x":(1)4   | no           | yes          | yes                |
/// | "x":(1)4   | "x":(1)2   | yes          | yes          | no                 |
/// | "x":(1)4   | "x":(2)2   | yes          | yes          | no                 |
/// | "x":(2)2   | "x":(1)4   | no           | yes          | no                 |
/// | "x":(1)4   | "x":(2)4   | no           | yes          | no                 |
/// | "x":(1)2   | "x":(2)4   | no           | no           | no                 |
/// | "x":(2)4   | "x":(2)4   | yes          | yes          | yes                |
/// | "x":(2)2   | "y":(2)2   | no           | no           | no                 |
struct AxisRef {
  std::string name;
  std::int64_t pre_size = 1;
  std::int64_t size = 0;       ///< 0: the whole axis
  std::int64_t position = -1;  ///< if the axis is given by its position; otherwise -1

  AxisRef() = default;
  AxisRef(const char* axis);  // NOLINT: a name is an axis
  AxisRef(std::nullptr_t) = delete;
  AxisRef(std::string axis) : name(std::move(axis)) {}  // NOLINT: a name is an axis
  AxisRef(std::string_view axis) : name(axis) {}        // NOLINT: a name is an axis
  AxisRef(std::string_view axis, std::int64_t pre, std::int64_t own)
      : name(axis), pre_size(pre), size(own) {}
  /// The axis at a position of a mesh, counted from 0. @error invalid argument if negative.
  template <AxisPosition T>
  AxisRef(T axis,
          SourceLocation where = SourceLocation::current())  // NOLINT: a position is an axis
      : position(checked_position(static_cast<std::int64_t>(axis), where)) {}
  template <AxisPosition T>
  AxisRef(T axis, std::int64_t pre, std::int64_t own) = delete;  // a sub-axis needs a name

  bool is_whole() const { return size == 0; }
  bool is_position() const { return position >= 0; }

  /// True if every part of `other` is a part of this.
  bool contains(const AxisRef& other) const;
  /// True if the two have a part in common.
  bool overlaps(const AxisRef& other) const;
  /// True if this is the most significant part of `other`, or all of it.
  bool is_prefix_of(const AxisRef& other) const;

  /// `"x"`, `"x":(2)4` or `0`.
  std::string to_string() const;
  static Result<AxisRef> parse(std::string_view text);
  static AxisRef read(TextScanner& scanner);

  std::size_t hash() const;
  friend bool operator==(const AxisRef&, const AxisRef&) = default;

 private:
  static std::int64_t checked_position(std::int64_t position, SourceLocation where);
};

/// Axes in order, the most significant first.
using AxisList = InlineVector<AxisRef, 2>;

/// `{"x", "y":(1)2}`.
std::string to_string(const AxisList& axes);

}  // namespace meshard
