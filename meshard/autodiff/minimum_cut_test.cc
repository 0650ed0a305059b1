#include <gtest/gtest.h>

#include "meshard/autodiff/cheapest_residuals.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

struct TestArc {
  std::size_t from, to;
  MinimumCut::Capacity capacity;
};

std::vector<bool> cut_of(std::size_t vertices, const std::vector<TestArc>& arcs) {
  MinimumCut cut;
  for (std::size_t i = 0; i < vertices; ++i) cut.add_vertex();
  for (const TestArc& arc : arcs) cut.add_arc(arc.from, arc.to, arc.capacity);
  return cut.source_side(0, vertices - 1);
}

MinimumCut::Capacity capacity_of(const std::vector<bool>& side, const std::vector<TestArc>& arcs) {
  MinimumCut::Capacity sum = 0;
  for (const TestArc& arc : arcs)
    if (side[arc.from] && !side[arc.to]) sum += arc.capacity;
  return sum;
}

TEST(MinimumCut, TakesTheNarrowestPlace) {
  using Side = std::vector<bool>;
  EXPECT_EQ(cut_of(4, {{0, 1, 5}, {1, 2, 3}, {2, 3, 4}}), (Side{true, true, false, false}));
  // Of equal places, the one nearest to the sink.
  EXPECT_EQ(cut_of(4, {{0, 1, 3}, {1, 2, 3}, {2, 3, 3}}), (Side{true, true, true, false}));
  EXPECT_EQ(cut_of(3, {{0, 1, MinimumCut::kUnbounded}, {1, 2, 0}}), (Side{true, true, false}));
  // Vertex 1 is not connected to the sink.
  EXPECT_EQ(cut_of(3, {{0, 1, 2}}), (Side{true, true, false}));
}

// Both paths of a diamond need the arc in the middle to be reversed after a wrong first choice.
TEST(MinimumCut, RevisesAPath) {
  std::vector<TestArc> arcs{{0, 1, 1}, {0, 2, 1}, {1, 2, 1}, {1, 3, 1}, {2, 3, 1}};
  EXPECT_EQ(capacity_of(cut_of(4, arcs), arcs), 2);
}

// Compared with all 2^6 cuts of random graphs.
TEST(MinimumCut, IsTheLeastOfAllCuts) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    constexpr std::size_t kVertices = 8;
    std::vector<TestArc> arcs;
    for (int i = 0; i < 16; ++i)
      arcs.push_back({static_cast<std::size_t>(random.between(0, kVertices - 1)),
                      static_cast<std::size_t>(random.between(0, kVertices - 1)),
                      random.between(0, 5)});
    MinimumCut::Capacity least = MinimumCut::kUnbounded;
    std::vector<bool> largest(kVertices, false);
    for (std::size_t bits = 0; bits < 64; ++bits) {
      std::vector<bool> side{true};
      for (std::size_t v = 0; v < 6; ++v) side.push_back((bits >> v) % 2 == 1);
      side.push_back(false);
      MinimumCut::Capacity capacity = capacity_of(side, arcs);
      if (capacity > least) continue;
      if (capacity < least) largest.assign(kVertices, false);
      least = capacity;
      // The union of minimum cuts is a minimum cut.
      for (std::size_t v = 0; v < kVertices; ++v) largest[v] = largest[v] || side[v];
    }
    EXPECT_EQ(cut_of(kVertices, arcs), largest);
  }
}

}  // namespace
}  // namespace meshard
