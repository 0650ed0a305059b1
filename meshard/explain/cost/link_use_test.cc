#include "meshard/explain/cost/link_use.h"

#include <gtest/gtest.h>

#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

// 4 links of 25 bytes per second, and a network of 10 to other slices.
HardwareFigures round_figures() {
  HardwareFigures figures;
  figures.link_bandwidth = 100;
  figures.links = 4;
  figures.link_name = "ICI";
  figures.network_bandwidth = 10;
  figures.network_name = "DCN";
  return figures;
}

// `slices` grids of 4x4 chips each.
Topology grid(std::int64_t slices = 1) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t s = 0; s < slices; ++s)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 4; ++x)
        devices.push_back(
            {.id = std::ssize(devices), .process_index = s, .slice_index = s, .coords = {x, y, 0}});
  return Topology(std::move(devices), Topology::Wrap{true, true, false});
}

Collective over(CollectiveKind kind, AxisList axes, std::int64_t bytes) {
  Collective one;
  one.kind = kind;
  one.axes = std::move(axes);
  one.bytes_in = one.bytes_out = bytes;
  return one;
}

LinkModel on_grid(std::int64_t slices = 1) {
  Mesh mesh = slices == 1 ? Mesh({{"y", 4}, {"x", 4}}) : Mesh({{"s", slices}, {"y", 4}, {"x", 4}});
  return LinkModel(round_figures(), mesh, grid(slices));
}

TEST(LinkUse, RingsAlongOneDirectionHaveTwoLinks) {
  LinkModel links = on_grid();
  // Each device sends 3/4 of 400 bytes over two links of 25 bytes per second.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"x"}, 400)), 300 / 50.0);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kReduceScatter, {"x"}, 400)), 300 / 50.0);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllReduce, {"x"}, 400)), 600 / 50.0);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllToAll, {"x"}, 400)), 400 / 50.0);
}

// A TPU v5e of 4x4 chips closes no direction: the first chip of a line has one link of 50 GB/s.
TEST(LinkUse, AnOpenLineHasOneLinkAtItsEnds) {
  Topology topology = tpu_topology("v5e:4x4").value();
  Mesh mesh({{"y", 4}, {"x", 4}});
  LinkModel links(hardware_figures(topology).value(), mesh, topology);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"x"}, 400)), 300 / 50e9);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kReduceScatter, {"x"}, 400)), 300 / 50e9);
  // To the last chip and back, at the same time in both directions.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllReduce, {"x"}, 400)), 400 / 50e9);
  // Two devices send a half of 400 bytes each through the middle.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllToAll, {"x"}, 400)), 400 / 50e9);
  // A corner has two links.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"y", "x"}, 1600)), 1500 / 100e9);
  // A permutation around the line: the last message passes all links back, alone in its direction.
  Collective one = over(CollectiveKind::kCollectivePermute, {"x"}, 100);
  one.shifts = {{.axes = {"x"}, .by = 1, .wraps = true}};
  EXPECT_DOUBLE_EQ(links.seconds(one), 100 / 50e9);
  one.shifts[0].by = 2;  // two messages each way pass the middle
  EXPECT_DOUBLE_EQ(links.seconds(one), 200 / 50e9);
}

// The 16 chips of a v5e:4x16 in x are a ring, its 4 in y a line; v4 closes directions of 4.
TEST(LinkUse, DirectionsCloseAsOnTheHardware) {
  Topology wide = tpu_topology("v5e:4x16").value();
  // libtpu lists x first: 4 chips in x, 16 in y.
  ASSERT_EQ(wide.extent()[0], 4);
  LinkModel links(hardware_figures(wide).value(), Mesh({{"y", 16}, {"x", 4}}), wide);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"y"}, 1600)), 1500 / 100e9);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"x"}, 400)), 300 / 50e9);
  Topology cube = tpu_topology("v5p:4x4x4").value();
  LinkModel ring(hardware_figures(cube).value(), Mesh({{"z", 4}, {"y", 4}, {"x", 4}}), cube);
  EXPECT_DOUBLE_EQ(ring.seconds(over(CollectiveKind::kAllGather, {"x"}, 400)), 300 / 200e9);
}

