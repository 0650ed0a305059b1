#include "meshard/runtime/internal/across_processes/machines_as_slices.h"

#include <gtest/gtest.h>

#include "meshard/topology/tpu_topology.h"

namespace meshard::internal {
namespace {

std::vector<ProcessInfo> on(std::vector<std::string> hosts) {
  std::vector<ProcessInfo> members;
  for (std::string& host : hosts)
    members.push_back({.rank = static_cast<int>(members.size()), .host = std::move(host)});
  return members;
}

Topology one_device_each(std::int64_t processes) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < processes; ++i)
    devices.push_back({.id = 10 + i, .process_index = i, .kind = "cpu"});
  return Topology(std::move(devices));
}

TEST(MachinesAsSlices, InTheOrderOfTheirFirstProcesses) {
  Topology found = machines_as_slices(one_device_each(4), on({"zeta", "alpha", "zeta", "beta"}));
  std::vector<std::int64_t> slices;
  for (const DeviceAttributes& device : found.devices()) slices.push_back(*device.slice_index);
  EXPECT_EQ(slices, (std::vector<std::int64_t>{0, 1, 0, 2}));
  EXPECT_EQ(found.devices()[3].id, 13);
  EXPECT_EQ(found.kind(), "cpu");
}

TEST(MachinesAsSlices, OneMachineIsNoSlice) {
  Topology devices = one_device_each(2);
  EXPECT_EQ(machines_as_slices(devices, on({"alpha", "alpha"})).devices(), devices.devices());
}

TEST(MachinesAsSlices, WhatThePluginSaysIsKept) {
  Topology slices({{.id = 0, .slice_index = 5}, {.id = 1, .process_index = 1, .slice_index = 5}});
  EXPECT_EQ(machines_as_slices(slices, on({"alpha", "beta"})).devices(), slices.devices());
  Topology tpu = tpu_topology("v5e:4x4").value();
  EXPECT_EQ(machines_as_slices(tpu, on({"alpha", "beta"})).devices(), tpu.devices());
}

}  // namespace
}  // namespace meshard::internal
