#include "meshard/stablehlo/jax_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;

// As tests/exported/record_compiled.py exported them: layer(p, x, unused) over a mesh of 2 x 4.
std::string exported_bytes(std::string_view name) {
  return read_whole_file(cat(MESHARD_GOLDEN, "/exported/", name)).value();
}

TEST(JaxExport, WhatItSays) {
  std::string bytes = exported_bytes("shardy_exported.bin");
  ASSERT_TRUE(is_jax_export(bytes));
  JaxExport exported = read_jax_export(bytes).value();
  EXPECT_EQ(exported.function, "layer");
  EXPECT_EQ(exported.devices, 8);
  EXPECT_THAT(exported.platforms, ElementsAre("tpu"));
  EXPECT_FALSE(exported.any_platform);
  EXPECT_EQ(exported.calling_convention, 10);
  EXPECT_THAT(exported.argument_sizes,
              ElementsAre(ElementsAre("128", "64"), ElementsAre("64", "128"),
                          ElementsAre("32", "64"), ElementsAre("7")));
  EXPECT_THAT(exported.kept, ElementsAre(0, 1, 2));
  EXPECT_EQ(exported.symbolic_argument(), "");
  ModuleFacts facts = read_module(exported.module).value();
  describe_export(exported, facts);
  EXPECT_EQ(facts.origin, ModuleOrigin::kJax);
  ASSERT_EQ(facts.arguments.size(), 3u);
  EXPECT_EQ(facts.arguments[1].name, "p['up']");
  ASSERT_EQ(facts.meshes.size(), 1u);
  EXPECT_THAT(facts.meshes[0].axes,
              ElementsAre(std::pair("data", std::int64_t{2}), std::pair("model", std::int64_t{4})));
}

// A module for the older partitioner has no mesh: the export has it.
TEST(JaxExport, AxesOfTheOlderPartitioner) {
  std::string bytes = exported_bytes("gspmd_exported.bin");
  JaxExport exported = read_jax_export(bytes).value();
  ModuleFacts facts = read_module(exported.module).value();
  EXPECT_TRUE(facts.meshes.empty());
  describe_export(exported, facts);
  ASSERT_EQ(facts.meshes.size(), 1u);
  EXPECT_EQ(facts.meshes[0].size(), 8);
  EXPECT_FALSE(facts.uses_shardy);
}

TEST(JaxExport, SymbolicSizesAndPlatforms) {
  std::string bytes = exported_bytes("symbolic_exported.bin");
  JaxExport exported = read_jax_export(bytes).value();
  EXPECT_EQ(exported.symbolic_argument(), "(b, 4)");
  EXPECT_THAT(exported.platforms, ElementsAre("tpu", "cpu"));
  EXPECT_TRUE(exported.any_platform);
}

TEST(JaxExport, OtherBytesAreNone) {
  std::string bytes = exported_bytes("shardy_exported.bin");
  EXPECT_FALSE(is_jax_export(read_jax_export(bytes).value().module));
  EXPECT_FALSE(is_jax_export("module @m { func.func @main() {} }"));
  EXPECT_FALSE(is_jax_export(std::string(64, '\0')));
}

TEST(JaxExport, DamageIsAnError) {
  const std::string bytes = exported_bytes("shardy_exported.bin");
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    (void)read_jax_export(std::string_view(bytes).substr(0, size));
  TestRandom random;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 3; ++i)
      damaged[static_cast<std::size_t>(random.between(0, std::ssize(bytes) - 1))] =
          static_cast<char>(random.between(0, 255));
    if (Result<JaxExport> read = read_jax_export(damaged); read.ok()) {
      EXPECT_LE(read->module.size(), damaged.size());
    }
  }
  EXPECT_TRUE(throws_error([&] { read_jax_export(std::string_view(bytes).substr(0, 40)).value(); },
                           ErrorCode::kDataLoss, {"[jax.export]"}));
}

// Tries every byte that may be the number 10.
TEST(JaxExport, AnotherCallingConvention) {
  std::string bytes = exported_bytes("shardy_exported.bin");
  std::size_t changed = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] != 10 || bytes[i + 1] != 0) continue;
    std::string other = bytes;
    other[i] = 11;
    Result<JaxExport> read = read_jax_export(other);
    if (read.ok() || read.error().code() != ErrorCode::kUnimplemented) continue;
    EXPECT_THAT(read.error().message(), testing::HasSubstr("calling convention 11"));
    ++changed;
  }
  EXPECT_EQ(changed, 1u);
}

}  // namespace
}  // namespace meshard::stablehlo
