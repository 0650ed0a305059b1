// Configures this process with two platforms: `cpu`, the default, and `second`.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/support/matchers.h"

namespace meshard {

/// The plugin of the platform `second`: the same as that of the default platform, or, with
/// MESHARD_TEST_SECOND_PLUGIN, another CPU plugin of this machine. Empty if there is none.
inline std::string second_plugin() {
  pjrt::PluginSearch search = pjrt::find_plugins();
  std::string first = search.first("cpu").value_or("");
  if (!std::getenv("MESHARD_TEST_SECOND_PLUGIN")) return first;
  for (const pjrt::FoundPlugin& each : search.found)
    if (each.platform == "cpu" && each.path != first) return each.path;
  return "";
}

/// Fixture with 8 devices of `cpu` and 4 of `second`. Skips, with a message, without two plugins.
class TwoPlatforms : public testing::Test {
 protected:
  static constexpr int kSecondDevices = 4;
  static bool configured() {
    static const bool done = configure_runtime({.cpu_devices = 8,
                                                .platforms = {{.device_type = "second",
                                                               .plugin = second_plugin(),
                                                               .cpu_devices = kSecondDevices}}})
                                 .ok();
    return done;
  }
  void SetUp() override {
    if (second_plugin().empty()) GTEST_SKIP() << "no second CPU plugin (meshard fetch cpu)";
    ASSERT_TRUE(configured());
    before_ = runtime_counters();
  }
  RuntimeCounters done() const { return runtime_counters() - before_; }
  void restart() { before_ = runtime_counters(); }

  /// A mesh of the second platform with one axis.
  static Mesh second(std::vector<std::int64_t> ids) {
    auto size = static_cast<std::int64_t>(ids.size());
    return Mesh({{"x", size}}, std::move(ids)).with_device_type("second");
  }
  static Mesh second() { return second({0, 1, 2, 3}); }
  static Mesh first() { return Mesh({{"x", 4}}); }
  /// 0, 1, 2, ... in any shape.
  static Tensor ramp(Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    std::iota(values.begin(), values.end(), 0.0f);
    return from_host(std::move(values), std::move(shape));
  }
  static std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

 private:
  RuntimeCounters before_;
};

}  // namespace meshard