// The two devices of a chip share its links, and exchange data on the chip.
TEST(LinkUse, DevicesOfAChipShareItsLinks) {
  Topology topology = tpu_topology("v4:4x4x4").value();
  LinkModel links(hardware_figures(topology).value(), Mesh({{"chip", 64}, {"core", 2}}), topology);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"core"}, 400)), 0);
  // Each chip has 6 links of 50 GB/s, over which two groups get 63/64 of 6400 bytes.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"chip"}, 6400)),
                   2 * 6300 / 300e9);
}

TEST(LinkUse, AnAllToAllOverTwoDirectionsCrossesTheMiddle) {
  Topology topology = tpu_topology("v5e:16x16").value();
  LinkModel links(hardware_figures(topology).value(), Mesh({{"all", 256}}), topology);
  // 128 devices send a half of their 256 bytes over 2 x 16 links.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllToAll, {"all"}, 256)),
                   128 * 128 / (32 * 50e9));
}

TEST(LinkUse, CollectivesOverOtherLinksDoNotAddUp) {
  LinkModel links = on_grid();
  Collective x = over(CollectiveKind::kAllGather, {"x"}, 400);
  Collective y = over(CollectiveKind::kAllGather, {"y"}, 400);
  x.executions = 2;
  const Collective* both[] = {&x, &y};
  std::vector<LinkUse> used = links.together(both);
  ASSERT_EQ(used.size(), 1u);
  EXPECT_DOUBLE_EQ(used[0].seconds, 2 * 300 / 50.0);
  EXPECT_DOUBLE_EQ(used[0].bytes, 900);
  const Collective* same[] = {&x, &x};
  EXPECT_DOUBLE_EQ(links.together(same)[0].seconds, 4 * 300 / 50.0);
  // One after the other, forward and back around a ring.
  Collective there = over(CollectiveKind::kCollectivePermute, {"x"}, 100);
  there.shifts = {{.axes = {"x"}, .by = 1, .wraps = true}};
  there.executions = 3;
  Collective back = there;
  back.shifts[0].by = -1;
  back.executions = 2;
  const Collective* ways[] = {&there, &back};
  EXPECT_DOUBLE_EQ(links.together(ways)[0].seconds, 300 / 25.0);
}

TEST(LinkUse, ASwitchThatAddsSendsAnAllReduceOnce) {
  HardwareFigures figures = round_figures();
  LinkModel plain(figures, Mesh({{"x", 4}}), std::nullopt);
  EXPECT_DOUBLE_EQ(plain.seconds(over(CollectiveKind::kAllReduce, {"x"}, 400)), 600 / 100.0);
  figures.switch_adds = true;
  LinkModel adds(figures, Mesh({{"x", 4}}), std::nullopt);
  EXPECT_DOUBLE_EQ(adds.seconds(over(CollectiveKind::kAllReduce, {"x"}, 400)), 400 / 100.0);
  EXPECT_DOUBLE_EQ(adds.seconds(over(CollectiveKind::kAllGather, {"x"}, 400)), 300 / 100.0);
}

TEST(LinkUse, AGroupInTwoDirectionsHasAllLinks) {
  LinkModel links = on_grid();
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"y", "x"}, 1600)), 1500 / 100.0);
}

TEST(LinkUse, OverSlicesTheNetworkTakesItsShare) {
  LinkModel links = on_grid(2);
  Collective one = over(CollectiveKind::kAllReduce, {"s", "x"}, 800);
  std::vector<LinkUse> used = links.uses(one);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].link, "ICI");
  EXPECT_DOUBLE_EQ(used[0].seconds, 2 * 800 * 3 / 4.0 / 50);
  EXPECT_EQ(used[1].link, "DCN");
  EXPECT_DOUBLE_EQ(used[1].bytes, 800 / 4.0);  // 2 * (1/2) of a quarter
  EXPECT_DOUBLE_EQ(used[1].seconds, 200 / 10.0);
  std::vector<LinkUse> network = links.uses(over(CollectiveKind::kAllGather, {"s"}, 800));
  ASSERT_EQ(network.size(), 1u);
  EXPECT_EQ(network[0].link, "DCN");
  EXPECT_DOUBLE_EQ(network[0].bytes, 400);
}

