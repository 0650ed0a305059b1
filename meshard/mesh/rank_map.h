// The device id at each position of a mesh.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/mesh/digits.h"

namespace meshard {

class TextScanner;

/// A value: distinct, non-negative device ids for positions 0..size()-1.
///
/// A strided map is first + layout(position), for example a progression or the identity. It takes a
/// few integers, independent of its size. All other maps refer to a shared list with a shared
/// inverse. A
/// list that is strided is stored as a strided map. Equal maps compare equal however they were
/// made.
class RankMap {
 public:
  /// The ids 0..size-1. @pre size >= 1
  static RankMap identity(std::int64_t size) { return affine(0, 1, size); }
  /// The ids first, first + step, ... @pre size >= 1. @error an id would be negative, repeat (step
  /// 0) or overflow.
  static RankMap affine(std::int64_t first, std::int64_t step, std::int64_t size);
  /// The given ids, in any order. Takes one pass over the list, and a sort if the ids are sparse.
  /// @error the list is empty; an id is negative or occurs twice.
  static RankMap listed(std::vector<std::int64_t> ids);
  /// The devices at positions offset + digits.offset(i) of this map. A view: ids are copied only if
  /// the digits cut the steps of this map unevenly.
  /// @pre all these are positions of this map
  RankMap view(std::int64_t offset, const Digits& digits) const;

  std::int64_t size() const { return size_; }
  /// True if the ids are a progression that is stored without a list.
  bool is_affine() const { return !list_ && modes_.size() <= 1; }
  bool is_identity() const { return is_affine() && first_ == 0 && step() == 1; }
  /// The device at `position`. @pre 0 <= position < size()
  std::int64_t operator[](std::int64_t position) const {
    std::int64_t at = modes_.size() == 1 ? first_ + modes_[0].stride * position : along(position);
    return list_ ? list_->ids[static_cast<std::size_t>(at)] : at;
  }
  /// The position of a device; none if it is not in the map.
  std::optional<std::int64_t> find(std::int64_t id) const;
  /// The number of devices with a smaller id: the index of `id` in ascending order. Takes a few
  /// operations if the map is strided and contains `id`, otherwise a pass over the map.
  std::int64_t count_below(std::int64_t id) const;
  /// True if both have the same devices, in any order.
  bool same_devices(const RankMap& other) const;
  /// True if every device of `other` is in this map.
  bool contains(const RankMap& other) const;
  /// True if the two have a device in common.
  bool meets(const RankMap& other) const;
  /// The same map, stored without a list if its ids are strided, which the ids of a view of a list
  /// may be. Takes one pass over a listed map.
  RankMap simplest() const;
  /// The same devices in ascending order.
  RankMap sorted() const;

  /// `[4,5,6,7]`; long strided maps as `[4,5,...,131075]` or `[4+(512,2):(4096,1)]`.
  std::string to_string() const;
  static RankMap read(TextScanner& scanner);

  /// A hash of the size and a few ids; equal for equal maps however they are stored.
  std::size_t hash() const;
  friend bool operator==(const RankMap& a, const RankMap& b);

 private:
  struct List {
    std::vector<std::int64_t> ids;
    // Dense maps: the position of each id, or -1. Sparse maps: (id, position), sorted.
    std::vector<std::int64_t> position_of;
    std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
    std::optional<std::int64_t> find(std::int64_t id) const;
  };
  using Modes = InlineVector<Digit, 2>;

  RankMap() = default;
  static RankMap strided(std::int64_t first, Modes modes);
  static void invert(List& list, std::int64_t largest);
  static bool can_be_undone(const Modes& modes);
  static void push_mode(Modes& modes, Digit mode);
  static Layout steps_of(const RankMap& map);
  static RankMap read_steps(std::int64_t first, TextScanner& scanner);
  RankMap listed_view(std::int64_t offset, const Digits& digits) const;
  std::int64_t step() const { return modes_.empty() ? 1 : modes_[0].stride; }
  std::int64_t along(std::int64_t position) const;
  std::optional<std::int64_t> undo(std::int64_t value) const;
  std::int64_t smallest() const;

  // Maps a position to first_ + modes_(position): the id itself, or an index into the list. Modes
  // are coalesced, the most significant first; strides may be negative.
  std::int64_t first_ = 0;
  Modes modes_;
  std::int64_t size_ = 1;
  std::shared_ptr<const List> list_;
};

}  // namespace meshard
