#include "meshard/plan/candidate_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard {
namespace {

class Pool : public testing::Test {
 protected:
  Pool() {
    problem_.devices = 4;
    problem_.axes = {"x"};
    problem_.values = {{"v", {DType::f32, Shape{4, 4}}, P(unconstrained, unconstrained)},
                       {"w", {DType::f32, Shape{4}}, P(unconstrained)}};
    problem_.estimate = [](const PlanCandidate&) { return PlanEstimate{.seconds = 1}; };
  }
  PlannedCandidate planned(PartitionSpec v, PartitionSpec w, double seconds) const {
    return {.candidate = {{{.name = "x", .size = 4}}, {std::move(v), std::move(w)}},
            .estimate = {.seconds = seconds}};
  }
  PlanProblem problem_;
};

TEST_F(Pool, TheMostPromisingFirst) {
  CandidatePool pool(problem_);
  std::size_t slow = pool.add(planned(P(none, none), P(none), 2));
  std::size_t fast = pool.add(planned(P("x", none), P(none), 1));
  EXPECT_EQ(pool.add(planned(P("x", none), P(none), 9)), fast) << "it is there already";
  EXPECT_EQ(pool.waiting(), 2u);
  EXPECT_EQ(pool.take(), fast);
  EXPECT_EQ(pool.take(), slow);
  EXPECT_EQ(pool.take(), std::nullopt);
}

TEST_F(Pool, WhatACompiledCandidateShowsOfSimilarOnes) {
  CandidatePool pool(problem_);
  std::size_t compiled = pool.add(planned(P("x", none), P(none), 1));
  std::size_t similar = pool.add(planned(P("x", none), P("x"), 1));
  std::size_t other = pool.add(planned(P(none, "x"), P("x"), 1.5));
  ASSERT_EQ(pool.take(), compiled);
  // It takes 8 times as long as estimated. One that is near to `other` takes as long as estimated.
  // The weights of both errors are 1/4 and 1/16 for `similar`, the other way round for `other`, and
  // their mean ln(8)/2 has 1/8: `similar` is corrected by ln(8) 5/7, `other` by ln(8) 2/7.
  pool.judged(compiled, {.memory = 1, .seconds = 8});
  std::size_t right = pool.add(planned(P(none, "x"), P(none), 3));
  pool.judged(right, {.memory = 1, .seconds = 3});
  EXPECT_EQ(pool.take(), other);
  EXPECT_EQ(pool.take(), similar);
}

TEST_F(Pool, Neighbors) {
  CandidatePool pool(problem_);
  std::size_t center = pool.add(planned(P(none, none), P(none), 1));
  std::vector<std::vector<MeshAxis>> meshes = {{{.name = "x", .size = 4}}};
  // v by rows or columns, and w.
  EXPECT_EQ(pool.add_neighbors(center, meshes).size(), 3u);
  EXPECT_TRUE(pool.add_neighbors(center, meshes).empty());
  std::size_t far = pool.add(planned(P("x", none), P("x"), 0.1));
  std::optional<std::size_t> next = pool.take_neighbor_of(center);
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(*next, far);
  pool.leave_out(far);
  EXPECT_EQ(pool.waiting(), 3u);  // the center and two neighbors
  std::size_t open = pool.add(planned(P(unconstrained, none), P(none), 1));
  EXPECT_TRUE(pool.add_neighbors(open, meshes).empty());
}

TEST_F(Pool, AGivenProgramMayHaveTheTextOfACandidate) {
  PlannedCandidate given = planned(P(none, none), P(none), 1);
  given.as_given = true;
  CandidatePool apart(problem_);
  EXPECT_NE(apart.add(given), apart.add(planned(P(none, none), P(none), 1)));
  problem_.given_is_candidate = true;
  CandidatePool same(problem_);
  EXPECT_EQ(same.add(given), same.add(planned(P(none, none), P(none), 1)));
}

}  // namespace
}  // namespace meshard
