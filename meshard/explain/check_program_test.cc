#include "meshard/explain/check_program.h"

#include <gmock/gmock.h>

#include <random>

#include "meshard/base/cat.h"
#include "meshard/explain/hlo_testutil.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

class CheckProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = why_no_plugin(); !why.empty()) GTEST_SKIP() << why;
  }
};

HostArray random_floats(Shape shape, TestRandom& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (float& value : values) value = normal(random);
  return HostArray::from_vector(std::move(values), shape);
}

// A layer of a model over 2x2 devices; `line` replaces the line of the same number.
std::string layer(int line = 0, std::string_view by = {}) {
  const std::pair<int, std::string_view> kLines[] = {
      {10,
       R"(%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>)"},
      {11, R"(%1 = call @relu(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>)"},
      {12,
       R"(%2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>)"},
      {13, R"(%3 = stablehlo.add %2, %arg0 : tensor<8x16xf32>)"},
      {14, R"(%4 = stablehlo.iota dim = 0 : tensor<8xi32>)"},
      {15, R"(%5 = stablehlo.add %4, %arg3 : tensor<8xi32>)"},
      {16, R"(%6 = stablehlo.reshape %5 : (tensor<8xi32>) -> tensor<8x1xi32>)"},
      {17,
       R"(%7 = "stablehlo.gather"(%arg4, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<12x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>)"},
      {18, R"(%8 = stablehlo.add %3, %7 : tensor<8x16xf32>)"},
      {19, R"(%9 = stablehlo.slice %8 [1:8, 0:16] : (tensor<8x16xf32>) -> tensor<7x16xf32>)"},
      {20, R"(%10 = stablehlo.slice %8 [0:1, 0:16] : (tensor<8x16xf32>) -> tensor<1x16xf32>)"},
      {21,
       R"(%11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<7x16xf32>, tensor<1x16xf32>) -> tensor<8x16xf32>)"},
      {22, R"(%cst = stablehlo.constant dense<0.0> : tensor<f32>)"},
      {23,
       R"(%12 = stablehlo.reduce(%11 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<16xf32>)"},
      {24, R"(%half = stablehlo.constant dense<0.5> : tensor<16xf32>)"},
      {25, R"(%13 = stablehlo.multiply %12, %half : tensor<16xf32>)"},
      {26, R"(%14 = sdy.sharding_constraint %11 <@mesh, [{}, {"x", "y"}]> : tensor<8x16xf32>)"},
      {27, R"(%15 = stablehlo.tanh %14 : tensor<8x16xf32>)"},
      {31, R"(%0 = stablehlo.constant dense<0.0> : tensor<8x32xf32>)"},
      {32, R"(%1 = stablehlo.maximum %arg0, %0 : tensor<8x32xf32>)"}};
  std::string main, relu;
  for (const auto& [number, text] : kLines)
    append(number < 30 ? main : relu,
           cat("    ", number == line ? by : text, " loc(\"model.py\":", number, ":1)\n"));
  return cat(R"(module @layer attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %arg2: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}, %arg3: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg4: tensor<12x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>, tf.aliasing_output = 9 : i32}) -> (tensor<16xf32> {jax.result_info = "y"}, tensor<8x16xf32>, tensor<8xi32>) {
)",
             main, R"(    return %13, %15, %5 : tensor<16xf32>, tensor<8x16xf32>, tensor<8xi32>
  }
  func.func private @relu(%arg0: tensor<8x32xf32>) -> tensor<8x32xf32> {
)",
             relu, "    return %1 : tensor<8x32xf32>\n  }\n}\n");
}

std::vector<HostArray> layer_arguments() {
  TestRandom random;
  return {random_floats({8, 16}, random), random_floats({16, 32}, random),
          random_floats({32, 16}, random),
          HostArray::from_vector(std::vector<std::int32_t>{3, 1, 4, 1, 5, 0, 2, 2}),
          random_floats({12, 16}, random)};
}

/// What a wrong compiler makes of a line.
struct Fault {
  std::string_view name;
  int line;
  std::string by;
  std::string_view op;
};

/// A manual region over all axes: values that one device computes from its shards.
struct Region {
  std::string_view result, operands, in, out, arguments, body, types;

  std::string to_string() const {
    return cat(result, " = sdy.manual_computation(", operands, ") in_shardings=[", in,
               "] out_shardings=[", out, "] manual_axes={\"x\", \"y\"} (", arguments, ") {\n", body,
               "    } : ", types);
  }
};

std::string all_reduce(std::string_view groups, std::string_view shape, std::string_view op,
                       std::string_view type) {
  return cat(
      "%q = \"stablehlo.all_reduce\"(%p) <{channel_handle = "
      "#stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<",
      groups, "> : tensor<", shape,
      "xi64>, use_global_device_ids}> ({\n    ^bb0(%l: tensor<f32>, %r: tensor<f32>):\n"
      "      %s = stablehlo.",
      op, " %l, %r : tensor<f32>\n      stablehlo.return %s : tensor<f32>\n    }) : (", type,
      ") -> ", type, "\n");
}

