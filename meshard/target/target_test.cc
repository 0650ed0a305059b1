#include "meshard/target/target.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Target parsed(std::string_view name) { return Target::parse(name).value(); }

TEST(Target, TpusAreThoseOfTheTopology) {
  Target target = parsed("v5e:4x4");
  EXPECT_EQ(target.name(), "v5e:4x4");
  EXPECT_EQ(target.platform(), "tpu");
  EXPECT_EQ(target.size(), 16);
  EXPECT_EQ(target.plugin_name(), "v5e:4x4");
  EXPECT_TRUE(target.plugin_options().empty());
  EXPECT_EQ(target.topology().kind(), "TPU v5 lite");
}

TEST(Target, SlicesAndMegacoreAreOptionsOfThePlugin) {
  Target slices = parsed("v5e:4x4*2");
  EXPECT_EQ(slices.size(), 32);
  EXPECT_EQ(slices.plugin_name(), "v5e:4x4");
  ASSERT_EQ(slices.plugin_options().size(), 1u);
  EXPECT_EQ(slices.plugin_options()[0].to_string(), "num_slices = 2");
  EXPECT_EQ(slices.topology().devices()[0].id, 100000);
  Target one = parsed("v5e:4x4*1");
  EXPECT_EQ(one.plugin_name(), "v5e:4x4");
  EXPECT_TRUE(one.plugin_options().empty());
  Target both = parsed("v4:2x2x1*3/megacore");
  EXPECT_EQ(both.plugin_name(), "v4:2x2x1");
  EXPECT_EQ(both.size(), 12);
  ASSERT_EQ(both.plugin_options().size(), 2u);
  EXPECT_EQ(both.plugin_options()[0].to_string(), "chip_config_name = \"megacore\"");
  EXPECT_EQ(both.plugin_options()[1].to_string(), "num_slices = 3");
}

TEST(Target, GpusStandInNodes) {
  Target target = parsed("h100:4x8");
  EXPECT_EQ(target.platform(), "cuda");
  EXPECT_EQ(target.size(), 32);
  EXPECT_EQ(target.topology().kind(), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(target.topology().devices()[7].process_index, 0);
  EXPECT_EQ(target.topology().devices()[8].process_index, 1);
  EXPECT_EQ(target.topology().devices()[31].id, 31);
  auto* shape = pjrt::find_value<std::string>(target.plugin_options(), "topology");
  ASSERT_NE(shape, nullptr);
  EXPECT_EQ(*shape, "1x4x8");
  EXPECT_EQ(parsed("h100:8").size(), 8);
  EXPECT_EQ(*pjrt::find_value<std::string>(parsed("b200:8").plugin_options(), "topology"), "1x1x8");
  EXPECT_EQ(parsed("h200").size(), 1);
}

TEST(Target, NvlinkDomainsHaveSeveralHosts) {
  Target rack = parsed("gb200:72");
  EXPECT_EQ(rack.platform(), "cuda");
  EXPECT_EQ(rack.size(), 72);
  EXPECT_EQ(rack.topology().kind(), "NVIDIA GB200");
  EXPECT_EQ(rack.topology().devices()[3].process_index, 0);
  EXPECT_EQ(rack.topology().devices()[71].process_index, 17);
  EXPECT_EQ(rack.topology().devices()[71].slice_index, 0);
  EXPECT_EQ(*pjrt::find_value<std::string>(rack.plugin_options(), "topology"), "1x18x4");
  Target two = parsed("gb300:2x72");
  EXPECT_EQ(two.size(), 144);
  EXPECT_EQ(two.topology().devices()[72].slice_index, 1);
  EXPECT_EQ(two.topology().devices()[72].process_index, 18);
  EXPECT_EQ(*pjrt::find_value<std::string>(two.plugin_options(), "topology"), "2x18x4");
  EXPECT_EQ(*pjrt::find_value<std::string>(parsed("gb200:2").plugin_options(), "topology"),
            "1x1x2");
  EXPECT_TRUE(throws_error([&] { parsed("gb200:80"); }, ErrorCode::kInvalidArgument,
                           {"at most 72 GPUs", "`gb200:2x72`"}));
  EXPECT_TRUE(throws_error([&] { parsed("gb200:6"); }, ErrorCode::kInvalidArgument,
                           {"a multiple of 4 GPUs, not 6"}));
}

TEST(Target, GpusOfAmdAreForTheirPlatform) {
  Target target = parsed("mi300x:2x8");
  EXPECT_EQ(target.platform(), "rocm");
  EXPECT_EQ(target.topology().devices()[8].process_index, 1);
  auto* config = pjrt::find_value<std::string>(target.plugin_options(), "target_config");
  ASSERT_NE(config, nullptr);
  EXPECT_NE(config->find("gcn_arch_name: \"gfx942:"), std::string::npos);
  EXPECT_NE(config->find("platform_name: \"ROCM\""), std::string::npos);
  EXPECT_NE(find_gpu_kind("mi355x")->target_config().find("gfx950"), std::string::npos);
}

TEST(Target, OfDevices) {
  auto tpus = [](std::string kind, std::vector<IntVector> coords) {
    std::vector<DeviceAttributes> devices;
    for (const IntVector& each : coords)
      devices.push_back({.id = std::ssize(devices), .coords = each, .kind = kind});
    return devices;
  };
  auto named = [](std::string kind, std::vector<std::int64_t> ids) {
    std::vector<DeviceAttributes> devices;
    for (std::int64_t id : ids) devices.push_back({.id = id, .coords = {}, .kind = kind});
    return devices;
  };
  EXPECT_EQ(
      target_name_of("tpu", tpus("TPU v5 lite", {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}})),
      "v5e:2x2");
  EXPECT_EQ(target_name_of("tpu", tpus("TPU v4", {{0, 0, 0}, {0, 0, 1}})), "v4:1x1x2");
  EXPECT_EQ(target_name_of("tpu", tpus("TPU v5 lite", {{0, 0, 0}, {0, 0, 1}})), std::nullopt);
  EXPECT_EQ(target_name_of("tpu", tpus("TPU v4", {{0, 0}})), std::nullopt);
  EXPECT_EQ(target_name_of("tpu", tpus("TPU of tomorrow", {{0, 0, 0}})), std::nullopt);
  EXPECT_EQ(target_name_of("cpu", named("cpu", {5, 4})), "cpu:6");
  EXPECT_EQ(target_name_of("gpu", named("NVIDIA H100 80GB HBM3", {0, 1})), "h100:2");
  EXPECT_EQ(target_name_of("cuda", named("NVIDIA A100", {0})), std::nullopt);
  EXPECT_EQ(target_name_of("cuda", named("NVIDIA B200", {7})), "b200:8");
  EXPECT_EQ(target_name_of("cuda", named("NVIDIA GB200", {3})), "gb200:4");
  EXPECT_EQ(target_name_of("cuda", named("NVIDIA GB200", {143})), "gb200:2x72");
  EXPECT_EQ(target_name_of("cuda", named("NVIDIA GB200", {99})), std::nullopt);
  EXPECT_EQ(target_name_of("rocm", named("AMD Instinct MI300X", {7})), "mi300x:8");
  EXPECT_EQ(target_name_of("cpu", {}), std::nullopt);
  for (const TpuGeneration& tpu : tpu_generations())  // what it names can be parsed
    for (std::string_view kind : tpu.kinds) {
      auto name = target_name_of("tpu", tpus(std::string(kind), {{0, 0, 0}, {1, 1, 0}}));
      EXPECT_TRUE(name && Target::parse(*name).ok()) << kind;
    }
}

