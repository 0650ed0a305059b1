#include "meshard/graph/rolling_advice.h"

#include <gtest/gtest.h>

#include <functional>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

const TensorType kPair{DType::f32, {2}};

// A layer of five nodes with its own tensor.
Tensor layer(const Tensor& x, const Tensor& w, double factor = 2) {
  Tensor a = scale(x, factor), b = scale(w, 3), c = plus(a, b), d = plus(c, x);
  return plus(d, a);
}

std::optional<RollingAdvice> advice(
    const std::function<Tensor(const Tensor&, std::span<const Tensor>)>& f) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> values;
  for (int i = 0; i < 8; ++i) {
    parameters.push_back(make_parameter(kPair, std::nullopt, {}));
    values.push_back(parameters.back().value());
  }
  Tensor result = f(parameters[0], std::span<const Tensor>(parameters).subspan(1));
  return rolling_advice(Graph::build(values, std::vector<Value>{result.value()}, scope.trace()));
}

TEST(RollingAdvice, EqualLayersInARow) {
  auto found = advice([](const Tensor& x, std::span<const Tensor> w) {
    Tensor h = plus(scale(x, 7), x);
    for (const Tensor& each : w) h = layer(h, each);
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

struct CutAttributes {
  std::int64_t from = 0;
  MESHARD_FIELDS(from)
};
// Row `from` of a stack of pairs.
constinit const OpDef cut_op = {
    .name = "cut",
    .operands = "x",
    .infer = [](const OpCall&, ResultTypes& results) { results.push_back(kPair); },
    .traits = {.takes_part = true}};
Tensor cut(const Tensor& x, std::int64_t from) {
  return record(cut_op, make_attributes(CutAttributes{from}), {&x}, x.where());
}

TEST(RollingAdvice, LayersThatTakeSlicesOfOneArgument) {
  // The slice is taken before the layer or inside it.
  for (bool before : {true, false}) {
    auto found = advice([&](const Tensor& x, std::span<const Tensor> w) {
      std::vector<Tensor> rows;
      for (std::int64_t i = 0; i < 6; ++i) rows.push_back(before ? cut(w[0], i) : w[0]);
      Tensor h = x;
      for (std::int64_t i = 0; i < 6; ++i)
        h = layer(h, before ? rows[static_cast<std::size_t>(i)] : cut(w[0], i));
      return h;
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->layers, 6u);
    EXPECT_EQ(found->nodes_per_layer, 5u);
    EXPECT_EQ(found->parameters_per_layer, 1u);
    EXPECT_EQ(found->nodes_before, 36u);
    EXPECT_EQ(found->nodes_after, 5u);
  }
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w) {
    Tensor h = x, row = cut(w[0], 2);
    for (int i = 0; i < 6; ++i) h = layer(h, row);
    return h;
  })) << "the same slice in each";
}

TEST(RollingAdvice, NoneWhereLayersDifferOrDoNotFollowOneAnother) {
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w) {
    Tensor h = x;
    for (std::size_t i = 0; i < w.size(); ++i) h = layer(h, w[i], static_cast<double>(i));
    return h;
  })) << "other attributes";
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w) {
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = layer(h, w[0]);
    return h;
  })) << "no tensors of their own";
  EXPECT_FALSE(advice([](const Tensor& x, std::span<const Tensor> w) {
    return layer(layer(x, w[0]), w[1]);
  })) << "two only";
}

}  // namespace
}  // namespace meshard