TEST(LinkUse, PermutationsTakeOneLinkForEachStep) {
  LinkModel links = on_grid();
  Collective one = over(CollectiveKind::kCollectivePermute, {"x"}, 100);
  one.shifts = {{.axes = {"x"}, .by = 1, .wraps = true}};
  std::vector<LinkUse> used = links.uses(one);
  ASSERT_EQ(used.size(), 1u);
  EXPECT_DOUBLE_EQ(used[0].seconds, 100 / 25.0);
  one.shifts[0].by = 2;  // over two links; both ways are equally long and take half
  EXPECT_DOUBLE_EQ(links.seconds(one), 200 / 2 / 25.0);
  one.shifts[0].by = -1;
  EXPECT_DOUBLE_EQ(links.seconds(one), 100 / 25.0);
  LinkModel two = on_grid(2);
  one.axes = AxisList({"s"});
  one.shifts = {{.axes = {"s"}, .by = 1, .wraps = true}};
  EXPECT_EQ(two.uses(one)[0].link, "DCN");
}

TEST(LinkUse, NodesOfGpusAreJoinedByTheNetwork) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < 8; ++i) devices.push_back({.id = i, .process_index = i / 4});
  HardwareFigures figures = round_figures();
  LinkModel links(figures, Mesh({{"node", 2}, {"gpu", 4}}), Topology(devices));
  // With a switch, all links serve every group.
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"gpu"}, 400)), 300 / 100.0);
  EXPECT_EQ(links.uses(over(CollectiveKind::kAllGather, {"node"}, 400))[0].link, "DCN");
}

// Two domains of 72 GPUs; the hosts of a domain do not matter.
TEST(LinkUse, AnNvlinkDomainIsASwitchOverItsHosts) {
  Topology topology = Target::parse("gb200:2x72").value().topology();
  HardwareFigures figures = hardware_figures(topology).value();
  LinkModel links(figures, Mesh({{"rack", 2}, {"gpu", 72}}), topology);
  std::vector<LinkUse> used = links.uses(over(CollectiveKind::kAllGather, {"gpu"}, 7200));
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].link, "NVLink");
  EXPECT_DOUBLE_EQ(used[0].seconds, 7100 / 900e9);
  used = links.uses(over(CollectiveKind::kAllReduce, {"rack"}, 800));
  ASSERT_EQ(used.size(), 1u);
  EXPECT_EQ(used[0].link, "InfiniBand");
  EXPECT_DOUBLE_EQ(used[0].seconds, 800 / 50e9);
  Collective next = over(CollectiveKind::kCollectivePermute, {"gpu"}, 100);
  next.shifts = {{.axes = {"gpu"}, .by = 1, .wraps = true}};
  EXPECT_EQ(links.uses(next)[0].link, "NVLink");
}

// 8 devices, each with a link of 64 GB/s to each other one.
TEST(LinkUse, WithoutASwitchAGroupHasTheLinksBetweenItsMembers) {
  Topology topology = Target::parse("mi300x:8").value().topology();
  HardwareFigures figures = hardware_figures(topology).value();
  LinkModel links(figures, Mesh({{"a", 4}, {"b", 2}}), topology);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"a", "b"}, 800)), 100 / 64e9);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllGather, {"a"}, 800)), 200 / 64e9);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllReduce, {"b"}, 800)), 800 / 64e9);
  Collective next = over(CollectiveKind::kCollectivePermute, {"a"}, 640);
  next.shifts = {{.axes = {"a"}, .by = 1, .wraps = true}};
  EXPECT_DOUBLE_EQ(links.seconds(next), 640 / 64e9);
}

// 8 devices in two processes, 0 to 3 and 4 to 7. A device sends 100 bytes per second to others of
// its process, a process 10 to the other one; each message takes 0.5 and 2 seconds more.
LinkModel on_two_processes(const Mesh& mesh) {
  std::vector<DeviceAttributes> devices(8);
  for (std::int64_t i = 0; i < 8; ++i) devices[static_cast<std::size_t>(i)].id = i;
  Topology topology(devices);
  LinkOptions links{.between_processes = LinkFigures{10, 2},
                    .between_devices = LinkFigures{100, 0.5}};
  return LinkModel(HardwareFigures{}, mesh, topology, ProcessMap::divided(topology, 2).value(),
                   links);
}

