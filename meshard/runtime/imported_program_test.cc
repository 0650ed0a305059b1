#include "meshard/runtime/imported_program.h"

#include <gmock/gmock.h>

#include <map>

#include "meshard/autodiff/grad.h"
#include "meshard/base/whole_file.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/sync.h"
#include "meshard/lapack/lapack.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/runtime/nan_check.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "meshard/runtime/transfer.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Imported = OnPlugin;

// y = 2 x, and the sum of x over its rows.
constexpr std::string_view kTwice = R"(module @twice attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["r"=2, "c"=2]>
  func.func public @main(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {"c"}]>} loc("x")) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {"c"}]>}, tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}]>}) {
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.add %arg0, %arg0 : tensor<4x2xf32>
    %1 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
    return %0, %1 : tensor<4x2xf32>, tensor<2xf32>
  }
})";
const std::vector<float> kX = {1, 2, 3, 4, 5, 6, 7, 8};

ImportedProgram of_text(std::string_view text) {
  return load_program_from_bytes(std::string(text)).value();
}

ImportedProgram of_export(std::string_view name) {
  return load_program(cat(MESHARD_GOLDEN, "/exported/run/", name, ".bin")).value();
}

std::vector<int> devices_of(const Tensor& tensor) {
  std::vector<int> ids;
  for (const LocalShard& shard : local_shards(tensor)) ids.push_back(shard.device_id());
  return ids;
}

TEST_F(Imported, WhatAModuleSays) {
  ImportedProgram twice = of_text(kTwice);
  EXPECT_EQ(twice.name(), "twice");
  EXPECT_EQ(to_string(twice), "twice on 4 devices: 1 argument, 2 results");
  EXPECT_EQ(twice.num_devices(), 4);
  ASSERT_EQ(twice.arguments().size(), 1u);
  EXPECT_EQ(twice.arguments()[0].name, "x");
  EXPECT_EQ(twice.arguments()[0].to_string(), "[0]: f32[4,2] over P(\"r\", \"c\")");
  ASSERT_EQ(twice.results().size(), 2u);
  EXPECT_EQ(twice.results()[1].to_string(), "[1]: f32[2] over P(\"c\")");
}

