// Short tours through the places of a box.
#pragma once
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: one direction of a box, with its distances.
struct TourDirection {
  std::int64_t size = 1;
  /// Hops between neighbors, and from the last place back to the first.
  double step = 1, closing = 1;
  /// What a step adds to the number of a place.
  std::int64_t stride = 1;
};

using TourBox = InlineVector<TourDirection, 4>;

/// Whether a tour must return to its start.
enum class TourEnd { kReturns, kAnywhere };

/// A short tour that visits every place of a box once. Gives the numbers of the places in order,
/// and the length in hops. A tour that need not return is a snake. For a tour that returns, these
/// constructions are tried for each direction:
///
/// - one direction alone: in order if it closes, otherwise out over every other place and back over
///   the rest;
/// - a tour of the other directions that runs through the whole direction at each of its places,
///   back and forth by turns, or always onward if the direction is a ring;
/// - a comb: the direction's first column is the way back, and a snake fills the rest. If its size
///   is odd, the places of the last row are inserted in pairs, and a remaining one at the end.
///
/// If a grid has a tour of single steps and a direction of even size, this is such a tour. It is
/// never longer than the row-major order.
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
  using Mask = std::uint32_t;  // a set of directions
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
