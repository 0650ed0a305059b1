#include "meshard/stablehlo/module_writer.h"

#include <gtest/gtest.h>

#include "meshard/stablehlo/module_reader.h"
#include "tests/support/matchers.h"

namespace meshard::stablehlo {
namespace {

const TensorType kScalar{DType::f32, {}};
const TensorType kVector{DType::f32, {4}};
const TensorType kMatrix{DType::f32, {2, 3}};

// The body that `write` writes, in a function without arguments and results.
template <class Write>
std::string body(Write write) {
  ModuleWriter writer;
  std::vector<ArgumentText> no_arguments;
  std::vector<ResultText> no_results;
  writer.begin_function("main", no_arguments, no_results);
  write(writer);
  std::vector<Typed> nothing;
  writer.end_function(nothing);
  std::string text = std::move(writer).finish();
  std::size_t start = text.find("-> () {\n") + 8;
  return text.substr(start, text.find("    return\n") - start);
}

TEST(ModuleWriter, WritesAWholeModule) {
  ModuleWriter writer("step", 8, 1);
  writer.mesh("mesh", "<[\"x\"=2, \"y\"=4]>");
  writer.begin_function(
      "main",
      {{&kMatrix, "<@mesh, [{\"x\"}, {}]>", 0, false, "w", ""},
       {&kVector, "", -1, true, "", "mhlo.memory_kind = \"device\""},
       {&kScalar, ""}},
      {{&kMatrix, "<@mesh, [{\"x\"}, {}]>", "jax.result_info = \"r\""}, {&kVector, "", ""}});
  writer.end_function({{Value::argument(0), kMatrix}, {Value::argument(1), kVector}});
  EXPECT_EQ(
      std::move(writer).finish(),
      R"(module @step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, tf.aliasing_output = 0 : i32} loc("w"), %arg1: tensor<4xf32> {jax.buffer_donor = true, mhlo.memory_kind = "device"}, %arg2: tensor<f32>) -> (tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, jax.result_info = "r"}, tensor<4xf32>) {
    return %arg0, %arg1 : tensor<2x3xf32>, tensor<4xf32>
  }
}
)");
}

TEST(ModuleWriter, NamesThatAreNoIdentifiersAreQuoted) {
  for (std::string_view name : {"stage 0 forward", "2f", "", "a\"b", "größe", "a-b"}) {
    ModuleWriter writer(name);
    writer.begin_function("main", {{&kVector, ""}}, {{&kVector, "", ""}});
    writer.end_function({{Value::argument(0), kVector}});
    std::string text = std::move(writer).finish();
    EXPECT_TRUE(text.starts_with("module @\"")) << text;
    EXPECT_EQ(read_module(text).value().name, name);
  }
}

TEST(ModuleWriter, PrivateFunctionsAreCalled) {
  ModuleWriter writer;
  writer.begin_function("main", {{&kVector, ""}}, {{&kVector, "", ""}});
  writer.call("half", {{Value::result(0), kVector}, {Value::result(1), kScalar}},
              {{Value::argument(0), kVector}}, "n2");
  writer.end_function({{Value::result(0), kVector}});
  writer.begin_function("half", {{&kVector, ""}}, {{&kVector, "", ""}}, false);
  writer.end_function({{Value::argument(0), kVector}});
  std::string text = std::move(writer).finish();
  EXPECT_NE(text.find("    %0, %1 = func.call @half(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, "
                      "tensor<f32>) loc(\"n2\")\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  func.func private @half(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {\n"),
            std::string::npos)
      << text;
}

TEST(ModuleWriter, ElementwiseOpsAreShort) {
  EXPECT_EQ(body([](ModuleWriter& w) {
              w.elementwise("stablehlo.add", Value::result(2),
                            {Value::result(0), Value::argument(1)}, kVector, "n7");
              w.elementwise("stablehlo.tanh", Value::result(3), {Value::result(2)}, kScalar);
            }),
            "    %2 = stablehlo.add %0, %arg1 : tensor<4xf32> loc(\"n7\")\n"
            "    %3 = stablehlo.tanh %2 : tensor<f32>\n");
}

TEST(ModuleWriter, ConstantsAndConstraints) {
  EXPECT_EQ(
      body([](ModuleWriter& w) {
        w.constant(Value::result(0), HostArray::from_vector<std::uint8_t>({1, 2}), "n1");
        w.splat(Value::result(1), kMatrix, 0.5);
        EXPECT_EQ(w.scalar(DType::i32, 3).to_string(), "%t0");
        EXPECT_EQ(w.temporary().to_string(), "%t1");
        w.sharding_constraint(Value::result(2), Value::result(1), kMatrix, "<@m, [{\"x\"}, {}]>",
                              "n2");
      }),
      "    %0 = stablehlo.constant dense<\"0x0102\"> : tensor<2xui8> loc(\"n1\")\n"
      "    %1 = stablehlo.constant dense<0.5> : tensor<2x3xf32>\n"
      "    %t0 = stablehlo.constant dense<3> : tensor<i32>\n"
      "    %2 = sdy.sharding_constraint %1 <@m, [{\"x\"}, {}]> : tensor<2x3xf32> loc(\"n2\")\n");
}