TEST_F(Imported, HostValuesGoStraightToTheFirstDevices) {
  ImportedProgram twice = of_text(kTwice);
  Tensor x = from_host(kX, {4, 2});
  restart();
  std::vector<Tensor> results = twice(x);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().buffers_sent, 4u);
  EXPECT_EQ(done().buffers_moved, 0u);
  EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(16, 20));
  EXPECT_THAT(devices_of(results[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(results[1].sharding()->spec(), P("c"));
  restart();
  (void)twice.flat(std::vector<Tensor>{x});  // the copy on the devices is known
  EXPECT_EQ(done().compiles, 0u);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Imported, RunsOnAnyDevicesAndReshards) {
  ImportedProgram twice = of_text(kTwice);
  Mesh there({{"r", 2}, {"c", 2}}, {7, 1, 4, 2});
  std::vector<Tensor> results = twice.on(there)(from_host(kX, {4, 2}));
  EXPECT_EQ(results[0].sharding(), Sharding(there, P("r", "c")));
  EXPECT_THAT(devices_of(results[0]), ElementsAre(7, 1, 4, 2));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(16, 20));

  // A mesh with other axes has the same devices; a value with another sharding elsewhere is moved.
  Mesh line({{"i", 4}}, {6, 3, 0, 5}), other({{"k", 2}}, {1, 2});
  Tensor placed = transfer(from_host(kX, {4, 2}), other, P("k"));
  results = twice.on(line)(placed);
  EXPECT_THAT(devices_of(results[1]), ElementsAre(6, 3, 0, 5));
  EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  EXPECT_THAT(placed.to_vector<float>(), testing::ElementsAreArray(kX));

  Mesh whole({{"a", 2}, {"b", 4}});
  Mesh part = *whole.submesh("b", 4);
  results = twice.on(part)(from_host(kX, {4, 2}));
  EXPECT_THAT(devices_of(results[0]), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(16, 20));

  // A recorded value is computed first, and results are arguments of what follows.
  Tensor y = results[0] + 1.0;
  EXPECT_THAT(twice.on(part)(y)[1].to_vector<float>(), ElementsAre(36, 44));
  EXPECT_TRUE(throws_error([&] { (void)twice.on(whole); }, ErrorCode::kInvalidArgument,
                           {"twice", "4 devices", "8"}));
}

struct Params {
  std::vector<Tensor> b, w;
  MESHARD_FIELDS(b, w)
};

TEST_F(Imported, ArgumentsMatchByNameInAnyOrder) {
  ImportedProgram step = of_export("train_one_device");
  ASSERT_EQ(step.arguments().size(), 5u);
  EXPECT_EQ(step.arguments()[0].path, "[0]['b'][0]");
  EXPECT_EQ(step.arguments()[2].to_string(), "[0]['w'][0]: f32[16,16]");
  EXPECT_EQ(step.arguments()[2].name, "params['w'][0]");
  EXPECT_EQ(step.results()[4].path, "[1]['loss']");
  Tensor w = zeros({16, 16}), b = full({16}, 0.5f), x = zeros({8, 16});
  Params params{{b, b}, {w, w}};
  // tanh(0.5)^2, whatever w is.
  std::vector<Tensor> results = step(params, x);
  EXPECT_NEAR(results[4].item<float>(), 0.2135522f, 1e-6f);
  std::map<std::string, std::vector<Tensor>> by_name = {{"w", {w, w}}, {"b", {b, b}}};
  EXPECT_NEAR(step(by_name, x)[4].item<float>(), 0.2135522f, 1e-6f);

  by_name["c"] = {b};
  by_name["w"].pop_back();
  EXPECT_TRUE(
      throws_error([&] { (void)step(by_name, x); }, ErrorCode::kInvalidArgument,
                   {"step", "missing: [0][0]['w'][1]", "not in the program: [0][0][\"c\"][0]"}));
}

TEST_F(Imported, WrongArgumentsAreNamedBeforeThePlugin) {
  ImportedProgram step = of_export("train_one_device");
  Tensor w = zeros({16, 16}), b = zeros({16}), x = zeros({8, 16});
  EXPECT_TRUE(throws_error(
      [&] {
        (void)step(Params{{b, b}, {w, b}}, x);
      },
      ErrorCode::kInvalidArgument, {"[0]['w'][1] (params['w'][1])", "f32[16]", "f32[16,16]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)step(Params{{b, b}, {w, w}}, x.astype(DType::i32));
      },
      ErrorCode::kInvalidArgument, {"argument [1] (x)", "i32[8,16]"}));
  EXPECT_TRUE(throws_error([&] { (void)step.flat(std::vector<Tensor>{x}); },
                           ErrorCode::kInvalidArgument, {"takes 5 arguments, but 1 is given"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)step(Params{{b, b}, {w, Tensor()}}, x);
      },
      ErrorCode::kInvalidArgument, {"w"}));
}

TEST_F(Imported, UnusedArgumentsAreNotSent) {
  ImportedProgram unused = of_export("unused");
  ASSERT_EQ(unused.arguments().size(), 3u);
  EXPECT_FALSE(unused.arguments()[1].used);
  EXPECT_EQ(unused.arguments()[1].to_string(), "[1]: f32[4,4], unused");
  Tensor a = from_host(std::vector<float>{1, 2, 3}, {3});
  Tensor c = from_host(std::vector<std::int32_t>{0, 1, 2, 3, 4}, {5});
  restart();
  std::vector<Tensor> results = unused(a, from_host(std::vector<float>(16), {4, 4}), c);
  EXPECT_EQ(done().buffers_sent, 2u);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(unused.results()[1].path, "['twice']");
  EXPECT_THAT(results[0].to_vector<std::int32_t>(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(2, 4, 6));
}

TEST_F(Imported, DonatedArgumentsAreGone) {
  ImportedProgram step = of_export("train_donated");
  EXPECT_TRUE(step.arguments()[0].donated);
  EXPECT_FALSE(step.arguments()[4].donated);
  std::vector<Tensor> given;
  for (const ImportedValue& argument : step.arguments())
    given.push_back(mark_sharding(zeros(argument.type->shape), Mesh({{"x", 2}, {"y", 4}}),
                                  argument.sharding->spec()));
  sync(given);
  std::vector<Tensor> results = step.flat(given);
  EXPECT_EQ(results[4].item<float>(), 0);
  EXPECT_TRUE(
      throws_error([&] { (void)given[2].to_host(); }, ErrorCode::kFailedPrecondition, {"donated"}));
  EXPECT_EQ(given[4].to_vector<float>(), std::vector<float>(128));
}

TEST_F(Imported, AnExportedDerivative) {
  ImportedProgram product = of_export("derivative");
  Tensor x = full({8}, 2.0f), y = full({8}, 3.0f), cotangent = full({8}, 10.0f);
  EXPECT_EQ(product(x, y)[0].to_vector<float>(), std::vector<float>(8, 12));  // x^2 y
  Mesh there({{"x", 2}, {"y", 4}}, {5, 2, 7, 0, 3, 6, 1, 4});
  std::vector<Tensor> gradients = product.on(there).vjp()(x, y, cotangent);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].to_vector<float>(), std::vector<float>(8, 120));  // 2 x y
  EXPECT_EQ(gradients[1].to_vector<float>(), std::vector<float>(8, 40));   // x^2
  EXPECT_THAT(devices_of(gradients[0]), ElementsAre(5, 2, 7, 0, 3, 6, 1, 4));
  EXPECT_TRUE(throws_error([&] { (void)product.vjp().vjp(); }, ErrorCode::kInvalidArgument,
                           {"vjp_order=1"}));
}

