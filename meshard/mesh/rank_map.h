// The device behind each position of a mesh.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

class TextScanner;

/// A value: distinct, non-negative device ids for positions 0..size()-1.
///
/// Affine maps (first + step * position; the identity among them) are two integers whatever the
/// size; other maps share one list and one inverse. A list that is affine is stored as affine, so
/// equal maps compare equal.
class RankMap {
 public:
  /// 0..size-1. @pre size >= 1
  static RankMap identity(std::int64_t size) { return affine(0, 1, size); }
  /// first, first + step, ... @pre size >= 1. @error an id would be negative or repeat (step 0), or
  /// overflow.
  static RankMap affine(std::int64_t first, std::int64_t step, std::int64_t size);
  /// Any ids, in any order. One pass. @error the list is empty; an id is negative or occurs twice.
  static RankMap listed(std::vector<std::int64_t> ids);

  std::int64_t size() const { return size_; }
  /// True if no list is stored.
  bool is_affine() const { return !list_; }
  bool is_identity() const { return !list_ && first_ == 0 && step_ == 1; }
  /// The device at `position`. @pre 0 <= position < size()
  std::int64_t operator[](std::int64_t position) const {
    return list_ ? list_->ids[static_cast<std::size_t>(position)] : first_ + step_ * position;
  }
  /// The position of a device; none if it is not in the map.
  std::optional<std::int64_t> find(std::int64_t id) const;
  /// True if both hold the same devices, in whatever order.
  bool same_devices(const RankMap& other) const;

  /// `[4,5,6,7]`; a long affine map as `[4,5,...,131075]`.
  std::string to_string() const;
  static RankMap read(TextScanner& scanner);

  std::size_t hash() const;
  friend bool operator==(const RankMap& a, const RankMap& b) {
    return a.size_ == b.size_ && a.first_ == b.first_ && a.step_ == b.step_ &&
           (a.list_ == b.list_ || (a.list_ && b.list_ && a.list_->ids == b.list_->ids));
  }

 private:
  struct List {
    std::vector<std::int64_t> ids;
    // Dense maps: the position by id, or -1. Sparse ones: (id, position), sorted.
    std::vector<std::int64_t> position_of;
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
    std::size_t hash = 0;
  };
  RankMap() = default;
  static void invert(List& list, std::int64_t largest);
  std::int64_t last() const { return first_ + step_ * (size_ - 1); }

  std::int64_t first_ = 0;
  std::int64_t step_ = 1;
  std::int64_t size_ = 1;
  std::shared_ptr<const List> list_;
};

}  // namespace meshard
