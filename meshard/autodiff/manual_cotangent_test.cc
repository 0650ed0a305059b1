// tests/e2e/manual_test.cc tests the values of whole gradients.
#include "meshard/autodiff/manual_cotangent.h"

#include <gtest/gtest.h>

#include "meshard/autodiff/backward.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

const Mesh& pair() {
  static const Mesh mesh({{"x", 2}});
  return mesh;
}

// A local value of two elements that varies over "x", or not.
Tensor local(bool varies) {
  Tensor full = from_host(HostArray::zeros({DType::f32, {varies ? 4 : 2}}));
  return full_to_shard(full, Sharding(pair(), varies ? P("x") : P(none)), AxisSet::all(pair()));
}

bool varies(const Tensor& tensor) { return !manual_axes(tensor.value())->varying.empty(); }

std::string_view op_of(const Tensor& tensor) { return tensor.value()->op().name; }

TEST(ManualCotangent, OfWhatIsEqualEverywhereIsTheSum) {
  Tensor x = local(true), w = local(false), product = multiply(x, w);
  EXPECT_TRUE(varies(product));
  std::vector<Tensor> gradients = backward({&product, 1}, {&x, 1}, std::vector{x, w}, {});
  EXPECT_TRUE(varies(gradients[0]));
  EXPECT_EQ(op_of(gradients[0]), "multiply") << "each device has its own";
  EXPECT_FALSE(varies(gradients[1]));
  EXPECT_EQ(op_of(gradients[1]), "all_reduce");
}

TEST(ManualCotangent, CountsEveryDeviceEvenIfTheCotangentsAreEqual) {
  Tensor x = local(true), w = local(false), sum = add(x, w);
  Tensor seed = ones({2});
  Tensor gradient = backward({&sum, 1}, {&seed, 1}, {&w, 1}, {})[0];
  EXPECT_EQ(op_of(gradient), "all_reduce");
  EXPECT_EQ(op_of(Tensor(gradient.value()->operands()[0])), "vary");
}

TEST(ManualCotangent, OfAWidenedValueIsTheSum) {
  Tensor w = local(false), wide = vary(w, "x");
  Tensor gradient = backward({&wide, 1}, {&wide, 1}, {&w, 1}, {})[0];
  EXPECT_EQ(op_of(gradient), "all_reduce");
  EXPECT_FALSE(varies(gradient));
}

TEST(ManualCotangent, OfAnAllReduceCountsOnEachDevice) {
  Tensor x = local(true), total = all_reduce(x, "x");
  Tensor gradient = backward({&total, 1}, {&total, 1}, {&x, 1}, {})[0];
  EXPECT_EQ(op_of(gradient), "vary");
  EXPECT_TRUE(varies(gradient));
}

// A scalar of the enclosing function, which varies over "x", used in an inner region over "y".
TEST(ManualCotangent, OfAValueOfARegionAroundIsTheSumOfTheInnerDevices) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  AxisSet x(mesh, {"x"}), y(mesh, {"y"});
  Tensor full = from_host(HostArray::zeros({DType::f32, {4}}));
  Tensor outer = full_to_shard(full, Sharding(mesh, P("x")), x), number = sum(outer);
  Tensor inner = full_to_shard(outer, Sharding(mesh, P("y")), y), product = inner * number;
  EXPECT_EQ(*manual_axes(product.value()), (ManualAxes{mesh, x | y, x | y, {x}}));
  std::vector<Tensor> gradients =
      backward({&product, 1}, {&product, 1}, std::vector{number, inner}, {});
  EXPECT_EQ(*manual_axes(gradients[0].value()), (ManualAxes{mesh, x, x}));
  EXPECT_EQ(*manual_axes(gradients[1].value()), *manual_axes(inner.value()));
  // The broadcast value enters the inner region, so its cotangent leaves it.
  Tensor left(gradients[0].value()->operands()[0]);
  EXPECT_EQ(op_of(left), "shard_to_full");
  EXPECT_EQ(op_of(Tensor(left.value()->operands()[0])), "all_reduce");
}

TEST(ManualCotangent, OfAFreeOperandLeavesTheRegion) {
  Tensor scale = from_host(HostArray::scalar(2.0f));
  Tensor y = sum(multiply(local(true), scale));
  Tensor gradient = backward({&y, 1}, {&scale, 1}, {&scale, 1}, {})[0];
  EXPECT_EQ(manual_axes(gradient.value()), nullptr);
  EXPECT_EQ(gradient.type(), scale.type());
}

TEST(ManualCotangent, OfAnInputThatIsNotUsedIsALocalZero) {
  Tensor x = local(true), unused = local(true);
  Tensor gradient = backward({&x, 1}, {&x, 1}, {&unused, 1}, {})[0];
  EXPECT_TRUE(varies(gradient));
}

}  // namespace
}  // namespace meshard
