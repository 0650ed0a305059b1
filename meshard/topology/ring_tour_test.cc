#include <algorithm>
#include <numeric>
#include <set>

#include "meshard/topology/ring_placement.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

struct DrawnBox {
  TourBox box;
  bool closed[4] = {};

  std::int64_t places() const {
    std::int64_t product = 1;
    for (const TourDirection& direction : box) product *= direction.size;
    return product;
  }
};

DrawnBox box_with(const std::vector<std::pair<std::int64_t, double>>& sizes, std::uint32_t closed) {
  DrawnBox drawn;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    auto [size, step] = sizes[k];
    drawn.closed[k] = closed >> k & 1;
    drawn.box.push_back(
        {size, step, drawn.closed[k] ? step : step * static_cast<double>(size - 1), 1});
  }
  for (std::size_t k = sizes.size(); k-- > 1;)
    drawn.box[k - 1].stride = drawn.box[k].stride * drawn.box[k].size;
  return drawn;
}

// The distance between two places, summed over the directions; around a ring where that is shorter.
double distance(const DrawnBox& drawn, std::int64_t from, std::int64_t to) {
  double sum = 0;
  for (std::size_t k = 0; k < drawn.box.size(); ++k) {
    const TourDirection& line = drawn.box[k];
    std::int64_t apart = std::abs(from / line.stride % line.size - to / line.stride % line.size);
    if (drawn.closed[k]) apart = std::min(apart, line.size - apart);
    sum += static_cast<double>(apart) * line.step;
  }
  return sum;
}

double length_of(const DrawnBox& drawn, const std::vector<std::int64_t>& tour) {
  double sum = 0;
  for (std::size_t i = 0; i < tour.size(); ++i)
    sum += distance(drawn, tour[i], tour[(i + 1) % tour.size()]);
  return sum;
}

TEST(RingTour, EachPlaceOnceInTheLengthItSaysAndNoLongerThanInRows) {
  TestRandom random;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::pair<std::int64_t, double>> sizes;
    for (std::int64_t k = random.between(0, 3); k >= 0; --k)
      sizes.emplace_back(random.between(1, 6), static_cast<double>(random.between(0, 4)));
    DrawnBox drawn = box_with(sizes, static_cast<std::uint32_t>(random.between(0, 15)));
    RingTour tour(drawn.box);
    std::vector<std::int64_t> places = tour.places(), rows(places.size());
    ASSERT_EQ(tour.size(), drawn.places());
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    ASSERT_TRUE(std::is_permutation(places.begin(), places.end(), rows.begin(), rows.end()));
    ASSERT_EQ(length_of(drawn, places), tour.length());
    ASSERT_LE(tour.length(), length_of(drawn, rows));
    RingTour one_way(drawn.box, TourEnd::kAnywhere);
    places = one_way.places();
    ASSERT_TRUE(std::is_permutation(places.begin(), places.end(), rows.begin(), rows.end()));
    ASSERT_EQ(length_of(drawn, places) - distance(drawn, places.back(), places[0]),
              one_way.length());
  }
}

// A grid without rings has a tour of single steps if and only if it has at least two directions and
// an even number of places; with an odd number, one step is double.
TEST(RingTour, SingleStepsWhereThereIsATour) {
  for (std::int64_t x = 2; x <= 6; ++x)
    for (std::int64_t y = 2; y <= 6; ++y)
      for (std::int64_t z = 1; z <= 5; ++z) {
        RingTour tour(box_with({{x, 1}, {y, 1}, {z, 1}}, 0).box);
        EXPECT_EQ(tour.length(), static_cast<double>(x * y * z + x * y * z % 2))
            << x << ' ' << y << ' ' << z;
      }
}

TEST(RingTour, AlongOneDirection) {
  EXPECT_EQ(RingTour(box_with({{6, 1}}, 1).box).places(),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(RingTour(box_with({{6, 1}}, 0).box).places(),
            (std::vector<std::int64_t>{0, 2, 4, 5, 3, 1}));
  EXPECT_EQ(RingTour(box_with({{5, 1}}, 0).box).places(),
            (std::vector<std::int64_t>{0, 2, 4, 3, 1}));
  EXPECT_EQ(RingTour({}).places(), std::vector<std::int64_t>{0});
}

// Devices of a chip have no distance between them: the tour visits one chip after another.
TEST(RingTour, DirectionsWithoutDistance) {
  EXPECT_EQ(RingTour(box_with({{2, 1}, {2, 1}, {2, 0}}, 0).box).length(), 4);
}

}  // namespace
}  // namespace meshard