// Two meshes with the same axes, whose devices are in another order.
TEST_F(Imported, EachValueHasTheDeviceOrderOfItsMesh) {
  ImportedProgram program = of_text(R"(module @two attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["r"=4]>
  sdy.mesh @turned = <["r"=4], device_ids=[3, 1, 2, 0]>
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@turned, [{"r"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@turned, [{"r"}]>}) {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
    return %arg0, %0 : tensor<4xf32>, tensor<4xf32>
  }
})");
  Tensor a = from_host(std::vector<float>{1, 2, 3, 4}, {4});
  Tensor b = from_host(std::vector<float>{10, 20, 30, 40}, {4});
  for (const Mesh& mesh : {Mesh({{"r", 4}}), Mesh({{"i", 4}}, {6, 3, 0, 5})}) {
    std::vector<Tensor> results = program.on(mesh)(a, b);
    EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(-9, -18, -27, -36));
    EXPECT_EQ(results[1].stored_sharding()->mesh().device_id(0), mesh.device_id(3));
  }
}

// x * x * y over x of a mesh of 2 x 4, with its derivative.
TEST_F(Imported, AsAPartOfACompiledProgram) {
  ImportedProgram product = of_export("derivative");
  Tensor x = from_host(std::vector<float>(8, 2), {8}), y = from_host(std::vector<float>(8, 3), {8});
  auto f = jit([&](Tensor a, Tensor b) {
    Tensor first = product(a, b)[0];
    return product(first + 1.0f, b)[0];
  });
  restart();
  EXPECT_THAT(f(x, y).to_vector<float>(), testing::Each(13 * 13 * 3));
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().launches, 1u);

  // The mesh of the arguments, whatever its devices are.
  Mesh there({{"x", 2}, {"y", 4}}, {7, 5, 3, 1, 6, 4, 2, 0});
  Tensor placed = mark_sharding(x, there, P("y"));
  Tensor made = f(placed, y);
  EXPECT_THAT(made.to_vector<float>(), testing::Each(507));
  EXPECT_TRUE(made.sharding()->mesh().same_devices(there));
}

TEST_F(Imported, InLoops) {
  ImportedProgram product = of_export("derivative");
  auto f = jit([&](Tensor a, Tensor b) {
    return repeat(3, a, [&](Tensor carry) { return product(carry, b)[0]; });
  });
  // 1, 2, 8, 128
  EXPECT_THAT(f(ones({8}), full({8}, 2.0f)).to_vector<float>(), testing::Each(128));
}

TEST_F(Imported, ItsDerivativeIsTheExportedOne) {
  ImportedProgram product = of_export("derivative");
  Tensor x = full({8}, 2.0f), y = full({8}, 3.0f);
  auto f = [&](Tensor a, Tensor b) { return sum(product(a * a, b)[0]); };
  auto [of_x, of_y] = jit(grad<0, 1>(f))(x, y);
  EXPECT_THAT(of_x.to_vector<float>(), testing::Each(4 * 8 * 3));  // x^4 y
  EXPECT_THAT(of_y.to_vector<float>(), testing::Each(16));
  // Lazily, too.
  EXPECT_THAT(grad<0>(f)(x, y).to_vector<float>(), testing::Each(96));
}

TEST_F(Imported, WithoutADerivativeOneIsAnError) {
  ImportedProgram twice = of_text(kTwice);
  Tensor x = from_host(kX, {4, 2});
  auto f = [&](Tensor a) { return sum(twice(a)[0]); };
  EXPECT_TRUE(throws_error([&] { (void)jit(grad<0>(f))(x); }, ErrorCode::kUnimplemented,
                           {"[load_program]", "\"twice\" has no derivative", "vjp_order=1"}));
  EXPECT_FLOAT_EQ(jit(f)(x).to_vector<float>()[0], 72);
  EXPECT_TRUE(throws_error(
      [&] {
        (void)jit([&](Tensor a) { return vmap(f)(a); })(ones({2, 4, 2}));
      },
      ErrorCode::kUnimplemented, {"vmap of \"twice\""}));
  Mesh two({{"i", 2}});
  EXPECT_TRUE(throws_error([&] { (void)jit(f)(mark_sharding(x, two, P("i"))); },
                           ErrorCode::kInvalidArgument, {"two different sets of devices"}));
}

