#include "meshard/plan/pipeline/internal/stage_compiler.h"

#include <gtest/gtest.h>

#include "meshard/target/target.h"

namespace meshard::internal {
namespace {

// Two halves of a node whose GPUs have a switch: each sends at its full rate.
TEST(StageLink, BehindASwitch) {
  Target target = Target::parse("h100:8").value();
  const double rate = hardware_figures(target.topology())->link_bandwidth;
  Mesh mesh({{"stage", 2}, {"x", 4}});
  StageLink link(target, *mesh.submesh({"x"}, 0), *mesh.submesh({"x"}, 4), {});
  EXPECT_EQ(link.device_bytes(1000), 1000);
  EXPECT_DOUBLE_EQ(link.seconds(1 << 20), (1 << 20) / rate);
}

TEST(StageLink, OtherNodesAreAcrossTheNetwork) {
  Target target = Target::parse("h100:2x8").value();
  std::optional<HardwareFigures> figures = hardware_figures(target.topology());
  Mesh mesh({{"stage", 2}, {"x", 8}});
  StageLink link(target, *mesh.submesh({"x"}, 0), *mesh.submesh({"x"}, 8), {});
  EXPECT_DOUBLE_EQ(link.seconds(1 << 20), (1 << 20) / figures->network_bandwidth);
}

// In a row of chips, the message of each of four chips crosses the middle of the row: a shift by
// four positions loads the middle link with four messages. Half the distance loads it with two.
TEST(StageLink, ChipsShareTheLinksBetweenThem) {
  Target target = Target::parse("v5e:1x8").value();
  Mesh row({{"x", 8}});
  const auto seconds = [&](std::vector<std::int64_t> from, std::vector<std::int64_t> to) {
    auto size = static_cast<std::int64_t>(from.size());
    return StageLink(target, Mesh({{"x", size}}, std::move(from)),
                     Mesh({{"x", size}}, std::move(to)), {})
        .seconds(1 << 20);
  };
  const double one = seconds({3}, {4});
  EXPECT_GT(one, 0);
  EXPECT_DOUBLE_EQ(seconds({2, 3}, {4, 5}), 2 * one);
  EXPECT_DOUBLE_EQ(seconds({0, 1, 2, 3}, {4, 5, 6, 7}), 4 * one);
}

TEST(StageLink, OtherNumbersOfDevices) {
  Target target = Target::parse("h100:8").value();
  Mesh two({{"x", 2}}, {0, 1}), four({{"x", 4}}, {4, 5, 6, 7});
  EXPECT_EQ(StageLink(target, two, four, {}).device_bytes(1000), 2000);
  EXPECT_EQ(StageLink(target, four, two, {}).device_bytes(1000), 1000);
}

TEST(StageLink, NothingIsSentToTheSameDevices) {
  Target target = Target::parse("h100:8").value();
  Mesh mesh({{"x", 8}});
  EXPECT_EQ(StageLink(target, mesh, mesh, {}).seconds(1 << 20), 0);
}

TEST(StageLink, UnknownHardware) {
  Target target = Target::parse("cpu:8").value();
  Mesh mesh({{"stage", 2}, {"x", 4}});
  EXPECT_EQ(StageLink(target, *mesh.submesh({"x"}, 0), *mesh.submesh({"x"}, 4), {}).seconds(9), 0);
}

}  // namespace
}  // namespace meshard::internal
