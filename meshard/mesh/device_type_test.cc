#include "meshard/mesh/device_type.h"

#include <gtest/gtest.h>

#include "meshard/mesh/submeshes.h"

namespace meshard {
namespace {

class DeviceType : public testing::Test {
 protected:
  void TearDown() override { internal::set_default_device_types({}); }
  Mesh plain{{{"x", 2}, {"y", 2}}};
  Mesh cpu = plain.with_device_type("cpu"), cuda = plain.with_device_type("cuda");
};

TEST_F(DeviceType, DevicesOfTwoPlatformsAreDifferent) {
  EXPECT_FALSE(same_platform(cpu, cuda));
  EXPECT_FALSE(cpu.same_devices(cuda));
  EXPECT_FALSE(cpu["x"].same_devices(cuda["x"]));
  EXPECT_TRUE(cuda.same_devices(cuda.permute({"y", "x"})));
  EXPECT_EQ(overlap(cpu, cuda), Overlap::kNone);
  EXPECT_EQ(overlap(cpu, *cuda.submesh({"x"}, 0)), Overlap::kNone);
  EXPECT_EQ(overlap(*cuda.submesh({"x"}, 0), cuda), Overlap::kFirstInSecond);
}

TEST_F(DeviceType, WithoutATypeAMeshFitsAnyAsLongAsNoDefaultIsKnown) {
  EXPECT_TRUE(same_platform(plain, cpu));
  EXPECT_TRUE(same_platform(cuda, plain));
  EXPECT_TRUE(plain.same_devices(cuda));
  EXPECT_EQ(platform_name(plain), "any");
  EXPECT_EQ(platform_name(cuda), "cuda");
}

TEST_F(DeviceType, WithoutATypeAMeshIsForTheDefaultPlatform) {
  internal::set_default_device_types({"cpu", "host"});
  EXPECT_TRUE(plain.same_devices(cpu));
  EXPECT_TRUE(plain.same_devices(plain.with_device_type("host")));
  EXPECT_TRUE(cpu.same_devices(plain.with_device_type("host")));
  EXPECT_FALSE(plain.same_devices(cuda));
  EXPECT_EQ(overlap(plain, cpu), Overlap::kSame);
  EXPECT_EQ(overlap(plain, cuda), Overlap::kNone);
  EXPECT_EQ(platform_name(plain), "cpu");
  internal::set_default_device_types({"cuda"});
  EXPECT_TRUE(plain.same_devices(cuda));
  EXPECT_FALSE(plain.same_devices(cpu));
}

}  // namespace
}  // namespace meshard
