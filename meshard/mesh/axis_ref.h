// A reference to a mesh axis or to a part of one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"

namespace meshard {

class TextScanner;

/// A value: a whole mesh axis, `"x"`, or a sub-axis of one, `"x":(2)4`.
///
/// The sub-axis `"x":(p)s` of an axis of n splits the axis row-major into (p, s, n/(p s)) and takes
/// the middle part: p is the product of the sizes to its left (more significant), s its own size.
/// Notation and predicates are Shardy's (openxla/shardy, attrs.td). A whole axis has pre_size 1 and
/// size 0.
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
  std::int64_t size = 0;  ///< 0: the whole axis

  AxisRef() = default;
  AxisRef(const char* axis);                            // NOLINT: a name is an axis
  AxisRef(std::string axis) : name(std::move(axis)) {}  // NOLINT: a name is an axis
  AxisRef(std::string_view axis) : name(axis) {}        // NOLINT: a name is an axis
  AxisRef(std::string_view axis, std::int64_t pre, std::int64_t own)
      : name(axis), pre_size(pre), size(own) {}

  bool is_whole() const { return size == 0; }

  /// True if every part of `other` is a part of this.
  bool contains(const AxisRef& other) const;
  /// True if the two have a part in common.
  bool overlaps(const AxisRef& other) const;
  /// True if this is the most significant part of `other`, or all of it.
  bool is_prefix_of(const AxisRef& other) const;

  /// `"x"` or `"x":(2)4`.
  std::string to_string() const;
  static Result<AxisRef> parse(std::string_view text);
  static AxisRef read(TextScanner& scanner);

  std::size_t hash() const;
  friend bool operator==(const AxisRef&, const AxisRef&) = default;
};

/// Axes in order, the most significant first.
using AxisList = InlineVector<AxisRef, 2>;

/// `{"x", "y":(1)2}`.
std::string to_string(const AxisList& axes);

}  // namespace meshard
