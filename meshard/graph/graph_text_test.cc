#include "meshard/graph/graph_text.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

TEST(Print, ShowsCapturedValuesAndLines) {
  Tensor data = from_host(std::vector<float>{1, 2}, {2});
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, Shape{2}}, std::nullopt, {});
  SourceLocation where{"/home/user/train.cc", "main", 42};
  Tensor y = test::plus(In(a, where), In(data, where));
  Graph graph = Graph::build(std::vector{a.value()}, std::vector{y.value()}, scope.trace());
  EXPECT_EQ(to_string(graph, {.source_lines = true}),
            "graph(%0: f32[2]) captured(%1: f32[2]) {\n"
            "  %2 = plus(%0, %1) : f32[2]  // train.cc:42\n"
            "  return %2\n"
            "}\n");
}

}  // namespace
}  // namespace meshard
