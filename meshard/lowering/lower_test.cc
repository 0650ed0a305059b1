#include "meshard/lowering/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/stablehlo/module_reader.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

// The type and sharding of one parameter of the function that lowered() lowers.
struct Argument {
  TensorType type;
  std::optional<Sharding> sharding = std::nullopt;
};
template <class F>
LoweredModule lowered(const std::vector<Argument>& arguments, F f,
                      std::vector<std::uint32_t> donated = {}, const LowerOptions& options = {}) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> leaves, results;
  for (const Argument& argument : arguments) {
    parameters.push_back(make_parameter(argument.type, argument.sharding, {}));
    leaves.push_back(parameters.back().value());
  }
  for (const Tensor& result : f(parameters)) results.push_back(result.value());
  Program program{.graph = Graph::build(leaves, results, scope.trace()),
                  .donated = std::move(donated)};
  return lower(program, options);
}
using Tensors = std::vector<Tensor>;

const TensorType kMatrix{DType::f32, {8, 4}};

TEST(Lower, OneDeviceHasNoShardings) {
  LoweredModule module =
      lowered({{kMatrix}, {kMatrix}}, [](const Tensors& p) { return Tensors{tanh(p[0] + p[1])}; });
  EXPECT_EQ(
      module.text,
      R"(module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4xf32> loc("n0"), %arg1: tensor<8x4xf32> loc("n1")) -> (tensor<8x4xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32> loc("n2")
    %1 = stablehlo.tanh %0 : tensor<8x4xf32> loc("n3")
    return %1 : tensor<8x4xf32>
  }
}
)");
  EXPECT_EQ(module.num_partitions(), 1);
  EXPECT_FALSE(module.mesh);
}

// One loop with `unroll` copies of the body, and copies for the remaining steps.
TEST(Lower, StepsOfATurnAreWrittenOneAfterTheOther) {
  auto copies = [](std::int64_t length, std::int64_t unroll) {
    std::string text = lowered({{{DType::f32, {length, 4}}}}, [&](const Tensors& p) {
                         auto step = [](Tensor c, Tensor row) { return std::pair(c * row, c); };
                         return Tensors{scan(step, ones({4}), p[0], {.unroll = unroll}).first};
                       }).text;
    auto count = [&](std::string_view word) {
      std::size_t found = 0;
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        ++found;
      return found;
    };
    return std::pair(count("stablehlo.while"), count("stablehlo.multiply"));
  };
  using Copies = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(copies(6, 1), Copies(1, 1));
  EXPECT_EQ(copies(6, 3), Copies(1, 3));
  EXPECT_EQ(copies(7, 3), Copies(1, 4));
  EXPECT_EQ(copies(5, 4), Copies(0, 5)) << "one turn is not a loop";
  EXPECT_EQ(copies(5, 5), Copies(0, 5));
  EXPECT_EQ(copies(5, 9), Copies(0, 5));
}

TEST(Lower, ExplicitShardingsArePinned) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 2, AxisKind::kExplicit}});
  LoweredModule module = lowered(
      {{kMatrix, Sharding(mesh, P("x", none))}, {kMatrix, Sharding(mesh, P(none, "y"))}, {kMatrix}},
      [](const Tensors& p) {
        return Tensors{p[0] + p[1], tanh(p[2])};
      });
  EXPECT_THAT(module.text, HasSubstr("sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>"));
  EXPECT_THAT(module.text,
              HasSubstr("%0 = sdy.sharding_constraint %t0 <@mesh, [{\"x\"}, {\"y\"}]>"));
  EXPECT_EQ(module.results[0].sharding, Sharding(mesh, P("x", "y")));
  EXPECT_TRUE(module.results[0].is_exact());
  EXPECT_FALSE(module.results[1].sharding) << "nothing explicit leads there";
  EXPECT_THAT(module.text, Not(HasSubstr("sdy.sharding_constraint %1")));
}

