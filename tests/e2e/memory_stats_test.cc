// The memory in use on real devices.
#include <gmock/gmock.h>

#include <sstream>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

class Memory : public OnPlugin {
 protected:
  static double live(std::int64_t device) {
    sync();
    return static_cast<double>(memory_stats(device).live_bytes);
  }
};

// Large, because small buffers of earlier tests may be released at any time.
constexpr std::int64_t kElements = 1 << 20;
constexpr double kBytes = 4 << 20, kOthers = kBytes / 4;

TEST_F(Memory, CountsTheBuffersOfEachDevice) {
  double first = live(2), second = live(3);
  {
    Tensor x = mark_sharding(ones({2, kElements}) * 1, Mesh({{"x", 2}}, {2, 3}), P("x"));
    sync(x);
    EXPECT_NEAR(live(2) - first, kBytes, kOthers);
    EXPECT_NEAR(live(3) - second, kBytes, kOthers);
  }
  EXPECT_NEAR(live(2), first, kOthers);
  EXPECT_NEAR(live(3), second, kOthers);
  EXPECT_GE(memory_stats(2).peak_live_bytes, 4 * kElements);
}

TEST_F(Memory, DonatedBuffersCountOnce) {
  auto f = jit([](Tensor x) { return x + 1; }, {.donate = {0}});
  Mesh mesh({{"x", 1}}, {5});
  Tensor x = mark_sharding(ones({kElements}) * 1, mesh, P("x"));
  sync(x);
  double before = live(5);
  Tensor y = f(x);
  EXPECT_NEAR(live(5), before, kOthers);
  EXPECT_EQ(y.to_vector<float>()[0], 2);
}

TEST_F(Memory, OfAMeshInItsOrder) {
  std::vector<MemoryStats> all = memory_stats(Mesh({{"x", 3}}, {4, 0, 2}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].device, 4);
  EXPECT_EQ(all[1].device, 0);
  EXPECT_EQ(all[2].device, 2);
}

TEST_F(Memory, PrintsAndRejectsUnknownDevices) {
  std::ostringstream out;
  out << MemoryStats{.device = 1, .live_bytes = 16, .peak_live_bytes = 32, .bytes_limit = 64};
  EXPECT_EQ(out.str(), "device 1: 16 bytes live (at most 32), 64 usable");
  EXPECT_THAT([] { memory_stats(4711); },
              testing::Throws<Error>(testing::Property(&Error::what, HasSubstr("4711"))));
}

}  // namespace
}  // namespace meshard
