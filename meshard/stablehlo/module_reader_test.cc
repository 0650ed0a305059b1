#include "meshard/stablehlo/module_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::stablehlo {
namespace {

#include "meshard/stablehlo/module_reader_test_data.inc"

using testing::HasSubstr;

// The program of kPortable as JAX 0.10.2 prints it, shortened.
constexpr std::string_view kPretty = R"(#loc1 = loc("p['w']")
#loc2 = loc("x")
module @jit_layer attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]> {stablehlo.mesh = {axes = [{name = "data"}]}} loc(#loc)
  func.func private @other(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
  func.func public @main(
      %arg0: tensor<32x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>,
                                 tf.aliasing_output = 0 : i32} loc("p['w']"),
      %arg1: tensor<16x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc(#loc2))
      -> (tensor<32x64xbf16> {jax.result_info = "result[0]",
                              sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
          tensor<16x64xbf16> {jax.result_info = "result[1]",
                              sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<bf16> loc(#loc9)
    // A comment with a bracket ( that does not count.
    return %1, %2 : tensor<32x64xbf16>, tensor<16x64xbf16> loc(#loc9)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("layer.py":12:3 to :22)
)";

constexpr std::string_view kGeneric = R"(#loc1 = loc("p['w']")
"builtin.module"() <{sym_name = "jit_layer"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["data"=2, "model"=4]>, sym_name = "mesh"}> : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>,
      tf.aliasing_output = 0 : i32}, {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}],
      function_type = (tensor<32x64xbf16>, tensor<16x32xbf16>) ->
                      (tensor<32x64xbf16>, tensor<16x64xbf16>),
      res_attrs = [{jax.result_info = "result[0]",
                    sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                   {jax.result_info = "result[1]",
                    sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}],
      sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<32x64xbf16> loc(#loc1), %arg1: tensor<16x32xbf16> loc("x")):
    %0 = "stablehlo.constant"() <{value = dense<2.0> : tensor<bf16>}> : () -> tensor<bf16>
    "func.return"(%2, %3) : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> () loc(#loc9)
  }) : () -> () loc(#loc)
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
)";

constexpr std::string_view kShardingsText =
    R"(module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.frontend_attributes = {xla.x = "y"}} {
  sdy.mesh @mesh = <["a"=2, "b"=4], device_ids=[7,6,5,4,3,2,1,0]>
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>, jax.buffer_donor = true}, %arg1: tensor<16x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(2)2}, {"a"}p1], replicated={"b":(1)2}>}, %arg2: tensor<?x5xui8>, %arg3: tensor<f8E4M3FN> {mhlo.sharding="{replicated}"}, %arg4: tensor<8xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"a"}>}, %arg5: tensor<8xi64> {sdy.sharding = #sdy.sharding<mesh<["q"=8]>, [{"q"}]>}) -> tensor<16x32xf32> {
    return %arg0 : tensor<16x32xf32>
  }
}
)";

