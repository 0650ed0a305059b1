#include "meshard/graph/superseded.h"

#include <gtest/gtest.h>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"

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
  TraceScope scope;
  Tensor x = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor plain = call_of_body(x, 1);
  std::string key = extension_key(*plain.value()->attributes());
  Tensor more = call_of_body(x, 2, key), other = call_of_body(plain, 2, key),
         unlike = call_of_body(x, 2, "no key");
  std::vector<Value> results{plain.value(), more.value(), other.value(), unlike.value()};
  Graph graph = Graph::build(std::vector<Value>{x.value()}, results, scope.trace());
  auto superseded = superseded_nodes(graph);
  ASSERT_EQ(superseded.size(), 1u);
  EXPECT_EQ(superseded.at(plain.value().node()), more.value().node());
}

}  // namespace
}  // namespace meshard
