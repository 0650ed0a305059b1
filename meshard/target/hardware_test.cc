#include <gtest/gtest.h>

#include "meshard/target/target.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

TEST(Hardware, EveryNameOfATargetHasTheFiguresOfItsKind) {
  for (const char* name : {"v4", "v5e", "v5p", "v6e", "tpu7x", "h100", "h200", "b200"}) {
    std::string target = std::string(name) + (name[0] == 'h' || name[0] == 'b' ? ":8" : ":2x2");
    if (std::string_view(name) == "v4" || std::string_view(name) == "v5p" ||
        std::string_view(name) == "tpu7x")
      target += "x1";
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
