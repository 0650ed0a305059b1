#include "meshard/ops/real.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Real, OfComplexAndOfRealNumbers) {
  EXPECT_EQ(emitted(real(input({2}, DType::c128))),
            "%0 = \"stablehlo.real\"(%arg0) : (tensor<2xcomplex<f64>>) -> tensor<2xf64>");
  Tensor x = from_host(HostArray::from_vector<float>({1, -2}));
  EXPECT_EQ(interpret(real(x)), HostArray::from_vector<float>({1, -2}));
}

}  // namespace
}  // namespace meshard
