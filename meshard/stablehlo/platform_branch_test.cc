#include "meshard/stablehlo/platform_branch.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module_reader.h"
#include "tests/support/random.h"

namespace meshard::stablehlo {
namespace {

// As tests/exported/record_platforms.py exported it for tpu, cpu and cuda.
std::string exported_for_platforms() {
  return read_whole_file(cat(MESHARD_GOLDEN, "/exported/platforms_exported.bin")).value();
}

TEST(PlatformBranch, OnlyNumbersOfValuesChange) {
  std::string bytes = exported_for_platforms();
  JaxExport exported = read_jax_export(bytes).value();
  ASSERT_EQ(exported.platforms.size(), 3u);
  std::vector<std::string> made;
  for (std::int64_t platform : {0, 1, 2}) {
    PlatformBranch chosen = choose_platform(exported.module, platform).value();
    EXPECT_TRUE(chosen.is_complete);
    ASSERT_EQ(chosen.module.size(), exported.module.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < chosen.module.size(); ++i)
      different += chosen.module[i] != exported.module[i];
    EXPECT_GT(different, 0u);
    EXPECT_LT(different, 16u);
    EXPECT_EQ(read_module(chosen.module)->arguments.size(),
              read_module(exported.module)->arguments.size());
    made.push_back(chosen.module);
  }
  EXPECT_NE(made[0], made[1]);
  EXPECT_NE(made[1], made[2]);
}

TEST(PlatformBranch, AProgramForOnePlatformStaysAsItIs) {
  std::string bytes = read_whole_file(cat(MESHARD_GOLDEN, "/exported/shardy_exported.bin")).value();
  JaxExport exported = read_jax_export(bytes).value();
  PlatformBranch chosen = choose_platform(exported.module, 0).value();
  EXPECT_EQ(chosen.module, exported.module);
  EXPECT_TRUE(chosen.is_complete);
}

TEST(PlatformBranch, DamagedBytes) {
  std::string bytes = exported_for_platforms();
  std::string module(read_jax_export(bytes).value().module);
  TestRandom random;
  for (std::size_t at = 0; at < module.size(); at += 3) {
    (void)choose_platform(std::string_view(module).substr(0, at), 1).ok();
    std::string damaged = module;
    damaged[at] = static_cast<char>(random.between(0, 255));
    (void)choose_platform(damaged, 1).ok();
  }
}

}  // namespace
}  // namespace meshard::stablehlo