// The product of line 12 on each device, without a sum over devices.
std::string second_product(std::string_view after, std::string_view returned) {
  return Region{"%2",
                "%1, %arg2",
                R"(<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>)",
                R"(<@mesh, [{"x"}, {}]>)",
                "%a: tensor<4x16xf32>, %b: tensor<16x16xf32>",
                cat("%p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
                    "(tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>\n",
                    after, "sdy.return ", returned, " : tensor<4x16xf32>\n"),
                "(tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>"}
      .to_string();
}

// Computes `%m` on each device, and returns twice of it on device 3.
std::string wrong_on_one(std::string_view computed, std::string_view sizes) {
  return cat(computed, R"(
      %id = stablehlo.partition_id : tensor<ui32>
      %three = stablehlo.constant dense<3> : tensor<ui32>
      %is = stablehlo.compare EQ, %id, %three : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %twice = stablehlo.add %m, %m : tensor<)",
             sizes, R"(xf32>
      %every = stablehlo.broadcast_in_dim %is, dims = [] : (tensor<i1>) -> tensor<)",
             sizes,
             R"(xi1>
      %w = stablehlo.select %every, %twice, %m : tensor<)",
             sizes, "xi1>, tensor<", sizes, "xf32>\n      sdy.return %w : tensor<", sizes,
             "xf32>\n");
}

std::vector<Fault> faults_of_sums() {
  return {
      {"a sum over devices is left out", 12, second_product("", "%p"), "stablehlo.dot_general"},
      {"a sum over the wrong devices", 12,
       second_product(all_reduce("[[0, 2], [1, 3]]", "2x2", "add", "tensor<4x16xf32>"), "%q"),
       "stablehlo.dot_general"},
      {"a sum that counts twice", 12,
       second_product(cat(all_reduce("[[0, 1], [2, 3]]", "2x2", "add", "tensor<4x16xf32>"),
                          "%t = stablehlo.add %q, %q : tensor<4x16xf32>\n"),
                      "%t"),
       "stablehlo.dot_general"},
      {"a maximum in place of a sum", 23,
       Region{
           "%12", "%11", R"(<@mesh, [{"x", "y"}, {}]>)", "<@mesh, [{}]>", "%a: tensor<2x16xf32>",
           cat("%z = stablehlo.constant dense<0.0> : tensor<f32>\n%p = stablehlo.reduce(%a init: "
               "%z) applies stablehlo.add across dimensions = [0] : (tensor<2x16xf32>, "
               "tensor<f32>) -> tensor<16xf32>\n",
               all_reduce("[[0, 1, 2, 3]]", "1x4", "maximum", "tensor<16xf32>"),
               "sdy.return %q : tensor<16xf32>\n"),
           "(tensor<8x16xf32>) -> tensor<16xf32>"}
           .to_string(),
       "stablehlo.reduce"}};
}

std::vector<Fault> faults_of_values() {
  return {{"a wrong operand", 13, "%3 = stablehlo.add %2, %2 : tensor<8x16xf32>", "stablehlo.add"},
          {"positions without the offset of the shard", 14,
           Region{"%4", "%arg3", R"(<@mesh, [{"x"}]>)", R"(<@mesh, [{"x"}]>)", "%a: tensor<4xi32>",
                  "%p = stablehlo.iota dim = 0 : tensor<4xi32>\nsdy.return %p : tensor<4xi32>\n",
                  "(tensor<8xi32>) -> tensor<8xi32>"}
               .to_string(),
           "stablehlo.iota"},
          {"a constant that is wrong on one device", 24,
           Region{"%half", "%cst", "<@mesh, []>", "<@mesh, [{}]>", "%a: tensor<f32>",
                  wrong_on_one("%m = stablehlo.constant dense<0.5> : tensor<16xf32>", "16"),
                  "(tensor<f32>) -> tensor<16xf32>"}
               .to_string(),
           "stablehlo.constant"},
          {"one wrong shard in a function that is called", 32,
           Region{"%1", "%arg0, %0", R"(<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"x"}, {"y"}]>)",
                  R"(<@mesh, [{"x"}, {"y"}]>)", "%a: tensor<4x16xf32>, %b: tensor<4x16xf32>",
                  wrong_on_one("%m = stablehlo.maximum %a, %b : tensor<4x16xf32>", "4x16"),
                  "(tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>"}
               .to_string(),
           "stablehlo.maximum"},
          {"one replica of a result", 25,
           Region{"%13", "%12, %half", "<@mesh, [{}]>, <@mesh, [{}]>", "<@mesh, [{}]>",
                  "%a: tensor<16xf32>, %b: tensor<16xf32>",
                  wrong_on_one("%m = stablehlo.multiply %a, %b : tensor<16xf32>", "16"),
                  "(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>"}
               .to_string(),
           "stablehlo.multiply"}};
}

