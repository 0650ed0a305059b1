// XLA's OpSharding: the shardings of a value that may be a tuple.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/sharding/sharding_type.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {

/// A value: the tile assignment of an array, or those of the arrays of a tuple, in order.
///
/// Text form: that of the TileAssignment; for a tuple `{{replicated}, {devices=[2]<=[2]}}`.
class OpSharding {
 public:
  explicit OpSharding(TileAssignment array) : elements_{std::move(array)} {}
  /// A tuple, possibly empty.
  explicit OpSharding(std::vector<TileAssignment> tuple)
      : is_tuple_(true), elements_(std::move(tuple)) {}

  bool is_tuple() const { return is_tuple_; }
  /// The assignments of the tuple; for an array, its one assignment.
  const std::vector<TileAssignment>& elements() const { return elements_; }
  ShardingType type() const {
    return is_tuple_ ? ShardingType::kTuple : sharding_type(elements_[0]);
  }
  /// The same with each element in canonical form. Two values are equivalent exactly if their
  /// canonical forms are equal.
  OpSharding canonical() const;

  std::string to_string() const;
  /// Parses both forms of each assignment (V1, V2). @error as TileAssignment::parse
  static Result<OpSharding> parse(std::string_view text);
  friend bool operator==(const OpSharding&, const OpSharding&) = default;

 private:
  bool is_tuple_ = false;
  std::vector<TileAssignment> elements_;
};

}  // namespace meshard
