#include "meshard/graph/superseded.h"

#include <gtest/gtest.h>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

struct CallAttributes {
  std::vector<Body> bodies;
  std::string extends;
  MESHARD_FIELDS(bodies, extends)
};
constinit const OpDef call_op = {
    .name = "call", .operands = "x", .infer = [](const OpCall& call, ResultTypes& results) {
      const Body& body = call.as<CallAttributes>().bodies[0];
      for (std::size_t i = 0; i < body.num_results(); ++i) results.push_back(body.result(i));
    }};

Tensor call_of_body(const Tensor& x, std::size_t results, std::string extends = {}) {
  std::vector<BodyInput> inputs{body_input(x)};
  Body body = trace_body(inputs,
                         [&](std::span<const Tensor> given) {
                           return std::vector<Tensor>(results, given[0]);
                         },
                         std::nullopt, {})
                  .body;
  return record(call_op, make_attributes(CallAttributes{{body}, std::move(extends)}), {&x}, {});
}

TEST(Superseded, TheNodeThatGivesMoreStandsForTheOther) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor plain = call_of_body(x, 1);
  std::string key = extension_key(*plain.value()->attributes(), 1);
  Tensor more = call_of_body(x, 2, key), other = call_of_body(plain, 2, key),
         unlike = call_of_body(x, 2, "no key");
  std::vector<Value> results{plain.value(), more.value(), other.value(), unlike.value()};
  Graph graph = Graph::build(std::vector<Value>{x.value()}, results, scope.trace());
  auto superseded = superseded_nodes(graph);
  ASSERT_EQ(superseded.size(), 1u);
  EXPECT_EQ(superseded.at(plain.value().node()), more.value().node());
}

// Batch rules prepare the operands of each call separately.
TEST(Superseded, OperandsMayBeRecordedTwice) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor plain = call_of_body(test::scale(test::scale(x, 3), 2), 1);
  std::string key = extension_key(*plain.value()->attributes(), 1);
  EXPECT_EQ(extended_counts(key), (std::vector<std::size_t>{1}));
  Tensor unlike = call_of_body(test::scale(test::scale(x, 4), 2), 2, key);
  Tensor more = call_of_body(test::scale(test::scale(x, 3), 2), 2, key);
  std::string second = extension_key(*more.value()->attributes(), 2);
  EXPECT_EQ(extended_counts(second), (std::vector<std::size_t>{2, 1}));
  Tensor most = call_of_body(test::scale(test::scale(x, 3), 2), 3, second);
  std::vector<Value> results{plain.value(), unlike.value(), more.value(), most.value()};
  Graph graph = Graph::build(std::vector<Value>{x.value()}, results, scope.trace());
  auto superseded = superseded_nodes(graph);
  ASSERT_EQ(superseded.size(), 2u);
  EXPECT_EQ(superseded.at(plain.value().node()), more.value().node());
  EXPECT_EQ(superseded.at(more.value().node()), most.value().node());
}

}  // namespace
}  // namespace meshard
