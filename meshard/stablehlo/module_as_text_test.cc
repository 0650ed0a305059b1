#include "meshard/stablehlo/module_as_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {
namespace {

#include "meshard/stablehlo/module_reader_test_data.inc"

using testing::HasSubstr;

const std::string_view kLayerBytes(reinterpret_cast<const char*>(kPortable), sizeof(kPortable));

std::string golden_bytes(std::string_view name) {
  std::string bytes = read_whole_file(cat(MESHARD_GOLDEN, "/exported/", name)).value();
  return is_jax_export(bytes) ? std::string(read_jax_export(bytes).value().module) : bytes;
}

void expect_same_values(const std::vector<ModuleValue>& text,
                        const std::vector<ModuleValue>& bytecode) {
  ASSERT_EQ(text.size(), bytecode.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(text[i].type, bytecode[i].type) << i;
    EXPECT_EQ(text[i].name, bytecode[i].name) << i;
    EXPECT_EQ(text[i].sharding, bytecode[i].sharding) << i;
    EXPECT_EQ(text[i].donated, bytecode[i].donated) << i;
    EXPECT_EQ(text[i].memory_kind, bytecode[i].memory_kind) << i;
  }
}

// The text says what its bytecode says. Whether it computes the same is tested in
// meshard/explain/same_test.cc.
TEST(ModuleAsText, SaysWhatItsBytecodeSays) {
  for (const char* name :
       {"shardy_exported.bin", "gspmd_exported.bin", "platforms_exported.bin",
        "gpt12_scan_v5e_4x4.mlirbc", "gpt12_unrolled_v5e_4x4.portable",
        "llama8b_train_v5e_4x4.mlirbc", "run/ring.bin", "run/lapack.bin", "run/derivative.bin",
        "run/random_bits.bin", "run/complex.bin", "run/explicit_axes.bin", "run/reverse_order.bin",
        "run/scan_open.bin", "run/train_donated.bin"}) {
    SCOPED_TRACE(name);
    std::string bytes = golden_bytes(name);
    Result<std::string> text = module_as_text(bytes);
    ASSERT_TRUE(text.ok()) << text.error().message();
    Result<Module> module = Module::parse(*text);
    ASSERT_TRUE(module.ok()) << module.error().message();
    EXPECT_NE(module->function("main"), nullptr);
    ModuleFacts facts = read_module(*text).value(), expected = read_module(bytes).value();
    EXPECT_EQ(facts.name, expected.name);
    EXPECT_EQ(facts.origin, expected.origin);
    EXPECT_EQ(facts.num_partitions, expected.num_partitions);
    EXPECT_EQ(facts.uses_shardy, expected.uses_shardy);
    ASSERT_EQ(facts.meshes.size(), expected.meshes.size());
    for (std::size_t i = 0; i < facts.meshes.size(); ++i)
      EXPECT_EQ(facts.meshes[i].text, expected.meshes[i].text);
    expect_same_values(facts.arguments, expected.arguments);
    expect_same_values(facts.results, expected.results);
  }
}

// `lambda p, x: (p['w'] * 2, x @ p['w'])`
TEST(ModuleAsText, OpsAreGeneric) {
  std::string text = module_as_text(kLayerBytes).value();
  EXPECT_THAT(text, HasSubstr("module @jit_layer attributes {"));
  EXPECT_THAT(text, HasSubstr("sdy.mesh @mesh = <[\"data\"=2, \"model\"=4]> {stablehlo.mesh = {"));
  EXPECT_THAT(text, HasSubstr("\"stablehlo.constant\"() <{value = dense<2.0> : tensor<bf16>}> : () "
                              "-> tensor<bf16> loc("));
  EXPECT_THAT(text,
              HasSubstr("<{dot_dimension_numbers = #stablehlo.dot<"
                        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"));
  EXPECT_THAT(text, HasSubstr(" : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>"));
  EXPECT_THAT(text, HasSubstr("\"func.return\"("));
}

TEST(ModuleAsText, TextStaysAsItIs) {
  for (const char* text : {"module @m {\n}", "no module", ""})
    EXPECT_EQ(module_as_text(text).value(), text);
}

TEST(ModuleAsText, UnknownOpsAreNamed) {
  std::string bytes(kLayerBytes);
  std::size_t at = bytes.find("multiply_v1");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 11, "multiply_v7");
  Result<std::string> text = module_as_text(bytes);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code(), ErrorCode::kDataLoss);
  EXPECT_THAT(text.error().message(), HasSubstr("`vhlo.multiply_v7` is not known"));
}

TEST(ModuleAsText, DamagedBytesNeverCrash) {
  for (std::size_t size = 0; size < kLayerBytes.size(); ++size)
    EXPECT_TRUE(size < 4 || !module_as_text(kLayerBytes.substr(0, size)).ok()) << size;
  for (std::size_t at = 0; at < kLayerBytes.size(); ++at)
    for (int value : {0x00, 0x01, 0x7f, 0xff}) {
      std::string damaged(kLayerBytes);
      damaged[at] = static_cast<char>(value);
      Result<std::string> text = module_as_text(damaged);
      EXPECT_TRUE(text.ok() || !text.error().message().empty());
    }
}

}  // namespace
}  // namespace meshard::stablehlo