TEST(OpWriter, EveryKindOfAttribute) {
  Typed x(Value::result(0), kVector), y(Value::result(1), kVector);
  EXPECT_EQ(body([&](ModuleWriter& w) {
              w.op("d.op", {y}, {x}, "n5")
                  .i64("a", -1)
                  .i32("b", 2)
                  .f32("c", 1.0f)
                  .boolean("d", false)
                  .i64_array("e", {0, 1})
                  .i64_array("f", {})
                  .bool_array("g", {1, 0})
                  .enumeration("h", "comparison_direction", "LT")
                  .enumerations("i", "precision", {"DEFAULT", "HIGHEST"})
                  .string("j", "q\"")
                  .type("k", kMatrix)
                  .symbol("l", "f")
                  .unit("m")
                  .raw("n", "[]")
                  .dense("o", HostArray::scalar(std::int64_t{4}))
                  .dimension_numbers("p", DotDimensions{})
                  .done();
            }),
            "    %1 = \"d.op\"(%0) <{a = -1 : i64, b = 2 : i32, c = 0x3F800000 : f32, d = false, "
            "e = array<i64: 0, 1>, f = array<i64>, g = array<i1: true, false>, "
            "h = #stablehlo<comparison_direction LT>, "
            "i = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>], "
            "j = \"q\\\"\", k = tensor<2x3xf32>, l = @f, m, n = [], o = dense<4> : tensor<i64>, "
            "p = #stablehlo.dot<>}> : (tensor<4xf32>) -> tensor<4xf32> loc(\"n5\")\n");
}

TEST(OpWriter, NoOperandsSeveralResultsNoAttributes) {
  std::vector<Typed> none;
  EXPECT_EQ(
      body([&](ModuleWriter& w) {
        w.op("d.two", {{Value::result(0), kVector}, {Value::result(1), kScalar}}, none).done();
        w.op("d.none", none, none).done();
      }),
      "    %0, %1 = \"d.two\"() : () -> (tensor<4xf32>, tensor<f32>)\n"
      "    \"d.none\"() : () -> ()\n");
}

// The reduce of the specification, with its attributes before the region and its types after.
TEST(OpWriter, RegionsWithArguments) {
  EXPECT_EQ(body([](ModuleWriter& w) {
              Value init = w.scalar(DType::f32, 0), a = w.block_argument(), b = w.block_argument();
              Value sum = w.temporary();
              w.op("stablehlo.reduce", {{Value::result(1), kVector}},
                   {{Value::argument(0), kMatrix}, {init, kScalar}}, "n4")
                  .i64_array("dimensions", {1})
                  .region({{a, kScalar}, {b, kScalar}},
                          [&] {
                            w.elementwise("stablehlo.add", sum, {a, b}, kScalar);
                            w.terminate({{sum, kScalar}});
                          })
                  .done();
            }),
            "    %t0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "    %1 = \"stablehlo.reduce\"(%arg0, %t0) <{dimensions = array<i64: 1>}> ({\n"
            "    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):\n"
            "      %t1 = stablehlo.add %b0, %b1 : tensor<f32>\n"
            "      stablehlo.return %t1 : tensor<f32>\n"
            "    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<4xf32> loc(\"n4\")\n");
}

TEST(OpWriter, RegionsNestAndFollow) {
  Typed x(Value::argument(0), kVector);
  std::vector<Typed> none;
  EXPECT_EQ(
      body([&](ModuleWriter& w) {
        w.op("d.outer", {{Value::result(0), kVector}}, {x}, "n1")
            .region(
                {},
                [&] {
                  w.op("d.inner", none, {x}, "n2").region({}, [&] { w.terminate(none); }).done();
                  w.terminate(none, "sdy.return");
                })
            .region({}, [&] { w.terminate({x}); })
            .discardable("my.a", "1 : i32")
            .discardable("my.b", "{}")
            .done();
      }),
      "    %0 = \"d.outer\"(%arg0) ({\n"
      "      \"d.inner\"(%arg0) ({\n"
      "        stablehlo.return\n"
      "      }) : (tensor<4xf32>) -> () loc(\"n2\")\n"
      "      sdy.return\n"
      "    }, {\n"
      "      stablehlo.return %arg0 : tensor<4xf32>\n"
      "    }) {my.a = 1 : i32, my.b = {}} : (tensor<4xf32>) -> tensor<4xf32> loc(\"n1\")\n");
}

TEST(OpWriter, CustomCall) {
  Typed x(Value::argument(0), kVector);
  EXPECT_EQ(
      body([&](ModuleWriter& w) {
        w.custom_call("target", {{Value::result(0), kVector}}, {x}).i32("api_version", 4).done();
      }),
      "    %0 = \"stablehlo.custom_call\"(%arg0) <{call_target_name = \"target\", api_version = 4 "
      ": i32}> : "
      "(tensor<4xf32>) -> tensor<4xf32>\n");
}

TEST(ModuleWriter, AnOpenFunctionIsABug) {
  EXPECT_TRUE(throws_error(
      [] {
        ModuleWriter writer;
        writer.begin_function("main", {{&kVector, ""}}, {{&kVector, "", ""}});
        (void)std::move(writer).finish();
      },
      ErrorCode::kInternal, {"open"}));
  EXPECT_TRUE(throws_error(
      [] {
        body([](ModuleWriter& w) {
          Typed x(Value::argument(0), kVector);
          w.op("d.op", {x}, {x}).region({}, [&] { w.terminate({x}); }).i64("late", 1).done();
        });
      },
      ErrorCode::kInternal, {"attribute after a region"}));
}

}  // namespace
}  // namespace meshard::stablehlo
