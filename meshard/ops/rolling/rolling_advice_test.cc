#include "meshard/ops/rolling/rolling_advice.h"

#include <gtest/gtest.h>

#include <functional>

#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/ops/slicing.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

const TensorType kTwoFloats{DType::f32, {2}};

// A layer of five nodes with its own tensor.
Tensor five_nodes(const Tensor& x, const Tensor& w, double factor = 2) {
  Tensor a = scale(x, factor), b = scale(w, 3), c = plus(a, b), d = plus(c, x);
  return plus(d, a);
}

std::optional<RollingAdvice> advice(
    const std::function<Tensor(const Tensor& x, std::span<const Tensor> w, const Tensor& stack)>&
        f) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> values;
  for (int i = 0; i < 9; ++i) {
    TensorType type = i < 8 ? kTwoFloats : TensorType{DType::f32, {6, 2}};
    parameters.push_back(make_parameter(type, std::nullopt, {}));
    values.push_back(parameters.back().value());
  }
  Tensor result =
      f(parameters[0], std::span<const Tensor>(parameters).subspan(1, 7), parameters[8]);
  return rolling_advice(Graph::build(values, std::vector<Value>{result.value()}, scope.trace()));
}

TEST(RollingAdvice, EqualLayersInARow) {
  auto found = advice([](const Tensor& x, std::span<const Tensor> w, const Tensor&) {
    Tensor h = plus(scale(x, 7), x);
    for (const Tensor& each : w) h = five_nodes(h, each);
    return scale(h, 9);
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layers, 7u);
  EXPECT_EQ(found->nodes_per_layer, 5u);
  EXPECT_EQ(found->parameters_per_layer, 1u);
  EXPECT_EQ(found->nodes_before, 38u);
  EXPECT_EQ(found->nodes_after, 8u);
  EXPECT_NE(found->to_string().find("7 equal layers in a row, 5 nodes each"), std::string::npos);
  EXPECT_NE(found->to_string().find("rolling_advice_test.cc:"), std::string::npos);
}

TEST(RollingAdvice, LayersThatTakeSlicesOfOneArgument) {
  // The slice is taken before the layer or inside it.
  for (bool before : {true, false}) {
    auto found = advice([&](const Tensor& x, std::span<const Tensor>, const Tensor& stack) {
      std::vector<Tensor> rows;
      for (std::int64_t i = 0; i < 6; ++i) rows.push_back(before ? layer_slice(stack, i) : stack);
      Tensor h = x;
      for (std::int64_t i = 0; i < 6; ++i)
        h = five_nodes(h, before ? rows[static_cast<std::size_t>(i)] : layer_slice(stack, i));
      return h;
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->layers, 6u);
    EXPECT_EQ(found->nodes_per_layer, 5u);
    EXPECT_EQ(found->parameters_per_layer, 1u);
    EXPECT_EQ(found->nodes_before, 36u);
    EXPECT_EQ(found->nodes_after, 5u);
  }
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor>, const Tensor& stack) {
    Tensor h = x, row = layer_slice(stack, 2);
    for (int i = 0; i < 6; ++i) h = five_nodes(h, row);
    return h;
  })) << "the same slice in each";
}

TEST(RollingAdvice, NoneWhereLayersDifferOrDoNotFollowOneAnother) {
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w, const Tensor&) {
    Tensor h = x;
    for (std::size_t i = 0; i < w.size(); ++i) h = five_nodes(h, w[i], static_cast<double>(i));
    return h;
  })) << "other attributes";
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w, const Tensor&) {
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = five_nodes(h, w[0]);
    return h;
  })) << "no tensors of their own";
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w, const Tensor&) {
    return five_nodes(five_nodes(x, w[0]), w[1]);
  })) << "two only";
}

}  // namespace
}  // namespace meshard
