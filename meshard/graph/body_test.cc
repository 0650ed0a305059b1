#include "meshard/graph/body.h"

#include <gtest/gtest.h>

#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

const TensorType kPair{DType::f32, {2}};

TracedBody traced(const BodyFunction& function, std::vector<BodyInput> inputs = {{kPair}}) {
  return trace_body(inputs, function, std::nullopt, {});
}

TEST(Body, CapturesWhatIsRecordedOutside) {
  internal::TraceScope outer;
  Tensor a = make_parameter(kPair, std::nullopt, {}), b = scale(a, 3);
  TracedBody body = traced([&](std::span<const Tensor> x) {
    Tensor first = plus(x[0], b), second = plus(b, a);
    return std::vector<Tensor>{plus(first, second), b};
  });
  ASSERT_EQ(body.captured.size(), 2u);
  EXPECT_EQ(body.captured[0].value(), b.value());
  EXPECT_EQ(body.captured[1].value(), a.value());
  EXPECT_EQ(to_string(body.body.graph()),
            "graph(%0: f32[2], %1: f32[2], %2: f32[2]) {\n"
            "  %3 = plus(%0, %1) : f32[2]\n"
            "  %4 = plus(%1, %2) : f32[2]\n"
            "  %5 = plus(%3, %4) : f32[2]\n"
            "  return %5, %1\n"
            "}\n");
  EXPECT_TRUE(verify(body.body.graph()).ok());
}

TEST(Body, DoesNotCaptureWhatItsResultsDoNotNeed) {
  internal::TraceScope outer;
  Tensor a = make_parameter(kPair, std::nullopt, {}), b = make_parameter(kPair, std::nullopt, {}),
         c = make_parameter(kPair, std::nullopt, {});
  TracedBody body = traced([&](std::span<const Tensor> x) {
    Tensor unused = plus(scale(a, 2), b);
    return std::vector<Tensor>{plus(x[0], b), c};
  });
  ASSERT_EQ(body.captured.size(), 2u);
  EXPECT_EQ(body.captured[0].value(), b.value());
  EXPECT_EQ(body.captured[1].value(), c.value());
  EXPECT_EQ(body.body.num_parameters(), 3u);
  EXPECT_TRUE(verify(body.body.graph()).ok());
}

TEST(Body, ValuesOfAllEnclosingBodiesGoInOneAfterTheOther) {
  internal::TraceScope outer;
  Tensor a = make_parameter(kPair, std::nullopt, {});
  TracedBody body = traced([&](std::span<const Tensor> x) {
    TracedBody inner =
        traced([&](std::span<const Tensor> y) { return std::vector<Tensor>{plus(y[0], a)}; });
    EXPECT_EQ(inner.captured.size(), 1u);
    return std::vector<Tensor>{plus(x[0], inner.captured[0])};
  });
  ASSERT_EQ(body.captured.size(), 1u);
  EXPECT_EQ(body.captured[0].value(), a.value());
}

TEST(Body, StoredAndLazyValuesAreCapturedConstantsRepeated) {
  Tensor stored = from_host(std::vector<float>{1, 2}, {2});
  Tensor lazy = scale(stored, 2), constant = test::one();
  TracedBody body = traced([&](std::span<const Tensor> x) {
    Tensor first = plus(x[0], constant);
    return std::vector<Tensor>{plus(first, plus(stored, lazy))};
  });
  EXPECT_EQ(body.captured.size(), 2u);
  // It precedes its user.
  EXPECT_EQ(body.body.graph().nodes()[0]->op().name, "one");
  EXPECT_TRUE(verify(body.body.graph()).ok());
}

TEST(Body, AValueOfAnEndedTraceIsALeak) {
  Tensor leaked;
  traced([&](std::span<const Tensor> x) {
    leaked = scale(x[0], 2);
    return std::vector<Tensor>{leaked};
  });
  EXPECT_TRUE(throws_error(
      [&] {
        traced([&](std::span<const Tensor> x) { return std::vector<Tensor>{plus(x[0], leaked)}; });
      },
      ErrorCode::kInvalidArgument, {"outside its trace", "body_test.cc"}));
}

TEST(Body, EqualIfTheyComputeTheSame) {
  auto with = [](double factor) {
    return traced(
               [=](std::span<const Tensor> x) { return std::vector<Tensor>{scale(x[0], factor)}; })
        .body;
  };
  EXPECT_EQ(with(2), with(2));
  EXPECT_FALSE(with(2) == with(3));
}

TEST(Body, PrintedInsideAttributesAndRead) {
  std::vector<Body> bodies;
  for (double factor : {2.0, 3.0})
    bodies.push_back(traced([=](std::span<const Tensor> x) {
                       return std::vector<Tensor>{scale(x[0], factor)};
                     }).body);
  std::string text;
  attribute_text::print(text, bodies);
  Result<std::vector<Body>> read = parse_bodies(text, test::find_test_op);
  ASSERT_TRUE(read.ok()) << read.error().what() << text;
  EXPECT_EQ(*read, bodies) << text;
  EXPECT_FALSE(parse_bodies("graph()", test::find_test_op).ok());
}

TEST(Body, ParametersOfManualPlacesKeepThem) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  AxisSet x(mesh, {AxisRef("x")});
  ManualAxes one{mesh, AxisSet::all(mesh), x}, nested{mesh, AxisSet::all(mesh), x, {x}};
  for (const ManualAxes& place : {one, nested}) {
    std::vector<BodyInput> inputs{{kPair}};
    Body body =
        trace_body(inputs,
                   [](std::span<const Tensor> t) { return std::vector<Tensor>{scale(t[0], 2)}; },
                   place, {})
            .body;
    EXPECT_EQ(*manual_axes(body.graph().results()[0]), place);
    std::string text;
    attribute_text::print(text, {body});
    Result<std::vector<Body>> read = parse_bodies(text, test::find_test_op);
    ASSERT_TRUE(read.ok()) << read.error().what() << text;
    EXPECT_EQ((*read)[0], body);
    EXPECT_EQ(*manual_axes((*read)[0].graph().results()[0]), place);
  }
}

TEST(Body, InlinedIsRecordedAgain) {
  TracedBody body = traced(
      [](std::span<const Tensor> x) {
        return std::vector<Tensor>{plus(scale(x[0], 2), x[1]), x[1]};
      },
      {{kPair}, {kPair}});
  internal::TraceScope outer;
  Tensor a = make_parameter(kPair, std::nullopt, {}), b = scale(a, 7);
  std::vector<Tensor> results = inlined(body.body, std::vector<Tensor>{a, b});
  EXPECT_EQ(results[1].value(), b.value());
  EXPECT_EQ(results[0].value()->trace(), outer.trace());
  EXPECT_EQ(results[0].value()->operands()[1], b.value());
  EXPECT_EQ(results[0].value()->operands()[0]->operands()[0], a.value());
}

}  // namespace
}  // namespace meshard