TEST(Lower, AxesOfAMixedMeshAreOpenToTheCompilerWhereTheyAreAuto) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"z", 2}, {"w", 2, AxisKind::kExplicit}});
  LoweredModule module = lowered({{kMatrix, Sharding(mesh, P("x", "z"))}},
                                 [](const Tensors& p) { return Tensors{tanh(p[0])}; });
  EXPECT_THAT(module.text, HasSubstr("sdy.sharding_constraint %t0 <@mesh, [{\"x\", ?}, {?}], "
                                     "replicated={\"w\"}>"));
}

TEST(Lower, ShardingsStandAtTheBoundaryAndOnConstraints) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {7, 5, 6, 4});
  LoweredModule module =
      lowered({{kMatrix, Sharding(mesh, P("x", none))}, {kMatrix}}, [&](const Tensors& p) {
        Tensor sum = p[0] + p[1];
        return Tensors{sharding_constraint(sum, Sharding(mesh, P(axes("y", "x"), unconstrained))),
                       sum};
      });
  EXPECT_EQ(
      module.text,
      R"(module @main attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("n0"), %arg1: tensor<8x4xf32> loc("n1")) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {?}]>}, tensor<8x4xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32> loc("n2")
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y", "x"}, {?}]> : tensor<8x4xf32> loc("n3")
    return %1, %0 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
)");
  EXPECT_EQ(*module.mesh, mesh);
  EXPECT_EQ(module.num_partitions(), 4);
  EXPECT_FALSE(module.arguments[1].sharding);
}

TEST(Lower, TheTextDoesNotKnowDevicesAndLines) {
  auto text = [](std::vector<std::int64_t> ids, int line) {
    Mesh mesh({{"x", 2}}, std::move(ids));
    SourceLocation where{"a.cc", "f", static_cast<std::uint32_t>(line)};
    return lowered({{kMatrix, Sharding(mesh, P("x", none))}},
                   [&](const Tensors& p) { return Tensors{exp(In(p[0], where))}; })
        .text;
  };
  EXPECT_EQ(text({0, 1}, 1), text({6, 3}, 99));
}

TEST(Lower, TwoMeshesOverTheSameDevices) {
  Mesh first({{"x", 4}}, {4, 5, 6, 7}), second({{"a", 2}, {"b", 2}}, {7, 6, 5, 4});
  LoweredModule module =
      lowered({{kMatrix, Sharding(first, P("x", none))}, {kMatrix, Sharding(second, P("a", "b"))}},
              [](const Tensors& p) { return Tensors{p[0] * p[1]}; });
  EXPECT_THAT(module.text,
              HasSubstr("  sdy.mesh @mesh = <[\"x\"=4]>\n"
                        "  sdy.mesh @mesh_1 = <[\"a\"=2, \"b\"=2], device_ids=[3, 2, 1, 0]>\n"));
  EXPECT_THAT(module.text, HasSubstr("#sdy.sharding<@mesh_1, [{\"a\"}, {\"b\"}]>"));
  EXPECT_EQ(*module.mesh, first);
}

TEST(Lower, DonationPairsArgumentsWithResults) {
  Mesh mesh({{"x", 4}});
  Sharding rows(mesh, P("x", none));
  LoweredModule module =
      lowered({{kMatrix, rows}, {kMatrix, rows}, {{DType::f32, {4}}, Sharding(mesh, P(none))}},
              [&](const Tensors& p) {
                return Tensors{sum(p[0]), sharding_constraint(p[0] + 1, rows),
                               sharding_constraint(p[1] + p[2], rows)};
              },
              {0, 1, 2});
  EXPECT_THAT(module.text, HasSubstr("[{\"x\"}, {}]>, tf.aliasing_output = 1 : i32} loc(\"n0\")"));
  EXPECT_THAT(module.text, HasSubstr("[{\"x\"}, {}]>, tf.aliasing_output = 2 : i32} loc(\"n1\")"));
  EXPECT_THAT(module.text, HasSubstr("[{}]>, jax.buffer_donor = true} loc(\"n2\")"));
}

