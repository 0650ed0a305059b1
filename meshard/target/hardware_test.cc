#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "meshard/target/target.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

TEST(Hardware, EveryNameOfATargetHasTheFiguresOfItsKind) {
  std::vector<std::string_view> gpus;
  for (const GpuKind& kind : gpu_kinds()) gpus.push_back(kind.name);
  std::vector<std::string_view> names{"v4", "v5e", "v5p", "v6e", "tpu7x"};
  names.insert(names.end(), gpus.begin(), gpus.end());
  for (std::string_view name : names) {
    bool gpu = std::ranges::find(gpus, name) != gpus.end();
    std::string target = std::string(name) + (gpu ? ":8" : ":2x2");
    if (name == "v4" || name == "v5p" || name == "tpu7x") target += "x1";
    auto figures = hardware_figures(name);
    ASSERT_TRUE(figures) << name;
    Topology topology = Target::parse(target).value().topology();
    auto of_kind = hardware_figures(topology.kind());
    auto of_topology = hardware_figures(topology);
    ASSERT_TRUE(of_kind && of_topology) << topology.kind();
    for (const auto* other : {&*of_kind, &*of_topology}) {
      EXPECT_EQ(other->matrix_rate("bf16"), figures->matrix_rate("bf16")) << name;
      EXPECT_EQ(other->memory_bytes, figures->memory_bytes) << name;
      EXPECT_EQ(other->link_bandwidth, figures->link_bandwidth) << name;
    }
    EXPECT_GT(figures->memory_bandwidth, 0) << name;
    EXPECT_GT(figures->links, 0) << name;
    EXPECT_FALSE(figures->sources.empty()) << name;
  }
  for (const char* name : {"cpu", "", "TPU v2", "fake"}) EXPECT_FALSE(hardware_figures(name));
}

// From the vendors' tables, in their units: TFLOPS, GB/s and Gbps of a chip.
TEST(Hardware, PublishedFigures) {
  auto v5e = hardware_figures("TPU v5 lite").value();
  EXPECT_DOUBLE_EQ(v5e.matrix_rate("bf16"), 197e12);
  EXPECT_DOUBLE_EQ(v5e.matrix_rate("s8"), 393e12);
  EXPECT_DOUBLE_EQ(v5e.memory_bandwidth, 819e9);
  EXPECT_DOUBLE_EQ(v5e.link_bandwidth, 1600e9 / 8);
  EXPECT_DOUBLE_EQ(v5e.network_bandwidth * 256 * 8, 6.4e12);
  auto v6e = hardware_figures("TPU v6 lite").value();
  EXPECT_DOUBLE_EQ(v6e.matrix_rate("bf16"), 918e12);
  EXPECT_DOUBLE_EQ(v6e.link_bandwidth * 2, 800e9);
  auto h100 = hardware_figures("h100").value();
  EXPECT_DOUBLE_EQ(h100.link_bandwidth * 2, 900e9);
  EXPECT_DOUBLE_EQ(h100.network_bandwidth * 8, 400e9);
  EXPECT_NEAR(hardware_figures("h200")->memory_bandwidth, 4.8e12, 1e9);
  EXPECT_DOUBLE_EQ(hardware_figures("b200")->link_bandwidth * 2, 1.8e12);
}

// A rack of GB200 NVL72 or GB300 NVL72, and a board of HGX B300, in the units of their data sheets,
// which list most rates with sparsity (twice the dense ones).
TEST(Hardware, RacksAndBoards) {
  constexpr double kPeta = 1e15;
  auto rack = [](const char* name, const char* type) {
    return hardware_figures(name)->matrix_rate(type) * 72 / kPeta;
  };
  for (const char* name : {"gb200", "gb300"}) {
    EXPECT_DOUBLE_EQ(2 * rack(name, "bf16"), 360) << name;
    EXPECT_DOUBLE_EQ(2 * rack(name, "f32"), 180) << name;
    EXPECT_DOUBLE_EQ(2 * rack(name, "f8e4m3fn"), 720) << name;
    HardwareFigures figures = hardware_figures(name).value();
    EXPECT_NEAR(72 * figures.memory_bandwidth, 576e12, 6e12) << name;
    EXPECT_NEAR(72 * 2 * figures.link_bandwidth, 130e12, 1e12) << name;
    EXPECT_TRUE(figures.switch_adds) << name;
  }
  EXPECT_DOUBLE_EQ(2 * rack("gb200", "f4e2m1fn"), 1440);
  EXPECT_DOUBLE_EQ(rack("gb300", "f4e2m1fn"), 1080);  // dense
  EXPECT_DOUBLE_EQ(2 * rack("gb200", "s8"), 720);
  EXPECT_DOUBLE_EQ(2 * rack("gb300", "s8"), 24);
  EXPECT_DOUBLE_EQ(hardware_figures("gb200")->network_bandwidth * 8, 400e9);
  EXPECT_DOUBLE_EQ(hardware_figures("gb300")->network_bandwidth * 8, 800e9);
  HardwareFigures b300 = hardware_figures("NVIDIA B300 SXM6 AC").value();
  EXPECT_DOUBLE_EQ(8 * 2 * b300.matrix_rate("bf16"), 36e15);
  EXPECT_DOUBLE_EQ(8 * 2 * b300.matrix_rate("f8e5m2"), 72e15);
  EXPECT_DOUBLE_EQ(8 * b300.matrix_rate("f64"), 10e12);
  EXPECT_DOUBLE_EQ(8 * 2 * b300.link_bandwidth, 14.4e12);
  EXPECT_DOUBLE_EQ(8 * 2 * b300.network_bandwidth, 1.6e12);
}

