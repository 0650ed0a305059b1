// A fixture for tests of the runtime with the machine's real plugin.
#pragma once
#include <gtest/gtest.h>

#include "meshard/runtime/counters.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

/// Skips the test, with a message, if there are not 8 devices.
class OnPlugin : public testing::Test {
 protected:
  void SetUp() override {
    install_runtime();
    try {
      if (runtime_client().device_count() < 8) GTEST_SKIP() << "fewer than 8 devices";
    } catch (const Error& error) {
      GTEST_SKIP() << "no plugin: " << error.what();
    }
    before_ = runtime_counters();
  }
  /// The runtime's counters since the test began, or since restart().
  RuntimeCounters done() const { return runtime_counters() - before_; }
  void restart() { before_ = runtime_counters(); }

 private:
  RuntimeCounters before_;
};

}  // namespace meshard