TEST(Lower, DonationWaitsForTheCompilersChoice) {
  Mesh mesh({{"x", 4}});
  LoweredModule module = lowered({{kMatrix, Sharding(mesh, P("x", none))}},
                                 [](const Tensors& p) { return Tensors{p[0] + 1}; }, {0});
  EXPECT_THAT(module.text, HasSubstr("jax.buffer_donor = true"));
  EXPECT_THAT(module.text, Not(HasSubstr("aliasing_output")));
  LoweredModule single =
      lowered({{kMatrix}}, [](const Tensors& p) { return Tensors{p[0] + 1}; }, {0});
  EXPECT_THAT(single.text, HasSubstr("tf.aliasing_output = 0 : i32"));
}

TEST(Lower, CapturedValuesFollowTheParameters) {
  Tensor captured = from_host(std::vector<float>{1, 2, 3, 4}, {4});
  LoweredModule module =
      lowered({{kMatrix}}, [&](const Tensors& p) { return Tensors{p[0] + captured}; });
  ASSERT_EQ(module.arguments.size(), 2u);
  EXPECT_EQ(module.arguments[1].type.shape, (Shape{4}));
  EXPECT_THAT(module.text, HasSubstr("%arg1: tensor<4xf32> loc(\"n1\")"));
}

TEST(Lower, AMarkOnOneDeviceSaysNothing) {
  Mesh one({{"x", 1}}, {3});
  LoweredModule module = lowered({{kMatrix, Sharding(one, P("x", none))}}, [&](const Tensors& p) {
    return Tensors{sharding_constraint(p[0] + 1, Sharding(one, P(none, "x")))};
  });
  EXPECT_THAT(module.text, Not(HasSubstr("sdy")));
  EXPECT_EQ(module.mesh->device_id(0), 3);
}