TEST(Hardware, InstinctsHaveALinkToEachOther) {
  HardwareFigures mi300x = hardware_figures("mi300x").value();
  EXPECT_DOUBLE_EQ(mi300x.matrix_rate("bf16"), 1307.4e12);
  EXPECT_DOUBLE_EQ(mi300x.matrix_rate("f8e4m3fnuz"), 2614.9e12);
  EXPECT_DOUBLE_EQ(2 * mi300x.link_bandwidth, 7 * 128e9);
  EXPECT_EQ(mi300x.memory_bytes, std::int64_t{192} << 30);
  EXPECT_TRUE(mi300x.direct_links);
  HardwareFigures mi355x = hardware_figures("AMD Instinct MI355X").value();
  EXPECT_DOUBLE_EQ(mi355x.matrix_rate("bf16"), 2516.6e12);
  EXPECT_DOUBLE_EQ(mi355x.matrix_rate("f4e2m1fn"), 10066.3e12);
  EXPECT_DOUBLE_EQ(2 * mi355x.link_bandwidth, 7 * 153.6e9);
  EXPECT_EQ(mi355x.memory_bytes, std::int64_t{288} << 30);
  EXPECT_FALSE(hardware_figures("h100")->direct_links);
}

TEST(Hardware, AChipOfTwoDevicesIsShared) {
  auto half = hardware_figures("TPU7x").value();
  EXPECT_DOUBLE_EQ(2 * half.matrix_rate("bf16"), 2307e12);
  EXPECT_DOUBLE_EQ(2 * half.memory_bandwidth, 7380e9);
  auto core = hardware_figures(Target::parse("v4:2x2x1").value().topology()).value();
  auto chip = hardware_figures(Target::parse("v4:2x2x1/megacore").value().topology()).value();
  EXPECT_DOUBLE_EQ(2 * core.matrix_rate("bf16"), 275e12);
  EXPECT_DOUBLE_EQ(chip.matrix_rate("bf16"), 275e12);
  EXPECT_DOUBLE_EQ(chip.memory_bandwidth, 2 * core.memory_bandwidth);
}

TEST(Hardware, FiguresOfTpusAreComplete) {
  for (const TpuGeneration& tpu : tpu_generations()) {
    auto figures = hardware_figures(tpu.name);
    ASSERT_EQ(figures.has_value(), tpu.name != "v2" && tpu.name != "v3") << tpu.name;
    if (!figures) continue;
    EXPECT_FALSE(figures->matrix_rates.empty()) << tpu.name;
    EXPECT_GT(figures->memory_bytes, 0) << tpu.name;
    EXPECT_GT(figures->memory_bandwidth, 0) << tpu.name;
    // A torus has two links in each direction.
    EXPECT_EQ(figures->links, 2 * static_cast<int>(tpu.directions)) << tpu.name;
    EXPECT_FALSE(figures->sources.empty()) << tpu.name;
    // A chip of two devices may also be one, which has more memory than each of the two.
    auto chip = hardware_figures(Topology({DeviceAttributes{.kind = std::string(tpu.kinds[0])}}));
    if (tpu.devices_per_chip > 1)
      EXPECT_GT(chip->memory_bytes, figures->memory_bytes) << tpu.name;
    else
      EXPECT_EQ(chip->memory_bytes, figures->memory_bytes) << tpu.name;
  }
}

TEST(Hardware, MemoryIsThatOfTheCompilersDescription) {
  for (const GpuKind& kind : gpu_kinds())
    EXPECT_EQ(hardware_figures(kind.name)->memory_bytes, kind.memory_bytes) << kind.name;
}

TEST(Hardware, TypesWithoutARateHaveTheNextWider) {
  HardwareFigures figures;
  EXPECT_EQ(figures.matrix_rate("bf16"), 0);
  figures.matrix_rates = {{"f32", 10}, {"bf16", 20}, {"s8", 80}, {"f8", 40}};
  EXPECT_EQ(figures.matrix_rate("bf16"), 20);
  EXPECT_EQ(figures.matrix_rate("f16"), 20);
  EXPECT_EQ(figures.matrix_rate("f8e4m3fn"), 40);
  EXPECT_EQ(figures.matrix_rate("f8E5M2"), 40);
  EXPECT_EQ(figures.matrix_rate("f4e2m1fn"), 40);
  EXPECT_EQ(figures.matrix_rate("f64"), 10) << "nothing is wide enough: the widest";
  EXPECT_EQ(figures.matrix_rate("c64"), 10);
  for (const char* type : {"s8", "u8", "i8", "ui8", "s4", "pred", "s32"})
    EXPECT_EQ(figures.matrix_rate(type), 80) << type;
  figures.matrix_rates = {{"bf16", 20}, {"f8", 40}};
  EXPECT_EQ(figures.matrix_rate("s8"), 40) << "no rate of whole numbers";
  EXPECT_EQ(figures.matrix_rate("s32"), 20);
}

}  // namespace
}  // namespace meshard