TEST(LinkUse, DevicesOfAProcessShareItsLink) {
  LinkModel links = on_two_processes(Mesh({{"data", 2}, {"model", 4}}));
  // Within a process: 3/4 of 400 bytes, in 3 steps.
  std::vector<LinkUse> inside = links.uses(over(CollectiveKind::kAllGather, {"model"}, 400));
  ASSERT_EQ(inside.size(), 1u);
  EXPECT_EQ(inside[0].link, "device link");
  EXPECT_DOUBLE_EQ(inside[0].seconds, 300 / 100.0 + 3 * 0.5);
  // Four groups of two devices. Each device sends 2 * 1/2 of 400 bytes, in 2 steps, and the four of
  // a process share its link.
  std::vector<LinkUse> across = links.uses(over(CollectiveKind::kAllReduce, {"data"}, 400));
  ASSERT_EQ(across.size(), 1u);
  EXPECT_EQ(across[0].link, "process link");
  EXPECT_DOUBLE_EQ(across[0].bytes, 400);
  EXPECT_DOUBLE_EQ(across[0].seconds, 4 * 400 / 10.0 + 2 * 2);
  // All devices: in each process first, then a quarter of 800 bytes by each device.
  std::vector<LinkUse> both = links.uses(over(CollectiveKind::kAllReduce, {"data", "model"}, 800));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_DOUBLE_EQ(both[0].seconds, 2 * 600 / 100.0 + 6 * 0.5);
  EXPECT_DOUBLE_EQ(both[1].seconds, 4 * 200 / 10.0 + 2 * 2);
  // Half of what a device sends goes to the other process.
  both = links.uses(over(CollectiveKind::kAllToAll, {"data", "model"}, 800));
  EXPECT_DOUBLE_EQ(both[1].seconds, 4 * 400 / 10.0 + 1 * 2);
}

TEST(LinkUse, OnlyDevicesThatSendToAnotherProcessShareItsLink) {
  Collective one = over(CollectiveKind::kCollectivePermute, {"x"}, 100);
  one.shifts = {{.axes = {"x"}, .by = 1, .wraps = true}};
  EXPECT_DOUBLE_EQ(on_two_processes(Mesh({{"x", 8}})).seconds(one), 100 / 10.0 + 2);  // 3 and 7
  LinkModel interleaved = on_two_processes(Mesh({{"x", 8}}, {0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_DOUBLE_EQ(interleaved.seconds(one), 4 * 100 / 10.0 + 2);
  one.shifts[0].by = 2;  // to a device of the same process
  EXPECT_DOUBLE_EQ(interleaved.seconds(one), 100 / 100.0 + 0.5);
}

TEST(LinkUse, ProcessesOnATorus) {
  Topology topology = grid();
  LinkOptions given{.between_processes = LinkFigures{10, 0}};
  LinkModel links(round_figures(), Mesh({{"y", 4}, {"x", 4}}), topology,
                  ProcessMap::divided(topology, 4).value(), given);  // each has a row
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllReduce, {"x"}, 400)), 600 / 50.0);
  EXPECT_DOUBLE_EQ(links.seconds(over(CollectiveKind::kAllReduce, {"y"}, 400)), 4 * 600 / 10.0);
  EXPECT_EQ(links.figures().sources.back(), "given: link of a process 10 B/s");
}

TEST(LinkUse, NothingForNothing) {
  LinkModel links = on_grid();
  EXPECT_TRUE(links.uses(over(CollectiveKind::kAllReduce, {}, 400)).empty());
  EXPECT_TRUE(links.uses(over(CollectiveKind::kAllReduce, {"x"}, 0)).empty());
  Collective send = over(CollectiveKind::kSend, {}, 100);
  send.axes = std::nullopt;
  send.form = CollectiveForm::kAcrossSlices;
  EXPECT_EQ(links.uses(send)[0].link, "DCN");
  send.kind = CollectiveKind::kReceive;
  EXPECT_TRUE(links.uses(send).empty());  // counted at the sender
}

}  // namespace
}  // namespace meshard
