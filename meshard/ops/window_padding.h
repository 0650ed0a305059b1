// The padding of windows at the edges of a tensor.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace meshard {

/// A rule that determines how much padding windows get.
enum class Padding : std::uint8_t {
  kValid,      ///< none: windows stay inside
  kSame,       ///< for size / stride windows, rounded up; an odd element goes after
  kSameLower,  ///< the same, but an odd element goes before
};

/// A value: the padding of each window dimension, by a rule or in elements before and after.
///
///     conv2d(x, kernel, {.padding = Padding::kSame});
///     conv2d(x, kernel, {.padding = {{1, 1}, {0, 2}}});  // one on each side; two after
class WindowPadding {
 public:
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

  /// No padding.
  WindowPadding() = default;
  WindowPadding(Padding rule) : rule_(rule) {}  // NOLINT
  /// Elements before and after, for each window dimension; negative numbers remove elements.
  WindowPadding(std::initializer_list<std::pair<std::int64_t, std::int64_t>> pairs)  // NOLINT
      : listed_(true), pairs_(pairs) {}
  WindowPadding(Pairs pairs) : listed_(true), pairs_(std::move(pairs)) {}  // NOLINT

  bool is_listed() const { return listed_; }
  Padding rule() const { return rule_; }
  const Pairs& pairs() const { return pairs_; }

 private:
  bool listed_ = false;
  Padding rule_ = Padding::kValid;
  Pairs pairs_;
};

}  // namespace meshard
