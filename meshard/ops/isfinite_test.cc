#include "meshard/ops/isfinite.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Isfinite, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(isfinite(x)),
            R"(%0 = "stablehlo.is_finite"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xi1>)");
}

}  // namespace
}  // namespace meshard
