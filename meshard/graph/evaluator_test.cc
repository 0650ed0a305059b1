#include "meshard/graph/evaluator.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/graph/zero_evaluator_testutil.h"

namespace meshard {
namespace {

TEST(Evaluator, ComputeAsksOnceForWhatIsNotComputed) {
  static test::ZeroEvaluator zeros;
  install_evaluator([]() -> Evaluator& { return zeros; });
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor a = test::plus(x, x), b = test::plus(x, a);
  compute({a, b, x});
  EXPECT_EQ(zeros.calls, 1);
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(zeros.calls, 1) << "nothing runs twice";
  install_evaluator(nullptr);
}

}  // namespace
}  // namespace meshard
