#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/autodiff/differentiate_body.h"
#include "meshard/ops/all.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

Body body_of(std::vector<BodyInput> inputs, const BodyFunction& function) {
  return trace_body(inputs, function, std::nullopt, {}).body;
}

std::ptrdiff_t count_of(const Body& body, std::string_view op) {
  auto nodes = body.graph().nodes();
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](const Node* node) { return node->op().name == op; });
}

// As the backward pass of a layer: g is needed for both gradients, g w for the input's, x g for the
// weight's.
Body two_gradients() {
  TensorType matrix{DType::f32, {8, 8}};
  return body_of({{matrix}, {matrix}, {matrix}}, [](std::span<const Tensor> p) {
    Tensor g = tanh(matmul(p[2], p[2]));
    return std::vector<Tensor>{matmul(g, p[1]), matmul(p[0], g)};
  });
}

TEST(SplitBody, NoProductIsInBothParts) {
  SplitBody parts = split_body(two_gradients(), 1, {});
  EXPECT_EQ(count_of(parts.first, "dot_general"), 2);
  EXPECT_EQ(count_of(parts.second, "dot_general"), 1);
  // tanh costs less to compute again than to keep beside the product.
  EXPECT_EQ(parts.first.num_results(), 2u);
  EXPECT_EQ(parts.second.num_parameters(), 4u);
  EXPECT_EQ(parts.second.num_results(), 1u);
  EXPECT_TRUE(verify(parts.first.graph()).ok());
  EXPECT_TRUE(verify(parts.second.graph()).ok());
}

// The second part, applied to the parameters and to what the first handed over, is the body again.
TEST(SplitBody, BothPartsTogetherAreTheBody) {
  Body whole = two_gradients();
  for (std::size_t count : {0u, 1u, 2u}) {
    SplitBody parts = split_body(whole, count, {});
    std::vector<BodyInput> inputs;
    for (std::size_t i = 0; i < whole.num_parameters(); ++i) inputs.push_back({whole.parameter(i)});
    Body joined = body_of(inputs, [&](std::span<const Tensor> p) {
      std::vector<Tensor> first = inlined(parts.first, p), given(p.begin(), p.end());
      given.insert(given.end(), first.begin() + static_cast<std::ptrdiff_t>(count), first.end());
      std::vector<Tensor> second = inlined(parts.second, given);
      first.resize(count);
      first.insert(first.end(), second.begin(), second.end());
      return first;
    });
    ASSERT_EQ(joined.num_results(), 2u) << count;
    EXPECT_EQ(count_of(joined, "dot_general"), 3) << count;
  }
}

TEST(SplitBody, ResultsThatAreParametersNeedNothing) {
  TensorType matrix{DType::f32, {8, 8}};
  Body whole = body_of({{matrix}, {matrix}}, [](std::span<const Tensor> p) {
    return std::vector<Tensor>{p[0], p[1], p[0]};
  });
  SplitBody parts = split_body(whole, 1, {});
  EXPECT_EQ(parts.first.num_results(), 1u);
  EXPECT_EQ(parts.second.num_results(), 2u);
  EXPECT_TRUE(parts.second.graph().nodes().empty());
}

}  // namespace
}  // namespace meshard