std::vector<Fault> faults_of_moves() {
  return {{"rows from the wrong neighbor", 21,
           Region{"%11", "%8", R"(<@mesh, [{"x", "y"}, {}]>)", R"(<@mesh, [{"x", "y"}, {}]>)",
                  "%a: tensor<2x16xf32>", R"(
      %f = stablehlo.slice %a [0:1, 0:16] : (tensor<2x16xf32>) -> tensor<1x16xf32>
      %l = stablehlo.slice %a [1:2, 0:16] : (tensor<2x16xf32>) -> tensor<1x16xf32>
      %g = "stablehlo.collective_permute"(%f) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<1x16xf32>) -> tensor<1x16xf32>
      %p = stablehlo.concatenate %l, %g, dim = 0 : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<2x16xf32>
      sdy.return %p : tensor<2x16xf32>
)",
                  "(tensor<8x16xf32>) -> tensor<8x16xf32>"}
               .to_string(),
           "stablehlo.concatenate"},
          {"parts in the wrong order", 26,
           Region{"%14", "%11", R"(<@mesh, [{}, {"y", "x"}]>)", R"(<@mesh, [{}, {"x", "y"}]>)",
                  "%a: tensor<8x4xf32>", "sdy.return %a : tensor<8x4xf32>\n",
                  "(tensor<8x16xf32>) -> tensor<8x16xf32>"}
               .to_string(),
           "sdy.sharding_constraint"},
          {"rows of another shard's table", 17,
           Region{"%7", "%arg4, %6", R"(<@mesh, [{"y"}, {}]>, <@mesh, [{"x"}, {}]>)",
                  R"(<@mesh, [{"x"}, {}]>)", "%a: tensor<6x16xf32>, %b: tensor<4x1xi32>", R"(
      %g = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<6x16xf32>, tensor<4x1xi32>) -> tensor<4x16xf32>
      sdy.return %g : tensor<4x16xf32>
)",
                  "(tensor<12x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>"}
               .to_string(),
           "stablehlo.gather"}};
}

std::vector<Fault> faults() {
  std::vector<Fault> all = faults_of_sums();
  for (const std::vector<Fault>& more : {faults_of_moves(), faults_of_values()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(CheckProgram, TheProgramIsRight) {
  ProgramCheck check =
      internal::check_program(layer(), layer(), layer_arguments(), std::nullopt, {}, {});
  EXPECT_TRUE(check.ok()) << check.to_string();
  EXPECT_EQ(check.results, 3u);
  EXPECT_TRUE(check.not_compared.empty());
}

// What a manual region returns is not known, but its replicas must agree.
TEST_F(CheckProgram, ManualRegions) {
  const auto program = [](std::string_view returned) {
    return cat(R"(module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
      %p = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return )",
               returned, R"( : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<2xf32>
    %1 = stablehlo.add %0, %0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
})");
  };
  std::vector<HostArray> arguments = {HostArray::from_vector(std::vector<float>{1, 2, 3, 4})};
  ProgramCheck right =
      internal::check_program(program("%p"), program("%p"), arguments, std::nullopt, {}, {});
  EXPECT_TRUE(right.ok()) << right.to_string();
  EXPECT_THAT(right.not_compared,
              testing::ElementsAre("sdy.manual_computation at line 4 of the module"));
  ProgramCheck wrong =
      internal::check_program(program("%arg1"), program("%arg1"), arguments, std::nullopt, {}, {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.difference->op, "sdy.manual_computation");
  EXPECT_EQ(wrong.difference->device, 1);
  EXPECT_EQ(wrong.difference->index, (Dimensions{0}));  // of two equally far elements
  EXPECT_EQ(wrong.difference->partitioned, 3);
  EXPECT_EQ(wrong.difference->expected, 1);
}

TEST_F(CheckProgram, InSeveralRuns) {
  Fault last = faults().back();
  ProgramCheck all = internal::check_program(layer(), layer(last.line, last.by), layer_arguments(),
                                             std::nullopt, {}, {});
  // All values together have 5 KiB.
  ProgramCheck parts =
      internal::check_program(layer(), layer(last.line, last.by), layer_arguments(), std::nullopt,
                              {.bytes_at_once = 2048}, {});
  ASSERT_TRUE(all.difference && parts.difference) << all.to_string() << parts.to_string();
  EXPECT_EQ(parts.difference->op, all.difference->op);
  EXPECT_EQ(parts.difference->place, all.difference->place);
  EXPECT_EQ(parts.difference->index, all.difference->index);
  EXPECT_EQ(parts.difference->device, 3);
}

TEST_F(CheckProgram, FindsWhatIsWrong) {
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    ProgramCheck check = internal::check_program(layer(), layer(fault.line, fault.by),
                                                 layer_arguments(), std::nullopt, {}, {});
    ASSERT_FALSE(check.ok()) << check.to_string();
    EXPECT_EQ(check.difference->op, fault.op) << check.to_string();
    EXPECT_EQ(check.difference->place, cat("model.py:", fault.line));
  }
}

}  // namespace
}  // namespace meshard
