// Closed tours through the places of a box.
#pragma once
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: one direction of a box, as a ring over it sees it.
struct TourDirection {
  std::int64_t size = 1;
  /// Hops between neighbors, and from the last place back to the first.
  double step = 1, closing = 1;
  /// What a step adds to the number of a place.
  std::int64_t stride = 1;
};

using TourBox = InlineVector<TourDirection, 4>;

/// Whether a tour ends next to where it began.
enum class TourEnd { kReturns, kAnywhere };

/// A short tour that visits every place of a box once: the numbers of the places in order, and its
/// length in hops. One that need not return is a snake. The constructions that are tried for one
/// that returns, for each direction in turn:
///
/// - one direction alone: there and, if it does not close by itself, back over every other place;
/// - a tour of the others, and at each of its places the whole direction, to and fro; or always
///   onwards, if the direction is a ring;
/// - a comb: the direction's first column is the way back, and a snake fills the rest. If its size
///   is odd, the places of the last row are taken in by two, and the one left over at the end.
///
/// Where a grid has a tour of single steps and some even direction, this is one. Never longer than
/// the row-major order.
class RingTour {
 public:
  /// @pre sizes are at least 1; at most 16 directions
  explicit RingTour(TourBox box, TourEnd end = TourEnd::kReturns);
  double length() const { return length_; }
  /// Number of places of the box.
  std::int64_t size() const { return size_; }
  std::vector<std::int64_t> places() const;

 private:
  enum class Way { kPoint, kAlone, kToAndFro, kOnwards, kComb };

  struct Plan {
    double length = 0;
    Way way = Way::kPoint;
    std::size_t direction = 0;
  };
  using Mask = std::uint32_t;  // of directions
  struct Snake {
    std::int64_t size = 1;
    double length = 0, first_step = 0;
  };

  Plan plan(Mask mask) const;
  void offer(Plan& best, Plan plan) const;
  Plan alone(std::size_t k) const;
  Plan to_and_fro(std::size_t k, Mask rest) const;
  Plan onwards(std::size_t k, Mask rest) const;
  Plan comb(std::size_t k, Mask rest) const;
  InlineVector<std::size_t, 4> snake_order(Mask mask) const;
  Snake snake_length(Mask mask) const;
  std::int64_t size_of(Mask mask) const;
  Mask all() const { return (Mask{1} << box_.size()) - 1; }

  std::vector<std::int64_t> tour(Mask mask) const;
  std::vector<std::int64_t> snake(Mask mask) const;
  std::vector<std::int64_t> tour_alone(const TourDirection& line) const;
  std::vector<std::int64_t> tour_comb(const TourDirection& column, Mask rest) const;

  TourBox box_;
  TourEnd end_;
  std::int64_t size_ = 1;
  std::vector<Plan> plans_;  // by mask
  double length_ = 0;
};

}  // namespace meshard