// lowering/internal/shared_values.h
TEST(Lower, ForCpusAValueOfManyArraysIsInMemory) {
  auto text = [](const char* platform, bool marks) {
    auto f = [&](const Tensors& p) {
      Tensor x = p[0];
      for (std::size_t i = 1; i < p.size(); ++i) x = x + p[i];
      if (marks) x = mark_sharding(x, Mesh({{"x", 1}}), P());
      return Tensors{tanh(x), x};
    };
    LowerOptions options{
        .quirks = [&](const std::optional<Mesh>&) { return quirks_of_table(platform); }};
    return lowered(std::vector<Argument>(8, {kMatrix}), f, {}, options).text;
  };
  EXPECT_THAT(text("cpu", false), HasSubstr(R"(
    %t0 = stablehlo.add %5, %arg7 : tensor<8x4xf32> loc("n14")
    %t1 = stablehlo.constant dense<1.0> : tensor<f32>
    %t2 = "stablehlo.optimization_barrier"(%t1) : (tensor<f32>) -> tensor<f32>
    %t3 = "stablehlo.broadcast_in_dim"(%t2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x4xf32>
    %6 = stablehlo.divide %t0, %t3 : tensor<8x4xf32> loc("n14")
    %7 = stablehlo.tanh %6 : tensor<8x4xf32> loc("n15")
)"));
  EXPECT_THAT(text("cpu", true), HasSubstr("%7 = stablehlo.divide %t0, %t3"));
  EXPECT_THAT(text("tpu", false), Not(HasSubstr("stablehlo.divide")));
}

TEST(Lower, AnOpWithoutTextNamesItsLine) {
  static const OpDef silent_op = {
      .name = "silent",
      .operands = "x",
      .infer = [](const OpCall& call, ResultTypes& out) { out.push_back(call.operand(0)); },
  };
  SourceLocation where{"user.cc", "f", 7};
  EXPECT_TRUE(throws_error(
      [&] {
        (void)lowered({{kMatrix}}, [&](const Tensors& p) {
          return Tensors{record(silent_op, nullptr, {&p[0]}, where)};
        });
      },
      ErrorCode::kUnimplemented, {"user.cc:7", "silent"}));
}

TEST(Lower, AManualRegionIsAManualComputation) {
  Mesh mesh({{"x", 2}});
  LoweredModule module = lowered({{{DType::f32, {3}}}}, [&](const Tensors& p) {
    auto f = manual(mesh, P("x"), P("x"),
                    [](const Tensor& part) { return part + all_reduce(part, "x"); },
                    {.out_shapes = {{3}}, .pad = 0});
    return Tensors{f(p[0])};
  });
  EXPECT_THAT(module.text, HasSubstr(R"(
    %t1 = stablehlo.constant dense<0.0> : tensor<f32>
    %t0 = "stablehlo.pad"(%arg0, %t1) <{edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32> loc("n1")
    %t2 = "sdy.manual_computation"(%t0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
    ^bb0(%b0: tensor<2xf32>):
      %0 = "stablehlo.all_reduce"(%b0) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%b1: tensor<f32>, %b2: tensor<f32>):
        %t3 = stablehlo.add %b1, %b2 : tensor<f32>
        stablehlo.return %t3 : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32> loc("n2")
      %1 = stablehlo.add %b0, %0 : tensor<2xf32> loc("n3")
      sdy.return %1 : tensor<2xf32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
)"));
}

TEST(Lower, AxesThatAreNotManualStayOpen) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  LoweredModule module = lowered({{kMatrix}}, [&](const Tensors& p) {
    return Tensors{manual(mesh, P(none, "x"), P(none, "x"),
                          [](const Tensor& part) { return tanh(part); }, {.axes = {"x"}})(p[0])};
  });
  EXPECT_THAT(
      module.text,
      HasSubstr(
          R"(in_shardings = #sdy.sharding_per_value<[<@mesh, [{?}, {"x", ?}]>]>, manual_axes = #sdy<manual_axes{"x"}>)"));
}

// Neither lists the axes of the other: Shardy requires inner axes in the inner one only.
TEST(Lower, AManualFunctionInsideAnotherIsAManualComputationInsideAnother) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  LoweredModule module = lowered({{{DType::f32, {4, 4}}}}, [&](const Tensors& p) {
    auto inner =
        manual(mesh, P(none, "y"), P(none, "y"),
               [](const Tensor& part) { return all_reduce(tanh(part), "x"); }, {.axes = {"y"}});
    auto outer = manual(mesh, P("x"), P(), inner, {.axes = {"x"}});
    return Tensors{outer(p[0])};
  });
  std::string_view text = module.text;
  std::size_t outer = text.find(
      R"(in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>, manual_axes = #sdy<manual_axes{"x"}>)");
  std::size_t inner = text.find(
      R"(in_shardings = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>, manual_axes = #sdy<manual_axes{"y"}>)");
  std::size_t op = text.find("stablehlo.tanh"), end = text.find("sdy.return");
  ASSERT_NE(outer, text.npos) << text;
  ASSERT_NE(inner, text.npos) << text;
  EXPECT_LT(outer, inner);
  EXPECT_LT(inner, op);
  EXPECT_LT(op, end);
  EXPECT_THAT(module.text, HasSubstr("tensor<2x2xf32>"));
  EXPECT_THAT(module.text, HasSubstr("dense<[[0, 4], [1, 5], [2, 6], [3, 7]]>"));
}

TEST(Lower, ManualFunctionsHaveNoUnshardedForm) {
  Mesh mesh({{"x", 2}});
  internal::TraceScope scope;
  Tensor x = make_parameter(kMatrix, std::nullopt, {});
  Tensor y = manual(mesh, P("x"), P("x"), [](const Tensor& part) { return tanh(part); })(x);
  Program program{
      .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
      .donated = {}};
  program.unsharded = true;
  EXPECT_TRUE(throws_error([&] { lower(program); }, ErrorCode::kInvalidArgument,
                           {"manual over {\"x\"}", "without shardings", "lower_test.cc:"}));
}

TEST(Lower, ALocalValueIsNoResult) {
  Mesh mesh({{"x", 2}});
  EXPECT_TRUE(throws_error(
      [&] {
        lowered({{kMatrix}}, [&](const Tensors& p) {
          return Tensors{enable_manual_sharding(p[0], mesh, P("x"))};
        });
      },
      ErrorCode::kInvalidArgument, {"cannot return the local value", "lower_test.cc:"}));
}

TEST(LowerForFile, NamesLinesTypesAndDevices) {
  Mesh mesh({{"x", 2}}, {5, 3});
  internal::TraceScope scope;
  Tensor a = make_parameter({DType::f32, {7}}, Sharding(mesh, P("x")), {"a/step.cc", "f", 41});
  Tensor sum = add(In(a, {"a/step.cc", "f", 42}), a);
  Program program{
      .name = "step",
      .graph = Graph::build(std::vector{a.value()}, std::vector{sum.value()}, scope.trace()),
      .donated = {},
      .parameter_names = {"p[\"a\"]"}};
  std::string text = lower_for_file(program);
  EXPECT_THAT(text, HasSubstr("module @step attributes {mhlo.num_partitions = 2 : i32, "
                              "mhlo.num_replicas = 1 : i32, meshard.mesh = "
                              "\"<[\\\"x\\\"=2], device_ids=[5, 3]>\"}"));
  EXPECT_THAT(text, HasSubstr("loc(\"p[\\\"a\\\"]\")"));
  EXPECT_THAT(text, HasSubstr("meshard.place = \"step.cc:41\", meshard.type = \"tensor<7xf32>\""));
  EXPECT_THAT(text, HasSubstr("loc(\"add\"(\"a/step.cc\":42:1))"));
  EXPECT_THAT(text, Not(HasSubstr("loc(\"n")));
  stablehlo::ModuleFacts read = stablehlo::read_module(text).value();
  EXPECT_EQ(read.origin, stablehlo::ModuleOrigin::kMeshard);
  EXPECT_EQ(read.device_mesh->device_ids, (std::vector<std::int64_t>{5, 3}));
  EXPECT_EQ(read.arguments[0].name, "p[\"a\"]");
  EXPECT_EQ(read.arguments[0].place, "step.cc:41");
  EXPECT_EQ(read.arguments[0].own_type, "tensor<7xf32>");
  EXPECT_EQ(read.results[0].place, "step.cc:42");
}

// The names that JAX gives to ops of the two passes; what depends on the backward pass comes after
// it.
TEST(LowerForFile, NamesHaveThePhase) {
  internal::TraceScope scope;
  auto at = [](std::uint32_t line) { return SourceLocation{"step.cc", "f", line}; };
  Tensor a = make_parameter({DType::f32, {7}}, std::nullopt, at(1));
  Tensor forward = sin(In(a, at(2)));
  Tensor backward = cos(In(a, at(2).of_derivative()));
  Tensor product = multiply(In(forward, at(2).of_derivative()), backward);
  Tensor updated = subtract(In(a, at(3)), product);
  Program program{
      .name = "step",
      .graph = Graph::build(std::vector{a.value()}, std::vector{updated.value()}, scope.trace()),
      .donated = {},
      .parameter_names = {"a"}};
  std::string text = lower_for_file(program);
  EXPECT_THAT(text, HasSubstr("loc(\"jvp()/sin\"(\"step.cc\":2:1))"));
  EXPECT_THAT(text, HasSubstr("loc(\"transpose(jvp())/cos\"(\"step.cc\":2:1))"));
  EXPECT_THAT(text, HasSubstr("loc(\"transpose(jvp())/multiply\"(\"step.cc\":2:1))"));
  EXPECT_THAT(text, HasSubstr("loc(\"optimizer()/subtract\"(\"step.cc\":3:1))"));
}

}  // namespace
}  // namespace meshard