TEST(Target, EveryGpuSaysWhatItsCompilerAsksFor) {
  for (const GpuKind& kind : gpu_kinds()) {
    std::string text = kind.target_config();
    // The fields that the compiler divides by or requires.
    for (const char* field :
         {"threads_per_block_limit: ", "threads_per_warp: ", "shared_memory_per_block: ",
          "shared_memory_per_core: ", "threads_per_core_limit: ", "core_count: ", "fpus_per_core: ",
          "block_dim_limit_x: ", "block_dim_limit_y: ", "block_dim_limit_z: ", "memory_bandwidth: ",
          "l2_cache_size: ", "clock_rate_ghz: ", "device_memory_size: ",
          "shared_memory_per_block_optin: ", "registers_per_core_limit: ",
          "registers_per_block_limit: ",
          kind.platform() == "cuda" ? "cuda_compute_capability { major: "
                                    : "rocm_compute_capability { gcn_arch_name: "}) {
      std::size_t at = text.find(field);
      ASSERT_NE(at, std::string::npos) << kind.name << " lacks " << field;
      EXPECT_NE(text[at + std::string(field).size()], '0') << kind.name << ": " << field;
    }
    EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  }
  EXPECT_NE(find_gpu_kind("b200")->target_config().find("major: 10 minor: 0"), std::string::npos);
  EXPECT_NE(find_gpu_kind("h200")->target_config().find("major: 9 minor: 0"), std::string::npos);
}

TEST(Target, VirtualCpus) {
  Target target = parsed("cpu:8");
  EXPECT_EQ(target.platform(), "cpu");
  EXPECT_EQ(target.size(), 8);
  EXPECT_EQ(target.plugin_options()[0].to_string(), "cpu_device_count = 8");
  EXPECT_EQ(parsed("cpu:2048").size(), 2048);
  EXPECT_EQ(parsed("cpu").size(), 1);
}

TEST(Target, OtherNamesAreRefusedWithTheKnownOnes) {
  for (const char* name : {"",
                           ":",
                           "v9:4x4",
                           "h100:",
                           "h100:0",
                           "h100:4x",
                           "h100:4x8x2",
                           "h100:-1",
                           "h100 :8",
                           "h100:4x8*2",
                           "h100:99999999999999999999",
                           "h100:1048577",
                           "h100:2048x1024",
                           "cpu:0",
                           "cpu:2049",
                           "cpu:8x2",
                           "cpu:x",
                           "tpu:8",
                           "v5e:3x3",
                           "v5e:4x4*0",
                           "v5e:4x4*",
                           "V5E:4x4",
                           "v5e:4x4/megacore",
                           "h100:8 ;"})
    EXPECT_TRUE(throws_error(
        [&] { parsed(name); }, ErrorCode::kInvalidArgument,
        {"[target] `" + std::string(name) + "`", "`v5e:4x4`", "`h100:4x8`", "`cpu:8`"}))
        << name;
}

TEST(Target, EqualByName) {
  EXPECT_EQ(parsed("cpu:8"), parsed("cpu:8"));
  EXPECT_FALSE(parsed("cpu:8") == parsed("cpu:4"));
}

}  // namespace
}  // namespace meshard
