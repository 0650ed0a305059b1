// A fixture for tests of the runtime with the machine's real plugin.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>

#include "meshard/pjrt/client.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

/// Skips the test, with a message, if there is no plugin, or fewer devices than the test needs.
class OnPlugin : public testing::Test {
 protected:
  explicit OnPlugin(std::size_t least_devices = 8) : least_devices_(least_devices) {}
  void SetUp() override {
    // Programs of earlier runs would hide what compiles.
    ::setenv("MESHARD_PROGRAM_CACHE_MB", "0", /*overwrite=*/0);
    install_runtime();
    try {
      if (runtime_client().device_count() < least_devices_)
        GTEST_SKIP() << "fewer than " << least_devices_ << " devices";
    } catch (const Error& error) {
      GTEST_SKIP() << "no plugin: " << error.what();
    }
    before_ = runtime_counters();
  }
  /// The runtime's counters since the test began, or since restart().
  RuntimeCounters done() const { return runtime_counters() - before_; }
  void restart() { before_ = runtime_counters(); }

 private:
  std::size_t least_devices_;
  RuntimeCounters before_;
};

}  // namespace meshard
