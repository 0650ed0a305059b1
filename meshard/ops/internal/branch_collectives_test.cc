#include "meshard/ops/internal/branch_collectives.h"

#include <gtest/gtest.h>

#include "meshard/ops/collectives.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/manual_testutil.h"
#include "meshard/ops/manual_values.h"
#include "meshard/ops/reduction.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using BranchCollective = Tensor (*)(const Tensor&, const char*);

Tensor summed_over(const Tensor& t, const char* axis) { return vary(all_reduce(t, axis), axis); }
Tensor twice_of(Tensor t) { return t * 2; }
Tensor is_first(const char* axis) { return equal(axis_index(axis), 0); }
Mesh branching_grid() { return Mesh({{"x", 2}, {"y", 2}}); }

// Records f over both axes.
template <class F>
void record_on_grid(F f) {
  (void)manual(branching_grid(), P(none, {"x", "y"}), P(none, {"x", "y"}), f)(input({4, 8}));
}

template <class F>
testing::AssertionResult is_refused(F f, std::vector<std::string> parts) {
  return throws_error([&] { record_on_grid(f); }, ErrorCode::kInvalidArgument, std::move(parts));
}

TEST(BranchCollectives, EveryCollectiveIsRefusedAtItsLine) {
  const BranchCollective all[] = {
      summed_over,
      [](const Tensor& t, const char* axis) { return sum(all_gather(t, axis, 0), 0) + t; },
      [](const Tensor& t, const char* axis) { return sum(reduce_scatter(t, axis, 0)) + t; },
      [](const Tensor& t, const char* axis) { return sum(all_to_all(t, axis, 0, 1)) + t; },
      [](const Tensor& t, const char* axis) { return ring_shift(t, axis); }};
  for (BranchCollective one : all) {
    auto choosing = [&](const char* predicate, const char* axis) {
      return [=](Tensor part) {
        return cond(
            is_first(predicate), [=](Tensor t) { return one(t, axis); }, twice_of, part);
      };
    };
    EXPECT_TRUE(
        is_refused(choosing("x", "x"), {"branch_collectives_test.cc:", "runs over {\"x\"}",
                                        "in a branch at", "predicate varies over {\"x\"}"}));
    record_on_grid(choosing("x", "y"));
  }
}

TEST(BranchCollectives, TheErrorNamesBothLines) {
  // Compilers name different lines of a call over several lines.
  const int line = __LINE__;
  auto summed = [](Tensor t) { return vary(all_reduce(t, "x"), "x"); };
  auto twice = [](Tensor t) { return t * 2; };
  auto f = [&](Tensor part) { return switch_case(axis_index("x"), {summed, twice}, part); };
  EXPECT_TRUE(is_refused(f, {cat("branch_collectives_test.cc:", line + 1, ": invalid argument"),
                             cat("a branch at ", "branch_collectives_test.cc", ":", line + 3)}));
}

TEST(BranchCollectives, LoopsWhoseNumberOfStepsVaries) {
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        return while_loop([](Tensor c) { return less(sum(c), 9); },
                          [](Tensor c) { return summed_over(c, "y") + 1; }, part);
      },
      {"[all_reduce] runs over {\"y\"} in the loop at", "condition varies over {\"x\", \"y\"}"}));
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        return fori_loop(
            0, axis_index("x"), [](Tensor, Tensor c) { return summed_over(c, "x"); }, part);
      },
      {"runs over {\"x\"} in the loop"}));
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        return while_loop([](Tensor c) { return less(sum(all_gather(c, "x", 0)), 9); },
                          [](Tensor c) { return c + axis_index("x"); }, part * 0);
      },
      {"[all_gather]"}));
  record_on_grid([](Tensor part) {  // y is summed_over, and x is not waited for
    return while_loop([](Tensor c) { return less(sum(all_reduce(c, "y")), 9); },
                      [](Tensor c) { return summed_over(c, "y") + 1; }, part);
  });
}

TEST(BranchCollectives, AreFoundInNestedBodiesAndRegions) {
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        return cond(
            is_first("x"),
            [](Tensor t) {
              return fori_loop(
                  0, 3, [](Tensor, Tensor c) { return summed_over(c, "x"); }, t);
            },
            twice_of, part);
      },
      {"predicate varies over {\"x\"}"}));
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        return fori_loop(
            0, 3,
            [](Tensor, Tensor c) {
              return cond(
                  greater(sum(c), 2), [](Tensor t) { return summed_over(t, "x"); }, twice_of, c);
            },
            part);
      },
      {"predicate varies over {\"x\", \"y\"}"}));
  auto inner = manual(branching_grid(), P("y"), P("y"),
                      [](Tensor t) { return summed_over(t, "x"); }, {.axes = {"y"}});
  auto outer = manual(branching_grid(), P(none, "x"), P(none, "x"),
                      [&](Tensor part) { return cond(is_first("x"), inner, twice_of, part); },
                      {.axes = {"x"}});
  EXPECT_TRUE(throws_error(
      [&] {
        (void)outer(input({4, 8}));
      },
      ErrorCode::kInvalidArgument, {"[all_reduce]", "predicate varies over {\"x\"}"}));
}

// All values that enter a body vary over the same axes there, whether they differ or not.
TEST(BranchCollectives, ACounterBesideVaryingCarriesDoesNotDiffer) {
  auto step = [](Tensor i, Tensor c) {
    return cond(
        less(i, 2), [](Tensor t) { return summed_over(t, "x"); }, twice_of, c);
  };
  record_on_grid([&](Tensor part) { return fori_loop(0, 4, step, part); });
  using Counted = std::pair<Tensor, Tensor>;
  auto counted = [&](Tensor part) {
    return fori_loop(
        0, 4, [&](Tensor, Counted s) { return Counted(s.first + 1, step(s.first, s.second)); },
        Counted(zeros({}), part));
  };
  record_on_grid([&](Tensor part) { return counted(part).second; });
  record_on_grid([&](Tensor part) { return step(counted(part).first, part); });
  record_on_grid([&](Tensor part) {
    return while_loop([](Counted s) { return less(s.first, 3); },
                      [&](Counted s) { return Counted(s.first + 1, summed_over(s.second, "x")); },
                      Counted(zeros({}), part))
        .second;
  });
  EXPECT_TRUE(is_refused(
      [&](Tensor part) {
        return fori_loop(
                   0, 4,
                   [&](Tensor, Counted s) {
                     return Counted(s.first + axis_index("x"), step(s.first, s.second));
                   },
                   Counted(zeros({}), part))
            .second;
      },
      {"predicate varies over {\"x\"}"}));
}

TEST(BranchCollectives, AResultOfABranchDiffersLikeItsPredicate) {
  EXPECT_TRUE(is_refused(
      [](Tensor part) {
        Tensor chosen = cond(
            is_first("x"), [] { return ones({}); }, [] { return zeros({}); });
        return cond(
            greater(chosen, 0), [](Tensor t) { return summed_over(t, "x"); }, twice_of, part);
      },
      {"predicate varies over {\"x\"}"}));
}

TEST(BranchCollectives, OneDeviceWaitsForNobody) {
  Mesh mesh({{"x", 1}, {"y", 4}});
  (void)manual(mesh, P({"x", "y"}), P({"x", "y"}), [](Tensor part) {
    return cond(
        greater(sum(part), 0), [](Tensor t) { return summed_over(t, "x"); }, twice_of, part);
  })(input({4}));
}

}  // namespace
}  // namespace meshard
