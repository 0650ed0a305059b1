#include "meshard/optim/gradients.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/optim/optim_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using Accumulation = OnPlugin;

Tensor squares_of_products(const Tensor& w, const std::pair<Tensor, Tensor>& batch) {
  return mean(square(matmul(batch.first, w) - batch.second));
}

TEST_F(Accumulation, OfPartsIsTheGradientOfTheWhole) {
  Tensor w = reshape(astype(arange(6), DType::f32), {3, 2}) / 8;
  Tensor x = reshape(astype(arange(24), DType::f32), {8, 3}) / 16;
  Tensor y = reshape(astype(arange(16), DType::f32), {8, 2}) / 4;
  std::pair batch{mark_sharding(x, Mesh({{"data", 2}}), P("data")), y};
  auto [loss, gradient] = value_and_grad(squares_of_products)(w, batch);
  for (std::int64_t parts : {1, 2, 4, 8}) {
    auto in_parts = jit(accumulated(value_and_grad(squares_of_products), parts));
    auto [total, sums] = in_parts(w, batch);
    EXPECT_NEAR(total.item<float>(), loss.item<float>(), 1e-6);
    EXPECT_THAT(sums.to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-6f), gradient.to_vector<float>()));
  }
}

// Outside jit, the loop captures the parameters.
TEST_F(Accumulation, OutsideJitIsTheGradientOfTheWhole) {
  Tensor w = reshape(astype(arange(6), DType::f32), {3, 2}) / 8;
  Tensor x = reshape(astype(arange(24), DType::f32), {8, 3}) / 16;
  Tensor y = reshape(astype(arange(16), DType::f32), {8, 2}) / 4;
  sync({w, x, y});
  std::pair batch{x, y};
  std::vector<float> whole = grad(squares_of_products)(w, batch).to_vector<float>();
  auto [loss, gradient] = accumulated(value_and_grad(squares_of_products), 4)(w, batch);
  EXPECT_THAT(gradient.to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-6f), whole));
}

// The sum of 512 ones, computed in bf16, is 256.
TEST_F(Accumulation, NarrowFloatsAreSummedInF32) {
  auto loss_of = [](const Tensor& w, const Tensor& x) { return sum(w * mean(x)); };
  Tensor w = ones({2}, DType::bf16), x = ones({512}, DType::bf16);
  auto [loss, gradient] = jit(accumulated(value_and_grad(loss_of), 512))(w, x);
  EXPECT_EQ(gradient.dtype(), DType::bf16);
  EXPECT_EQ(loss.dtype(), DType::bf16);
  EXPECT_THAT(astype(gradient, DType::f32).to_vector<float>(), testing::ElementsAre(1, 1));
  EXPECT_EQ(astype(loss, DType::f32).item<float>(), 2);
}

TEST_F(Accumulation, TheProgramDoesNotGrowWithTheParts) {
  auto nodes = [](std::int64_t parts) {
    meshard::internal::TraceScope scope;
    Tensor w = make_parameter({DType::f32, {3, 2}}, std::nullopt, {});
    Tensor x = make_parameter({DType::f32, {8, 3}}, std::nullopt, {});
    Tensor y = make_parameter({DType::f32, {8, 2}}, std::nullopt, {});
    auto in_parts = accumulated(value_and_grad(squares_of_products), parts);
    auto [loss, gradient] = in_parts(w, std::pair(x, y));
    std::vector<Value> leaves{w.value(), x.value(), y.value()};
    std::vector<Value> results{loss.value(), gradient.value()};
    return Graph::build(leaves, results, scope.trace()).nodes().size();
  };
  EXPECT_EQ(nodes(8), nodes(2));
  EXPECT_LT(nodes(8), 20u) << "one loop, its operands and the means";
}

TEST_F(Accumulation, RefusesABatchThatCannotBeCut) {
  auto in_parts = accumulated(value_and_grad(squares_of_products), 3);
  EXPECT_TRUE(throws_error(
      [&] {
        in_parts(ones({3, 2}), std::pair(ones({8, 3}), ones({8, 2})));
      },
      ErrorCode::kInvalidArgument, {"cannot be cut into 3 parts"}));
}

}  // namespace
}  // namespace meshard::optim
