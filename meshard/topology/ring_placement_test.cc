#include "meshard/topology/ring_placement.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

const std::vector<TourEnd> kTwoRings(2, TourEnd::kReturns);

double mean_step(const RingPlacement& placement, const std::vector<RingDirection>& grid,
                 std::size_t axis) {
  RingTour tour(axis_boxes(placement, grid, 2)[axis]);
  return tour.length() / static_cast<double>(tour.size());
}

// A ring of four is a square: two axes of two, each with single steps.
TEST(RingPlacement, ARingOfFourIsASquare) {
  std::vector<RingDirection> ring = {{4, true, true}};
  RingPlacement placement = best_placement(ring, {2, 2}, kTwoRings);
  EXPECT_TRUE(placement.is_mirrored(0, ring));
  EXPECT_EQ(mean_step(placement, ring, 0), 1);
  EXPECT_EQ(mean_step(placement, ring, 1), 1);
}

// Two axes of eight over a torus of 4 x 4 x 4 share one direction as a square.
TEST(RingPlacement, SharedDirections) {
  std::vector<RingDirection> torus(3, {4, true, true});
  RingPlacement placement = best_placement(torus, {8, 8}, kTwoRings);
  EXPECT_EQ(mean_step(placement, torus, 0), 1);
  EXPECT_EQ(mean_step(placement, torus, 1), 1);
}

// An open row of 8 as 4 x 2. The best placement pairs neighbors (1 hop) and gives the axis of 4
// every other place (3 * 2 * 2 / 4 = 3 hops). The alternative is halves that are four places apart.
TEST(RingPlacement, TheShortStepsGoWhereTheyServeMost) {
  std::vector<RingDirection> row = {{8, false, true}};
  RingPlacement placement = best_placement(row, {4, 2}, kTwoRings);
  EXPECT_EQ(mean_step(placement, row, 0), 3);
  EXPECT_EQ(mean_step(placement, row, 1), 1);
}

}  // namespace
}  // namespace meshard