std::string_view bytes_of(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
const std::string_view kPortableBytes = bytes_of(kPortable, sizeof(kPortable));
const std::string_view kShardingsBytes = bytes_of(kShardings, sizeof(kShardings));

ModuleFacts read(std::string_view bytes) {
  Result<ModuleFacts> facts = read_module(bytes);
  return facts.ok() ? *facts : (ADD_FAILURE() << facts.error().message(), ModuleFacts());
}

std::string error_of(std::string_view bytes) {
  Result<ModuleFacts> facts = read_module(bytes);
  if (facts.ok()) return "";
  EXPECT_EQ(facts.error().code(), ErrorCode::kDataLoss);
  return facts.error().message();
}

void expect_layer(const ModuleFacts& facts) {
  EXPECT_EQ(facts.name, "jit_layer");
  EXPECT_EQ(facts.num_partitions, 8);
  EXPECT_TRUE(facts.uses_shardy);
  EXPECT_FALSE(facts.has_mhlo_shardings);
  ASSERT_EQ(facts.meshes.size(), 1u);
  EXPECT_EQ(facts.meshes[0].name, "mesh");
  EXPECT_EQ(facts.meshes[0].text, "<[\"data\"=2, \"model\"=4]>");
  EXPECT_EQ(facts.meshes[0].size(), 8);
  ASSERT_EQ(facts.arguments.size(), 2u);
  EXPECT_EQ(facts.arguments[0].name, "p['w']");
  EXPECT_EQ(facts.arguments[0].type, "tensor<32x64xbf16>");
  EXPECT_EQ(facts.arguments[0].sharding, "#sdy.sharding<@mesh, [{}, {\"model\"}]>");
  EXPECT_TRUE(facts.arguments[0].donated);
  EXPECT_EQ(facts.arguments[1].name, "x");
  EXPECT_EQ(facts.arguments[1].sharding, "#sdy.sharding<@mesh, [{\"data\"}, {}]>");
  EXPECT_FALSE(facts.arguments[1].donated);
  ASSERT_EQ(facts.results.size(), 2u);
  EXPECT_EQ(facts.results[1].name, "result[1]");
  EXPECT_EQ(facts.results[1].type, "tensor<16x64xbf16>");
  EXPECT_EQ(facts.results[1].sharding, "#sdy.sharding<@mesh, [{\"data\"}, {\"model\"}]>");
}

TEST(ModuleReader, PrettyText) {
  ModuleFacts facts = read(kPretty);
  EXPECT_EQ(facts.form, ModuleForm::kText);
  expect_layer(facts);
}

TEST(ModuleReader, GenericText) { expect_layer(read(kGeneric)); }

TEST(ModuleReader, PortableArtifact) {
  ModuleFacts facts = read(kPortableBytes);
  EXPECT_EQ(facts.form, ModuleForm::kBytecode);
  expect_layer(facts);
}

TEST(ModuleReader, BytecodeSaysWhatItsTextSays) {
  ModuleFacts text = read(kShardingsText), bytecode = read(kShardingsBytes);
  ASSERT_EQ(text.arguments.size(), 6u);
  ASSERT_EQ(bytecode.arguments.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(bytecode.arguments[i].type, text.arguments[i].type) << i;
    EXPECT_EQ(bytecode.arguments[i].sharding, text.arguments[i].sharding) << i;
    EXPECT_EQ(bytecode.arguments[i].donated, text.arguments[i].donated) << i;
  }
  EXPECT_EQ(text.arguments[1].sharding,
            R"(#sdy.sharding<@mesh, [{"b":(2)2}, {"a"}p1], replicated={"b":(1)2}>)");
  EXPECT_TRUE(text.arguments[0].donated);
  EXPECT_TRUE(text.has_mhlo_shardings && bytecode.has_mhlo_shardings);
  ASSERT_EQ(bytecode.meshes.size(), 1u);
  EXPECT_EQ(bytecode.meshes[0].device_ids, text.meshes[0].device_ids);
  EXPECT_EQ(text.meshes[0].device_ids, (std::vector<std::int64_t>{7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(ModuleReader, ShardyInFrontendAttributes) {
  ModuleFacts facts = read(R"(module @m attributes {mhlo.frontend_attributes =
      {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22x\22=4]>, other = #sdy.mesh<[\"y\"=2]>}"}} {
    func.func @main(%arg0: tensor<8xf32> {mhlo.frontend_attributes =
        {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}]>"}, mhlo.sharding = "{replicated}"})
        -> tensor<8xf32> { return %arg0 : tensor<8xf32> }
  })");
  ASSERT_EQ(facts.meshes.size(), 2u);
  EXPECT_EQ(facts.meshes[0].text, R"(<["x"=4]>)");
  EXPECT_EQ(facts.meshes[1].axes[0].first, "y");
  ASSERT_EQ(facts.arguments.size(), 1u);
  EXPECT_EQ(facts.arguments[0].sharding, R"(#sdy.sharding<@mesh, [{"x"}]>)");
  EXPECT_TRUE(facts.uses_shardy);
}

TEST(ModuleReader, WithoutAModuleOrAMesh) {
  ModuleFacts facts = read("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a }");
  EXPECT_EQ(facts.arguments.size(), 1u);
  ASSERT_EQ(facts.results.size(), 1u);
  EXPECT_EQ(facts.results[0].type, "tensor<4xf32>");
  EXPECT_TRUE(facts.meshes.empty());
  EXPECT_EQ(facts.num_partitions, std::nullopt);
}

TEST(ModuleReader, TheSizeOfAMesh) {
  EXPECT_EQ((ModuleMesh{.name = "", .text = "", .axes = {}, .device_ids = {3}}.size()), 1);
  EXPECT_EQ(
      (ModuleMesh{.name = "", .text = "", .axes = {{"x", 3}, {"y", 5}}, .device_ids = {}}.size()),
      15);
  // A number of devices that overflows is reported as 0, not as a wrong number.
  EXPECT_EQ((ModuleMesh{.name = "",
                        .text = "",
                        .axes = {{"x", std::int64_t{1} << 40}, {"y", std::int64_t{1} << 40}},
                        .device_ids = {}}
                 .size()),
            0);
}

TEST(ModuleReader, RefusesWhatIsNoModule) {
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("hello"), HasSubstr("no function `main`"));
  EXPECT_THAT(error_of(std::string_view("\x7f"
                                        "ELF\0\0\0",
                                        7)),
              HasSubstr("neither"));
  EXPECT_THAT(error_of("module @m {}"), HasSubstr("main"));
  EXPECT_THAT(error_of("module {\nfunc.func @main(%a tensor<4xf32>) {}}"), HasSubstr("line 2"));
}

TEST(ModuleReader, EveryTruncationIsRefused) {
  // The last lines of a text are locations; the text is complete without them.
  std::size_t end = kPretty.rfind("} loc(#loc)");
  for (std::size_t size = 0; size < end; ++size)
    EXPECT_NE(error_of(kPretty.substr(0, size)), "") << size;
  for (std::string_view bytes : {kPortableBytes, kShardingsBytes})
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_NE(error_of(bytes.substr(0, size)), "") << size;
}

TEST(ModuleReader, DamagedBytesNeverCrash) {
  for (std::string_view bytes : {kPortableBytes, kShardingsBytes})
    for (std::size_t at = 0; at < bytes.size(); ++at)
      for (int value : {0x00, 0x01, 0x7f, 0xff}) {
        std::string damaged(bytes);
        damaged[at] = static_cast<char>(value);
        Result<ModuleFacts> facts = read_module(damaged);
        EXPECT_TRUE(!facts.ok() || facts->arguments.size() <= bytes.size());
      }
}

}  // namespace
}  // namespace meshard::stablehlo