TEST_F(Imported, OtherShardingsForItsArguments) {
  ImportedProgram twice = of_text(kTwice);
  Mesh there({{"r", 2}, {"c", 2}}, {7, 1, 4, 2}), line({{"i", 4}}, {7, 1, 4, 2});
  EXPECT_TRUE(throws_error([&] { (void)twice.with_shardings({Sharding(there, P("c"))}); },
                           ErrorCode::kInvalidArgument,
                           {"argument [0] (x)", "P(\"r\", \"c\")", "P(\"c\"", "insist"}));
  (void)twice.with_shardings({Sharding(there, P("r", "c"))});  // as the module says
  for (const Sharding& chosen : {Sharding(there, P("c")), Sharding(line, P("i"))}) {
    ImportedProgram other = twice.with_shardings({chosen}, true);
    Tensor x = from_host(kX, {4, 2});
    restart();
    std::vector<Tensor> results = other(mark_sharding(x, chosen));
    EXPECT_EQ(done().compiles, 1u);
    EXPECT_EQ(done().buffers_moved, 0u);  // the value is used where it is
    EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
    EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(16, 20));
    restart();
    (void)other(x);
    EXPECT_EQ(done().compiles, 0u);
    EXPECT_THAT(jit([&](Tensor a) { return other(a)[1]; })(x).to_vector<float>(),
                ElementsAre(16, 20));
  }
  auto refused = [&](const Sharding& sharding, const std::vector<std::string>& parts) {
    return throws_error([&] { (void)twice.with_shardings({sharding}, true); },
                        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refused(Sharding(Mesh({{"i", 2}}), P("i")), {"for 4 devices", "has 2"}));
  EXPECT_TRUE(refused(Sharding(line, P(none, "i")), {"does not divide", "f32[4,2]"}));
  EXPECT_TRUE(refused(Sharding(line, P(none, none, "i")), {"does not fit", "f32[4,2]"}));
  EXPECT_TRUE(throws_error([&] { (void)twice.with_shardings({}); }, ErrorCode::kInvalidArgument,
                           {"has 1 argument", "0 shardings"}));
}

TEST_F(Imported, ThePlatformsCodeRuns) {
  ImportedProgram program = of_export("platforms");
  EXPECT_THAT(program.platforms(), ElementsAre("tpu", "cpu"));
  ASSERT_EQ(program.arguments().size(), 1u);
  // x x^T of ones; on TPUs it would be twice that.
  EXPECT_EQ(program(ones({8, 16}))[0].to_vector<float>(), std::vector<float>(64, 16));
}

TEST_F(Imported, ArgumentsByName) {
  ImportedProgram by_name = of_export("by_name");
  EXPECT_EQ(by_name.arguments()[1].path, "['bias'][0]");
  Tensor x = full({4}, 2.0f), s = full({4}, 3.0f), bias = full({4}, 0.5f);
  std::map<std::string, std::map<std::string, Tensor>> named = {
      {"bias", {{"0", bias}, {"1", bias}}}, {"scale", {{"s", s}, {"t", zeros({2})}}}};
  EXPECT_THAT(by_name.with_names(std::tuple(x), named)[0].to_vector<float>(),
              ElementsAre(6.5f, 6.5f, 6.5f, 6.5f));
  EXPECT_TRUE(throws_error([&] { (void)by_name(x); }, ErrorCode::kInvalidArgument,
                           {"missing: [1]['bias'][0]"}));
}

TEST_F(Imported, NumbersTakeTheDtypeOfTheirArgument) {
  ImportedProgram scan = of_export("scan_open");
  std::vector<Tensor> results = scan(ones({12, 8, 16}), 0);
  EXPECT_EQ(results[0].to_vector<float>(), std::vector<float>(128));
}

