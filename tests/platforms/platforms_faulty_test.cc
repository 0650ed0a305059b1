// Makes plugin calls of one platform fail in turn; the other platform must continue to work.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "tests/faulty_plugin/control.h"
#include "tests/platforms/two_platforms.h"

namespace meshard {
namespace {

void* faulty() {
  static void* library = ::dlopen(MESHARD_FAULTY, RTLD_NOW);
  return library;
}

void set(const Fault* fault) {
  reinterpret_cast<decltype(&faulty_set)>(::dlsym(faulty(), "faulty_set"))(fault);
}
int hits() { return reinterpret_cast<decltype(&faulty_hits)>(::dlsym(faulty(), "faulty_hits"))(); }

// `second` is the default plugin, wrapped by the faulty one.
class PlatformsWithFaults : public testing::Test {
 protected:
  void SetUp() override {
    std::string real = pjrt::find_plugins().first("cpu").value_or("");
    if (real.empty()) GTEST_SKIP() << "no CPU plugin (meshard fetch cpu)";
    ::setenv("MESHARD_FAULTY_PLUGIN", real.c_str(), 1);
    static const bool configured =
        configure_runtime(
            {.platforms = {{.device_type = "second", .plugin = MESHARD_FAULTY, .cpu_devices = 4}}})
            .ok();
    ASSERT_TRUE(configured);
    ASSERT_NE(faulty(), nullptr);
  }
  void TearDown() override {
    if (faulty()) set(nullptr);
  }

  // A round trip, which computes 3 x + 1 for each element.
  std::vector<float> round_trip(const Tensor& x) {
    Tensor there = transfer(x * 2, second_, P("x"));
    Tensor back = transfer(step_(there), first_, P("x"));
    return (back + x).to_vector<float>();
  }

  const Mesh first_{{{"x", 4}}}, second_ = first_.with_device_type("second");
  Jit<std::function<Tensor(Tensor)>> step_{
      jit(std::function<Tensor(Tensor)>([](Tensor v) { return sum(v) * 0 + v + 1; }))};
};

TEST_F(PlatformsWithFaults, EveryCallOfTheSecondPlatformFails) {
  Tensor x = mark_sharding(from_host(std::vector<float>{0, 1, 2, 3}, {4}), first_, P("x"));
  const std::vector<float> expected{1, 4, 7, 10};
  ASSERT_EQ(round_trip(x), expected);
  for (FaultKind kind : {kFaultError, kFaultErrorEvent, kFaultLate}) {
    int failures = 0, k = 1;
    for (;; ++k) {
      ASSERT_LT(k, 500);
      Fault fault{kind, k, nullptr, -1, 8, "injected", 1};
      set(&fault);
      try {
        EXPECT_EQ(round_trip(x), expected) << "call " << k;
      } catch (const Error& error) {
        ++failures;
        EXPECT_NE(std::string(error.what()).find("injected"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("of second"), std::string::npos) << error.what();
      }
      bool hit = hits() > 0;
      set(nullptr);
      // The first platform is not affected.
      EXPECT_EQ((x * 2).to_vector<float>()[3], 6);
      EXPECT_FALSE(runtime_client().is_wedged());
      if (runtime_client("second").is_wedged()) restart_runtime();
      EXPECT_EQ(round_trip(x), expected) << "after call " << k;
      if (!hit) break;
    }
    EXPECT_GT(k, 5);
    EXPECT_EQ(failures > 0, kind != kFaultLate);
  }
}

}  // namespace
}  // namespace meshard