TEST_F(Imported, NumbersMustFit) {
  ImportedProgram byte = of_text(
      "module @m { func.func public @main(%arg0: tensor<ui8>) -> tensor<ui8> { return %arg0 : "
      "tensor<ui8> } }");
  EXPECT_EQ(byte(200)[0].item<std::uint8_t>(), 200);
  EXPECT_TRUE(throws_error([&] { (void)byte(300); }, ErrorCode::kInvalidArgument, {"300", "u8"}));
  EXPECT_TRUE(throws_error([&] { (void)byte(0.5); }, ErrorCode::kInvalidArgument, {"fraction"}));
}

TEST_F(Imported, NanChecksDoNotCompileItAgain) {
  ImportedProgram twice = of_text(kTwice);
  Tensor x = from_host(kX, {4, 2});
  (void)twice(x);
  set_check_nans(true);
  restart();
  EXPECT_THAT(twice(x)[1].to_vector<float>(), ElementsAre(16, 20));
  set_check_nans(false);
  EXPECT_EQ(done().compiles, 0u);
}

std::string with_op(std::string_view op) {
  return cat("module @m {\n  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n    ",
             op, "\n    return %0 : tensor<4xf32>\n  }\n}\n");
}

TEST_F(Imported, WhatNeedsSomethingElseIsRefusedBeforeCompiling) {
  Tensor x = zeros({4});
  restart();
  const auto refuses = [&](const std::string& op, std::vector<std::string> parts) {
    return throws_error([&] { (void)of_text(with_op(op))(x); }, ErrorCode::kUnimplemented, parts);
  };
  std::string type = " : (tensor<4xf32>) -> tensor<4xf32> loc(\"f\"(\"model.py\":12:3))";
  EXPECT_TRUE(refuses("%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0)" + type,
                      {"\"m\"", "@xla_ffi_python_cpu_callback", "of model.py:12", "Python"}));
  EXPECT_TRUE(refuses("%0 = stablehlo.custom_call @my_kernel(%arg0)" + type,
                      {"@my_kernel", "model.py:12", "does not have"}));
  EXPECT_EQ(done().compiles, 0u);
  // The compiler replaces this call itself.
  EXPECT_EQ(of_text(with_op("%0 = stablehlo.custom_call @mhlo.erf(%arg0) {mhlo.attributes = {}, "
                            "mhlo.version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>"))(x)[0]
                .to_vector<float>(),
            std::vector<float>(4));
}

TEST_F(Imported, LapackComesFromTheSystem) {
  ImportedProgram solve = of_export("lapack");
  Tensor b = from_host(std::vector<float>{4, 6, 8, 10}, {4});
  if (!Lapack::open().ok()) {
    EXPECT_TRUE(throws_error([&] { (void)solve(eye(4) * 2, b); }, ErrorCode::kNotFound,
                             {"@lapack_sgetrf_ffi", "record_run.py:", "LAPACK"}));
    GTEST_SKIP() << "no LAPACK";
  }
  EXPECT_THAT(solve(eye(4) * 2, b)[0].to_vector<float>(), ElementsAre(2, 3, 4, 5));
}

TEST_F(Imported, WhatIsRefusedWhenItIsRead) {
  const auto refused = [](std::string_view text, std::vector<std::string> parts) {
    return throws_error([&] { (void)of_text(text); }, ErrorCode::kUnimplemented, parts);
  };
  EXPECT_TRUE(
      refused("module @m attributes {mhlo.num_replicas = 8 : i32} { func.func public "
              "@main(%arg0: tensor<f32>) -> tensor<f32> { return %arg0 : tensor<f32> } }",
              {"\"m\"", "8 replicas"}));
  EXPECT_TRUE(
      refused("module @m { func.func public @main(%arg0: !stablehlo.token) -> "
              "!stablehlo.token { return %arg0 : !stablehlo.token } }",
              {"token"}));
  EXPECT_TRUE(throws_error(
      [] { load_program(cat(MESHARD_GOLDEN, "/exported/symbolic_exported.bin")).value(); },
      ErrorCode::kUnimplemented, {"symbolic sizes (b, 4)"}));
  EXPECT_TRUE(throws_error([] { load_program("/nowhere/x.bin").value(); }, ErrorCode::kNotFound,
                           {"/nowhere/x.bin"}));
  EXPECT_TRUE(throws_error(
      [] {
        ImportedProgram tpu =
            load_program(cat(MESHARD_GOLDEN, "/exported/shardy_exported.bin")).value();
        std::vector<Tensor> given;
        for (const ImportedValue& argument : tpu.arguments())
          given.push_back(zeros(argument.type->shape, argument.type->dtype));
        (void)tpu.flat(given);
      },
      ErrorCode::kInvalidArgument, {"exported for tpu, not for cpu"}));
}

}  // namespace
}  // namespace meshard
